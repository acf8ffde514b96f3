/* print_mesh.c - the table of a mesh: which workers have which layers, and slices of them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/tensor_part.h"
#include "plan/plan.h"

static const char *const schedules[] = {ls_pipe_kind_words(LS_CHOICE_WORD)};

const char *ls_pipe_name(ls_pipe_kind kind) { return schedules[kind]; }

/* Adds the elements of the parameters that a worker's layers of the stage read, but of those in
 * `seen`, [nparams], to which it adds them: layers that share a parameter count it once. */
static size_t add_stage_params(const ls_plan *p, int stage, int worker, bool *seen) {
    int first = 0, end = 0, chunk = 0, last = 0;
    size_t sum = 0;
    ls_plan_stage_layers(p, stage, &first, &end);
    ls_plan_chunks_of(p, worker, &chunk, &last);
    for (int l = first; l < end; l++) {
        const ls_layer *x = &p->c.model->layers[l];
        for (int k = 0; k < x->nparams; k++) {
            int i = x->params[k];
            bool own = p->c.model->params[i].cut.chunk >= 0; /* others count once */
            if (seen[i] || ls_plan_runner(p, worker, l) != worker ||
                (!own && ls_plan_layer_chunk(p, l) != chunk))
                continue;
            seen[i] = true;
            sum += x->counts[k];
        }
    }
    return sum;
}

size_t ls_plan_stage_params(const ls_plan *p, int stage, int worker) {
    bool *seen = LS_NEW_ARRAY(bool, (size_t)p->c.model->nparams);
    size_t sum = add_stage_params(p, stage, worker, seen);
    free(seen);
    return sum;
}

size_t ls_plan_worker_params(const ls_plan *p, int worker) {
    const ls_pipe_schedule s = {.kind = p->c.schedule, .workers = ls_plan_pipe(p)};
    int pipe = ls_plan_rank(p, worker) / ls_plan_beside(p);
    bool *seen = LS_NEW_ARRAY(bool, (size_t)p->c.model->nparams);
    size_t sum = 0;
    for (int chunk = 0; chunk < ls_plan_stages_each(p); chunk++)
        sum += add_stage_params(p, ls_pipe_stage(&s, pipe, chunk), worker, seen);
    free(seen);
    return sum;
}

double ls_plan_bubble(const ls_plan *p) {
    ls_pipe_schedule s = {.kind = p->c.schedule,
                          .workers = ls_plan_pipe(p),
                          .chunks = ls_plan_stages_each(p),
                          .micros = ls_plan_nvws(p, 0) * ls_plan_micros(p)};
    return ls_pipe_bubble(&s);
}

/* "3", or "2 to 5": [first, end). */
static void print_numbers(int first, int end, char *text, size_t size) {
    snprintf(text, size, end - first == 1 ? "%d" : "%d to %d", first, end - 1);
}

static bool has_experts(const ls_plan *p) {
    int64_t first = 0, end = 0;
    const ls_part_range all = {0, INT_MAX, 0, INT_MAX};
    return ls_tensor_part_experts(p->c.model, all, 0, &first, &end);
}

int64_t ls_plan_experts_of(const ls_plan *p, int worker, char *text, size_t size) {
    ls_part_range own;
    int64_t first = 0, end = 0, n = 0;
    size_t at = 0;
    ls_plan_slices(p, ls_plan_rank(p, worker), &own.slice, &own.slice_end);
    ls_plan_chunks_of(p, worker, &own.chunk, &own.chunk_end);
    for (*text = 0; ls_tensor_part_experts(p->c.model, own, end, &first, &end); n += end - first) {
        if (n && at < size) at += (size_t)snprintf(text + at, size - at, ", ");
        if (at < size) print_numbers((int)first, (int)end, text + at, size - at);
        at = strlen(text);
    }
    return n;
}

/* Of the column of experts: as wide as its longest text; 0: there is none. */
static int experts_width(const ls_plan *p) {
    int most = (int)strlen("experts");
    char text[LS_PLAN_EXPERTS];
    if (!has_experts(p)) return 0;
    for (int rank = 0; rank < ls_plan_ranks(p); rank++) {
        ls_plan_experts_of(p, ls_plan_worker(p, rank, 0), text, sizeof text);
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

static bool has_both(const ls_plan *p) { return ls_plan_tensor(p) > 1 && ls_plan_context(p) > 1; }

/* A worker's slices and chunks, each in a column, if other workers have others; one column is always
 * there. */
static void print_parts(const ls_plan *p, int worker, ls_buf *out) {
    int first = 0, end = 0;
    char slices[24] = "", chunks[24] = "";
    ls_plan_slices(p, ls_plan_rank(p, worker), &first, &end);
    if (ls_plan_tensor(p) > 1) print_numbers(first, end, slices, sizeof slices);
    ls_plan_chunks_of(p, worker, &first, &end);
    if (ls_plan_context(p) > 1) print_numbers(first, end, chunks, sizeof chunks);
    if (ls_plan_tensor(p) > 1 || !*chunks) ls_buf_printf(out, "%-8s ", slices);
    if (*chunks) ls_buf_printf(out, "%-8s ", chunks);
}

/* "2", "2 to 5", or "2, 4 to 6" where workers between them have other slices. */
static void print_stage(const ls_plan *p, int rank, int stage, int width, ls_buf *out) {
    const ls_layer *layers = p->c.model->layers;
    int first = 0, end = 0, data = ls_plan_data(p), beside = ls_plan_beside(p);
    int worker = ls_plan_worker(p, rank, 0), last = ls_plan_worker(p, rank, data - 1);
    char workers[48], names[2 * LS_NAME + 8];
    ls_plan_stage_layers(p, stage, &first, &end);
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
    int micros = ls_plan_nvws(p, 0) * ls_plan_micros(p);
    ls_buf_printf(out, "  mesh: data %d, pipe %d, tensor %d", ls_plan_data(p), ls_plan_pipe(p),
                  ls_plan_tensor(p));
    if (ls_plan_context(p) > 1)
        ls_buf_printf(out, ", %s %d of %d %s", ls_plan_context_title(p), ls_plan_context(p),
                      ls_plan_nchunks(p), ls_plan_chunk_name(p));
    ls_buf_printf(out,
                  ", %s; %d micro-batches a worker, of which at most %d are in flight\n"
                  "  bubble: %.1f%% of a step's passes, if all stages take as long\n\n",
                  ls_pipe_name(p->c.schedule), micros, p->in_flight, 100 * ls_plan_bubble(p));
}

void ls_plan_print_mesh(const ls_plan *p, ls_buf *out) {
    const ls_pipe_schedule s = {.kind = p->c.schedule, .workers = ls_plan_pipe(p)};
    if (ls_plan_ranks(p) == 1) return;
    int width = experts_width(p);
    print_degrees(p, out);
    ls_buf_printf(out, "  %-12s %5s  %-8s %s", "workers", "stage",
                  ls_plan_tensor(p) > 1    ? "slices"
                  : ls_plan_context(p) > 1 ? ls_plan_chunk_name(p)
                                           : "",
                  has_both(p) ? "chunks   " : "");
    if (width) ls_buf_printf(out, "%-*s ", width, "experts");
    ls_buf_printf(out, "%-36s %14s\n", "layers", "parameters");
    for (int rank = 0; rank < ls_plan_ranks(p); rank++)
        for (int chunk = 0; chunk < ls_plan_stages_each(p); chunk++)
            print_stage(p, rank, ls_pipe_stage(&s, rank / ls_plan_beside(p), chunk), width, out);
    ls_buf_printf(out, "\n");
}
