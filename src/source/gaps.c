/* gaps.c - see gaps.h. */
#include "source/gaps.h"

#include <stdlib.h>

void ls_gaps_add(ls_gaps *g, uint64_t nsamples) {
    g->before = ls_grow(g->before, g->n, sizeof *g->before);
    g->before[g->n++] = nsamples;
}

uint64_t ls_gaps_record(const ls_gaps *g, uint64_t i) {
    size_t low = 0, high = g->n; /* how many records come before sample i and have none */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->before[middle] <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return i + low;
}

void ls_gaps_put(const ls_gaps *g, ls_buf *b) {
    ls_bytes_put_array(b, g->before, g->n, sizeof *g->before);
}

void ls_gaps_take(ls_gaps *g, ls_bytes *in) {
    free(g->before);
    g->before = ls_bytes_take_array(in, sizeof *g->before, &g->n);
    for (size_t i = 1; i < g->n && !in->bad; i++) in->bad = g->before[i] < g->before[i - 1];
}

void ls_gaps_free(ls_gaps *g) {
    free(g->before);
    *g = (ls_gaps){0};
}
