/* keys.c - see keys.h. */
#include "source/keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* The slot of this text, or the empty one where it belongs. */
static ls_key *find_slot(const ls_keys *k, const char *text) {
    size_t at = ls_hash_bytes(text, strlen(text)).lo & (k->nslots - 1);
    while (k->slots[at].text && strcmp(k->slots[at].text, text) != 0)
        at = (at + 1) & (k->nslots - 1);
    return &k->slots[at];
}

size_t ls_keys_find(const ls_keys *k, const char *text) {
    const ls_key *slot = k->nslots ? find_slot(k, text) : NULL;
    return slot && slot->text ? slot->number : SIZE_MAX;
}

static void grow(ls_keys *k) {
    ls_keys was = *k;
    k->nslots = was.nslots ? 2 * was.nslots : 16;
    k->slots = LS_NEW_ARRAY(ls_key, k->nslots);
    for (size_t i = 0; i < was.nslots; i++)
        if (was.slots[i].text) *find_slot(k, was.slots[i].text) = was.slots[i];
    free(was.slots);
}

void ls_keys_set(ls_keys *k, const char *text, size_t number) {
    if (2 * (k->n + 1) > k->nslots) grow(k);
    ls_key *slot = find_slot(k, text);
    k->n += slot->text == NULL;
    *slot = (ls_key){text, number};
}

void ls_keys_free(ls_keys *k) {
    free(k->slots);
    *k = (ls_keys){0};
}
