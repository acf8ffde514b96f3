/* mem.c - see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_FROM = 4 << 20 }; /* bytes: two huge pages */

static void *or_die(void *p, size_t nbytes) {
    if (p) return p;
    fprintf(stderr, "lockstep: out of memory (%zu bytes wanted)\n", nbytes);
    exit(1);
}

void *ls_alloc(size_t nbytes) { return or_die(calloc(1, nbytes ? nbytes : 1), nbytes); }

void *ls_alloc_array(size_t n, size_t size) {
    return or_die(calloc(n ? n : 1, size ? size : 1), n * size);
}

void *ls_realloc(void *p, size_t nbytes) { return or_die(realloc(p, nbytes ? nbytes : 1), nbytes); }

void *ls_grow(void *p, size_t n, size_t size) {
    bool full = (n & (n - 1)) == 0;
    return full ? ls_realloc(p, (n ? 2 * n : 1) * size) : p;
}

char *ls_strdup(const char *s) { return or_die(strdup(s), strlen(s)); }

char *ls_format(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *s = NULL;
    if (vasprintf(&s, fmt, args) < 0) s = NULL;
    va_end(args);
    return or_die(s, strlen(fmt));
}

int ls_compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ls_status map(size_t nbytes, int flags, const char *what, void **p_p, ls_error *e) {
    void *p = mmap(NULL, nbytes ? nbytes : 1, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM,
                       "no memory for %s: %.1f MB wanted; use a smaller model or micro-batch", what,
                       (double)nbytes / 1e6);
    if (nbytes >= HUGE_FROM) madvise(p, nbytes, MADV_HUGEPAGE); /* where the system has them */
    *p_p = p;
    return LS_OK;
}

ls_status ls_map(size_t nbytes, const char *what, void **p_p, ls_error *e) {
    return map(nbytes, MAP_PRIVATE, what, p_p, e);
}

ls_status ls_map_shared(size_t nbytes, const char *what, void **p_p, ls_error *e) {
    return map(nbytes, MAP_SHARED | MAP_NORESERVE, what, p_p, e);
}

void ls_unmap(void *p, size_t nbytes) {
    if (p) munmap(p, nbytes ? nbytes : 1);
}

static void buf_reserve(ls_buf *b, size_t extra) {
    if (b->len + extra + 1 <= b->cap) return;
    size_t cap = b->cap ? b->cap * 2 : 256;
    while (cap < b->len + extra + 1) cap *= 2;
    b->data = ls_realloc(b->data, cap);
    b->cap = cap;
}

void ls_buf_append(ls_buf *b, const void *data, size_t nbytes) {
    buf_reserve(b, nbytes);
    if (nbytes) memcpy(b->data + b->len, data, nbytes);
    b->len += nbytes;
    b->data[b->len] = 0;
}

void ls_buf_printf(ls_buf *b, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    size_t room = b->cap - b->len; /* usually enough */
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n >= room) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
    }
    if (n > 0) b->len += (size_t)n;
    va_end(again);
}

void ls_buf_free(ls_buf *b) {
    free(b->data);
    *b = (ls_buf){0};
}
