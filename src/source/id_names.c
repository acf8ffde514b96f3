/* id_names.c - see id_names.h. An open hash table with linear probing, at most half full. */
#include "source/id_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST_SLOTS = 1024, MOST_TEXT = 256 };

/* The slot of a text, or the free one in which it belongs. */
static size_t slot_of(const ls_id_names *s, const char *text, size_t n) {
    size_t i = ls_hash_bytes(text, n).lo & (s->nslots - 1);
    for (; s->slots[i]; i = (i + 1) & (s->nslots - 1)) {
        const char *has = ls_id_name(s, s->slots[i] - 1);
        if (strlen(has) == n && memcmp(has, text, n) == 0) break;
    }
    return i;
}

static void grow(ls_id_names *s) {
    s->nslots = s->nslots ? 2 * s->nslots : FIRST_SLOTS;
    free(s->slots);
    s->slots = LS_NEW_ARRAY(int32_t, s->nslots);
    for (int32_t id = 0; id < s->n; id++) {
        const char *text = ls_id_name(s, id);
        s->slots[slot_of(s, text, strlen(text))] = id + 1;
    }
}

int32_t ls_id_of(ls_id_names *s, const char *text, size_t n) {
    if (2 * (size_t)s->n >= s->nslots) grow(s);
    size_t i = slot_of(s, text, n);
    if (s->slots[i]) return s->slots[i] - 1;
    if (s->n == INT32_MAX - 1) return -1;
    s->at = ls_grow(s->at, (size_t)s->n, sizeof *s->at);
    s->at[s->n] = s->texts.len;
    ls_buf_append(&s->texts, text, n);
    ls_buf_append(&s->texts, "", 1);
    s->slots[i] = ++s->n;
    return s->n - 1;
}

int32_t ls_id_find(const ls_id_names *s, const char *text, size_t n) {
    return s->nslots ? s->slots[slot_of(s, text, n)] - 1 : -1;
}

static ls_status read_cell(const ls_csv_cell *cell, const char *name, char text[MOST_TEXT],
                           size_t *n_p, ls_error *e) {
    size_t n = ls_csv_unquote(cell, text, MOST_TEXT);
    if (n == 0 || n > MOST_TEXT || memchr(text, 0, n))
        return ls_fail(e, LS_EINVAL, "column '%.60s' %s; an id has 1 to %d characters", name,
                       n == 0 ? "is empty" : "has a text that is no id", MOST_TEXT);
    *n_p = n;
    return LS_OK;
}

ls_status ls_id_hash_of_cell(int64_t nids, const ls_csv_cell *cell, const char *name, int32_t *id_p,
                             ls_error *e) {
    char text[MOST_TEXT];
    size_t n = 0;
    LS_TRY(read_cell(cell, name, text, &n, e));
    *id_p = (int32_t)(ls_hash_bytes(text, n).lo % (uint64_t)nids);
    return LS_OK;
}

ls_status ls_id_find_cell(const ls_id_names *s, const ls_csv_cell *cell, const char *name,
                          int32_t *id_p, ls_error *e) {
    char text[MOST_TEXT];
    size_t n = 0;
    LS_TRY(read_cell(cell, name, text, &n, e));
    *id_p = ls_id_find(s, text, n);
    return LS_OK;
}

ls_status ls_id_of_cell(ls_id_names *s, const ls_csv_cell *cell, const char *name, int32_t *id_p,
                        ls_error *e) {
    char text[MOST_TEXT];
    size_t n = 0;
    LS_TRY(read_cell(cell, name, text, &n, e));
    *id_p = ls_id_of(s, text, n);
    return *id_p >= 0 ? LS_OK : ls_fail(e, LS_EINVAL, "column '%.60s' has over 2^31 ids", name);
}

const char *ls_id_name(const ls_id_names *s, int32_t id) { return s->texts.data + s->at[id]; }

void ls_id_names_free(ls_id_names *s) {
    ls_buf_free(&s->texts);
    free(s->at);
    free(s->slots);
    *s = (ls_id_names){0};
}
