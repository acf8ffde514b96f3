/* world.c - see world.h. */
#include "plan/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "coll/local.h"

static size_t flat_nbytes(const ls_plan *p) { return p->c.model->nfloats * sizeof(float); }
static size_t norms_nbytes(const ls_plan *p) {
    return p->c.model->nfloats / LS_BLOCK * sizeof(double);
}
static size_t losses_nbytes(const ls_plan *p) { return (size_t)p->c.batch * sizeof(double); }
static size_t grads_nbytes(const ls_plan *p, int worker) {
    return (size_t)ls_plan_slots(p, worker) * flat_nbytes(p);
}

size_t ls_world_cost(const ls_plan *p) {
    size_t sum = 3 * ls_region_cost(flat_nbytes(p)) + ls_region_cost(norms_nbytes(p)) +
                 ls_region_cost(losses_nbytes(p));
    for (int w = 0; w < p->c.nworkers; w++) sum += ls_region_cost(grads_nbytes(p, w));
    return sum;
}

void ls_world_take(ls_world *w, const ls_plan *p, ls_region *r) {
    w->params = ls_region_take(r, flat_nbytes(p));
    w->m = ls_region_take(r, flat_nbytes(p));
    w->v = ls_region_take(r, flat_nbytes(p));
    w->norms = ls_region_take(r, norms_nbytes(p));
    w->losses = ls_region_take(r, losses_nbytes(p));
    w->grads = LS_NEW_ARRAY(float *, (size_t)p->c.nworkers);
    for (int i = 0; i < p->c.nworkers; i++) w->grads[i] = ls_region_take(r, grads_nbytes(p, i));
}

void ls_world_free(ls_world *w) {
    free(w->grads);
    *w = (ls_world){0};
}

static void print_row(ls_buf *out, const char *what, size_t own, size_t shared, const char *note) {
    ls_buf_printf(out, "  %-28s %12.3f %12.3f  %s\n", what, (double)own / 1e6, (double)shared / 1e6,
                  note);
}

void ls_world_print_memory(const ls_plan *p, int threads, ls_buf *out) {
    const ls_model *m = p->c.model;
    ls_arena_plan arena;
    ls_plan_arena(p, 0, &arena);
    int a = 0, b = 0;
    ls_plan_range(p, 0, &a, &b);
    size_t flat = flat_nbytes(p), n = (size_t)p->c.nworkers, grads = 0;
    for (int w = 0; w < p->c.nworkers; w++)
        if (grads_nbytes(p, w) > grads) grads = grads_nbytes(p, w);
    size_t whole = (size_t)(p->c.batch / p->c.V);
    size_t work = ls_model_work_floats(m) * (size_t)p->c.micro_batch * sizeof(float);
    size_t scratch = ls_compute_nbytes(threads, ls_model_scratch_floats(m));
    size_t tokens = 2 * (whole * (size_t)(b - a) + 1) * (size_t)(m->config.context + 1) * 4;
    size_t small = ls_local_shared_cost(p->c.nworkers) + norms_nbytes(p) + losses_nbytes(p);
    char note[128];
    ls_buf_printf(out, "  %-28s %12s %12s\n", "memory, MB", "each worker", "shared");
    print_row(out, "parameters", 0, flat, "one copy for all workers of the host");
    snprintf(note, sizeof note, "%zu sum%s of %.3f MB", grads / flat, grads == flat ? "" : "s",
             (double)flat / 1e6);
    print_row(out, "gradients", grads, 0, note);
    print_row(out, "optimizer (AdamW)", 0, 2 * flat, "each worker touches its shards");
    snprintf(note, sizeof note, "peak in action %d", arena.peak_action);
    print_row(out, "activations", arena.nbytes, 0, note);
    print_row(out, "work of a layer", work, 0, "");
    print_row(out, "scratch of threads", scratch, 0, "packed panels, attention scores");
    print_row(out, "samples", tokens, 0, "this step's and the next");
    print_row(out, "collectives", 0, small, "staging, norms, losses");
    size_t own = grads + arena.nbytes + work + scratch + tokens, shared = 3 * flat + small;
    print_row(out, "sum", own, shared, "");
    ls_buf_printf(out, "  %zu worker%s: %.3f MB in all\n", n, n == 1 ? "" : "s",
                  (double)(own * n + shared) / 1e6);
    ls_arena_plan_free(&arena);
}
