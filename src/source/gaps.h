/* gaps.h - the records of which no samples are made, since they are left out: where they are
 * between those that have samples. */
#ifndef LS_SOURCE_GAPS_H
#define LS_SOURCE_GAPS_H

#include "source/bytes.h"

typedef struct ls_gaps { /* zero-initialised: no record is left out */
    uint64_t *before;    /* [n] samples that come before each record that is left out; ascending */
    size_t n;
} ls_gaps;

/* The record behind this number of samples is left out. */
void ls_gaps_add(ls_gaps *, uint64_t nsamples);
/* The number of the record that has sample i. */
uint64_t ls_gaps_record(const ls_gaps *, uint64_t i);
/* Writes them to an index, and reads them from one. */
void ls_gaps_put(const ls_gaps *, ls_buf *);
void ls_gaps_take(ls_gaps *, ls_bytes *);
void ls_gaps_free(ls_gaps *);

#endif
