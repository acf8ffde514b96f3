/* print_mesh.c - the table of a mesh: which workers have which layers, and slices of them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/tensor_part.h"
#include "plan/plan.h"
#include "share/mesh.h"

/* Adds the elements of the parameters that a worker's layers of the stage read, but of those in
 * `seen`, [nparams], to which it adds them: layers that share a parameter count it once. */
static size_t add_stage_params(const ls_plan *p, int stage, int worker, bool *seen) {
    const ls_share *sh = &p->share;
    int first = 0, end = 0, chunk = sh->workers[worker].first_chunk;
    size_t sum = 0;
    ls_share_stage_layers(sh, stage, &first, &end);
    for (int l = first; l < end; l++) {
        const ls_layer *x = &sh->model->layers[l];
        for (int k = 0; k < x->nparams; k++) {
            int i = x->params[k];
            bool own = sh->model->params[i].cut.chunk >= 0; /* others count once */
            if (seen[i] || ls_share_runner(sh, worker, l) != worker ||
                (!own && ls_share_layer_chunk(sh, l) != chunk))
                continue;
            seen[i] = true;
            sum += x->counts[k];
        }
    }
    return sum;
}

size_t ls_plan_stage_params(const ls_plan *p, int stage, int worker) {
    bool *seen = LS_NEW_ARRAY(bool, (size_t)p->share.model->nparams);
    size_t sum = add_stage_params(p, stage, worker, seen);
    free(seen);
    return sum;
}

size_t ls_plan_worker_params(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    const ls_pipe_schedule s = {.kind = sh->config->schedule, .workers = sh->pipe};
    int pipe = sh->workers[worker].cell / sh->beside;
    bool *seen = LS_NEW_ARRAY(bool, (size_t)sh->model->nparams);
    size_t sum = 0;
    for (int chunk = 0; chunk < sh->stages_each; chunk++)
        sum += add_stage_params(p, ls_pipe_stage(&s, pipe, chunk), worker, seen);
    free(seen);
    return sum;
}

double ls_plan_bubble(const ls_plan *p) {
    const ls_share *sh = &p->share;
    ls_pipe_schedule s = {.kind = sh->config->schedule,
                          .workers = sh->pipe,
                          .chunks = sh->stages_each,
                          .micros = sh->workers[0].nvws * sh->micros};
    return ls_pipe_bubble(&s);
}

/* "3", or "2 to 5": [first, end). */
static void print_numbers(int first, int end, char *text, size_t size) {
    snprintf(text, size, end - first == 1 ? "%d" : "%d to %d", first, end - 1);
}

static bool has_experts(const ls_plan *p) {
    int64_t first = 0, end = 0;
    const ls_part_range all = {0, INT_MAX, 0, INT_MAX};
    return ls_tensor_part_experts(p->share.model, all, 0, &first, &end);
}

int64_t ls_plan_experts_of(const ls_plan *p, int worker, char *text, size_t size) {
    const ls_share *sh = &p->share;
    const ls_worker_share *x = &sh->workers[worker];
    const ls_part_range own = {x->first_slice, x->end_slice, x->first_chunk, x->end_chunk};
    int64_t first = 0, end = 0, n = 0;
    size_t at = 0;
    for (*text = 0; ls_tensor_part_experts(sh->model, own, end, &first, &end); n += end - first) {
        if (n && at < size) at += (size_t)snprintf(text + at, size - at, ", ");
        if (at < size) print_numbers((int)first, (int)end, text + at, size - at);
        at = strlen(text);
    }
    return n;
}

/* The width of the column of experts: that of its longest text; 0: there is none. */
static int experts_width(const ls_plan *p) {
    const ls_share *sh = &p->share;
    int most = (int)strlen("experts");
    char text[LS_PLAN_EXPERTS];
    if (!has_experts(p)) return 0;
    for (int cell = 0; cell < sh->ncells; cell++) {
        ls_plan_experts_of(p, ls_share_worker(sh, cell, 0), text, sizeof text);
        if ((int)strlen(text) > most) most = (int)strlen(text);
    }
    return most + 1;
}

/* A worker's experts, in the table's column; nothing in models without. */
static void print_experts(const ls_plan *p, int worker, int width, ls_buf *out) {
    char text[LS_PLAN_EXPERTS];
    if (width == 0) return;
    ls_plan_experts_of(p, worker, text, sizeof text);
    ls_buf_printf(out, "%-*s ", width, text);
}

static bool has_both(const ls_plan *p) { return p->share.tensor > 1 && p->share.context > 1; }

/* A worker's slices and chunks, each in a column, if other workers have others; one column is
 * always there. */
static void print_parts(const ls_plan *p, int worker, ls_buf *out) {
    const ls_share *sh = &p->share;
    const ls_worker_share *x = &sh->workers[worker];
    char slices[24] = "", chunks[24] = "";
    if (sh->tensor > 1) print_numbers(x->first_slice, x->end_slice, slices, sizeof slices);
    if (sh->context > 1) print_numbers(x->first_chunk, x->end_chunk, chunks, sizeof chunks);
    if (sh->tensor > 1 || !*chunks) ls_buf_printf(out, "%-8s ", slices);
    if (*chunks) ls_buf_printf(out, "%-8s ", chunks);
}

/* "2", "2 to 5", or "2, 4 to 6" where workers between them have other slices. */
static void print_stage(const ls_plan *p, int cell, int stage, int width, ls_buf *out) {
    const ls_share *sh = &p->share;
    const ls_layer *layers = sh->model->layers;
    int first = 0, end = 0, data = sh->data, beside = sh->beside;
    int worker = ls_share_worker(sh, cell, 0), last = ls_share_worker(sh, cell, data - 1);
    char workers[48], names[2 * LS_NAME + 8];
    ls_share_stage_layers(sh, stage, &first, &end);
    snprintf(workers, sizeof workers,
             data == 1    ? "%d"
             : beside > 1 ? "%d, %d to %d"
                          : "%d to %d",
             worker, beside > 1 ? worker + beside : last, last);
    snprintf(names, sizeof names, first + 1 == end ? "%s" : "%s to %s", layers[first].name,
             layers[end - 1].name);
    ls_buf_printf(out, "  %-12s %5d  ", workers, stage);
    print_parts(p, worker, out);
    print_experts(p, worker, width, out);
    ls_buf_printf(out, "%-36s %14zu\n", names, ls_plan_stage_params(p, stage, worker));
}

static void print_degrees(const ls_plan *p, ls_buf *out) {
    const ls_share *sh = &p->share;
    int micros = sh->workers[0].nvws * sh->micros;
    ls_buf_printf(out, "  mesh: data %d, pipe %d, tensor %d", sh->data, sh->pipe, sh->tensor);
    if (sh->context > 1)
        ls_buf_printf(out, ", %s %d of %d %s", ls_share_context_title(sh->model), sh->context,
                      sh->nchunks, ls_share_chunk_name(sh->model));
    ls_buf_printf(out,
                  ", %s; %d micro-batches a worker, of which at most %d are in flight\n"
                  "  bubble: %.1f%% of a step's passes, if all stages take as long\n\n",
                  ls_pipe_name(sh->config->schedule), micros, p->in_flight,
                  100 * ls_plan_bubble(p));
}

void ls_plan_print_mesh(const ls_plan *p, ls_buf *out) {
    const ls_share *sh = &p->share;
    const ls_pipe_schedule s = {.kind = sh->config->schedule, .workers = sh->pipe};
    if (sh->ncells == 1) return;
    int width = experts_width(p);
    print_degrees(p, out);
    ls_buf_printf(out, "  %-12s %5s  %-8s %s", "workers", "stage",
                  sh->tensor > 1    ? "slices"
                  : sh->context > 1 ? ls_share_chunk_name(sh->model)
                                    : "",
                  has_both(p) ? "chunks   " : "");
    if (width) ls_buf_printf(out, "%-*s ", width, "experts");
    ls_buf_printf(out, "%-36s %14s\n", "layers", "parameters");
    for (int cell = 0; cell < sh->ncells; cell++)
        for (int chunk = 0; chunk < sh->stages_each; chunk++)
            print_stage(p, cell, ls_pipe_stage(&s, cell / sh->beside, chunk), width, out);
    ls_buf_printf(out, "\n");
}
