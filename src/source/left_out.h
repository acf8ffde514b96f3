/* left_out.h - files below directories that are not read: how many of each kind. */
#ifndef LS_SOURCE_LEFT_OUT_H
#define LS_SOURCE_LEFT_OUT_H

#include "base/mem.h"
#include "data/words.h"

typedef struct ls_left_out { /* zero-initialised: none */
    ls_words kinds;          /* ends of names: ".png", "without an ending" */
    uint64_t *counts;        /* [kinds.n] */
} ls_left_out;

/* Counts n files of a kind. */
void ls_left_out_count(ls_left_out *, const char *kind, uint64_t n);
/* Counts a file, as of the kind of its name's ending. */
void ls_left_out_add(ls_left_out *, const char *path);
/* Appends "3 .png, 1 hidden". */
void ls_left_out_put(const ls_left_out *, ls_buf *);
void ls_left_out_free(ls_left_out *);

#endif
