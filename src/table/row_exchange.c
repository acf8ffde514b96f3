/* row_exchange.c - rows between tables, windows and what a worker has fetched: see row_inside.h.
 *
 * A piece is a row of a window, or where a shard's boundary cuts the row a part of it, that one
 * worker updates. All workers know all pieces and their order, from the plan and the batch. So
 * what one worker packs for another is found by the other in the same order, without ids.
 *
 * Rows to read are asked for by their numbers: only a worker knows the samples that it
 * evaluates. */
#include <stdlib.h>
#include <string.h>

#include "base/min.h"
#include "table/row_inside.h"

typedef struct piece {
    const ls_row_window *w;
    size_t slot, first, end; /* floats of the row */
} piece;

typedef enum direction { TO_WINDOWS, TO_TABLES } direction;

typedef void visitor(ls_step_rows *, const piece *, void *arg);

/* ---- pieces ---- */

/* The part of a bucket whose rows a worker copies: what it owns; or, where all workers have all of
 * the bucket and tables are written, an equal part. */
static ls_range part_of(const ls_step_rows *r, int bucket, int worker, direction to) {
    const ls_plan *p = r->plan;
    ls_range b = ls_share_owned(&p->share, bucket, worker);
    if (p->share.shards_moments || to == TO_WINDOWS) return b;
    size_t n = b.end - b.first, w = (size_t)worker, all = (size_t)r->nworkers;
    return (ls_range){.first = b.first + n * w / all, .end = b.first + n * (w + 1) / all};
}

/* The floats of a window, from its begin, that lie in a bucket's part; empty: first >= end. */
static ls_range in_window(const ls_step_rows *r, const ls_row_window *w, ls_range part) {
    const ls_param *p = ls_row_param(r, w);
    size_t first = part.first > p->offset ? part.first - p->offset : 0;
    size_t end = part.end > p->offset ? ls_min_size(part.end - p->offset, p->count) : 0;
    return (ls_range){.first = first, .end = end};
}

static void visit_window(ls_step_rows *r, const ls_row_window *w, ls_range b, visitor *f,
                         void *arg) {
    size_t C = w->floats[0], rows = (size_t)w->n * C;
    b.end = ls_min_size(b.end, rows);
    for (size_t at = b.first; at < b.end;) {
        size_t slot = at / C, next = ls_min_size((slot + 1) * C, b.end);
        f(r, &(piece){w, slot, at - slot * C, next - slot * C}, arg);
        at = next;
    }
}

/* Calls f for each piece of a worker, in order. */
static void visit(ls_step_rows *r, int worker, direction to, visitor *f, void *arg) {
    for (int k = 0; k < r->plan->share.nbuckets; k++) {
        ls_range part = part_of(r, k, worker, to);
        for (int i = 0; i < r->nwindows; i++)
            visit_window(r, &r->windows[i], in_window(r, &r->windows[i], part), f, arg);
    }
}

/* What a piece has of buffer k: of a state with another number of floats a row, the whole row goes
 * with the row's begin. */
static ls_range of_buffer(const piece *x, int k) {
    size_t C = x->w->floats[0], each = x->w->floats[k];
    if (each == C) return (ls_range){.first = x->first, .end = x->end};
    return (ls_range){.end = x->first == 0 ? each : 0};
}

static size_t floats_of(const ls_step_rows *r, const piece *x) {
    size_t n = 0;
    for (int k = 0; k < r->nflats; k++) {
        ls_range b = of_buffer(x, k);
        n += b.end - b.first;
    }
    return n;
}

static float *row_of_table(const ls_step_rows *r, const piece *x, int k) {
    return r->t.values + x->w->at[k] + (size_t)x->w->ids[x->slot] * x->w->floats[k];
}

static float *row_of_window(const ls_step_rows *r, const piece *x, int k) {
    float *flat = r->flat->of[k] + ls_row_param(r, x->w)->offset;
    return flat + x->slot * x->w->floats[k];
}

static int home_of(const ls_step_rows *r, const piece *x) {
    return ls_row_home(r, x->w, x->w->ids[x->slot]);
}

/* ---- this worker's pieces, between a table in its memory and its window ---- */

static void copy(ls_step_rows *r, const piece *x, direction to) {
    for (int k = 0; k < r->nflats; k++) {
        ls_range b = of_buffer(x, k);
        size_t nbytes = (b.end - b.first) * sizeof(float);
        if (!nbytes) continue;
        float *table = row_of_table(r, x, k) + b.first, *window = row_of_window(r, x, k) + b.first;
        memcpy(to == TO_WINDOWS ? window : table, to == TO_WINDOWS ? table : window, nbytes);
    }
}

static bool is_kept(const ls_step_rows *r, const piece *x, direction to) {
    return to == TO_WINDOWS || ls_row_is_trained(r, x->w, (int64_t)x->slot);
}

static void copy_near(ls_step_rows *r, const piece *x, void *arg) {
    direction to = *(const direction *)arg;
    if (ls_row_is_near(r, home_of(r, x)) && is_kept(r, x, to)) copy(r, x, to);
}

/* Slots without a row are cleared. */
static void clear_rest(ls_step_rows *r) {
    for (int k = 0; k < r->plan->share.nbuckets; k++) {
        ls_range part = part_of(r, k, r->worker, TO_WINDOWS);
        for (int i = 0; i < r->nwindows; i++) {
            const ls_row_window *w = &r->windows[i];
            ls_range b = in_window(r, w, part);
            size_t C = w->floats[0], from = (size_t)w->n * C;
            if (b.first < from) b.first = from;
            for (int j = 0; b.first < b.end && j < r->nflats; j++) {
                size_t each = w->floats[j], first = b.first, end = b.end;
                if (each != C) first = (first + C - 1) / C * each, end = (end + C - 1) / C * each;
                float *flat = r->flat->of[j] + ls_row_param(r, w)->offset;
                memset(flat + first, 0, (end - first) * sizeof *flat);
            }
        }
    }
}

/* ---- messages ---- */

/* counts [workers] are known: memory for them, and places are where their parts begin. */
static ls_status place(const ls_step_rows *r, ls_row_post *p, ls_error *e) {
    size_t sum = 0;
    for (int i = 0; i < r->nworkers; i++) {
        p->places[i] = sum;
        sum += p->counts[i];
    }
    return ls_table_room_take(&p->floats, sum * sizeof(float), e);
}

static ls_status send_posts(ls_step_rows *r, ls_error *e) {
    return ls_all_to_all_v(r->group, r->out.floats.data, r->out.counts, r->in.floats.data,
                           r->in.counts, LS_F32, e);
}

/* A walk over pieces that go to or come from another worker. */
typedef struct walk {
    ls_row_post *post;
    int worker;    /* owner of these pieces */
    bool is_owner; /* this worker: what it posts goes by homes, else to `worker` */
    bool packs;
} walk;

/* The other worker of a piece; -1: it goes in no message of this worker. */
static int partner_of(const ls_step_rows *r, const walk *x, const piece *p) {
    int home = home_of(r, p);
    if (x->is_owner) return ls_row_is_near(r, home) ? -1 : home;
    return home == r->worker ? x->worker : -1;
}

static void count(ls_step_rows *r, const piece *p, void *arg) {
    const walk *x = arg;
    int partner = partner_of(r, x, p);
    if (partner >= 0) x->post->counts[partner] += floats_of(r, p);
}

static void move(ls_step_rows *r, const piece *p, void *arg) {
    const walk *x = arg;
    int partner = partner_of(r, x, p);
    if (partner < 0) return;
    /* a row that is not trained comes back to its table, and is left there */
    bool kept = x->packs || x->is_owner || is_kept(r, p, TO_TABLES);
    for (int k = 0; k < r->nflats; k++) {
        ls_range b = of_buffer(p, k);
        size_t n = b.end - b.first;
        if (!n) continue;
        float *row = x->is_owner ? row_of_window(r, p, k) : row_of_table(r, p, k);
        float *message = (float *)x->post->floats.data + x->post->places[partner];
        if (kept)
            memcpy(x->packs ? message : row + b.first, x->packs ? row + b.first : message,
                   n * sizeof *row);
        x->post->places[partner] += n;
    }
}

/* Walks over the pieces that this worker owns, or those of others whose rows it has. */
static void walk_over(ls_step_rows *r, direction to, bool owner, walk x, visitor *f) {
    x.is_owner = owner;
    x.worker = r->worker;
    if (owner) visit(r, x.worker, to, f, &x);
    for (x.worker = 0; !owner && x.worker < r->nworkers; x.worker++)
        if (!ls_row_is_near(r, x.worker)) visit(r, x.worker, to, f, &x);
}

static ls_status prepare(ls_step_rows *r, direction to, bool owner, ls_row_post *post,
                         ls_error *e) {
    memset(post->counts, 0, (size_t)r->nworkers * sizeof *post->counts);
    walk_over(r, to, owner, (walk){.post = post}, count);
    return place(r, post, e);
}

/* Rows that are in another memory than their windows. */
static ls_status exchange(ls_step_rows *r, direction to, ls_error *e) {
    bool owner_sends = to == TO_TABLES;
    LS_TRY(prepare(r, to, owner_sends, &r->out, e));
    LS_TRY(prepare(r, to, !owner_sends, &r->in, e));
    walk_over(r, to, owner_sends, (walk){.post = &r->out, .packs = true}, move);
    LS_TRY(send_posts(r, e));
    walk_over(r, to, !owner_sends, (walk){.post = &r->in}, move);
    return LS_OK;
}

ls_status ls_rows_to_windows(ls_step_rows *r, ls_error *e) {
    direction to = TO_WINDOWS;
    visit(r, r->worker, to, copy_near, &to);
    clear_rest(r);
    return r->distributed ? exchange(r, to, e) : LS_OK;
}

ls_status ls_rows_to_tables(ls_step_rows *r, ls_error *e) {
    direction to = TO_TABLES;
    visit(r, r->worker, to, copy_near, &to);
    return r->distributed ? exchange(r, to, e) : LS_OK;
}

/* ---- rows to read ---- */

static float *fetched_row(const ls_step_rows *r, const ls_row_window *w, int64_t slot) {
    return r->fetched + ls_row_param(r, w)->offset + (size_t)slot * w->floats[0];
}

/* The wanted rows in the order of their slots. next(): of one at another worker. */
typedef void wanted_row(ls_step_rows *, const ls_row_window *, int64_t slot, int home);

static void each_wanted(ls_step_rows *r, wanted_row *next) {
    for (int i = 0; i < r->nwindows; i++) {
        const ls_row_window *w = &r->windows[i];
        for (int64_t slot = 0; slot < w->n; slot++) {
            int home = ls_row_home(r, w, w->ids[slot]);
            if (w->wanted[slot] && !ls_row_is_near(r, home)) next(r, w, slot, home);
        }
    }
}

static void copy_wanted(ls_step_rows *r) {
    for (int i = 0; i < r->nwindows; i++) {
        const ls_row_window *w = &r->windows[i];
        for (int64_t slot = 0; slot < w->n; slot++) {
            if (!w->wanted[slot] || !ls_row_is_near(r, ls_row_home(r, w, w->ids[slot]))) continue;
            const float *row = r->t.values + w->at[0] + (size_t)w->ids[slot] * w->floats[0];
            memcpy(fetched_row(r, w, slot), row, w->floats[0] * sizeof *row);
            if (r->sees) w->seen[slot] = ls_row_seen(r, w, w->ids[slot]).count;
        }
    }
}

static void count_wanted(ls_step_rows *r, const ls_row_window *w, int64_t slot, int home) {
    (void)slot;
    r->asked.to[home]++;
    r->in.counts[home] += w->floats[0] + r->sees;
}

static void list_wanted(ls_step_rows *r, const ls_row_window *w, int64_t slot, int home) {
    int64_t *rows = r->ask.data;
    rows[r->next[home]++] = ls_row_param(r, w)->window.first_row + w->ids[slot];
}

static void take_wanted(ls_step_rows *r, const ls_row_window *w, int64_t slot, int home) {
    const float *row = (const float *)r->in.floats.data + r->in.places[home];
    memcpy(fetched_row(r, w, slot), row, w->floats[0] * sizeof *row);
    if (r->sees) w->seen[slot] = row[w->floats[0]];
    r->in.places[home] += w->floats[0] + r->sees;
}

/* The window of a table's row; NULL: there is no such row in this memory. */
static const ls_row_window *window_with(const ls_step_rows *r, int64_t row) {
    for (int i = 0; i < r->nwindows; i++) {
        const ls_param *p = ls_row_param(r, &r->windows[i]);
        int64_t id = row - p->window.first_row;
        if (id >= 0 && id < p->window.rows)
            return ls_row_is_near(r, ls_row_home(r, &r->windows[i], id)) ? &r->windows[i] : NULL;
    }
    return NULL;
}

/* Counts the floats of the rows that others have asked for. */
static ls_status count_asked(ls_step_rows *r, ls_error *e) {
    const int64_t *row = r->get.data;
    for (int worker = 0; worker < r->nworkers; worker++) {
        r->out.counts[worker] = 0;
        for (size_t i = 0; i < r->asked.from[worker]; i++, row++) {
            const ls_row_window *w = window_with(r, *row);
            if (!w)
                return ls_fail(e, LS_EPEER, "worker %d asks for row %lld, which is not here",
                               worker, (long long)*row);
            r->out.counts[worker] += w->floats[0] + r->sees;
        }
    }
    return LS_OK;
}

static void pack_asked(ls_step_rows *r) {
    const int64_t *rows = r->get.data;
    float *to = r->out.floats.data;
    for (size_t i = 0; i < r->asked.nfrom; i++) {
        const ls_row_window *w = window_with(r, rows[i]);
        int64_t id = rows[i] - ls_row_param(r, w)->window.first_row;
        size_t C = w->floats[0];
        memcpy(to, r->t.values + w->at[0] + (size_t)id * C, C * sizeof *to);
        to += C;
        if (r->sees) *to++ = ls_row_seen(r, w, id).count;
    }
}

ls_status ls_rows_fetch(ls_step_rows *r, bool active, bool *others_p, ls_error *e) {
    ls_exchange *x = &r->asked;
    size_t n = (size_t)r->nworkers;
    memset(x->to, 0, n * sizeof *x->to);
    memset(r->in.counts, 0, n * sizeof *r->in.counts);
    copy_wanted(r);
    each_wanted(r, count_wanted);
    x->flag = active;
    LS_TRY(ls_exchange_counts(x, LS_OK, "reading rows", e));
    if (others_p) *others_p = x->flagged;
    if (!x->flagged) return LS_OK;
    LS_TRY(ls_table_room_take(&r->ask, x->nto * sizeof(int64_t), e));
    LS_TRY(ls_table_room_take(&r->get, x->nfrom * sizeof(int64_t), e));
    r->next = ls_exchange_places(x);
    each_wanted(r, list_wanted);
    LS_TRY(ls_exchange_run(x, r->ask.data, r->get.data, 1, LS_I64, e));
    LS_TRY(count_asked(r, e));
    LS_TRY(place(r, &r->out, e));
    pack_asked(r);
    LS_TRY(place(r, &r->in, e));
    LS_TRY(send_posts(r, e));
    each_wanted(r, take_wanted);
    return LS_OK;
}
