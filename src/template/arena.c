/* arena.c - see arena.h. */
#include "template/arena.h"

#include <stdlib.h>

#include "base/round_up.h"

enum { BLOCK = 16384, ALIGN = 16 };

struct ls_arena_block {
    ls_arena_block *before;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

void *ls_template_alloc(ls_template_arena *a, size_t nbytes) {
    size_t need = ls_round_up(nbytes, ALIGN);
    if (!a->last || a->last->size - a->last->used < need) {
        size_t size = need > BLOCK ? need : BLOCK;
        ls_arena_block *b = ls_alloc(sizeof *b + size);
        b->before = a->last;
        b->size = size;
        a->last = b;
        a->nbytes += size;
    }
    void *p = a->last->bytes + a->last->used;
    a->last->used += need;
    return p;
}

void ls_template_arena_free(ls_template_arena *a) {
    for (ls_arena_block *b = a->last, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    *a = (ls_template_arena){0};
}
