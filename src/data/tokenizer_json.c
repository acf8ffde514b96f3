/* tokenizer_json.c - reads tokenizers from Hugging Face's tokenizer.json.
 *
 * The file spells tokens as spelling.h says, except those in added_tokens, which are plain text.
 * model.vocab maps each spelling to its id; added tokens may be in it or have ids of their own.
 * model.merges lists pairs of tokens, as "a b" or as ["a", "b"].
 *
 * A file may come from anywhere. Reading checks that it asks for nothing that is not supported
 * (tokenizer_steps.c and `settings` below), that the ids are 0..n-1, each once, and that the
 * invariants of bpe.h hold.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/spelling.h"
#include "data/tokenizer_steps.h"
#include "data/vocabulary.h"

enum { MOST_TOKENS = 1 << 24 };

/* The values of model that are supported. A missing key is like null. */
static const struct {
    const char *key, *value, *or_value;
} settings[] = {
    {"type", "\"BPE\"", "null"},
    {"dropout", "null", "0.0"},
    {"continuing_subword_prefix", "null", "\"\""},
    {"end_of_word_suffix", "null", "\"\""},
};

typedef struct reader {
    const char *what;
    const ls_json *vocab, *merges, *added; /* borrowed from the root */
    const char **spelling;                 /* [n] by id; NULL: no token has that id yet */
    size_t n;
    bool byte_fallback;
    ls_tokenizer *t;
} reader;

static const char *show_text(const char *text, char shown[LS_SHOWN]) {
    ls_json *j = ls_json_new_text(text);
    ls_json_show(j, shown);
    ls_json_free(j);
    return shown;
}

/* How batches are cut and padded, as trainers leave it in the file. It changes no ids of a text, so
 * transformers does not use it unless it is asked to, and neither do we. */
static ls_status batch_check(const reader *r, const ls_json *root, ls_error *e) {
    static const char *const truncation[] = {"direction", "max_length", "strategy", "stride", NULL};
    static const char *const padding[] = {
        "strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token", NULL};
    const ls_json_place p = {r->what, "", root};
    const ls_json_place cut = {r->what, "truncation.", ls_json_get(root, "truncation")};
    const ls_json_place pad = {r->what, "padding.", ls_json_get(root, "padding")};
    if (!ls_json_is_object(cut.object)) LS_TRY(ls_json_expect(&p, "truncation", "null", "null", e));
    if (!ls_json_is_object(pad.object)) LS_TRY(ls_json_expect(&p, "padding", "null", "null", e));
    LS_TRY(ls_json_expect_keys(&cut, truncation, e));
    return ls_json_expect_keys(&pad, padding, e);
}

static ls_status settings_check(const reader *r, const ls_json *model, ls_error *e) {
    const ls_json_place p = {r->what, "model.", model};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        LS_TRY(ls_json_expect(&p, settings[i].key, settings[i].value, settings[i].or_value, e));
    return LS_OK;
}

/* A key of model that is true or false; missing or null is false. */
static ls_status flag_read(const reader *r, const ls_json *model, const char *key, bool *value_p,
                           ls_error *e) {
    const ls_json_place p = {r->what, "model.", model};
    *value_p = ls_json_is_true(ls_json_get(model, key));
    return *value_p ? LS_OK : ls_json_expect(&p, key, "false", "null", e);
}

static ls_status model_read(reader *r, const ls_json *root, ls_error *e) {
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    const ls_json *model = ls_json_get(root, "model");
    const ls_json_place p = {r->what, "model.", model};
    LS_TRY(batch_check(r, root, e));
    LS_TRY(settings_check(r, model, e));
    LS_TRY(flag_read(r, model, "byte_fallback", &r->byte_fallback, e));
    LS_TRY(flag_read(r, model, "ignore_merges", &r->t->ignore_merges, e));
    LS_TRY(flag_read(r, model, "fuse_unk", &r->t->fuse_unknown, e));
    if (r->t->byte_level) LS_TRY(ls_json_expect(&p, "byte_fallback", "false", "null", e));
    r->vocab = ls_json_get(model, "vocab");
    r->merges = ls_json_get(model, "merges");
    if (!ls_json_is_object(r->vocab))
        return ls_fail(e, LS_EINVAL, "%s: model.vocab is missing, or not an object", r->what);
    if (!ls_json_is_array(r->merges))
        return ls_fail(e, LS_EINVAL, "%s: model.merges is missing, or not a list", r->what);
    return ls_json_expect_keys(&p, keys, e);
}

/* Finds the added tokens, and counts all. */
static ls_status tokens_count(reader *r, const ls_json *root, ls_error *e) {
    char shown[LS_SHOWN];
    r->added = ls_json_get(root, "added_tokens");
    if (!ls_json_is_array(r->added) && strcmp(ls_json_show(r->added, shown), "null") != 0)
        return ls_fail(e, LS_EINVAL, "%s: added_tokens is not a list", r->what);
    r->n = ls_json_count(r->vocab);
    for (size_t i = 0; i < ls_json_count(r->added); i++) {
        const char *text = ls_json_text(ls_json_get(ls_json_at(r->added, i), "content"));
        if (!text)
            return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu].content is missing, or not a text",
                           r->what, i);
        r->n += ls_json_get(r->vocab, text) == NULL;
    }
    if (r->n > MOST_TOKENS)
        return ls_fail(e, LS_EINVAL, "%s: has %zu tokens; at most %d are supported", r->what, r->n,
                       MOST_TOKENS);
    return LS_OK;
}

static ls_status id_read(const reader *r, const ls_json *j, const char *text, uint32_t *id_p,
                         ls_error *e) {
    int64_t id = 0;
    char token[LS_SHOWN], shown[LS_SHOWN];
    if (!ls_json_integer(j, &id) || id < 0 || (uint64_t)id >= r->n)
        return ls_fail(e, LS_EINVAL, "%s: token %s has id %s; with %zu tokens, ids are 0 to %zu",
                       r->what, show_text(text, token), ls_json_show(j, shown), r->n, r->n - 1);
    *id_p = (uint32_t)id;
    return LS_OK;
}

static ls_status spelling_put(reader *r, uint32_t id, const char *text, ls_error *e) {
    char token[LS_SHOWN], other[LS_SHOWN];
    if (r->spelling[id])
        return ls_fail(e, LS_EINVAL, "%s: tokens %s and %s both have id %u", r->what,
                       show_text(r->spelling[id], other), show_text(text, token), id);
    r->spelling[id] = text;
    return LS_OK;
}

/* A flag of an added token. A missing one: tokens are special, and nothing else. */
static ls_status added_flag(const reader *r, size_t i, const char *key, bool *value_p,
                            ls_error *e) {
    const ls_json *j = ls_json_get(ls_json_at(r->added, i), key);
    char shown[LS_SHOWN];
    *value_p = j ? ls_json_is_true(j) : strcmp(key, "special") == 0;
    if (!j || ls_json_is_bool(j)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu].%s is %s; expected true or false", r->what,
                   i, key, ls_json_show(j, shown));
}

static ls_status added_put(reader *r, size_t i, uint32_t id, const char *text, ls_error *e) {
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    char *path = ls_format("added_tokens[%zu].", i);
    const ls_json_place p = {r->what, path, ls_json_at(r->added, i)};
    ls_added_token t = {.content = NULL, .nbytes = strlen(text), .id = id};
    ls_buf content = {0};
    ls_status s = ls_json_expect_keys(&p, keys, e);
    if (s == LS_OK) s = added_flag(r, i, "special", &t.special, e);
    if (s == LS_OK) s = added_flag(r, i, "single_word", &t.single_word, e);
    if (s == LS_OK) s = added_flag(r, i, "lstrip", &t.lstrip, e);
    if (s == LS_OK) s = added_flag(r, i, "rstrip", &t.rstrip, e);
    if (s == LS_OK) s = added_flag(r, i, "normalized", &t.normalized, e);
    ls_buf_append(&content, text, t.nbytes);
    t.content = content.data;
    if (s == LS_OK) s = ls_vocabulary_name(r->t, &t, r->what, e);
    r->t->kinds[id] = t.special ? LS_TOKEN_SPECIAL : LS_TOKEN_ADDED;
    ls_buf_free(&content);
    free(path);
    return s;
}

static ls_status added_read(reader *r, size_t i, ls_error *e) {
    const ls_json *item = ls_json_at(r->added, i);
    const char *text = ls_json_text(ls_json_get(item, "content"));
    uint32_t id = 0;
    char token[LS_SHOWN];
    LS_TRY(id_read(r, ls_json_get(item, "id"), text, &id, e));
    if (r->t->kinds[id] != LS_TOKEN_NORMAL)
        return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu]: id %u is added already", r->what, i,
                       id);
    if (!ls_json_get(r->vocab, text))
        LS_TRY(spelling_put(r, id, text, e));
    else if (strcmp(r->spelling[id] ? r->spelling[id] : "", text) != 0)
        return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu]: %s has another id in model.vocab",
                       r->what, i, show_text(text, token));
    return added_put(r, i, id, text, e);
}

static ls_status spellings_read(reader *r, ls_error *e) {
    const char *text = NULL;
    const ls_json *j = NULL;
    r->spelling = LS_NEW_ARRAY(const char *, r->n);
    r->t->kinds = LS_NEW_ARRAY(uint8_t, r->n);
    for (void *it = NULL; (it = ls_json_next(r->vocab, it, &text, &j));) {
        uint32_t id = 0;
        LS_TRY(id_read(r, j, text, &id, e));
        LS_TRY(spelling_put(r, id, text, e));
    }
    for (size_t i = 0; i < ls_json_count(r->added); i++) LS_TRY(added_read(r, i, e));
    return LS_OK; /* n tokens, all ids below n and different: no holes */
}

/* Adds token `id`, the next one, by its spelling. */
static ls_status token_read(reader *r, uint32_t id, ls_error *e) {
    const char *text = r->spelling[id];
    if (ls_bpe_kind(r->t, id) == LS_TOKEN_NORMAL && r->byte_fallback &&
        ls_spelling_single_byte(text, strlen(text)) >= 0)
        r->t->kinds[id] = LS_TOKEN_BYTE;
    return ls_vocabulary_add(r->t, text, strlen(text), r->what, e);
}

/* A byte-level tokenizer with all bytes never needs the unknown token, which therefore need not
 * exist. */
static ls_status unknown_read(reader *r, const ls_json *root, ls_error *e) {
    const ls_json *j = ls_json_get(ls_json_get(root, "model"), "unk_token");
    const char *text = ls_json_text(j);
    char shown[LS_SHOWN];
    bool needed = !r->t->byte_level;
    for (uint32_t id = 0; text && id < r->n; id++)
        if (strcmp(r->spelling[id], text) == 0) r->t->unknown = id;
    for (int i = 0; i < 256; i++) needed = needed || r->t->byte_token[i] == LS_NO_TOKEN;
    if (!needed || r->t->unknown != LS_NO_TOKEN || strcmp(ls_json_show(j, shown), "null") == 0)
        return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: model.unk_token is %s, which is no token", r->what, shown);
}

/* Does an added token stand for the bytes that a token of the vocabulary with its text does? */
static bool is_spelt_alike(const reader *r, const char *text) {
    ls_buf bytes = {0};
    bool alike = !r->t->byte_level ||
                 (ls_spelling_read(text, strlen(text), &bytes) && bytes.len == strlen(text) &&
                  memcmp(bytes.data, text, bytes.len) == 0);
    ls_buf_free(&bytes);
    return alike;
}

/* The id of a spelling that a merge may use, or -1, and why not. */
static int64_t spelling_id(const reader *r, const char *text, const char **why_p) {
    int64_t id = -1;
    const ls_json *j = ls_json_get(r->vocab, text);
    if (!j || !ls_json_integer(j, &id)) {
        *why_p = "is not in model.vocab";
        return -1;
    }
    if (!ls_bpe_may_merge(r->t, (uint32_t)id)) {
        bool special = ls_bpe_kind(r->t, (uint32_t)id) == LS_TOKEN_SPECIAL;
        *why_p = special ? "is a special token" : "is the token of a byte";
        return -1;
    }
    bool added = ls_bpe_kind(r->t, (uint32_t)id) == LS_TOKEN_ADDED;
    if (!added || is_spelt_alike(r, text)) return id;
    *why_p = "is an added token, which stands for other bytes";
    return -1;
}

/* Both halves of merge i in `halves`, each followed by a 0; the second begins at *right_p. */
static ls_status merge_split(const reader *r, size_t i, ls_buf *halves, size_t *right_p,
                             ls_error *e) {
    const ls_json *j = ls_json_at(r->merges, i);
    const char *text = ls_json_text(j), *space = text ? strchr(text, ' ') : NULL;
    const char *left = ls_json_text(ls_json_at(j, 0)), *right = ls_json_text(ls_json_at(j, 1));
    char shown[LS_SHOWN];
    if (space && !strchr(space + 1, ' ')) {
        ls_buf_append(halves, text, strlen(text) + 1);
        *right_p = (size_t)(space - text) + 1;
        halves->data[*right_p - 1] = 0;
    } else if (ls_json_count(j) == 2 && left && right) {
        *right_p = strlen(left) + 1;
        ls_buf_append(halves, left, *right_p);
        ls_buf_append(halves, right, strlen(right) + 1);
    } else {
        return ls_fail(e, LS_EINVAL,
                       "%s: model.merges[%zu] is %s; expected \"a b\" or [\"a\", \"b\"]", r->what,
                       i, ls_json_show(j, shown));
    }
    return LS_OK;
}

static ls_status merge_read(reader *r, size_t i, ls_buf *scratch, ls_error *e) {
    char shown[LS_SHOWN];
    const ls_json *j = ls_json_at(r->merges, i);
    size_t right = 0;
    scratch->len = 0;
    LS_TRY(merge_split(r, i, scratch, &right, e));
    const char *part = "the first half", *why = NULL;
    int64_t id = -1, a = spelling_id(r, scratch->data, &why), b = -1;
    if (a >= 0) part = "the second half", b = spelling_id(r, scratch->data + right, &why);
    /* Join the halves: the second moves over the 0 between them. */
    memmove(scratch->data + right - 1, scratch->data + right, scratch->len - right);
    if (b >= 0) part = "the result", id = spelling_id(r, scratch->data, &why);
    if (id < 0)
        return ls_fail(e, LS_EINVAL, "%s: model.merges[%zu], %s: %s %s", r->what, i,
                       ls_json_show(j, shown), part, why);
    if (!ls_bpe_add_merge(r->t, (uint32_t)a, (uint32_t)b, (uint32_t)id))
        return ls_fail(e, LS_EINVAL, "%s: model.merges[%zu], %s, is a duplicate", r->what, i,
                       ls_json_show(j, shown));
    return LS_OK;
}

static ls_status merges_read(reader *r, ls_error *e) {
    ls_buf scratch = {0};
    ls_status s = LS_OK;
    size_t n = ls_json_count(r->merges);
    if (n >= UINT32_MAX - 1)
        s = ls_fail(e, LS_EINVAL, "%s: model.merges has %zu entries, too many", r->what, n);
    for (size_t i = 0; i < n && s == LS_OK; i++) s = merge_read(r, i, &scratch, e);
    ls_buf_free(&scratch);
    return s;
}

static ls_status root_read(reader *r, const ls_json *root, ls_error *e) {
    if (!ls_json_is_object(root))
        return ls_fail(e, LS_EINVAL, "%s: is not a tokenizer.json: not an object", r->what);
    LS_TRY(ls_tokenizer_read_steps(root, r->what, &r->t, e));
    LS_TRY(model_read(r, root, e));
    LS_TRY(tokens_count(r, root, e));
    LS_TRY(spellings_read(r, e));
    for (uint32_t id = 0; id < r->n; id++) LS_TRY(token_read(r, id, e));
    LS_TRY(unknown_read(r, root, e));
    LS_TRY(merges_read(r, e));
    LS_TRY(ls_tokenizer_read_ends(root, r->what, r->t, e));
    return ls_vocabulary_finish(r->t, r->what, e);
}

ls_status ls_tokenizer_parse(const char *json, size_t nbytes, const char *what, ls_tokenizer **t_p,
                             ls_error *e) {
    ls_json *root = NULL;
    LS_TRY(ls_json_parse(json, nbytes, what, &root, e));
    reader r = {.what = what};
    ls_status s = root_read(&r, root, e);
    free(r.spelling);
    ls_json_free(root);
    if (s == LS_OK)
        *t_p = r.t;
    else
        ls_tokenizer_free(r.t);
    return s;
}
