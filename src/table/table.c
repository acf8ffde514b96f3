/* table.c - see lockstep/table.h. */
#include "table/table_inside.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/floats.h"
#include "base/hash.h"
#include "base/locale.h"
#include "base/math.h"
#include "coll/algo/tree.h"
#include "optim/optimizer.h"
#include "optim/rowwise.h"

/* ---- opening ---- */

static ls_status refuse(const ls_table_config *c, const char *why, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "table '%.64s': %s", c->name, why);
}

static bool is_share(double x) { return x >= 0 && x < 1; }

static ls_status check_config(const ls_table_config *c, int nworkers, ls_error *e) {
    const struct {
        const char *name;
        double x, most;
    } numbers[] = {{"eps", c->eps, DBL_MAX},
                   {"lr_decay", c->lr_decay, DBL_MAX},
                   {"weight_decay", c->weight_decay, DBL_MAX},
                   {"bound", c->bound, (double)FLT_MAX / 2}};
    if (c->width < 1 || c->width > 65536) return refuse(c, "width must be 1 to 65536", e);
    if (c->rows < 0 || c->rows > (int64_t)1 << 36) return refuse(c, "rows must be 0 to 2^36", e);
    if (c->virtual_workers < nworkers || c->virtual_workers > 1 << 20)
        return ls_fail(e, LS_EINVAL,
                       "table '%.64s': virtual_workers is %d, which must be at least the number of "
                       "workers, %d, and at most 2^20",
                       c->name, c->virtual_workers, nworkers);
    if ((int)c->optimizer < 0 || c->optimizer > LS_ROW_ADAM)
        return refuse(c, "there is no such optimizer", e);
    if (!is_share(c->beta1) || !is_share(c->beta2))
        return ls_fail(e, LS_EINVAL,
                       "table '%.64s': beta1 is %g and beta2 %g; both must be at least 0 and below "
                       "1",
                       c->name, c->beta1, c->beta2);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].x >= 0 && numbers[i].x <= numbers[i].most))
            return ls_fail(e, LS_EINVAL,
                           "table '%.64s': %s is %g; it must be at least 0, and at most %g",
                           c->name, numbers[i].name, numbers[i].x, numbers[i].most);
    if (c->admit < 0 || c->admit > UINT32_MAX) return refuse(c, "admit must be 0 to 2^32 - 1", e);
    if (c->keep < 0) return refuse(c, "keep must be at least 0", e);
    return LS_OK;
}

void ls_table_describe(const ls_table_config *c, ls_buf *text) {
    static const char *const names[] = {"sgd", "adagrad", "adam"};
    ls_buf_printf(text, "width %d, rows %lld, optimizer %s, bound %.17g, seed %llu", c->width,
                  (long long)c->rows, names[c->optimizer], c->bound, (unsigned long long)c->seed);
}

/* All workers must have the same settings. */
static ls_status compare_configs(ls_group *g, const ls_table_config *c, ls_error *e) {
    ls_buf text = {0};
    int n = ls_group_size(g);
    ls_table_describe(c, &text);
    ls_buf_printf(&text, " %d %.17g %.17g %.17g %.17g %.17g %lld %lld", c->virtual_workers, c->eps,
                  c->beta1, c->beta2, c->lr_decay, c->weight_decay, (long long)c->admit,
                  (long long)c->keep);
    ls_hash own = ls_hash_bytes(text.data, text.len), *all = LS_NEW_ARRAY(ls_hash, (size_t)n);
    ls_buf_free(&text);
    ls_status s = ls_all_gather(g, &own, all, sizeof own, LS_U8, e);
    for (int i = 0; s == LS_OK && i < n; i++)
        if (!ls_hash_same(all[i], all[0]))
            s = ls_fail(e, LS_EINVAL, "table '%.64s': workers 0 and %d have different settings",
                        c->name, i);
    free(all);
    return s;
}

static ls_table_config without_defaults(const ls_table_config *config, int nworkers) {
    ls_table_config c = *config;
    if (!c.name) c.name = "table";
    if (c.virtual_workers == 0) c.virtual_workers = nworkers;
    if (c.eps == 0) c.eps = c.optimizer == LS_ROW_ADAM ? 1e-8 : 1e-10;
    if (c.beta1 == 0) c.beta1 = 0.9;
    if (c.beta2 == 0) c.beta2 = 0.999;
    if (c.admit == 0) c.admit = 1;
    return c;
}

ls_status ls_table_open(ls_group *g, const ls_table_config *config, ls_table **t_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    if (!g || !config || !t_p)
        return ls_fail(e, LS_EINVAL, "ls_table_open(): the %s is NULL",
                       !g        ? "group"
                       : !config ? "config"
                                 : "place for the table");
    int rank = ls_group_rank(g), n = ls_group_size(g);
    ls_table_config c = without_defaults(config, n);
    const ls_kernels *kernels = NULL;
    ls_exchange x;
    ls_exchange_init(&x, g);
    ls_status s = ls_kernels_pick(&kernels, e);
    if (s == LS_OK) s = check_config(&c, n, e);
    s = ls_exchange_agree(&x, s, "ls_table_open()", e);
    if (s == LS_OK) s = compare_configs(g, &c, e);
    if (s != LS_OK) {
        ls_exchange_free(&x);
        return s;
    }
    ls_table *t = LS_NEW(ls_table);
    *t = (ls_table){.group = g, .c = c, .kernels = kernels, .exchange = x};
    t->c.name = ls_strdup(c.name);
    ls_tree_range(c.virtual_workers, NULL, rank, n, &t->first, &t->end);
    ls_rows_init(&t->rows, &t->c, rank, n);
    t->added = LS_NEW_ARRAY(ls_gradients, (size_t)(t->end - t->first));
    for (int v = t->first; v < t->end; v++)
        t->added[v - t->first] = (ls_gradients){.sums.width = (size_t)c.width, .virtual_worker = v};
    t->outgoing.width = t->incoming.width = (size_t)c.width;
    *t_p = t;
    return LS_OK;
}

void ls_table_close(ls_table *t) {
    if (!t) return;
    for (int i = 0; i < t->end - t->first; i++) ls_gradients_free(&t->added[i]);
    free(t->added);
    ls_rows_free(&t->rows);
    ls_id_map_free(&t->admitted);
    ls_id_map_free(&t->scratch);
    ls_sums_free(&t->outgoing);
    ls_sums_free(&t->incoming);
    ls_exchange_free(&t->exchange);
    ls_table_room_free(&t->ids);
    ls_table_room_free(&t->order);
    ls_table_room_free(&t->sent);
    ls_table_room_free(&t->got);
    ls_table_room_free(&t->values);
    ls_table_room_free(&t->reply);
    char *name = NULL;
    memcpy(&name, &t->c.name, sizeof name);
    free(name);
    free(t);
}

void ls_table_virtual_workers(const ls_table *t, int *first_p, int *end_p) {
    if (first_p) *first_p = t ? t->first : 0;
    if (end_p) *end_p = t ? t->end : 0;
}

int64_t ls_table_clock(const ls_table *t) { return t ? t->clock : 0; }
int64_t ls_table_count(const ls_table *t) { return t ? (int64_t)t->rows.count : 0; }

ls_status ls_table_check(const ls_table *t, const char *name, ls_error *e) {
    return t ? LS_OK : ls_fail(e, LS_EINVAL, "%s(): the table is NULL", name);
}

/* rows: where they are read to, or their gradients. */
static ls_status check_ids(const ls_table *t, const int64_t *ids, size_t n, const float *rows,
                           ls_error *e) {
    if (n && (!ids || !rows))
        return ls_fail(e, LS_EINVAL, "table '%.64s': %s are NULL, but there are %zu ids", t->c.name,
                       ids ? "rows" : "ids", n);
    for (size_t i = 0; i < n; i++)
        if (!ls_rows_can_have(&t->rows, (uint64_t)ids[i]))
            return ls_fail(e, LS_EINVAL, "table '%.64s': id %lld is not one of 0 to %lld",
                           t->c.name, (long long)ids[i], (long long)t->c.rows - 1);
    return LS_OK;
}

/* ---- reading ---- */

/* The different ids of a call, in the order of their owners: t->sent. t->order [n] says where each
 * of the call's ids is among them. */
static ls_status sort_by_owner(ls_table *t, const int64_t *ids, size_t n, ls_error *e) {
    enum { AHEAD = 8 };
    ls_exchange *x = &t->exchange;
    LS_TRY(ls_table_room_take(&t->ids, n * sizeof(uint64_t), e));
    LS_TRY(ls_table_room_take(&t->order, n * 2 * sizeof(uint32_t), e));
    LS_TRY(ls_table_room_take(&t->sent, n * sizeof(uint64_t), e));
    ls_id_map_clear(&t->scratch);
    LS_TRY(ls_id_map_reserve(&t->scratch, n, e));
    uint64_t *different = t->ids.data, *sent = t->sent.data;
    uint32_t *order = t->order.data, *place = order + n;
    size_t ndifferent = 0;
    for (size_t i = 0; i < n; i++) {
        bool new = false;
        if (i + AHEAD < n) ls_id_map_prefetch(&t->scratch, (uint64_t)ids[i + AHEAD]);
        uint32_t *at = ls_id_map_put(&t->scratch, (uint64_t)ids[i], &new);
        if (new) {
            *at = (uint32_t)ndifferent;
            different[ndifferent++] = (uint64_t)ids[i];
            x->to[ls_rows_owner(&t->rows, (uint64_t)ids[i])]++;
        }
        order[i] = *at;
    }
    size_t *next = ls_exchange_places(x);
    for (size_t i = 0; i < ndifferent; i++) {
        place[i] = (uint32_t)next[ls_rows_owner(&t->rows, different[i])]++;
        sent[place[i]] = different[i];
    }
    for (size_t i = 0; i < n; i++) order[i] = place[order[i]];
    return LS_OK;
}

static ls_status read_alone(ls_table *t, const int64_t *ids, size_t n, float *rows, ls_error *e) {
    LS_TRY(check_ids(t, ids, n, rows, e));
    ls_rows_read(&t->rows, (const uint64_t *)ids, n, t->clock, rows);
    return LS_OK;
}

ls_status ls_table_read(ls_table *t, const int64_t *ids, size_t n, float *rows, ls_error *e) {
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_read", e));
    ls_exchange *x = &t->exchange;
    size_t width = (size_t)t->c.width;
    if (x->size == 1) return read_alone(t, ids, n, rows, e);
    memset(x->to, 0, (size_t)x->size * sizeof *x->to);
    ls_status s = check_ids(t, ids, n, rows, e);
    if (s == LS_OK) s = sort_by_owner(t, ids, n, e);
    LS_TRY(ls_exchange_counts(x, s, "ls_table_read()", e));
    s = ls_table_room_take(&t->got, x->nfrom * sizeof(uint64_t), e);
    if (s == LS_OK) s = ls_table_room_take(&t->reply, x->nfrom * width * sizeof(float), e);
    if (s == LS_OK) s = ls_table_room_take(&t->values, x->nto * width * sizeof(float), e);
    LS_TRY(ls_exchange_agree(x, s, "ls_table_read()", e));
    LS_TRY(ls_exchange_run(x, t->sent.data, t->got.data, 1, LS_U64, e));
    ls_rows_read(&t->rows, t->got.data, x->nfrom, t->clock, t->reply.data);
    LS_TRY(ls_exchange_back(x, t->reply.data, t->values.data, width, LS_F32, e));
    const uint32_t *order = t->order.data;
    const float *values = t->values.data;
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * width, values + order[i] * width, width * sizeof *rows);
    return LS_OK;
}

/* ---- updating ---- */

ls_status ls_table_add(ls_table *t, int virtual_worker, const int64_t *ids, size_t n,
                       const float *gradients, ls_error *e) {
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_add", e));
    if (virtual_worker < t->first || virtual_worker >= t->end)
        return ls_fail(e, LS_EINVAL,
                       "table '%.64s': virtual worker %d is not this worker's, which has %d to %d",
                       t->c.name, virtual_worker, t->first, t->end - 1);
    LS_TRY(check_ids(t, ids, n, gradients, e));
    return ls_gradients_add(&t->added[virtual_worker - t->first], ids, n, gradients, e);
}

void ls_table_discard(ls_table *t) {
    for (int i = 0; t && i < t->end - t->first; i++) ls_gradients_clear(&t->added[i]);
}

/* This worker's sums, in the order of their owners: t->outgoing. */
static ls_status sort_sums(ls_table *t, ls_error *e) {
    ls_exchange *x = &t->exchange;
    ls_sums *all = &t->incoming; /* not needed before the exchange */
    size_t n = 0, width = all->width;
    for (int i = 0; i < t->end - t->first; i++) n += t->added[i].sums.n;
    all->n = t->outgoing.n = 0;
    LS_TRY(ls_sums_reserve(all, n, e));
    LS_TRY(ls_sums_reserve(&t->outgoing, n, e));
    for (int i = 0; i < t->end - t->first; i++) {
        const ls_sums *a = &t->added[i].sums;
        if (a->n == 0) continue;
        memcpy(all->heads + all->n, a->heads, a->n * sizeof *a->heads);
        memcpy(all->rows + all->n * width, a->rows, a->n * width * sizeof *a->rows);
        all->n += a->n;
    }
    if (t->end - t->first > 1)
        LS_TRY(ls_sums_fold(all, &t->scratch, t->c.virtual_workers, t->first, t->end, e));
    for (size_t i = 0; i < all->n; i++) x->to[ls_rows_owner(&t->rows, all->heads[i].id)]++;
    size_t *next = ls_exchange_places(x);
    for (size_t i = 0; i < all->n; i++) {
        size_t at = next[ls_rows_owner(&t->rows, all->heads[i].id)]++;
        t->outgoing.heads[at] = all->heads[i];
        memcpy(t->outgoing.rows + at * width, all->rows + i * width, width * sizeof *all->rows);
    }
    t->outgoing.n = all->n;
    return LS_OK;
}

static ls_status exchange_sums(ls_table *t, ls_status own, ls_error *e) {
    ls_exchange *x = &t->exchange;
    LS_TRY(ls_exchange_counts(x, own, "ls_table_update()", e));
    t->incoming.n = 0;
    ls_status s = ls_sums_reserve(&t->incoming, x->nfrom, e);
    LS_TRY(ls_exchange_agree(x, s, "ls_table_update()", e));
    LS_TRY(ls_exchange_run(x, t->outgoing.heads, t->incoming.heads, sizeof(ls_sum_head), LS_U8, e));
    LS_TRY(ls_exchange_run(x, t->outgoing.rows, t->incoming.rows, t->incoming.width, LS_F32, e));
    t->incoming.n = x->nfrom;
    return LS_OK;
}

/* Drops the sums of ids that have been added too seldom for a row. Their new numbers are noted by
 * count_seldom() once the update is certain. */
static ls_status admit(ls_table *t, bool **admitted_p, ls_error *e) {
    const ls_sums *s = &t->incoming;
    LS_TRY(ls_id_map_reserve(&t->admitted, t->c.admit > 1 ? s->n : 0, e));
    bool *admitted = LS_NEW_ARRAY(bool, s->n);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t before = t->c.admit > 1 ? ls_id_map_get(&t->admitted, s->heads[i].id) : 0;
        if (before == LS_ID_NONE) before = 0;
        admitted[i] = (int64_t)before + s->heads[i].count >= t->c.admit ||
                      ls_rows_has(&t->rows, s->heads[i].id, t->clock);
    }
    *admitted_p = admitted;
    return LS_OK;
}

static void count_seldom(ls_table *t, uint64_t id, uint32_t count) {
    bool new = false;
    uint32_t *n = ls_id_map_put(&t->admitted, id, &new);
    *n = (new ? 0 : *n) + count;
}

/* Memory for the rows of admitted sums: their ids are in t->ids. */
static ls_status reserve_rows(ls_table *t, const bool *admitted, ls_error *e) {
    const ls_sums *s = &t->incoming;
    size_t n = 0;
    LS_TRY(ls_table_room_take(&t->ids, s->n * sizeof(uint64_t), e));
    uint64_t *ids = t->ids.data;
    for (size_t i = 0; i < s->n; i++)
        if (admitted[i]) ids[n++] = s->heads[i].id;
    return ls_rows_reserve(&t->rows, ids, n, e);
}

/* Adam on rows corrects the rate, and not the moments: eps is added to what they are. */
static ls_update_scalars scalars_of(const ls_table *t, double lr) {
    const ls_table_config *c = &t->c;
    bool adam = c->optimizer == LS_ROW_ADAM;
    const ls_optim_group g = {.beta1 = c->beta1,
                              .beta2 = c->beta2,
                              .eps = c->eps,
                              .weight_decay = c->weight_decay,
                              .lr_scale = 1,
                              .lr_decay = c->optimizer == LS_ROW_ADAGRAD ? c->lr_decay : 0};
    uint64_t updates = (uint64_t)t->clock + 1;
    if (adam)
        lr *=
            sqrt(1 - ls_math_pow_int(c->beta2, updates)) / (1 - ls_math_pow_int(c->beta1, updates));
    ls_update_scalars s = ls_optim_scalars(
        &g, &(ls_optim_step){.updates = t->clock, .lr = lr, .grad_scale = 1}, true);
    s.correct1 = s.correct2 = 1;
    return s;
}

/* g [width] is overwritten. */
static void update_row(const ls_table *t, const ls_update_scalars *s, const ls_row *row, float *g) {
    const ls_kernels *k = t->kernels;
    int64_t width = t->c.width;
    if (t->c.optimizer == LS_ROW_SGD)
        k->update[LS_RULE_SGD](width, s, g, row->values, NULL);
    else if (t->c.optimizer == LS_ROW_ADAGRAD)
        ls_rowwise_update(k, s, (size_t)width, g, row->values, row->states);
    else
        k->update[LS_RULE_ADAM](width, s, g, row->values,
                                (float *[]){row->states, row->states + width});
}

static void apply(ls_table *t, const bool *admitted, double lr) {
    enum { AHEAD = 8 };
    const ls_sums *s = &t->incoming;
    const ls_update_scalars scalars = scalars_of(t, lr);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t id = s->heads[i].id;
        if (i + 2 * AHEAD < s->n) ls_rows_prefetch_map(&t->rows, s->heads[i + 2 * AHEAD].id);
        if (i + AHEAD < s->n) ls_rows_prefetch(&t->rows, s->heads[i + AHEAD].id);
        if (!admitted[i]) {
            count_seldom(t, id, s->heads[i].count);
            continue;
        }
        if (t->c.admit > 1 && ls_id_map_get(&t->admitted, id) != LS_ID_NONE)
            ls_id_map_remove(&t->admitted, id);
        ls_row row = ls_rows_take(&t->rows, id, t->clock);
        update_row(t, &scalars, &row, s->rows + i * s->width);
        *row.age = (uint32_t)(t->clock + 1);
    }
}

/* All that can fail, before the first row changes. */
static ls_status prepare(ls_table *t, bool **admitted_p, ls_error *e) {
    int V = t->c.virtual_workers;
    LS_TRY(ls_sums_fold(&t->incoming, &t->scratch, V, 0, V, e));
    LS_TRY(admit(t, admitted_p, e));
    return reserve_rows(t, *admitted_p, e);
}

static ls_status check_rate(const ls_table *t, double lr, ls_error *e) {
    if (isfinite(lr)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "table '%.64s': lr is %g", t->c.name, lr);
}

/* All workers must have the same rate: worker 0's is compared. */
static ls_status compare_rates(ls_table *t, double lr, ls_error *e) {
    double first = lr;
    LS_TRY(ls_broadcast(t->group, &first, 1, LS_F64, 0, e));
    ls_status s = LS_OK;
    if (first != lr)
        s = ls_fail(e, LS_EINVAL, "table '%.64s': lr is %g, and %g on worker 0", t->c.name, lr,
                    first);
    return ls_exchange_agree(&t->exchange, s, "ls_table_update()", e);
}

ls_status ls_table_update(ls_table *t, double lr, ls_error *e) {
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_update", e));
    ls_exchange *x = &t->exchange;
    bool *admitted = NULL;
    ls_status s = check_rate(t, lr, e);
    memset(x->to, 0, (size_t)x->size * sizeof *x->to);
    if (s == LS_OK) s = sort_sums(t, e);
    LS_TRY(exchange_sums(t, s, e));
    LS_TRY(compare_rates(t, lr, e));
    s = ls_exchange_agree(x, prepare(t, &admitted, e), "ls_table_update()", e);
    if (s == LS_OK) {
        apply(t, admitted, lr);
        t->clock++;
        ls_rows_sweep(&t->rows, t->clock);
        ls_table_discard(t);
    }
    free(admitted);
    return s;
}
