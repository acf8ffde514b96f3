/* row_sums.c - see row_sums.h.
 *
 * The tree is that of coll/algo/tree.h: since each node of more than one leaf is split at the
 * largest power of two below its size, two leaves part at the highest bit in which their numbers
 * differ. Leaves that have no gradients of a row are left out of its sum: what would be added to
 * them passes on.
 */
#include "table/row_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ls_sums_free(ls_sums *s) {
    ls_unmap(s->heads, s->capacity * sizeof *s->heads);
    ls_unmap(s->rows, s->capacity * s->width * sizeof *s->rows);
    *s = (ls_sums){.width = s->width};
}

ls_status ls_sums_reserve(ls_sums *s, size_t n, ls_error *e) {
    ls_sums wide = {.n = s->n, .capacity = s->capacity ? s->capacity : 1024, .width = s->width};
    void *heads = NULL, *rows = NULL;
    if (n <= s->capacity) return LS_OK;
    while (wide.capacity < n) wide.capacity *= 2;
    LS_TRY(ls_map(wide.capacity * sizeof *wide.heads, "gradients of rows", &heads, e));
    ls_status status =
        ls_map(wide.capacity * wide.width * sizeof *wide.rows, "gradients of rows", &rows, e);
    if (status != LS_OK) {
        ls_unmap(heads, wide.capacity * sizeof *wide.heads);
        return status;
    }
    wide.heads = heads;
    wide.rows = rows;
    if (s->n > 0) {
        memcpy(wide.heads, s->heads, s->n * sizeof *s->heads);
        memcpy(wide.rows, s->rows, s->n * s->width * sizeof *s->rows);
    }
    ls_sums_free(s);
    *s = wide;
    return LS_OK;
}

static void add_row(float *to, const float *from, size_t width) {
    for (size_t i = 0; i < width; i++) to[i] += from[i];
}

void ls_gradients_free(ls_gradients *g) {
    ls_sums_free(&g->sums);
    ls_id_map_free(&g->places);
}

void ls_gradients_clear(ls_gradients *g) {
    g->sums.n = 0;
    ls_id_map_clear(&g->places);
}

ls_status ls_gradients_add(ls_gradients *g, const int64_t *ids, size_t n, const float *gradients,
                           ls_error *e) {
    enum { AHEAD = 8 };
    ls_sums *s = &g->sums;
    LS_TRY(ls_sums_reserve(s, s->n + n, e));
    LS_TRY(ls_id_map_reserve(&g->places, n, e));
    for (size_t i = 0; i < n; i++) {
        bool new = false;
        const float *row = gradients + i * s->width;
        if (i + AHEAD < n) ls_id_map_prefetch(&g->places, (uint64_t)ids[i + AHEAD]);
        uint32_t *at = ls_id_map_put(&g->places, (uint64_t)ids[i], &new);
        if (new) {
            *at = (uint32_t)s->n;
            s->heads[s->n] = (ls_sum_head){(uint64_t)ids[i], 1, g->virtual_worker};
            memcpy(s->rows + s->n++ * s->width, row, s->width * sizeof *row);
        } else {
            s->heads[*at].count++;
            add_row(s->rows + *at * s->width, row, s->width);
        }
    }
    return LS_OK;
}

/* ---- the tree ---- */

typedef struct fold {
    ls_sums *sums;
    int V, first, end;
    uint32_t stack[33]; /* sums that wait for others; nodes of the tree, from left to right */
    int n;
} fold;

static int first_of(const fold *f, uint32_t sum) { return f->sums->heads[sum].first; }

/* The height of the smallest node that has both leaves: 0 for a leaf alone. */
static int height_of(int a, int b) {
    unsigned differ = (unsigned)a ^ (unsigned)b;
    return differ ? 32 - __builtin_clz(differ) : 0;
}

/* Does the node at this height above the leaf lie in [first, end)? */
static bool is_inside(const fold *f, int leaf, int height) {
    int64_t size = (int64_t)1 << height, lo = leaf / size * size, hi = lo + size;
    return lo >= f->first && (hi < f->V ? hi : f->V) <= f->end;
}

/* Adds the two topmost sums if the node that has both is below this height, and may be made. */
static bool fold_top(fold *f, int below) {
    if (f->n < 2) return false;
    uint32_t left = f->stack[f->n - 2], right = f->stack[f->n - 1];
    int height = height_of(first_of(f, left), first_of(f, right));
    if (height >= below || !is_inside(f, first_of(f, left), height)) return false;
    size_t width = f->sums->width;
    add_row(f->sums->rows + left * width, f->sums->rows + right * width, width);
    f->sums->heads[left].count += f->sums->heads[right].count;
    f->n--;
    return true;
}

static void push(fold *f, uint32_t sum) {
    int below = f->n ? height_of(first_of(f, f->stack[f->n - 1]), first_of(f, sum)) : 0;
    while (fold_top(f, below)) continue;
    f->stack[f->n++] = sum;
}

enum { LEAF = 0, ALL = 64 };

/* Chains of the sums of each row, in order. */
typedef struct chains {
    uint32_t *next;  /* [n] the next sum of the same row; LS_ID_NONE */
    uint32_t *heads; /* [nrows] the first sum of each row */
    uint32_t *tails; /* [nrows] */
    size_t nrows;
} chains;

static void link_rows(const ls_sums *s, ls_id_map *map, chains *c) {
    enum { AHEAD = 8 };
    for (size_t i = 0; i < s->n; i++) {
        bool new = false;
        if (i + AHEAD < s->n) ls_id_map_prefetch(map, s->heads[i + AHEAD].id);
        uint32_t *row = ls_id_map_put(map, s->heads[i].id, &new);
        c->next[i] = LS_ID_NONE;
        if (new) {
            *row = (uint32_t)c->nrows;
            c->heads[c->nrows++] = (uint32_t)i;
        } else {
            c->next[c->tails[*row]] = (uint32_t)i;
        }
        c->tails[*row] = (uint32_t)i;
    }
}

/* Marks the sums that remain. */
static void fold_row(fold *f, const chains *c, uint32_t first, bool *remains) {
    f->n = 0;
    for (uint32_t i = first; i != LS_ID_NONE; i = c->next[i]) push(f, i);
    while (fold_top(f, ALL)) continue;
    for (int i = 0; i < f->n; i++) remains[f->stack[i]] = true;
}

static void compact(ls_sums *s, const bool *remains) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!remains[i]) continue;
        if (n != i) {
            s->heads[n] = s->heads[i];
            memcpy(s->rows + n * s->width, s->rows + i * s->width, s->width * sizeof *s->rows);
        }
        n++;
    }
    s->n = n;
}

ls_status ls_sums_fold(ls_sums *s, ls_id_map *map, int V, int first, int end, ls_error *e) {
    fold f = {.sums = s, .V = V, .first = first, .end = end};
    ls_id_map_clear(map);
    LS_TRY(ls_id_map_reserve(map, s->n, e));
    chains c = {LS_NEW_ARRAY(uint32_t, s->n), LS_NEW_ARRAY(uint32_t, s->n),
                LS_NEW_ARRAY(uint32_t, s->n), 0};
    bool *remains = LS_NEW_ARRAY(bool, s->n);
    link_rows(s, map, &c);
    for (size_t i = 0; i < c.nrows; i++) fold_row(&f, &c, c.heads[i], remains);
    compact(s, remains);
    free(c.next);
    free(c.heads);
    free(c.tails);
    free(remains);
    return LS_OK;
}
