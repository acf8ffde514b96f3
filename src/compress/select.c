/* select.c - Hoare's selection: the part that holds the place is cut in two about a middle key.
 * Where keys are cut badly again and again, the rest is sorted. */
#include "compress/select.h"

#include <stdlib.h>

static int descending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static uint64_t middle_of(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t lo = a < b ? a : b, hi = a < b ? b : a;
    return c < lo ? lo : c > hi ? hi : c;
}

uint64_t ls_select(uint64_t *keys, size_t n, size_t rank) {
    enum { FEW = 16, MOST_CUTS = 100 };
    size_t lo = 0, hi = n; /* the place is in [lo, hi) */
    for (int cuts = 0; hi - lo > FEW && cuts < MOST_CUTS; cuts++) {
        uint64_t pivot = middle_of(keys[lo], keys[lo + (hi - lo) / 2], keys[hi - 1]);
        size_t i = lo, j = hi - 1;
        for (;; i++, j--) {
            while (keys[i] > pivot) i++;
            while (keys[j] < pivot) j--;
            if (i >= j) break;
            uint64_t t = keys[i];
            keys[i] = keys[j];
            keys[j] = t;
        }
        /* [lo, i) >= pivot >= [j + 1, hi) */
        if (rank <= j)
            hi = j + 1;
        else
            lo = j + 1;
    }
    qsort(keys + lo, hi - lo, sizeof *keys, descending);
    return keys[rank];
}
