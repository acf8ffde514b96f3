/* bytes.c - see bytes.h. */
#include "source/bytes.h"

#include <string.h>

void ls_bytes_put(ls_buf *b, const void *data, size_t nbytes) {
    if (nbytes) ls_buf_append(b, data, nbytes);
}

void ls_bytes_put_u64(ls_buf *b, uint64_t v) { ls_buf_append(b, &v, sizeof v); }

void ls_bytes_put_array(ls_buf *b, const void *data, size_t n, size_t size) {
    ls_bytes_put_u64(b, n);
    ls_bytes_put(b, data, n * size);
}

void ls_bytes_put_text(ls_buf *b, const char *text) {
    ls_bytes_put_array(b, text, text ? strlen(text) : 0, 1);
}

void ls_bytes_take(ls_bytes *t, void *to, size_t nbytes) {
    memset(to, 0, nbytes);
    if (t->bad || nbytes > t->left) {
        t->bad = true;
        return;
    }
    memcpy(to, t->at, nbytes);
    t->at += nbytes;
    t->left -= nbytes;
}

uint64_t ls_bytes_take_u64(ls_bytes *t, uint64_t most) {
    uint64_t v;
    ls_bytes_take(t, &v, sizeof v);
    if (v > most) t->bad = true;
    return t->bad ? 0 : v;
}

void *ls_bytes_take_array(ls_bytes *t, size_t size, size_t *n_p) {
    size_t n = ls_bytes_take_u64(t, SIZE_MAX / size);
    if (n * size > t->left) t->bad = true;
    *n_p = t->bad ? 0 : n;
    if (*n_p == 0) return NULL;
    void *to = ls_alloc(n * size);
    ls_bytes_take(t, to, n * size);
    return to;
}

char *ls_bytes_take_text(ls_bytes *t, size_t most) {
    size_t n = ls_bytes_take_u64(t, most);
    if (n > t->left || (n && memchr(t->at, 0, n))) t->bad = true;
    if (t->bad) n = 0;
    char *text = ls_alloc(n + 1);
    ls_bytes_take(t, text, n);
    return text;
}
