/* bigram.c - see bigram.h. Pairs are sorted, so that memory grows with the text and not with
 * V^2. */
#include "data/bigram.h"

#include <stdlib.h>

#include "base/math.h"
#include "base/mem.h"

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The index of the first of the sorted pairs [n] whose value is at least x. */
static size_t lower_bound(const uint64_t *pairs, size_t n, uint64_t x) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (pairs[middle] < x)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

double ls_bigram_loss(const uint32_t *train, size_t ntrain, const uint32_t *val, size_t nval,
                      uint32_t vocab) {
    size_t npairs = ntrain ? ntrain - 1 : 0;
    uint64_t *pairs = LS_NEW_ARRAY(uint64_t, npairs);
    double *single = LS_NEW_ARRAY(double, vocab), *kinds = LS_NEW_ARRAY(double, vocab);
    double *before = LS_NEW_ARRAY(double, vocab); /* c(a) as the first of a pair */
    for (size_t i = 0; i < ntrain; i++) single[train[i]] += 1;
    for (size_t i = 0; i < npairs; i++) pairs[i] = (uint64_t)train[i] << 32 | train[i + 1];
    qsort(pairs, npairs, sizeof *pairs, by_value);
    for (size_t i = 0; i < npairs; i++) {
        before[pairs[i] >> 32] += 1;
        if (i == 0 || pairs[i] != pairs[i - 1]) kinds[pairs[i] >> 32] += 1;
    }
    double loss = 0.0;
    for (size_t i = 1; i < nval; i++) {
        uint32_t a = val[i - 1], b = val[i];
        uint64_t pair = (uint64_t)a << 32 | b;
        double both =
            (double)(lower_bound(pairs, npairs, pair + 1) - lower_bound(pairs, npairs, pair));
        double pb = (single[b] + 1.0) / ((double)ntrain + (double)vocab);
        double p = before[a] > 0 ? (both + kinds[a] * pb) / (before[a] + kinds[a]) : pb;
        loss -= ls_math_log(p);
    }
    free(pairs);
    free(single);
    free(kinds);
    free(before);
    return loss / (double)(nval - 1);
}
