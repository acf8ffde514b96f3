/* left_out.c - see left_out.h. */
#include "source/left_out.h"

#include <stdlib.h>
#include <string.h>

#include "source/ending.h"

static void count(ls_left_out *l, const char *kind, size_t nkind, uint64_t n) {
    bool fresh = false;
    if (!n) return;
    uint32_t i = ls_words_add(&l->kinds, (const uint8_t *)kind, nkind, &fresh);
    if (fresh) l->counts = ls_grow(l->counts, i, sizeof *l->counts);
    l->counts[i] = fresh ? n : l->counts[i] + n;
}

void ls_left_out_count(ls_left_out *l, const char *kind, uint64_t n) {
    count(l, kind, strlen(kind), n);
}

void ls_left_out_add(ls_left_out *l, const char *path) {
    size_t n = 0;
    const char *ending = ls_ending_of(path, &n);
    if (n)
        count(l, ending, n, 1);
    else
        ls_left_out_count(l, "without an ending", 1);
}

void ls_left_out_put(const ls_left_out *l, ls_buf *out) {
    enum { SHOWN = 8 };
    uint64_t more = 0;
    for (uint32_t i = 0; i < l->kinds.n; i++) {
        size_t n = 0;
        const uint8_t *kind = ls_words_at(&l->kinds, i, &n);
        if (i < SHOWN)
            ls_buf_printf(out, "%s%llu %.*s", i ? ", " : "", (unsigned long long)l->counts[i],
                          (int)n, (const char *)kind);
        else
            more += l->counts[i];
    }
    if (more) ls_buf_printf(out, ", %llu others", (unsigned long long)more);
}

void ls_left_out_free(ls_left_out *l) {
    ls_words_free(&l->kinds);
    free(l->counts);
    *l = (ls_left_out){0};
}
