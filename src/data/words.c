/* words.c - see words.h. A hash table with open addressing and linear probing. */
#include "data/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 1024 };

const uint8_t *ls_words_at(const ls_words *w, uint32_t i, size_t *nbytes_p) {
    *nbytes_p = w->start[i + 1] - w->start[i];
    return w->bytes + w->start[i];
}

/* The slot that holds the string, or the free slot where it belongs. */
static size_t slot_find(const ls_words *w, uint64_t hash, const uint8_t *bytes, size_t nbytes) {
    size_t mask = w->nslots - 1, at = (size_t)hash & mask;
    for (; w->slots[at].index; at = (at + 1) & mask) {
        if (w->slots[at].tag != (uint32_t)(hash >> 32)) continue;
        size_t n = 0;
        const uint8_t *have = ls_words_at(w, w->slots[at].index - 1, &n);
        if (n == nbytes && memcmp(have, bytes, n) == 0) break;
    }
    return at;
}

static void slots_grow(ls_words *w) {
    free(w->slots);
    w->nslots = w->nslots ? w->nslots * 2 : FIRST_SLOTS;
    w->slots = LS_NEW_ARRAY(ls_words_slot, w->nslots);
    for (uint32_t i = 0; i < w->n; i++) {
        size_t nbytes = 0;
        const uint8_t *bytes = ls_words_at(w, i, &nbytes);
        uint64_t hash = ls_hash_bytes(bytes, nbytes).lo;
        size_t at = (size_t)hash & (w->nslots - 1);
        while (w->slots[at].index) at = (at + 1) & (w->nslots - 1);
        w->slots[at] = (ls_words_slot){(uint32_t)(hash >> 32), i + 1};
    }
}

static void append(ls_words *w, const uint8_t *bytes, size_t nbytes) {
    size_t used = w->n ? w->start[w->n] : 0;
    if (used + nbytes > w->bytes_cap || !w->bytes) {
        w->bytes_cap = 2 * (used + nbytes) + 64;
        w->bytes = ls_realloc(w->bytes, w->bytes_cap);
    }
    if ((size_t)w->n + 2 > w->start_cap) {
        w->start_cap = 2 * w->start_cap + 64;
        w->start = ls_realloc(w->start, w->start_cap * sizeof *w->start);
    }
    if (nbytes) memcpy(w->bytes + used, bytes, nbytes);
    w->start[w->n] = used;
    w->start[++w->n] = used + nbytes;
}

uint32_t ls_words_add(ls_words *w, const uint8_t *bytes, size_t nbytes, bool *new_p) {
    if (2 * ((size_t)w->n + 1) > w->nslots) slots_grow(w);
    uint64_t hash = ls_hash_bytes(bytes, nbytes).lo;
    size_t at = slot_find(w, hash, bytes, nbytes);
    *new_p = w->slots[at].index == 0;
    if (*new_p) {
        assert(w->n < UINT32_MAX - 1);
        append(w, bytes, nbytes);
        w->slots[at] = (ls_words_slot){(uint32_t)(hash >> 32), w->n};
    }
    return w->slots[at].index - 1;
}

uint32_t ls_words_find(const ls_words *w, const uint8_t *bytes, size_t nbytes) {
    if (w->n == 0) return UINT32_MAX;
    size_t at = slot_find(w, ls_hash_bytes(bytes, nbytes).lo, bytes, nbytes);
    return w->slots[at].index - 1; /* of a free slot: UINT32_MAX */
}

void ls_words_free(ls_words *w) {
    free(w->bytes);
    free(w->start);
    free(w->slots);
    *w = (ls_words){0};
}
