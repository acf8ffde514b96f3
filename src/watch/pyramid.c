/* pyramid.c - see pyramid.h. */
#include "watch/pyramid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const ls_extent ls_no_extent = {NAN, NAN, NAN, NAN, 0, 0};

void ls_extent_add(ls_extent *x, double value) {
    if (isnan(value)) return;
    if (isnan(x->first)) x->first = x->low = x->high = value;
    if (value < x->low) x->low = value;
    if (value > x->high) x->high = value;
    x->last = value;
    x->sum += value;
    x->n++;
}

static void join(ls_extent *x, const ls_extent *next) {
    if (isnan(next->first)) return;
    if (isnan(x->first)) {
        *x = *next;
        return;
    }
    x->low = fmin(x->low, next->low);
    x->high = fmax(x->high, next->high);
    x->last = next->last;
    x->sum += next->sum;
    x->n += next->n;
}

/* The extent of a complete stretch. */
static ls_extent extent_at(const ls_pyramid *p, int level, size_t at) {
    int64_t rows = ls_stretch_rows(level);
    double n = (double)rows;
    if (p->rises) {
        const ls_rise *x = &p->levels[level].rises[at];
        return (ls_extent){x->begin, x->end, x->begin, x->end, (x->begin + x->end) / 2 * n, rows};
    }
    const ls_stretch *x = &p->levels[level].stretches[at];
    return (ls_extent){(double)x->low,  (double)x->high,     (double)x->first,
                       (double)x->last, (double)x->mean * n, rows};
}

void ls_pyramid_free(ls_pyramid *p) {
    for (int i = 0; i < LS_LEVELS; i++) free(p->levels[i].stretches);
    *p = (ls_pyramid){0};
}

static void resize(ls_pyramid *p, int level, size_t room) {
    size_t each = p->rises ? sizeof(ls_rise) : sizeof(ls_stretch);
    p->levels[level].stretches = ls_realloc(p->levels[level].stretches, room * each);
    p->room[level] = room;
}

void ls_pyramid_shrink(ls_pyramid *p) {
    for (int level = 0; level < LS_LEVELS; level++) {
        size_t n = (size_t)(p->nrows / ls_stretch_rows(level));
        if (n && n < p->room[level]) resize(p, level, n);
    }
}

static void make_room(ls_pyramid *p, int level, size_t at) {
    if (at == p->room[level]) resize(p, level, at + at / 4 + 16);
}

static ls_stretch stretch_of(const ls_extent *x) {
    return (ls_stretch){(float)x->low, (float)x->high, (float)x->first, (float)x->last,
                        (float)(x->sum / (double)x->n)};
}

/* The extent of the last 16 rows: mostly all have values, or none. */
static ls_extent tail_extent(const double *tail) {
    ls_extent x = ls_no_extent;
    double low = tail[0], high = tail[0], sum = 0;
    for (int i = 0; i < LS_STRETCH; i++) {
        low = tail[i] < low ? tail[i] : low;
        high = tail[i] > high ? tail[i] : high;
        sum += tail[i];
    }
    if (!isnan(sum)) return (ls_extent){low, high, tail[0], tail[LS_STRETCH - 1], sum, LS_STRETCH};
    for (int i = 0; i < LS_STRETCH; i++) ls_extent_add(&x, tail[i]);
    return x;
}

/* A level's last stretch is complete: its extent is that of 16 of the level below. */
static void complete(ls_pyramid *p, int level, size_t at) {
    ls_extent x = level ? ls_no_extent : tail_extent(p->tail);
    for (size_t i = 0; level && i < 16; i++) {
        ls_extent below = extent_at(p, level - 1, 16 * at + i);
        join(&x, &below);
    }
    p->levels[level].stretches[at] = stretch_of(&x);
}

static void complete_rise(ls_pyramid *p, int level, size_t at) {
    const ls_rise *below = level ? &p->levels[level - 1].rises[16 * at] : NULL;
    p->levels[level].rises[at] = level ? (ls_rise){below[0].begin, below[15].end}
                                       : (ls_rise){p->tail[0], p->tail[LS_STRETCH - 1]};
}

void ls_pyramid_complete(ls_pyramid *p) {
    for (int level = 0; level < LS_LEVELS; level++) {
        int64_t rows = ls_stretch_rows(level);
        if (p->nrows & (rows - 1)) break;
        size_t at = (size_t)(p->nrows >> (4 * level + 4)) - 1;
        make_room(p, level, at);
        if (p->rises)
            complete_rise(p, level, at);
        else
            complete(p, level, at);
    }
}

void ls_pyramid_pad(ls_pyramid *p, int64_t nrows) {
    while (p->nrows < nrows) ls_pyramid_add(p, NAN);
}

void ls_pyramid_cut(ls_pyramid *p, int64_t nrows) {
    if (nrows < p->nrows) p->nrows = nrows;
}

/* The rows of the largest stretch that begins at `from` and ends by `to`; 0: none does.
 * *level_p. */
static int64_t largest(const ls_pyramid *p, int64_t from, int64_t to, int *level_p) {
    int64_t best = 0;
    for (int level = 0; level < LS_LEVELS; level++) {
        int64_t rows = ls_stretch_rows(level);
        if (from % rows || from + rows > to || from + rows > p->nrows) break;
        best = rows;
        *level_p = level;
    }
    return best;
}

ls_extent ls_pyramid_extent(const ls_pyramid *p, int64_t from, int64_t to) {
    ls_extent x = ls_no_extent;
    if (to > p->nrows) to = p->nrows;
    while (from < to) {
        int level = 0;
        int64_t rows = largest(p, from, to, &level);
        if (!rows) break;
        ls_extent next = extent_at(p, level, (size_t)(from / rows));
        join(&x, &next);
        from += rows;
    }
    for (; from < to; from++) ls_extent_add(&x, p->tail[from % LS_STRETCH]);
    return x;
}

int64_t ls_pyramid_find(const ls_pyramid *p, double x) {
    int64_t low = 0, high = p->nrows / LS_STRETCH;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->levels[0].rises[middle].end < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low * LS_STRETCH;
}
