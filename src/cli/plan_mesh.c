/* plan_mesh.c - see plan_print.h. */
#include "cli/plan_print.h"

#include "base/math.h"
#include "base/plural.h"
#include "base/print.h"
#include "base/waiting.h"
#include "perf/mesh_search.h"
#include "perf/typical.h"

static void print_json(const ls_mesh_choice *choice) {
    for (int i = 0; i < choice->n; i++) {
        const ls_mesh *m = &choice->best[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "data", m->data);
        ls_json_set_integer(o, "pipe", m->pipe);
        ls_json_set_integer(o, "tensor", m->tensor);
        ls_json_set_integer(o, "context", m->context);
        ls_json_set_integer(o, "expert", m->expert);
        ls_json_set_text(o, "schedule", ls_pipe_name(m->schedule));
        ls_json_set_integer(o, "chunks", m->stages_each);
        ls_json_set_integer(o, "zero", m->zero);
        ls_json_set_integer(o, "recompute", m->recompute);
        ls_json_set_integer(o, "micro_batch", m->micro_batch);
        ls_json_set_number(o, "step_s", m->step_s);
        ls_json_set_number(o, "bubble", m->bubble);
        ls_json_set_number(o, "exposed_s", m->exposed_s);
        ls_json_set_number(o, "received_bytes", m->received);
        ls_json_set_integer(o, "memory_bytes", (int64_t)m->memory_nbytes);
        ls_print_json(o);
    }
}

/* Columns that only models with such parts have. */
static bool has_context(const ls_config *c) { return c->parallel.context_virtual > 1; }
static bool has_expert(const ls_config *c) { return c->parallel.expert_virtual > 1; }

static void print_rows(const ls_config *c, const ls_mesh_choice *choice) {
    ls_print(
        "  data pipe tensor%s%s schedule    v zero rec micro    step s bubble exposed s   read "
        "MB  memory MB\n",
        has_context(c) ? " context" : "", has_expert(c) ? " expert" : "");
    for (int i = 0; i < choice->n; i++) {
        const ls_mesh *m = &choice->best[i];
        ls_print("  %4lld %4lld %6lld", (long long)m->data, (long long)m->pipe,
                 (long long)m->tensor);
        if (has_context(c)) ls_print(" %7lld", (long long)m->context);
        if (has_expert(c)) ls_print(" %6lld", (long long)m->expert);
        ls_print(" %-11s %1lld %4lld %3lld %5lld %9.4f %5.1f%% %9.4f %9.1f %10.1f\n",
                 m->pipe > 1 ? ls_pipe_name(m->schedule) : "-", (long long)m->stages_each,
                 (long long)m->zero, (long long)m->recompute, (long long)m->micro_batch, m->step_s,
                 100 * m->bubble, m->exposed_s, m->received / 1e6, (double)m->memory_nbytes / 1e6);
    }
}

static bool has_degrees_of(const ls_mesh *x, const ls_mesh *y) {
    return ls_mesh_by_degrees(x, y) == 0;
}

static void print_degrees(const ls_mesh *m) {
    ls_print("data %lld, pipe %lld", (long long)m->data, (long long)m->pipe);
    if (m->tensor > 1) ls_print(", tensor %lld", (long long)m->tensor);
    if (m->context > 1) ls_print(", context %lld", (long long)m->context);
    if (m->expert > 1) ls_print(", expert %lld", (long long)m->expert);
}

/* Beside the fastest with other degrees, else the second. */
static void print_why(const ls_mesh_choice *choice) {
    const ls_mesh *first = &choice->best[0], *other = NULL;
    for (int i = 1; i < choice->n && !other; i++)
        if (!has_degrees_of(&choice->best[i], first)) other = &choice->best[i];
    if (!other && choice->n > 1) other = &choice->best[1];
    ls_print("\nThe first computes for %.4f s and waits or communicates for %.4f s",
             first->compute_s, first->exposed_s);
    if (other) {
        ls_print(";\n%s (",
                 has_degrees_of(other, first) ? "the second" : "the best of other degrees");
        print_degrees(other);
        ls_print("): %.4f s and %.4f s", other->compute_s, other->exposed_s);
    }
    ls_print(".\n");
}

static void print_parts(const char *name, int64_t n) {
    if (n > 1) ls_print(", parallel.%s_virtual %lld", name, (long long)n);
}

static void print_counts(const ls_config *c, const ls_mesh_choice *n, double fit) {
    ls_print("%d mesh%s: ", n->listed, n->listed == 1 ? "" : "es");
    if (n->over) ls_print("%d need more than %g MB, ", n->over, fit);
    if (n->idle) ls_print("%d have a bubble above %.0f%%, ", n->idle, 100 * LS_MESH_MOST_BUBBLE);
    if (n->refused) ls_print("%d are refused by other settings, ", n->refused);
    ls_print("%d simulated, ", n->simulated);
    if (n->whole)
        ls_print("%d planned whole: the first ones.\n", n->whole);
    else
        ls_print(
            "none planned whole, as a step has too many actions: predicted from a part of it.\n");
    ls_print("As in the config, since they decide the bits: train.batch %lld, "
             "train.virtual_workers %lld",
             (long long)c->train.batch, (long long)c->train.virtual_workers);
    print_parts("tensor", c->parallel.tensor_virtual);
    print_parts("context", c->parallel.context_virtual);
    print_parts("expert", c->parallel.expert_virtual);
    ls_print(".\n");
}

static void print_table(const ls_config *c, int workers, double fit, const ls_mesh_choice *choice) {
    ls_buf text = {0};
    ls_print("meshes of %d worker%s, the fastest first (predicted)\n\n", workers,
             ls_plural(workers));
    print_rows(c, choice);
    print_why(choice);
    print_counts(c, choice, fit);
    ls_mesh_text(c, &choice->best[0], &text);
    ls_print("\nparallel.mesh=auto takes the first; or --set each of:\n");
    ls_buf_printf(&text, "\n");
    ls_print_text(text.data, text.len);
    ls_buf_free(&text);
}

static ls_status open_world(const cli_forecast *o, int workers, ls_machine *m, ls_forecast_world *w,
                            ls_error *e) {
    if (o->world.machine) return ls_forecast_world_open(&o->world, m, w, e);
    LS_TRY(ls_forecast_world_read(&o->world, w, e));
    ls_machine_typical(w->host_workers ? w->host_workers : workers, m);
    w->machine = m;
    return LS_OK;
}

static void print_world(const cli_forecast *o, const ls_machine *m) {
    if (o->json) return;
    if (o->world.machine)
        cli_forecast_print_world(&o->world, m);
    else
        ls_print("predicted for typical hosts, with a core for each worker; --machine FILE is for "
                 "others\n");
}

ls_status cli_mesh_print(const cli_forecast *o, const ls_config *c, int workers, double fit,
                         ls_error *e) {
    ls_machine m = {0};
    ls_forecast_world w;
    ls_mesh_choice choice;
    double limit = fit > 0 ? fit : c->parallel.memory_limit_mb;
    LS_TRY(open_world(o, workers, &m, &w, e));
    ls_waiting_begin(LS_WAITING_NS, "choosing a mesh for %d workers", workers);
    ls_status s = ls_forecast_world_check(&w, workers, e);
    if (s == LS_OK)
        s = ls_mesh_choose(c, workers, (size_t)ls_math_times(limit, 1e6), &w, &choice, e);
    ls_waiting_end();
    if (s == LS_OK) print_world(o, &m);
    if (s == LS_OK && o->json)
        print_json(&choice);
    else if (s == LS_OK)
        print_table(c, workers, limit, &choice);
    ls_machine_free(&m);
    return s;
}
