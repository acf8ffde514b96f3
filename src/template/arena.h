/* arena.h - small blocks that are freed together: the nodes of a template, the values of a
 * rendering. */
#ifndef LS_TEMPLATE_ARENA_H
#define LS_TEMPLATE_ARENA_H

#include "base/mem.h"

typedef struct ls_arena_block ls_arena_block;

typedef struct ls_template_arena {
    ls_arena_block *last;
    size_t nbytes; /* of all blocks */
} ls_template_arena;

/* Zeroed and aligned for any type. nbytes may be 0. */
void *ls_template_alloc(ls_template_arena *, size_t nbytes);
void ls_template_arena_free(ls_template_arena *);

#endif
