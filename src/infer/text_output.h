/* text_output.h - a text on its way from tokens to its reader: only whole characters are released,
 * and what may be the beginning of a stop is held back. */
#ifndef LS_INFER_TEXT_OUTPUT_H
#define LS_INFER_TEXT_OUTPUT_H

#include "data/tokenizer.h"

typedef struct ls_text_output {
    ls_decoding decoding;  /* its tokenizer and begun are set by the user */
    bool special;          /* special tokens are written by their names */
    const uint32_t *shown; /* [nshown] special tokens that are written by their names anyway */
    int nshown;
    const char *const *stops; /* [nstops] texts that end it, and are not written */
    int nstops;
    ls_buf held; /* initially {0}; the user frees it */
} ls_text_output;

/* Adds a token. Returns how many of the bytes at the beginning of `held` may be given out now.
 * *stopped_p: a stop follows them. */
size_t ls_text_output_add(ls_text_output *, uint32_t token, bool *stopped_p);
/* The text has ended, without a stop: what is left may be given out. */
size_t ls_text_output_end(ls_text_output *);
/* The first n bytes of `held` have been given out. */
void ls_text_output_took(ls_text_output *, size_t n);

#endif
