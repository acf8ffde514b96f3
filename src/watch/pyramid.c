/* pyramid.c - see pyramid.h. */
#include "watch/pyramid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const ls_extent ls_no_extent = {NAN, NAN, NAN, NAN, 0, 0};

int64_t ls_stretch_rows(int level) { return (int64_t)LS_STRETCH << (4 * level); }

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

static ls_extent unpack(const ls_pyramid *p, const ls_stretch *s, int64_t rows) {
    if (p->rises)
        return (ls_extent){
            s->begin, s->end, s->begin, s->end, (s->begin + s->end) / 2 * (double)rows, rows};
    return (ls_extent){(double)s->low,
                       (double)s->high,
                       (double)s->first,
                       (double)s->last,
                       (double)s->mean * (double)rows,
                       rows};
}

static ls_stretch pack(const ls_pyramid *p, const ls_extent *x) {
    ls_stretch s;
    if (p->rises) {
        s.begin = x->first;
        s.end = x->last;
        return s;
    }
    s.low = (float)x->low;
    s.high = (float)x->high;
    s.first = (float)x->first;
    s.last = (float)x->last;
    s.mean = (float)(x->sum / (double)x->n);
    return s;
}

void ls_pyramid_free(ls_pyramid *p) {
    for (int i = 0; i < LS_LEVELS; i++) free(p->levels[i]);
    *p = (ls_pyramid){0};
}

static void push(ls_pyramid *p, int level, size_t at, const ls_extent *x) {
    if (at == p->room[level]) {
        p->room[level] += p->room[level] / 4 + 16;
        p->levels[level] = ls_realloc(p->levels[level], p->room[level] * sizeof(ls_stretch));
    }
    p->levels[level][at] = pack(p, x);
}

/* The extent of the last 16 rows: mostly all have values, or none. */
static ls_extent tail_extent(const double *tail) {
    ls_extent x = ls_no_extent;
    double low = tail[0], high = tail[0], sum = 0;
    bool all = true;
    for (int i = 0; i < LS_STRETCH; i++) {
        low = tail[i] < low ? tail[i] : low;
        high = tail[i] > high ? tail[i] : high;
        sum += tail[i];
        all = all && !isnan(tail[i]);
    }
    if (all) return (ls_extent){low, high, tail[0], tail[LS_STRETCH - 1], sum, LS_STRETCH};
    for (int i = 0; i < LS_STRETCH; i++) ls_extent_add(&x, tail[i]);
    return x;
}

/* A level's last stretch is complete: its extent is that of 16 of the level below. */
static void complete(ls_pyramid *p, int level) {
    size_t at = (size_t)(p->nrows / ls_stretch_rows(level)) - 1;
    ls_extent x = level ? ls_no_extent : tail_extent(p->tail);
    for (size_t i = 0; level && i < 16; i++) {
        ls_extent below = unpack(p, &p->levels[level - 1][16 * at + i], ls_stretch_rows(level - 1));
        join(&x, &below);
    }
    push(p, level, at, &x);
}

void ls_pyramid_complete(ls_pyramid *p) {
    for (int level = 0; level < LS_LEVELS && p->nrows % ls_stretch_rows(level) == 0; level++)
        complete(p, level);
}

void ls_pyramid_pad(ls_pyramid *p, int64_t nrows) {
    while (p->nrows < nrows) ls_pyramid_add(p, NAN);
}

void ls_pyramid_cut(ls_pyramid *p, int64_t nrows) {
    if (nrows < p->nrows) p->nrows = nrows;
}

/* The rows of the largest stretch that begins at `from` and ends by `to`; 0: none does. *level_p. */
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
        ls_extent next = unpack(p, &p->levels[level][from / rows], rows);
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
        if (p->levels[0][middle].end < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low * LS_STRETCH;
}
