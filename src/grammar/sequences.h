/* sequences.h - sequences of numbers, each stored once: equal ones have equal numbers. */
#ifndef LS_GRAMMAR_SEQUENCES_H
#define LS_GRAMMAR_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initially {0}. */
typedef struct ls_sequences {
    uint32_t *words; /* [nwords] all of them, one after the other */
    size_t nwords, room;
    size_t *ends; /* [n] */
    uint32_t n;
    uint32_t *table; /* [ntable] numbers + 1, by hash; 0: free */
    size_t ntable;
} ls_sequences;

/* The sequence's number: that which it has, or the next one. */
uint32_t ls_sequences_add(ls_sequences *, const uint32_t *words, size_t n);
/* Valid until the next one is added. */
const uint32_t *ls_sequences_get(const ls_sequences *, uint32_t number, size_t *n_p);
size_t ls_sequences_nbytes(const ls_sequences *);
void ls_sequences_free(ls_sequences *);

#endif
