/* gguf_tokenizer.c - see gguf_tokenizer.h. */
#include "weights/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "data/tokenizer_parts.h"

#define PREFIX "tokenizer.ggml."

typedef struct reader {
    const ls_gguf *g;
    ls_tokenizer_parts *p;
    ls_part_text *tokens, *merges; /* owned; as in p */
    int32_t *types;
    float *scores;
    char *model, *pre;
} reader;

static ls_status fail_kind(const reader *r, const char *key, const char *expected, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: %s must be %s", r->g->path, key, expected);
}

/* An array of as many elements as there are tokens, or NULL. */
static ls_status array_find(const reader *r, const char *key, const ls_gguf_value **v_p,
                            ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    *v_p = v;
    if (!v || (v->is_array && v->n == r->p->n)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s has %zu elements; there are %zu tokens", r->g->path, key,
                   v->n, r->p->n);
}

/* *list_p, which the caller frees, borrows the texts of the file. */
static ls_status texts_read(const reader *r, const char *key, ls_part_text **list_p, size_t *n_p,
                            ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    *n_p = 0;
    if (!v) return LS_OK;
    if (!v->is_array || v->kind != LS_GGUF_TEXT) return fail_kind(r, key, "an array of texts", e);
    *list_p = LS_NEW_ARRAY(ls_part_text, v->n);
    *n_p = v->n;
    for (size_t i = 0; i < v->n; i++) {
        ls_gguf_text t = {0};
        if (!ls_gguf_text_at(v, i, &t)) return fail_kind(r, key, "an array of texts", e);
        (*list_p)[i] = (ls_part_text){t.data, t.n};
    }
    return LS_OK;
}

static ls_status types_read(reader *r, ls_error *e) {
    static const char key[] = PREFIX "token_type";
    const ls_gguf_value *v = NULL;
    LS_TRY(array_find(r, key, &v, e));
    if (!v) return LS_OK;
    r->types = LS_NEW_ARRAY(int32_t, v->n);
    for (size_t i = 0; i < v->n; i++) {
        int64_t type = 0;
        if (!ls_gguf_integer(v, i, &type)) return fail_kind(r, key, "an array of integers", e);
        r->types[i] = type >= 0 && type <= INT32_MAX ? (int32_t)type : -1;
    }
    return LS_OK;
}

static ls_status scores_read(reader *r, ls_error *e) {
    static const char key[] = PREFIX "scores";
    const ls_gguf_value *v = NULL;
    LS_TRY(array_find(r, key, &v, e));
    if (!v) return LS_OK;
    r->scores = LS_NEW_ARRAY(float, v->n);
    for (size_t i = 0; i < v->n; i++) {
        double score = 0;
        if (!ls_gguf_number(v, i, &score)) return fail_kind(r, key, "an array of numbers", e);
        r->scores[i] = (float)score;
    }
    return LS_OK;
}

/* A text, or NULL; the caller frees it. */
static ls_status text_read(const reader *r, const char *key, char **text_p, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    ls_gguf_text t = {0};
    if (!v) return LS_OK;
    if (v->is_array || !ls_gguf_text_at(v, 0, &t)) return fail_kind(r, key, "a text", e);
    *text_p = ls_format("%.*s", t.n < 64 ? (int)t.n : 64, t.data);
    return LS_OK;
}

/* *value_p stays as it is if the key is missing. */
static ls_status flag_read(const reader *r, const char *key, bool *value_p, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    if (!v || (!v->is_array && ls_gguf_bool(v, 0, value_p))) return LS_OK;
    return fail_kind(r, key, "true or false", e);
}

static ls_status id_read(const reader *r, const char *key, int64_t *id_p, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    if (!v || (!v->is_array && ls_gguf_integer(v, 0, id_p))) return LS_OK;
    return fail_kind(r, key, "an integer", e);
}

/* The defaults are llama.cpp's: SentencePiece's models have <unk>, <s> and </s> first, and begin a
 * text with <s>, as those of Llama 3 and Tekken do. */
static ls_status ends_read(reader *r, ls_error *e) {
    static const char *const begins[] = {"llama-bpe", "llama3", "tekken"};
    ls_tokenizer_parts *p = r->p;
    bool llama = p->model && strcmp(p->model, "llama") == 0, trims = false;
    p->unknown = llama ? 0 : -1;
    p->bos = llama ? 1 : -1;
    p->eos = llama ? 2 : -1;
    p->add_bos = llama;
    for (int i = 0; p->pre && i < 3; i++) p->add_bos = p->add_bos || !strcmp(p->pre, begins[i]);
    p->add_space_prefix = true;
    LS_TRY(id_read(r, PREFIX "unknown_token_id", &p->unknown, e));
    LS_TRY(id_read(r, PREFIX "bos_token_id", &p->bos, e));
    LS_TRY(id_read(r, PREFIX "eos_token_id", &p->eos, e));
    LS_TRY(flag_read(r, PREFIX "add_bos_token", &p->add_bos, e));
    LS_TRY(flag_read(r, PREFIX "add_eos_token", &p->add_eos, e));
    LS_TRY(flag_read(r, PREFIX "add_space_prefix", &p->add_space_prefix, e));
    LS_TRY(flag_read(r, PREFIX "remove_extra_whitespaces", &trims, e));
    if (llama && (trims || ls_gguf_find(r->g, PREFIX "precompiled_charsmap")))
        return ls_fail(e, LS_EINVAL, "%s: " PREFIX "%s is not supported", r->g->path,
                       trims ? "remove_extra_whitespaces" : "precompiled_charsmap");
    return LS_OK;
}

/* In Phi-3's tokenizer.json special tokens have rstrip, for which GGUF has no key: as in llama.cpp
 * the model's name says so. */
static bool is_phi3(const ls_gguf *g) {
    const ls_gguf_value *v = ls_gguf_find(g, "general.name");
    ls_gguf_text t = {0};
    if (!v || v->is_array || !ls_gguf_text_at(v, 0, &t)) return false;
    char *name = ls_format("%.*s", t.n < 256 ? (int)t.n : 256, t.data);
    bool is = strcasestr(name, "phi-3") || strcasestr(name, "phi3");
    free(name);
    return is;
}

static ls_status parts_read(reader *r, ls_error *e) {
    ls_tokenizer_parts *p = r->p;
    LS_TRY(text_read(r, PREFIX "model", &r->model, e));
    LS_TRY(text_read(r, PREFIX "pre", &r->pre, e));
    if (!r->model)
        return ls_fail(e, LS_EINVAL, "%s: has no tokenizer: " PREFIX "model is missing",
                       r->g->path);
    p->model = r->model;
    p->pre = r->pre;
    LS_TRY(texts_read(r, PREFIX "tokens", &r->tokens, &p->n, e));
    LS_TRY(texts_read(r, PREFIX "merges", &r->merges, &p->nmerges, e));
    LS_TRY(types_read(r, e));
    LS_TRY(scores_read(r, e));
    p->tokens = r->tokens;
    p->merges = r->merges;
    p->types = r->types;
    p->scores = r->scores;
    p->take_space = is_phi3(r->g);
    return ends_read(r, e);
}

ls_status ls_gguf_read_tokenizer(const ls_gguf *g, ls_tokenizer **t_p, ls_error *e) {
    ls_tokenizer_parts p = {.n = 0};
    reader r = {.g = g, .p = &p};
    ls_status s = parts_read(&r, e);
    ls_tokenizer *t = NULL;
    if (s == LS_OK) s = ls_tokenizer_create(&p, g->path, &t, e);
    if (s == LS_OK) s = ls_guard_check(e); /* the file may have been truncated */
    if (s == LS_OK)
        *t_p = t;
    else
        ls_tokenizer_free(t);
    free(r.tokens);
    free(r.merges);
    free(r.types);
    free(r.scores);
    free(r.model);
    free(r.pre);
    return s;
}
