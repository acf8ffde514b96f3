/* pairs.c - see pairs.h. Open addressing, linear probing, multiplicative hashing. */
#include "data/pairs.h"

#include <stdlib.h>

#include "base/mem.h"

enum { FIRST_SLOTS = 1024 };

/* The slot that holds the pair, or the free slot where it belongs. nslots > 0. */
static size_t slot_find(const ls_pairs *p, uint32_t a, uint32_t b) {
    uint64_t hash = (((uint64_t)a << 32) | b) * 0x9E3779B97F4A7C15u;
    size_t mask = p->nslots - 1, at = (size_t)(hash >> 32) & mask;
    while (p->slots[at].value != LS_PAIRS_NONE && (p->slots[at].a != a || p->slots[at].b != b))
        at = (at + 1) & mask;
    return at;
}

static void slots_grow(ls_pairs *p) {
    ls_pairs_slot *old = p->slots;
    size_t nold = p->nslots;
    p->nslots = nold ? nold * 2 : FIRST_SLOTS;
    p->slots = LS_NEW_ARRAY(ls_pairs_slot, p->nslots);
    for (size_t i = 0; i < p->nslots; i++) p->slots[i].value = LS_PAIRS_NONE;
    for (size_t i = 0; i < nold; i++)
        if (old[i].value != LS_PAIRS_NONE) p->slots[slot_find(p, old[i].a, old[i].b)] = old[i];
    free(old);
}

uint32_t ls_pairs_get(const ls_pairs *p, uint32_t a, uint32_t b) {
    return p->nslots ? p->slots[slot_find(p, a, b)].value : LS_PAIRS_NONE;
}

uint32_t ls_pairs_add(ls_pairs *p, uint32_t a, uint32_t b, uint32_t value) {
    if (2 * (p->n + 1) > p->nslots) slots_grow(p);
    ls_pairs_slot *slot = &p->slots[slot_find(p, a, b)];
    if (slot->value == LS_PAIRS_NONE) {
        *slot = (ls_pairs_slot){a, b, value};
        p->n++;
    }
    return slot->value;
}

void ls_pairs_free(ls_pairs *p) {
    free(p->slots);
    *p = (ls_pairs){0};
}
