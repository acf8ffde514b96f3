/* slab.h - blocks of one size that are taken and given back, for what comes and goes in a step.
 *
 * Memory is allocated by the chunk of some blocks when none is free, and freed when the slab is
 * closed. So once as many blocks have been in use as will ever be, nothing is allocated any more.
 * One thread at a time.
 */
#ifndef LS_BASE_SLAB_H
#define LS_BASE_SLAB_H

#include <stddef.h>

typedef struct ls_slab {
    size_t size;  /* of a block, with what the slab adds */
    size_t n;     /* blocks of a chunk */
    size_t left;  /* of the newest chunk, never taken so far */
    void *chunks; /* newest first */
    void *free;   /* blocks that were given back */
} ls_slab;

/* Blocks of `size` bytes, n a chunk. Allocates nothing yet. */
void ls_slab_open(ls_slab *, size_t size, size_t n);
/* All blocks are gone, also those that were not given back. {0} is fine. */
void ls_slab_close(ls_slab *);

/* A block; what is in it is not defined. Out of memory ends the program, as with ls_alloc(). */
void *ls_slab_take(ls_slab *);
/* The same; NULL: out of memory. */
void *ls_slab_try(ls_slab *);
void ls_slab_give(ls_slab *, void *block);

#endif
