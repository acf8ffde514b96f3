/* slab.c - see slab.h. */
#include "base/slab.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/round_up.h"

/* The address sanitizer detects the use of a block that was given back, as after free(). */
#if defined(__SANITIZE_ADDRESS__)
#define LS_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LS_HAS_ASAN 1
#endif
#endif
#ifdef LS_HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 64 };

typedef struct link {
    struct link *next;
} link;

void ls_slab_open(ls_slab *s, size_t size, size_t n) {
    size_t least = size < sizeof(link) ? sizeof(link) : size;
    *s = (ls_slab){.size = ls_round_up(least, ALIGN), .n = n};
}

static size_t segment_nbytes(const ls_slab *s) { return ALIGN + s->n * s->size; }

/* A segment begins with its link. Pages of blocks that were never taken use no memory. */
static void add_segment(ls_slab *s, link *segment) {
    segment->next = s->segments;
    s->segments = segment;
    s->left = s->n;
}

void ls_slab_close(ls_slab *s) {
    for (link *segment = s->segments, *next; segment; segment = next) {
        next = segment->next;
        ASAN_UNPOISON_MEMORY_REGION(segment, segment_nbytes(s));
        free(segment);
    }
    *s = (ls_slab){0};
}

void *ls_slab_try(ls_slab *s) {
    link *block = s->free;
    if (!block && !s->left) {
        link *segment = malloc(segment_nbytes(s));
        if (!segment) return NULL;
        add_segment(s, segment);
    }
    if (!block) return (unsigned char *)s->segments + ALIGN + --s->left * s->size;
    ASAN_UNPOISON_MEMORY_REGION(block, s->size);
    s->free = block->next;
    return block;
}

void *ls_slab_take(ls_slab *s) {
    if (!s->free && !s->left) add_segment(s, ls_realloc(NULL, segment_nbytes(s)));
    return ls_slab_try(s);
}

void ls_slab_give(ls_slab *s, void *p) {
    link *block = p;
    block->next = s->free;
    s->free = block;
    ASAN_POISON_MEMORY_REGION(block, s->size);
}
