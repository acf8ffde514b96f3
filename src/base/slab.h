/* slab.h - allocates blocks of one size, for objects that come and go in a step.
 *
 * When no block is free, a segment of n blocks is allocated; segments are freed when the slab is
 * closed. So once the largest number of blocks has been in use, nothing more is allocated. One
 * thread at a time.
 */
#ifndef LS_BASE_SLAB_H
#define LS_BASE_SLAB_H

#include <stddef.h>

typedef struct ls_slab {
    size_t size;    /* of a block, with the slab's overhead */
    size_t n;       /* blocks of a segment */
    size_t left;    /* blocks of the newest segment that were never taken */
    void *segments; /* newest first */
    void *free;     /* blocks that were given back */
} ls_slab;

/* Blocks of `size` bytes, n a segment. Allocates nothing yet. */
void ls_slab_open(ls_slab *, size_t size, size_t n);
/* Frees all blocks, also those that were not given back. {0} is allowed. */
void ls_slab_close(ls_slab *);

/* A block with undefined contents. Running out of memory ends the program, as in ls_alloc(). */
void *ls_slab_take(ls_slab *);
/* A block with undefined contents; NULL when out of memory. */
void *ls_slab_try(ls_slab *);
void ls_slab_give(ls_slab *, void *block);

#endif
