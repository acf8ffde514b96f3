/* pyramid.h - a series of numbers that only grows at its end, at several resolutions.
 *
 * Row i is the i-th step of a run. A stretch is 16, 256 or 4096 rows (a level each); of each
 * complete one its lowest, highest, first and last value and the mean are kept, as floats. A
 * picture of any part of the series takes as many stretches as it has columns of pixels, and no
 * value that stands out is lost. The values themselves are not kept, but for those of the last,
 * incomplete stretch: who wants single values reads the file again. So a value takes about a byte.
 *
 * A series that rises (step, tokens, hours: the x axes) has the first and last value as doubles.
 */
#ifndef LS_WATCH_PYRAMID_H
#define LS_WATCH_PYRAMID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_STRETCH = 16, LS_LEVELS = 3 };

typedef struct ls_stretch {
    float low, high, first, last, mean; /* NaN: no row has a value */
} ls_stretch;

/* Of a series that rises. */
typedef struct ls_rise {
    double begin, end;
} ls_rise;

/* Rows of a stretch of a level: 16, 256, 4096. */
static inline int64_t ls_stretch_rows(int level) { return (int64_t)LS_STRETCH << (4 * level); }

/* The extent of any rows, in doubles. NaN: they have no value. */
typedef struct ls_extent {
    double low, high, first, last, sum;
    int64_t n; /* rows that have a value, about: sum / n is their mean */
} ls_extent;

typedef struct ls_pyramid {
    bool rises; /* all rows have values */
    int64_t nrows;
    double tail[LS_STRETCH]; /* of the last, incomplete stretch */
    union {
        ls_stretch *stretches;
        ls_rise *rises;
    } levels[LS_LEVELS]; /* [nrows / ls_stretch_rows(level)] */
    size_t room[LS_LEVELS];
} ls_pyramid;

void ls_pyramid_free(ls_pyramid *);
/* The last stretch of 16 rows is complete. */
void ls_pyramid_complete(ls_pyramid *);
/* Adds a row; NaN: it has no value. */
static inline void ls_pyramid_add(ls_pyramid *p, double value) {
    p->tail[p->nrows & (LS_STRETCH - 1)] = value;
    if ((++p->nrows & (LS_STRETCH - 1)) == 0) ls_pyramid_complete(p);
}
/* Adds rows without a value until there are nrows. */
void ls_pyramid_pad(ls_pyramid *, int64_t nrows);
/* Removes all rows from this one on, which is a multiple of ls_stretch_rows(1). */
void ls_pyramid_cut(ls_pyramid *, int64_t nrows);
/* Gives back the memory that it has for further rows. */
void ls_pyramid_shrink(ls_pyramid *);

/* The extent of rows [from, to): from is a multiple of LS_STRETCH, and so is to, or it is nrows. */
ls_extent ls_pyramid_extent(const ls_pyramid *, int64_t from, int64_t to);
/* Of a series that rises: the first row, of those that begin a stretch of 16, whose stretch ends
 * at `x` or above; nrows rounded down, if all end below. */
int64_t ls_pyramid_find(const ls_pyramid *, double x);

void ls_extent_add(ls_extent *, double value); /* begin with ls_no_extent */
extern const ls_extent ls_no_extent;

#endif
