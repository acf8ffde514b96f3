/* mesh_search.c - see mesh_search.h. */
#include "perf/mesh_search.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/math.h"
#include "base/plural.h"
#include "networks/network.h"
#include "perf/bound.h"
#include "perf/mesh_trial.h"
#include "perf/typical.h"
#include "share/stages.h"

/* Meshes with the same degrees and schedule are of one shape. The most that are simulated, of all
 * and of one shape. */
enum { MOST_TRIALS = 50, MOST_OF_SHAPE = 3 };
/* Calls of layers in these plans, at most: while there are fewer than LS_MESH_BEST shapes, some
 * times as many, and while none fits, many times. */
static const double MOST_CALLS = 50e3, CALLS_FOR_SHAPES = 5, CALLS_FOR_ONE = 20;
/* Shapes that are tried with other values of the keys, at most: the best ones, whose steps are at
 * most NEAR times as long as the best one's; and calls of layers in these trials. */
enum { MOST_REFINED = 4 };
static const double NEAR = 1.15, CALLS_FOR_REFINING = 120e3;
/* Calls of layers in the whole plans of all that are printed, and of one of them. */
static const double CALLS_FOR_WHOLE = 400e3, CALLS_OF_WHOLE = 300e3;
/* Steps that differ by less take as long: then the mesh that needs less memory is better. */
static const double SAME = 0.005;

typedef struct search {
    const ls_config *c;
    int nworkers;
    size_t limit;
    const ls_forecast_world *w;
    ls_model model;
    ls_mesh *list; /* [n] what is not dropped */
    int n;
    ls_mesh *tried; /* [ntried] */
    int ntried, capacity;
    ls_mesh *all;  /* those that were in the list before some were tried */
    ls_mesh least; /* the mesh that needs least memory; pipe 0: there is none */
    ls_mesh_choice choice;
    char refusal[sizeof((ls_error *)NULL)->msg]; /* of the first that was refused; "": none was */
} search;

/* ---- dropping ---- */

/* Sets the bounds of all meshes, and drops those that the model can't be cut into. */
static ls_status bound(search *s, ls_error *e) {
    ls_bounds *b = NULL;
    int n = 0;
    LS_TRY(ls_bounds_open(s->c, &s->model, s->nworkers, s->w, &b, e));
    ls_status status = LS_OK;
    for (int i = 0; i < s->n && status == LS_OK; i++) {
        bool can = false;
        status = ls_bounds_of(b, &s->list[i], &can, e);
        if (status == LS_OK && can) s->list[n++] = s->list[i];
    }
    ls_bounds_free(b);
    s->n = n;
    return status;
}

static void drop_large(search *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const ls_mesh *m = &s->list[i];
        if (!s->least.pipe || m->least_nbytes < s->least.least_nbytes) s->least = *m;
        if (s->limit && m->least_nbytes > s->limit)
            s->choice.over++;
        else
            s->list[n++] = *m;
    }
    s->n = n;
}

/* If all have a large bubble, as where a batch has few micro-batches, none is dropped for it. */
static void drop_idle(search *s) {
    int n = 0, idle = 0;
    for (int i = 0; i < s->n; i++) idle += s->list[i].bubble > LS_MESH_MOST_BUBBLE;
    if (idle == s->n) return;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].bubble <= LS_MESH_MOST_BUBBLE) s->list[n++] = s->list[i];
    s->choice.idle = idle;
    s->n = n;
}

/* ---- ranking ---- */

static int by_estimate(const void *a, const void *b) {
    const ls_mesh *x = a, *y = b;
    if (x->least_s != y->least_s) return x->least_s < y->least_s ? -1 : 1;
    int degrees = ls_mesh_by_degrees(x, y);
    if (degrees) return degrees;
    if (x->zero != y->zero) return x->zero < y->zero ? -1 : 1;
    return (x->least_nbytes > y->least_nbytes) - (x->least_nbytes < y->least_nbytes);
}

static int by_step(const void *a, const void *b) {
    const ls_mesh *x = a, *y = b;
    if (x->step_s != y->step_s) return x->step_s < y->step_s ? -1 : 1;
    return ls_mesh_by_shape(x, y);
}

static int by_shape_and_memory(const void *a, const void *b) {
    const ls_mesh *x = a, *y = b;
    int shape = ls_mesh_by_shape(x, y);
    if (shape) return shape;
    return (x->memory_nbytes > y->memory_nbytes) - (x->memory_nbytes < y->memory_nbytes);
}

/* Leaves the best of each shape, the fastest first. */
static void sort_best(search *s) {
    int n = 0;
    if (s->n) qsort(s->list, (size_t)s->n, sizeof *s->list, by_shape_and_memory);
    for (int i = 0; i < s->n; i++) {
        const ls_mesh m = s->list[i];
        bool begins = n == 0 || ls_mesh_by_shape(&s->list[n - 1], &m) != 0;
        if (begins || m.step_s < s->list[n - 1].step_s * (1 - SAME))
            s->list[begins ? n++ : n - 1] = m;
    }
    s->n = n;
    if (n) qsort(s->list, (size_t)n, sizeof *s->list, by_step);
}

static void note_tried(search *s, const ls_mesh *m) {
    if (s->ntried == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->tried = ls_realloc(s->tried, (size_t)s->capacity * sizeof *s->tried);
    }
    s->tried[s->ntried++] = *m;
}

static bool is_tried(const search *s, const ls_mesh *m) {
    for (int i = 0; i < s->ntried; i++) {
        const ls_mesh *x = &s->tried[i];
        if (ls_mesh_by_shape(m, x) == 0 && m->zero == x->zero && m->recompute == x->recompute &&
            m->micro_batch == x->micro_batch)
            return true;
    }
    return false;
}

/* Simulates a part of a step, or (whole) all of it. *fits_p: the mesh is possible, and within the
 * limit. */
static ls_status try_mesh(search *s, ls_mesh *m, bool whole, bool *fits_p, ls_error *e) {
    bool possible = false;
    ls_error why = {0};
    ls_status status = whole ? ls_mesh_plan(s->c, s->nworkers, s->w, m, &possible, &why)
                             : ls_mesh_try(s->c, s->nworkers, s->w, m, &possible, &why);
    if (status != LS_OK) return ls_fail(e, status, "%s", why.msg);
    *fits_p = possible && !(s->limit && m->memory_nbytes > s->limit);
    if (!whole) note_tried(s, m);
    s->choice.refused += !possible;
    s->choice.simulated += possible && !whole;
    s->choice.whole += possible && whole;
    s->choice.over += possible && !*fits_p;
    if (!possible && !*s->refusal) snprintf(s->refusal, sizeof s->refusal, "%s", why.msg);
    if (possible && (!s->least.memory_nbytes || m->memory_nbytes < s->least.memory_nbytes))
        s->least = *m;
    return LS_OK;
}

/* Is the mesh like one that was over the limit, with nothing that needs less memory? */
static bool is_over(const ls_mesh *m, const ls_mesh *over, int n) {
    for (int i = 0; i < n; i++)
        if (ls_mesh_by_shape(m, &over[i]) == 0 && m->zero <= over[i].zero &&
            m->recompute <= over[i].recompute && m->micro_batch >= over[i].micro_batch)
            return true;
    return false;
}

/* How many of a mesh's shape are in a list. */
static int count_shape(const ls_mesh *m, const ls_mesh *list, int n) {
    int same = 0;
    for (int i = 0; i < n; i++) same += ls_mesh_by_shape(m, &list[i]) == 0;
    return same;
}

/* Tries the best by their estimates, and leaves in the list those that fit. */
static ls_status try_best(search *s, ls_error *e) {
    ls_mesh *over = LS_NEW_ARRAY(ls_mesh, (size_t)s->n);
    double calls = 0;
    int fit = 0, shapes = 0, nover = 0, end = s->n;
    ls_status status = LS_OK;
    if (end) qsort(s->list, (size_t)end, sizeof *s->list, by_estimate);
    for (int i = 0; i < end && status == LS_OK; i++) {
        bool fits = false;
        ls_mesh m = s->list[i];
        bool enough = s->choice.simulated >= MOST_TRIALS || calls > MOST_CALLS;
        double most = MOST_CALLS * (fit ? CALLS_FOR_SHAPES : CALLS_FOR_ONE);
        int same = count_shape(&m, s->list, fit), was = s->choice.over;
        if ((shapes >= LS_MESH_BEST && enough) || calls > most) break;
        if (same >= MOST_OF_SHAPE || (same && enough)) continue;
        if (is_over(&m, over, nover)) {
            s->choice.over++;
            continue;
        }
        calls += ls_mesh_trial_calls(s->c, &s->model, &m);
        status = try_mesh(s, &m, false, &fits, e);
        if (fits) s->list[fit++] = m;
        shapes += fits && same == 0;
        if (s->choice.over > was) over[nover++] = m;
    }
    free(over);
    s->n = fit;
    sort_best(s);
    return status;
}

/* ---- the best, again ---- */

/* Does m differ from the best mesh only in the value of zero, or of micro_batch? */
static bool is_beside(const ls_mesh *m, const ls_mesh *best) {
    return ls_mesh_by_shape(m, best) == 0 && m->recompute == best->recompute &&
           (m->zero == best->zero || m->micro_batch == best->micro_batch);
}

/* all [n]: what was not dropped. */
static ls_status refine(search *s, const ls_mesh *all, int n, ls_error *e) {
    double calls = 0;
    for (int i = 0; i < s->n && i < MOST_REFINED; i++) {
        ls_mesh *best = &s->list[i];
        if (best->step_s > NEAR * s->list[0].step_s) break;
        for (int k = 0; k < n && calls < CALLS_FOR_REFINING; k++) {
            bool fits = false;
            ls_mesh m = all[k];
            if (!is_beside(&m, best) || is_tried(s, &m)) continue;
            calls += ls_mesh_trial_calls(s->c, &s->model, &m);
            LS_TRY(try_mesh(s, &m, false, &fits, e));
            if (fits && m.step_s < best->step_s * (1 - SAME)) *best = m;
        }
    }
    if (s->n) qsort(s->list, (size_t)s->n, sizeof *s->list, by_step);
    return LS_OK;
}

/* Plans the first ones whole, and leaves those that fit. A step that is too large for that is as
 * its trial predicts it. */
static ls_status plan_first(search *s, ls_error *e) {
    double calls = 0;
    int n = 0;
    for (int i = 0; i < s->n && n < LS_MESH_BEST; i++) {
        bool fits = false;
        ls_mesh m = s->list[i];
        double own = ls_mesh_plan_calls(s->c, &s->model, &m);
        if (i == 0 && own > CALLS_OF_WHOLE) return LS_OK;
        if (own > CALLS_OF_WHOLE || (n && calls + own > CALLS_FOR_WHOLE)) continue;
        calls += own;
        LS_TRY(try_mesh(s, &m, true, &fits, e));
        if (fits) s->list[n++] = m;
    }
    s->n = n;
    if (n) qsort(s->list, (size_t)n, sizeof *s->list, by_step);
    return LS_OK;
}

/* ---- refusing ---- */

static bool can_form(const ls_config *c, int n, int most_stages) {
    ls_mesh *list = NULL;
    int found = 0;
    ls_mesh_list(c, n, most_stages, &list, &found);
    free(list);
    return found > 0;
}

static ls_status refuse_workers(const search *s, int most_stages, ls_error *e) {
    int below = s->nworkers - 1, above = s->nworkers + 1;
    int64_t slices = s->c->parallel.tensor_virtual;
    int64_t parts = s->c->parallel.context_virtual * s->c->parallel.expert_virtual;
    int64_t all = s->c->train.virtual_workers * most_stages * slices * parts,
            most = all < 4096 ? all : 4096;
    ls_buf text = {0}, cut = {0};
    while (below > 0 && !can_form(s->c, below, most_stages)) below--;
    while (above <= most && !can_form(s->c, above, most_stages)) above++;
    if (below > 0) ls_buf_printf(&text, "%d", below);
    if (above <= most) ls_buf_printf(&text, "%s%d", text.len ? " or " : "", above);
    ls_buf_printf(&cut, "%d stage%s", most_stages, ls_plural(most_stages));
    if (slices > 1) ls_buf_printf(&cut, " and %lld slices", (long long)slices);
    if (parts > 1) ls_buf_printf(&cut, " and %lld parts", (long long)parts);
    ls_status status = ls_fail(
        e, LS_EINVAL,
        "parallel.mesh auto: %d workers form no mesh: the model can be cut into %s at most, and "
        "train.virtual_workers %lld divides the batch among as many at most; the nearest numbers "
        "of "
        "workers: %s",
        s->nworkers, cut.data, (long long)s->c->train.virtual_workers, text.data);
    ls_buf_free(&cut);
    ls_buf_free(&text);
    return status;
}

/* None fits: reports the one that needs least. */
static ls_status refuse_all(search *s, ls_error *e) {
    bool fits = false;
    ls_buf text = {0};
    if (!s->least.memory_nbytes && s->least.pipe) LS_TRY(try_mesh(s, &s->least, false, &fits, e));
    if (!s->least.memory_nbytes) return ls_fail(e, LS_EINVAL, "%s", s->refusal);
    ls_mesh_text(s->c, &s->least, &text);
    ls_status status = ls_fail(
        e, LS_ENOMEM,
        "parallel.mesh auto: no mesh of %d worker%s fits into %.1f MB a worker; the nearest needs "
        "%.1f:%s; use more workers, or allow more memory",
        s->nworkers, ls_plural(s->nworkers), (double)s->limit / 1e6,
        (double)s->least.memory_nbytes / 1e6, text.data);
    ls_buf_free(&text);
    return status;
}

/* ---- choosing ---- */

static ls_status choose(search *s, ls_error *e) {
    int most_stages = ls_stages_most(&s->model);
    ls_mesh_list(s->c, s->nworkers, most_stages, &s->list, &s->n);
    s->choice.listed = s->n;
    if (s->n == 0) return refuse_workers(s, most_stages, e);
    LS_TRY(bound(s, e));
    drop_large(s);
    drop_idle(s);
    int n = s->n;
    s->all = LS_NEW_ARRAY(ls_mesh, (size_t)n + 1);
    for (int i = 0; i < n; i++) s->all[i] = s->list[i];
    LS_TRY(try_best(s, e));
    LS_TRY(refine(s, s->all, n, e));
    LS_TRY(plan_first(s, e));
    if (s->n == 0) return refuse_all(s, e);
    s->choice.n = s->n < LS_MESH_BEST ? s->n : LS_MESH_BEST;
    for (int i = 0; i < s->choice.n; i++) s->choice.best[i] = s->list[i];
    return LS_OK;
}

ls_status ls_mesh_choose(const ls_config *c, int n, size_t limit, const ls_forecast_world *w,
                         ls_mesh_choice *choice_p, ls_error *e) {
    search s = {.c = c, .nworkers = n, .limit = limit, .w = w};
    LS_TRY(ls_network_create_cut(c, &s.model, e));
    ls_status status = choose(&s, e);
    if (status == LS_OK) *choice_p = s.choice;
    free(s.list);
    free(s.all);
    free(s.tried);
    ls_model_free(&s.model);
    return status;
}

ls_status ls_mesh_auto(ls_config *c, int n, bool distributed, ls_error *e) {
    ls_machine machine;
    ls_mesh_choice choice;
    ls_buf text = {0};
    const ls_forecast_world w = {.machine = &machine,
                                 .host_workers = distributed ? 1 : 0,
                                 .latency_s = ls_typical_latency_s,
                                 .byte_s = ls_typical_byte_s};
    ls_machine_typical(distributed ? 1 : n, &machine);
    ls_status s = ls_mesh_choose(c, n, (size_t)ls_math_times(c->parallel.memory_limit_mb, 1e6), &w,
                                 &choice, e);
    ls_machine_free(&machine);
    LS_TRY(s);
    ls_mesh_set(c, &choice.best[0]);
    ls_mesh_text(c, &choice.best[0], &text);
    ls_log("parallel.mesh auto:%s, for %d worker%s; of %d meshes it has the shortest predicted "
           "step (bubble %.1f%%, %.1f MB a worker)",
           text.data, n, ls_plural(n), choice.listed, 100 * choice.best[0].bubble,
           (double)choice.best[0].memory_nbytes / 1e6);
    ls_buf_free(&text);
    return LS_OK;
}
