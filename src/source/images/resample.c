/* resample.c - see resample.h.
 *
 * A side of n pixels becomes m. In units of half a pixel of n m, old pixel k has its centre at (2k
 * + 1) m, new pixel i has its at (2i + 1) n, and the triangle around it ends at the distance 2
 * max(n, m): an old pixel's weight is how far it is from that end. The weights are divided by their
 * sum, which is smaller at the borders, where the triangle has no pixels on one side.
 */
#include "source/images/resample.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { BITS = 22 }; /* of a weight; with 8 of a pixel, and rounding, sums stay within 31 */

/* The old pixels of new pixel i: weights [n] from `first` on. */
typedef struct taps {
    int64_t first, n;
    const int32_t *weights;
} taps;

typedef struct side {
    taps *of; /* [n] */
    int64_t n;
    int32_t *weights;
} side;

/* The weight of old pixel k in new pixel i; 0 or less: none. */
static int64_t weight_of(int64_t n, int64_t m, int64_t k, int64_t i) {
    int64_t distance = (2 * k + 1) * m - (2 * i + 1) * n;
    return 2 * (n > m ? n : m) - (distance < 0 ? -distance : distance);
}

/* The first old pixel with a weight in new pixel i. */
static int64_t first_of(int64_t n, int64_t m, int64_t i) {
    int64_t k = ((2 * i + 1) * n - 2 * (n > m ? n : m) - m) / (2 * m) - 1;
    if (k < 0) k = 0;
    while (weight_of(n, m, k, i) <= 0) k++;
    return k;
}

/* Sets the weights of new pixel i, and returns their number. */
static int64_t set_weights(int64_t n, int64_t m, int64_t i, int64_t first, int32_t *to) {
    int64_t sum = 0, count = 0;
    for (int64_t k = first; k < n && weight_of(n, m, k, i) > 0; k++) sum += weight_of(n, m, k, i);
    for (int64_t k = first; k < n && weight_of(n, m, k, i) > 0; k++)
        to[count++] =
            (int32_t)((2 * (weight_of(n, m, k, i) << BITS) + sum) / (2 * sum)); /* to nearest */
    return count;
}

/* New pixels [begin, begin + count) of a side of n pixels that becomes m. */
static side make_side(int64_t n, int64_t m, int64_t begin, int64_t count) {
    size_t most = (size_t)(2 * ((n + m - 1) / m) + 2), at = 0;
    side s = {LS_NEW_ARRAY(taps, (size_t)count), count,
              LS_NEW_ARRAY(int32_t, most * (size_t)count)};
    for (int64_t i = 0; i < count; i++) {
        taps *t = &s.of[i];
        t->first = first_of(n, m, begin + i);
        t->n = set_weights(n, m, begin + i, t->first, s.weights + at);
        t->weights = s.weights + at;
        at += (size_t)t->n;
    }
    return s;
}

static void free_side(side *s) {
    free(s->of);
    free(s->weights);
}

static uint8_t to_byte(int32_t sum) {
    sum >>= BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* A row of in [.., channels] becomes one of out [columns->n, channels]. */
static void scale_columns(const side *columns, const uint8_t *in, int channels, uint8_t *out) {
    for (int64_t x = 0; x < columns->n; x++) {
        const taps *t = &columns->of[x];
        const uint8_t *from = in + t->first * channels;
        for (int c = 0; c < channels; c++) {
            int32_t sum = 1 << (BITS - 1);
            for (int64_t k = 0; k < t->n; k++) sum += t->weights[k] * from[k * channels + c];
            *out++ = to_byte(sum);
        }
    }
}

/* Rows of in, each of `width` bytes, become a row of out; sums [width] is scratch. */
static void scale_rows(const taps *t, const uint8_t *in, size_t width, int32_t *sums,
                       uint8_t *out) {
    for (size_t x = 0; x < width; x++) sums[x] = 1 << (BITS - 1);
    for (int64_t k = 0; k < t->n; k++) {
        const uint8_t *from = in + (size_t)(t->first + k) * width;
        for (size_t x = 0; x < width; x++) sums[x] += t->weights[k] * from[x];
    }
    for (size_t x = 0; x < width; x++) out[x] = to_byte(sums[x]);
}

void ls_resample(const uint8_t *in, ls_image_shape s, const ls_resample_window *w, uint8_t *out) {
    side columns = make_side(s.width, w->width, w->left, w->ncolumns);
    side rows = make_side(s.height, w->height, w->top, w->nrows);
    const taps *last = &rows.of[rows.n - 1];
    int64_t begin = rows.of[0].first, end = last->first + last->n; /* rows of in that are needed */
    size_t in_row = (size_t)s.width * (size_t)s.channels;
    size_t out_row = (size_t)w->ncolumns * (size_t)s.channels;
    uint8_t *narrow = ls_alloc((size_t)(end - begin) * out_row); /* all columns are scaled */
    int32_t *sums = LS_NEW_ARRAY(int32_t, out_row);
    for (int64_t y = begin; y < end; y++)
        scale_columns(&columns, in + (size_t)y * in_row, s.channels,
                      narrow + (size_t)(y - begin) * out_row);
    for (int64_t y = 0; y < rows.n; y++) {
        taps t = rows.of[y];
        t.first -= begin;
        scale_rows(&t, narrow, out_row, sums, out + (size_t)y * out_row);
    }
    free(sums);
    free(narrow);
    free_side(&columns);
    free_side(&rows);
}
