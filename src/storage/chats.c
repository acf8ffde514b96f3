/* chats.c - see chats.h. */
#include "storage/chats.h"

#include <stdlib.h>
#include <string.h>

#include "data/split.h"
#include "source/source.h"

enum { TRAINING, VALIDATION, ALIGN = LS_FIELD_ALIGN };

/* ---- opening ---- */

static bool is_first(const ls_chats *c, uint32_t number) { return number / c->vocab >= 2; }

/* Notes where conversations begin, and how many are of data.val_path: the last ones. */
static ls_status find_begins(ls_chats *c, const uint32_t *ids, size_t n, const char *what,
                             uint64_t *nval_p, ls_error *e) {
    for (size_t i = 0; i < n; i++) c->n += is_first(c, ids[i]);
    c->begins = LS_NEW_ARRAY(uint64_t, c->n + 1);
    c->begins[c->n] = n;
    uint64_t k = 0, nval = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_first(c, ids[i])) continue;
        c->begins[k++] = i;
        nval += ids[i] / c->vocab == 3;
    }
    bool sound = c->n && c->begins[0] == 0;
    for (k = 0; sound && k < c->n; k++) {
        uint64_t length = c->begins[k + 1] - c->begins[k];
        sound = length >= 2 && length <= (uint64_t)c->T + 1;
    }
    *nval_p = nval;
    return sound ? LS_OK
                 : ls_fail(e, LS_EINVAL, "%s: has no conversations of model.context %lld", what,
                           (long long)c->T);
}

static ls_status split_chats(const ls_chats *c, const ls_config *config, uint64_t nval,
                             const char *what, ls_split *s_p, ls_error *e) {
    if (nval) {
        *s_p = ls_split_nothing(c->n - nval);
        return LS_OK;
    }
    if (config->data.folds)
        return ls_split_by_folds(c->n, (uint64_t)config->data.folds, (uint64_t)config->data.fold,
                                 what, s_p, e);
    return ls_split_by_fraction(c->n, config->data.val_fraction, what, s_p, e);
}

static void make_rows(ls_chats *c, int part, uint64_t n) {
    uint32_t *lengths = LS_NEW_ARRAY(uint32_t, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t k = c->of[part][i];
        lengths[i] = (uint32_t)(c->begins[k + 1] - c->begins[k] - 1);
    }
    c->rows[part] = ls_pack(lengths, n, (uint32_t)c->T, !c->packed);
    free(lengths);
}

static ls_status divide(ls_chats *c, const ls_tokens *t, const ls_config *config, const char *what,
                        ls_error *e) {
    uint32_t *ids = NULL;
    uint64_t nval = 0;
    ls_split s;
    LS_TRY(ls_tokens_read_all(t, 0, t->n, &ids, e));
    ls_status status = find_begins(c, ids, t->n, what, &nval, e);
    free(ids);
    LS_TRY(status);
    LS_TRY(split_chats(c, config, nval, what, &s, e));
    uint64_t n[] = {s.ntrain, nval ? nval : s.nval};
    for (int part = 0; part < 2; part++) {
        c->of[part] = LS_NEW_ARRAY(uint64_t, n[part] + 1);
        for (uint64_t i = 0; i < n[part]; i++)
            c->of[part][i] = part == TRAINING ? ls_split_train(&s, i)
                             : nval           ? c->n - nval + i
                                              : ls_split_val(&s, i);
        make_rows(c, part, n[part]);
    }
    return LS_OK;
}

ls_status ls_chats_open(const ls_tokens *tokens, const ls_config *config, const char *what,
                        ls_chats *c_p, ls_error *e) {
    *c_p = (ls_chats){.vocab = (uint32_t)config->model.vocab,
                      .T = config->model.context,
                      .packed = config->data.packing};
    ls_status s = divide(c_p, tokens, config, what, e);
    if (s != LS_OK) ls_chats_close(c_p);
    return s;
}

void ls_chats_close(ls_chats *c) {
    free(c->begins);
    for (int part = 0; part < 2; part++) {
        free(c->of[part]);
        ls_packing_free(&c->rows[part]);
    }
    *c = (ls_chats){0};
}

/* ---- samples ---- */

static size_t field_nbytes(int64_t T) {
    return ((size_t)T * sizeof(int32_t) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t ls_chats_sample_nbytes(const ls_config *c) {
    size_t last = (size_t)c->model.context * sizeof(int32_t);
    return (c->data.packing ? 2 : 1) * field_nbytes(c->model.context) + last;
}

/* The fields of a sample; positions NULL: it has none. */
typedef struct row {
    const ls_tokens *all;
    int32_t *tokens, *targets, *positions; /* [T] each */
    int64_t at;                            /* positions that are set */
} row;

/* Appends conversation k. */
static ls_status add_chat(const ls_chats *c, uint64_t k, row *r, ls_error *e) {
    size_t begin = (size_t)c->begins[k], n = (size_t)(c->begins[k + 1] - begin) - 1;
    int32_t *tokens = r->tokens + r->at, *targets = r->targets + r->at;
    uint32_t number = 0;
    LS_TRY(ls_tokens_read(r->all, begin, 1, &number, e));
    LS_TRY(ls_tokens_read(r->all, begin + 1, n, (uint32_t *)targets, e));
    for (size_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)(number % c->vocab);
        number = (uint32_t)targets[i];
        targets[i] = number / c->vocab == 1 ? (int32_t)(number % c->vocab) : -1;
        if (r->positions) r->positions[r->at + (int64_t)i] = (int32_t)i;
    }
    r->at += (int64_t)n;
    return LS_OK;
}

ls_status ls_chats_row(const ls_chats *c, const ls_tokens *all, int part, uint64_t i, void *sample,
                       ls_error *e) {
    const ls_packing *p = &c->rows[part];
    size_t field = field_nbytes(c->T);
    char *bytes = sample;
    row r = {.all = all,
             .tokens = sample,
             .targets = (int32_t *)(void *)(bytes + field),
             .positions = c->packed ? (int32_t *)(void *)(bytes + 2 * field) : NULL};
    for (uint64_t k = p->first[i]; k < p->first[i + 1]; k++)
        LS_TRY(add_chat(c, c->of[part][p->samples[k]], &r, e));
    for (int64_t t = r.at; t < c->T; t++) { /* padding is a text of its own */
        r.tokens[t] = 0;
        r.targets[t] = -1;
        if (r.positions) r.positions[t] = (int32_t)(t - r.at);
    }
    return LS_OK;
}
