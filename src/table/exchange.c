/* exchange.c - see exchange.h. */
#include "table/exchange.h"

#include <stdlib.h>

#include "base/mem.h"

ls_status ls_table_room_take(ls_table_room *r, size_t nbytes, ls_error *e) {
    void *data = NULL;
    if (nbytes <= r->nbytes) return LS_OK;
    nbytes = nbytes * 3 / 2;
    LS_TRY(ls_map(nbytes, "rows that workers exchange", &data, e));
    ls_table_room_free(r);
    *r = (ls_table_room){data, nbytes};
    return LS_OK;
}

void ls_table_room_free(ls_table_room *r) {
    ls_unmap(r->data, r->nbytes);
    *r = (ls_table_room){0};
}

void ls_exchange_init(ls_exchange *x, ls_group *g) {
    size_t size = (size_t)ls_group_size(g);
    *x = (ls_exchange){.group = g, .size = (int)size};
    x->to = LS_NEW_ARRAY(size_t, size);
    x->from = LS_NEW_ARRAY(size_t, size);
    x->words = LS_NEW_ARRAY(int64_t, 2 * size);
    x->scaled = LS_NEW_ARRAY(size_t, 2 * size);
}

void ls_exchange_free(ls_exchange *x) {
    free(x->to);
    free(x->from);
    free(x->words);
    free(x->scaled);
    *x = (ls_exchange){0};
}

/* An error's code is negative; what else workers say is not: words [size] has either from each. */
static ls_status first_error(const ls_exchange *x, const int64_t *words, const char *what,
                             ls_error *e) {
    int i = 0;
    while (i < x->size && words[i] >= 0) i++;
    if (i == x->size) return LS_OK;
    return ls_fail(e, (ls_status)words[i], "%s failed on worker %d", what, i);
}

ls_status ls_exchange_agree(ls_exchange *x, ls_status own, const char *what, ls_error *e) {
    int64_t code = own;
    ls_error lost;
    ls_status s = ls_all_gather(x->group, &code, x->words, 1, LS_I64, own == LS_OK ? e : &lost);
    if (own != LS_OK || s != LS_OK) return own != LS_OK ? own : s;
    return first_error(x, x->words, what, e);
}

ls_status ls_exchange_counts(ls_exchange *x, ls_status own, const char *what, ls_error *e) {
    int64_t *got = x->words + x->size;
    ls_error lost;
    for (int i = 0; i < x->size; i++)
        x->words[i] = own == LS_OK ? 2 * (int64_t)x->to[i] + x->flag : own;
    ls_status s = ls_all_to_all(x->group, x->words, got, 1, LS_I64, own == LS_OK ? e : &lost);
    if (own != LS_OK || s != LS_OK) return own != LS_OK ? own : s;
    LS_TRY(first_error(x, got, what, e));
    x->nto = x->nfrom = 0;
    x->flagged = false;
    for (int i = 0; i < x->size; i++) {
        x->from[i] = (size_t)got[i] / 2;
        x->flagged = x->flagged || got[i] % 2;
        x->nto += x->to[i];
        x->nfrom += x->from[i];
    }
    return LS_OK;
}

size_t *ls_exchange_places(ls_exchange *x) {
    size_t sum = 0;
    for (int i = 0; i < x->size; i++) {
        x->scaled[i] = sum;
        sum += x->to[i];
    }
    return x->scaled;
}

/* What moves between workers: to[i] things of `each` elements go to worker i, from[i] come. */
typedef struct cargo {
    const size_t *to, *from;
    const void *in;
    void *out;
    size_t each;
    ls_dtype type;
} cargo;

static ls_status move(ls_exchange *x, const cargo *c, ls_error *e) {
    size_t *to = x->scaled, *from = x->scaled + x->size;
    for (int i = 0; i < x->size; i++) {
        to[i] = c->to[i] * c->each;
        from[i] = c->from[i] * c->each;
    }
    return ls_all_to_all_v(x->group, c->in, to, c->out, from, c->type, e);
}

ls_status ls_exchange_run(ls_exchange *x, const void *in, void *out, size_t each, ls_dtype type,
                          ls_error *e) {
    return move(x, &(cargo){x->to, x->from, in, out, each, type}, e);
}

ls_status ls_exchange_back(ls_exchange *x, const void *in, void *out, size_t each, ls_dtype type,
                           ls_error *e) {
    return move(x, &(cargo){x->from, x->to, in, out, each, type}, e);
}
