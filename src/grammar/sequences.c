/* sequences.c - see sequences.h. */
#include "grammar/sequences.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void ls_sequences_free(ls_sequences *s) {
    free(s->words);
    free(s->ends);
    free(s->table);
    *s = (ls_sequences){0};
}

const uint32_t *ls_sequences_get(const ls_sequences *s, uint32_t number, size_t *n_p) {
    static const uint32_t none = 0;
    size_t from = number ? s->ends[number - 1] : 0;
    *n_p = s->ends[number] - from;
    return *n_p ? s->words + from : &none; /* an empty one may be all that there is: no words */
}

size_t ls_sequences_nbytes(const ls_sequences *s) {
    return s->room * sizeof *s->words + s->n * sizeof *s->ends + s->ntable * sizeof *s->table;
}

/* The place of the sequence in the table, or the free one for it. */
static size_t place_of(const ls_sequences *s, const uint32_t *words, size_t n) {
    size_t at = (size_t)ls_hash_bytes(words, n * sizeof *words).lo & (s->ntable - 1);
    for (;; at = (at + 1) & (s->ntable - 1)) {
        size_t other = 0;
        if (!s->table[at]) return at;
        const uint32_t *has = ls_sequences_get(s, s->table[at] - 1, &other);
        if (other == n && (n == 0 || memcmp(has, words, n * sizeof *words) == 0)) return at;
    }
}

static void grow_table(ls_sequences *s) {
    if (s->n * 2 < s->ntable) return;
    free(s->table);
    s->ntable = s->ntable ? s->ntable * 2 : 64;
    s->table = LS_NEW_ARRAY(uint32_t, s->ntable);
    for (uint32_t i = 0; i < s->n; i++) {
        size_t n = 0;
        const uint32_t *words = ls_sequences_get(s, i, &n);
        s->table[place_of(s, words, n)] = i + 1;
    }
}

uint32_t ls_sequences_add(ls_sequences *s, const uint32_t *words, size_t n) {
    grow_table(s);
    size_t at = place_of(s, words, n);
    if (s->table[at]) return s->table[at] - 1;
    if (s->nwords + n > s->room) {
        s->room = (s->nwords + n) * 2;
        s->words = ls_realloc(s->words, s->room * sizeof *s->words);
    }
    if (n) memcpy(s->words + s->nwords, words, n * sizeof *words);
    s->nwords += n;
    s->ends = ls_grow(s->ends, s->n, sizeof *s->ends);
    s->ends[s->n] = s->nwords;
    s->table[at] = s->n + 1;
    return s->n++;
}
