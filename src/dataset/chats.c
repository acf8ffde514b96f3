/* chats.c - see chats.h. */
#include "dataset/chats.h"

#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "data/split.h"
#include "source/source.h"

enum { TRAINING, VALIDATION, ALIGN = LS_FIELD_ALIGN };

/* ---- opening ---- */

static bool is_first(const ls_chats *c, uint32_t number) { return number / c->vocab >= 2; }

/* Positions of unit k: a conversation, or a pair. */
static uint64_t length_of(const ls_chats *c, uint64_t k) {
    uint64_t t = (uint64_t)c->texts;
    return c->begins[(k + 1) * t] - c->begins[k * t] - t;
}

static bool is_sound(const ls_chats *c, uint64_t ntexts) {
    uint64_t most = (uint64_t)(c->T / c->texts) + 1;
    bool sound = ntexts && ntexts % (uint64_t)c->texts == 0 && c->begins[0] == 0;
    for (uint64_t i = 0; sound && i < ntexts; i++) {
        uint64_t length = c->begins[i + 1] - c->begins[i];
        sound = length >= 2 && length <= most;
    }
    return sound;
}

/* Notes where texts begin, and how many conversations or pairs are of data.val_path: the last
 * ones. */
static ls_status find_begins(ls_chats *c, const uint32_t *ids, size_t n, const char *what,
                             uint64_t *nval_p, ls_error *e) {
    uint64_t ntexts = 0, k = 0, nval = 0;
    for (size_t i = 0; i < n; i++) ntexts += is_first(c, ids[i]);
    c->begins = LS_NEW_ARRAY(uint64_t, ntexts + 1);
    c->begins[ntexts] = n;
    for (size_t i = 0; i < n; i++) {
        if (!is_first(c, ids[i])) continue;
        c->begins[k++] = i;
        nval += ids[i] / c->vocab == 3;
    }
    c->n = ntexts / (uint64_t)c->texts;
    *nval_p = nval / (uint64_t)c->texts;
    if (is_sound(c, ntexts)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has no %s of model.context %lld", what,
                   c->texts == 2 ? "pairs" : "conversations", (long long)(c->T / c->texts));
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
    for (uint64_t i = 0; i < n; i++) lengths[i] = (uint32_t)length_of(c, c->of[part][i]);
    c->rows[part] = ls_pack(lengths, n, (uint32_t)c->T, !c->packed);
    free(lengths);
}

static ls_status divide(ls_chats *c, const ls_tokens *t, const ls_config *config, const char *what,
                        ls_error *e) {
    uint32_t *ids = NULL;
    uint64_t nval = 0;
    ls_split s;
    LS_TRY(ls_tokens_read_first(t, t->n, &ids, e));
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
                      .T = ls_config_positions(config),
                      .texts = ls_config_has_pairs(config) ? 2 : 1,
                      .packed = config->data.packing};
    ls_status s = divide(c_p, tokens, config, what, e);
    if (s == LS_OK && c_p->texts == 2) c_p->reference = LS_NEW_ARRAY(float, 2 * c_p->n);
    if (s != LS_OK) ls_chats_close(c_p);
    return s;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* A text of a pair may take more than half of its row. */
int64_t ls_chats_shorten(ls_chats *c, int part) {
    const ls_packing *p = &c->rows[part];
    uint64_t longest = 1, texts = (uint64_t)c->texts;
    for (uint64_t i = 0; i < p->nrows; i++) {
        uint64_t row = 0;
        for (uint64_t k = p->first[i]; k < p->first[i + 1]; k++) {
            uint64_t unit = c->of[part][p->samples[k]];
            row += length_of(c, unit);
            for (uint64_t j = unit * texts; j < (unit + 1) * texts; j++)
                longest = larger(longest, c->begins[j + 1] - c->begins[j] - 1);
        }
        longest = larger(longest, (row + texts - 1) / texts);
    }
    c->T = (int64_t)(longest * texts);
    return (int64_t)longest;
}

void ls_chats_close(ls_chats *c) {
    free(c->begins);
    free(c->reference);
    for (int part = 0; part < 2; part++) {
        free(c->of[part]);
        ls_packing_free(&c->rows[part]);
    }
    *c = (ls_chats){0};
}

/* ---- samples ---- */

static size_t field_nbytes(int64_t T) { return ls_round_up((size_t)T * sizeof(int32_t), ALIGN); }

size_t ls_chats_sample_nbytes(const ls_config *c) {
    int64_t T = ls_config_positions(c);
    if (ls_config_has_pairs(c)) return 3 * field_nbytes(T) + ALIGN + 2 * sizeof(float);
    return (ls_config_has_positions(c) ? 2 : 1) * field_nbytes(T) + (size_t)T * sizeof(int32_t);
}

/* The fields of a sample; NULL: it has none. */
typedef struct row {
    const ls_tokens *all;
    int32_t *tokens, *targets, *positions; /* [T] each */
    int32_t *rejected;                     /* [1] where a pair's second text begins */
    float *reference;                      /* [2] */
    int64_t at;                            /* positions that are set */
} row;

static row row_of(const ls_chats *c, const ls_tokens *all, void *sample) {
    size_t field = field_nbytes(c->T);
    char *bytes = sample;
    row r = {.all = all, .tokens = sample, .targets = (int32_t *)(void *)(bytes + field)};
    if (c->packed || c->texts == 2) r.positions = (int32_t *)(void *)(bytes + 2 * field);
    if (c->texts == 1) return r;
    r.rejected = (int32_t *)(void *)(bytes + 3 * field);
    r.reference = (float *)(void *)(bytes + 3 * field + ALIGN);
    return r;
}

/* Appends text i. */
static ls_status add_text(const ls_chats *c, uint64_t i, row *r, ls_error *e) {
    size_t begin = (size_t)c->begins[i], n = (size_t)(c->begins[i + 1] - begin) - 1;
    int32_t *tokens = r->tokens + r->at, *targets = r->targets + r->at;
    uint32_t number = 0;
    LS_TRY(ls_tokens_read(r->all, begin, 1, &number, e));
    LS_TRY(ls_tokens_read(r->all, begin + 1, n, (uint32_t *)targets, e));
    for (size_t k = 0; k < n; k++) {
        tokens[k] = (int32_t)(number % c->vocab);
        number = (uint32_t)targets[k];
        targets[k] = number / c->vocab == 1 ? (int32_t)(number % c->vocab) : -1;
        if (r->positions) r->positions[r->at + (int64_t)k] = (int32_t)k;
    }
    r->at += (int64_t)n;
    return LS_OK;
}

/* Appends conversation, or pair, k. */
static ls_status add_unit(const ls_chats *c, uint64_t k, row *r, ls_error *e) {
    if (c->texts == 1) return add_text(c, k, r, e);
    memcpy(r->reference, c->reference + 2 * k, 2 * sizeof *r->reference);
    LS_TRY(add_text(c, 2 * k, r, e));
    *r->rejected = (int32_t)r->at;
    return add_text(c, 2 * k + 1, r, e);
}

ls_status ls_chats_row(const ls_chats *c, const ls_tokens *all, int part, uint64_t i, void *sample,
                       ls_error *e) {
    const ls_packing *p = &c->rows[part];
    row r = row_of(c, all, sample);
    for (uint64_t k = p->first[i]; k < p->first[i + 1]; k++)
        LS_TRY(add_unit(c, c->of[part][p->samples[k]], &r, e));
    for (int64_t t = r.at; t < c->T; t++) { /* padding is a text of its own */
        r.tokens[t] = 0;
        r.targets[t] = -1;
        if (r.positions) r.positions[t] = (int32_t)(t - r.at);
    }
    return LS_OK;
}

uint64_t ls_chats_pair(const ls_chats *c, int part, uint64_t i) {
    const ls_packing *p = &c->rows[part];
    return c->of[part][p->samples[p->first[i]]];
}
