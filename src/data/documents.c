/* documents.c - see documents.h. */
#include "data/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/order.h"

enum { SEED = 1 };                           /* of what is held out */
static const uint64_t ARRANGED = UINT64_MAX; /* no epoch of samples has this order */

static size_t length_of(const ls_documents_tokens *d, uint64_t i) {
    return d->ends[i] - (i ? d->ends[i - 1] : 0);
}

/* Marks documents of nval tokens at least, 2 nval at most. Returns their tokens; 0: there are none
 * of such lengths. */
static size_t hold_out(const ls_documents_tokens *d, size_t nval, size_t least, bool *held) {
    ls_order o = {.n = d->ndocuments, .seed = SEED};
    size_t sum = 0;
    for (uint64_t k = 0; sum < nval && k < d->ndocuments; k++) {
        uint64_t i = ls_order_at(&o, ARRANGED, k);
        size_t n = length_of(d, i);
        if (sum + n > 2 * nval || sum + n > d->n - least) continue;
        held[i] = true;
        sum += n;
    }
    return sum < nval ? 0 : sum;
}

static void copy(const ls_documents_tokens *d, uint64_t i, uint32_t *to, size_t *at) {
    size_t n = length_of(d, i);
    memcpy(to + *at, d->ids + d->ends[i] - n, n * sizeof *to);
    *at += n;
}

ls_arranged ls_documents_arrange(ls_documents_tokens *d, size_t nval, size_t least, uint64_t seed) {
    bool *held = LS_NEW_ARRAY(bool, d->ndocuments);
    uint32_t *ids = LS_NEW_ARRAY(uint32_t, d->n);
    ls_order o = {.n = d->ndocuments, .seed = seed};
    ls_arranged a = {0};
    size_t at = 0, sum = hold_out(d, nval, least, held);
    for (uint64_t i = 0; i < d->ndocuments; i++) held[i] = held[i] && sum;
    for (uint64_t k = 0; k < d->ndocuments; k++) {
        uint64_t i = ls_order_at(&o, ARRANGED, k);
        if (!held[i]) copy(d, i, ids, &at);
    }
    a.val_first = sum ? at : d->n - nval;
    for (uint64_t i = 0; i < d->ndocuments; i++) {
        if (held[i]) copy(d, i, ids, &at);
        a.nheld += held[i];
    }
    free(held);
    free(d->ids);
    d->ids = ids;
    return a;
}
