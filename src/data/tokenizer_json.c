/* tokenizer_json.c - reads and writes tokenizers as Hugging Face's tokenizer.json.
 *
 * The file spells tokens in GPT-2's alphabet of bytes (bpe.h), except those in added_tokens, which
 * are plain text. model.vocab maps each spelling to its id; added tokens may be in it or have ids
 * of their own. model.merges lists pairs of tokens, as "a b" or as ["a", "b"].
 *
 * A file may come from anywhere. Reading checks that it asks for nothing that GPT-2's tokenizer
 * does not do, that the ids are 0..n-1, each once, and that the invariants of bpe.h hold.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/bpe.h"

/* The values that are supported. group "": the key is at the top level. A missing key is like
 * null. */
static const struct {
    const char *group, *key, *value, *or_value;
} settings[] = {
    {"", "truncation", "null", "null"},
    {"", "padding", "null", "null"},
    {"", "normalizer", "null", "null"},
    {"pre_tokenizer", "type", "\"ByteLevel\"", "\"ByteLevel\""},
    {"pre_tokenizer", "add_prefix_space", "false", "false"},
    {"pre_tokenizer", "use_regex", "true", "null"},
    {"post_processor", "type", "\"ByteLevel\"", "null"},
    {"model", "type", "\"BPE\"", "null"},
    {"model", "dropout", "null", "0.0"},
    {"model", "continuing_subword_prefix", "null", "\"\""},
    {"model", "end_of_word_suffix", "null", "\"\""},
    {"model", "byte_fallback", "false", "null"},
    {"model", "ignore_merges", "false", "null"},
};

typedef struct reader {
    const char *what;
    const ls_json *vocab, *merges, *added; /* borrowed from the root */
    const char **spelling;                 /* [n] by id; NULL: no token has that id yet */
    size_t n;
    ls_tokenizer *t;
} reader;

#define SHOWN 64 /* bytes of a value in a message, and a 0 */

/* The value as JSON; a long one is cut between characters. NULL is shown as null. */
static const char *show(const ls_json *j, char shown[SHOWN]) {
    ls_buf b = {0};
    if (j)
        ls_json_write(j, 0, &b);
    else
        ls_buf_append(&b, "null", 4);
    size_t n = b.len < SHOWN ? b.len : SHOWN - 4;
    while (n < b.len && n > 0 && ((uint8_t)b.data[n] & 0xC0) == 0x80) n--;
    memcpy(shown, b.data, n);
    strcpy(shown + n, n < b.len ? "..." : "");
    ls_buf_free(&b);
    return shown;
}

static const char *show_text(const char *text, char shown[SHOWN]) {
    ls_json *j = ls_json_new_text(text);
    show(j, shown);
    ls_json_free(j);
    return shown;
}

static ls_status settings_check(const reader *r, const ls_json *root, ls_error *e) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char shown[SHOWN];
        const char *group = settings[i].group, *key = settings[i].key;
        const ls_json *j = ls_json_get(*group ? ls_json_get(root, group) : root, key);
        show(j, shown);
        if (strcmp(shown, settings[i].value) == 0 || strcmp(shown, settings[i].or_value) == 0)
            continue;
        return ls_fail(e, LS_EINVAL, "%s: %s%s%s is %s; only %s is supported, as in GPT-2", r->what,
                       group, *group ? "." : "", key, shown, settings[i].value);
    }
    return LS_OK;
}

/* Finds the vocabulary, the merges and the added tokens, and counts the tokens. */
static ls_status parts_find(reader *r, const ls_json *root, ls_error *e) {
    const ls_json *model = ls_json_get(root, "model");
    r->vocab = ls_json_get(model, "vocab");
    r->merges = ls_json_get(model, "merges");
    r->added = ls_json_get(root, "added_tokens");
    if (!ls_json_is_object(r->vocab))
        return ls_fail(e, LS_EINVAL, "%s: model.vocab is missing, or not an object", r->what);
    if (!ls_json_is_array(r->merges))
        return ls_fail(e, LS_EINVAL, "%s: model.merges is missing, or not a list", r->what);
    char shown[SHOWN];
    if (!ls_json_is_array(r->added) && strcmp(show(r->added, shown), "null") != 0)
        return ls_fail(e, LS_EINVAL, "%s: added_tokens is not a list", r->what);
    r->n = ls_json_count(r->vocab);
    for (size_t i = 0; i < ls_json_count(r->added); i++) {
        const char *text = ls_json_text(ls_json_get(ls_json_at(r->added, i), "content"));
        if (!text)
            return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu].content is missing, or not a text",
                           r->what, i);
        r->n += ls_json_get(r->vocab, text) == NULL;
    }
    return LS_OK;
}

static ls_status id_read(const reader *r, const ls_json *j, const char *text, uint32_t *id_p,
                         ls_error *e) {
    int64_t id = 0;
    char token[SHOWN], shown[SHOWN];
    if (!ls_json_integer(j, &id) || id < 0 || (uint64_t)id >= r->n || id >= UINT32_MAX - 1)
        return ls_fail(e, LS_EINVAL, "%s: token %s has id %s; with %zu tokens, ids are 0 to %zu",
                       r->what, show_text(text, token), show(j, shown), r->n, r->n - 1);
    *id_p = (uint32_t)id;
    return LS_OK;
}

static ls_status spelling_put(reader *r, uint32_t id, const char *text, ls_error *e) {
    char token[SHOWN], other[SHOWN];
    if (r->spelling[id])
        return ls_fail(e, LS_EINVAL, "%s: tokens %s and %s both have id %u", r->what,
                       show_text(r->spelling[id], other), show_text(text, token), id);
    r->spelling[id] = text;
    return LS_OK;
}

static ls_status added_read(reader *r, size_t i, ls_error *e) {
    const ls_json *item = ls_json_at(r->added, i);
    const char *text = ls_json_text(ls_json_get(item, "content"));
    uint32_t id = 0;
    char token[SHOWN];
    LS_TRY(id_read(r, ls_json_get(item, "id"), text, &id, e));
    if (r->t->added[id])
        return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu]: id %u is added already", r->what, i,
                       id);
    r->t->added[id] = true;
    if (!ls_json_get(r->vocab, text)) return spelling_put(r, id, text, e);
    if (strcmp(r->spelling[id] ? r->spelling[id] : "", text) != 0)
        return ls_fail(e, LS_EINVAL, "%s: added_tokens[%zu]: %s has another id in model.vocab",
                       r->what, i, show_text(text, token));
    return LS_OK;
}

static ls_status spellings_read(reader *r, ls_error *e) {
    const char *text = NULL;
    const ls_json *j = NULL;
    r->spelling = LS_NEW_ARRAY(const char *, r->n);
    r->t->added = LS_NEW_ARRAY(bool, r->n);
    for (void *it = NULL; (it = ls_json_next(r->vocab, it, &text, &j));) {
        uint32_t id = 0;
        LS_TRY(id_read(r, j, text, &id, e));
        LS_TRY(spelling_put(r, id, text, e));
    }
    for (size_t i = 0; i < ls_json_count(r->added); i++) LS_TRY(added_read(r, i, e));
    return LS_OK; /* n tokens, all ids below n and different: no holes */
}

/* The bytes of a spelling in GPT-2's alphabet; false: it has another character. Each character of
 * that alphabet is one or two bytes of UTF-8. */
static bool spelling_decode(const char *text, ls_buf *bytes) {
    for (const uint8_t *s = (const uint8_t *)text; *s; s++) {
        uint32_t c = *s;
        if (c >= 0xE0) return false;
        if (c >= 0x80) c = (c & 0x1F) << 6 | (*++s & 0x3F);
        int value = ls_bpe_byte_of_char(c);
        uint8_t byte = (uint8_t)value;
        if (value < 0) return false;
        ls_buf_append(bytes, &byte, 1);
    }
    return true;
}

static ls_status token_add(reader *r, uint32_t id, ls_error *e) {
    const char *text = r->spelling[id];
    char token[SHOWN];
    ls_buf bytes = {0};
    bool fresh = false, spelt = true;
    if (r->t->added[id])
        ls_buf_append(&bytes, text, strlen(text));
    else
        spelt = spelling_decode(text, &bytes);
    uint32_t at = 0;
    if (spelt && bytes.len)
        at = ls_words_add(&r->t->tokens, (const uint8_t *)bytes.data, bytes.len, &fresh);
    if (fresh && bytes.len == 1) r->t->byte_token[(uint8_t)bytes.data[0]] = id;
    size_t nbytes = bytes.len;
    ls_buf_free(&bytes);
    if (!spelt)
        return ls_fail(e, LS_EINVAL, "%s: token %s (id %u) is not spelt in GPT-2's byte alphabet",
                       r->what, show_text(text, token), id);
    if (!nbytes) return ls_fail(e, LS_EINVAL, "%s: token \"\" (id %u) is empty", r->what, id);
    if (!fresh)
        return ls_fail(e, LS_EINVAL, "%s: tokens %u and %u stand for the same bytes, %s", r->what,
                       at, id, show_text(text, token));
    return LS_OK;
}

static ls_status tokens_read(reader *r, ls_error *e) {
    for (int byte = 0; byte < 256; byte++) r->t->byte_token[byte] = UINT32_MAX;
    for (uint32_t id = 0; id < r->n; id++) LS_TRY(token_add(r, id, e));
    for (int byte = 0; byte < 256; byte++)
        if (r->t->byte_token[byte] == UINT32_MAX)
            return ls_fail(e, LS_EINVAL, "%s: model.vocab has no token for byte 0x%02X", r->what,
                           (unsigned)byte);
    return LS_OK;
}

/* The id of a spelling that a merge may use, or -1. */
static int64_t spelling_id(const reader *r, const char *text) {
    int64_t id = -1;
    const ls_json *j = ls_json_get(r->vocab, text);
    if (!j || !ls_json_integer(j, &id) || r->t->added[id]) return -1;
    return id;
}

/* Both halves of merge i in `halves`, each followed by a 0; the second begins at *right_p. */
static ls_status merge_split(const reader *r, size_t i, ls_buf *halves, size_t *right_p,
                             ls_error *e) {
    const ls_json *j = ls_json_at(r->merges, i);
    const char *text = ls_json_text(j), *space = text ? strchr(text, ' ') : NULL;
    const char *left = ls_json_text(ls_json_at(j, 0)), *right = ls_json_text(ls_json_at(j, 1));
    char shown[SHOWN];
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
                       i, show(j, shown));
    }
    return LS_OK;
}

static ls_status merge_read(reader *r, size_t i, ls_buf *scratch, ls_error *e) {
    char shown[SHOWN];
    const ls_json *j = ls_json_at(r->merges, i);
    size_t right = 0;
    scratch->len = 0;
    LS_TRY(merge_split(r, i, scratch, &right, e));
    int64_t a = spelling_id(r, scratch->data), b = spelling_id(r, scratch->data + right);
    /* Join the halves: the second moves over the 0 between them. */
    memmove(scratch->data + right - 1, scratch->data + right, scratch->len - right);
    int64_t id = spelling_id(r, scratch->data);
    if (a < 0 || b < 0 || id < 0)
        return ls_fail(e, LS_EINVAL, "%s: model.merges[%zu], %s: %s is not in model.vocab", r->what,
                       i, show(j, shown),
                       a < 0   ? "the first half"
                       : b < 0 ? "the second half"
                               : "the result");
    if (!ls_bpe_add_merge(r->t, (uint32_t)a, (uint32_t)b, (uint32_t)id))
        return ls_fail(e, LS_EINVAL, "%s: model.merges[%zu], %s, is a duplicate", r->what, i,
                       show(j, shown));
    return LS_OK;
}

static ls_status root_read(reader *r, const ls_json *root, ls_error *e) {
    if (!ls_json_is_object(root))
        return ls_fail(e, LS_EINVAL, "%s: is not a tokenizer.json: not an object", r->what);
    LS_TRY(settings_check(r, root, e));
    LS_TRY(parts_find(r, root, e));
    LS_TRY(spellings_read(r, e));
    LS_TRY(tokens_read(r, e));
    ls_buf scratch = {0};
    ls_status s = LS_OK;
    size_t n = ls_json_count(r->merges);
    if (n >= UINT32_MAX - 1)
        s = ls_fail(e, LS_EINVAL, "%s: model.merges has %zu entries, too many", r->what, n);
    for (size_t i = 0; i < n && s == LS_OK; i++) s = merge_read(r, i, &scratch, e);
    ls_buf_free(&scratch);
    return s;
}

ls_status ls_tokenizer_parse(const char *json, size_t nbytes, const char *what, ls_tokenizer **t_p,
                             ls_error *e) {
    ls_json *root = NULL;
    LS_TRY(ls_json_parse(json, nbytes, what, &root, e));
    reader r = {.what = what, .t = LS_NEW(ls_tokenizer)};
    ls_status s = root_read(&r, root, e);
    free(r.spelling);
    ls_json_free(root);
    if (s == LS_OK)
        *t_p = r.t;
    else
        ls_tokenizer_free(r.t);
    return s;
}

/* Appends the token as the file spells it. */
static void token_spell(const ls_tokenizer *t, uint32_t id, ls_buf *out) {
    size_t n = 0;
    const uint8_t *bytes = ls_words_at(&t->tokens, id, &n);
    if (t->added && t->added[id]) {
        ls_buf_append(out, bytes, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t c = ls_bpe_char_of_byte(bytes[i]);
        char utf8[2] = {(char)(c < 0x80 ? c : 0xC0 | c >> 6), (char)(0x80 | (c & 0x3F))};
        ls_buf_append(out, utf8, c < 0x80 ? 1 : 2);
    }
}

static ls_json *byte_level_new(bool add_prefix_space) {
    ls_json *j = ls_json_new_object();
    ls_json_set(j, "type", ls_json_new_text("ByteLevel"));
    ls_json_set(j, "add_prefix_space", ls_json_new_bool(add_prefix_space));
    ls_json_set(j, "trim_offsets", ls_json_new_bool(true));
    ls_json_set(j, "use_regex", ls_json_new_bool(true));
    return j;
}

static ls_json *added_new(const ls_tokenizer *t) {
    static const char *const off[] = {"single_word", "lstrip", "rstrip", "normalized"};
    ls_json *list = ls_json_new_array();
    for (uint32_t id = 0; t->added && id < t->tokens.n; id++) {
        if (!t->added[id]) continue;
        ls_buf text = {0};
        token_spell(t, id, &text);
        ls_json *j = ls_json_new_object();
        ls_json_set(j, "id", ls_json_new_integer(id));
        ls_json_set(j, "content", ls_json_new_text(text.data));
        for (int i = 0; i < 4; i++) ls_json_set(j, off[i], ls_json_new_bool(false));
        ls_json_set(j, "special", ls_json_new_bool(true));
        ls_json_push(list, j);
        ls_buf_free(&text);
    }
    return list;
}

static ls_json *vocab_new(const ls_tokenizer *t) {
    ls_json *vocab = ls_json_new_object();
    ls_buf text = {0};
    for (uint32_t id = 0; id < t->tokens.n; id++) {
        text.len = 0;
        token_spell(t, id, &text);
        ls_json_set(vocab, text.data, ls_json_new_integer(id));
    }
    ls_buf_free(&text);
    return vocab;
}

static ls_json *merges_new(const ls_tokenizer *t) {
    ls_json *merges = ls_json_new_array();
    ls_buf text = {0};
    for (uint32_t i = 0; i < t->nmerges; i++) {
        text.len = 0;
        token_spell(t, t->merges[i].a, &text);
        ls_buf_append(&text, " ", 1);
        token_spell(t, t->merges[i].b, &text);
        ls_json_push(merges, ls_json_new_text(text.data));
    }
    ls_buf_free(&text);
    return merges;
}

static ls_json *model_new(const ls_tokenizer *t) {
    static const char *const none[] = {"dropout", "unk_token", "continuing_subword_prefix",
                                       "end_of_word_suffix"};
    static const char *const off[] = {"fuse_unk", "byte_fallback", "ignore_merges"};
    ls_json *model = ls_json_new_object();
    ls_json_set(model, "type", ls_json_new_text("BPE"));
    for (int i = 0; i < 4; i++) ls_json_set(model, none[i], ls_json_new_null());
    for (int i = 0; i < 3; i++) ls_json_set(model, off[i], ls_json_new_bool(false));
    ls_json_set(model, "vocab", vocab_new(t));
    ls_json_set(model, "merges", merges_new(t));
    return model;
}

void ls_tokenizer_write(const ls_tokenizer *t, ls_buf *out) {
    ls_json *root = ls_json_new_object();
    ls_json_set(root, "version", ls_json_new_text("1.0"));
    ls_json_set(root, "truncation", ls_json_new_null());
    ls_json_set(root, "padding", ls_json_new_null());
    ls_json_set(root, "added_tokens", added_new(t));
    ls_json_set(root, "normalizer", ls_json_new_null());
    ls_json_set(root, "pre_tokenizer", byte_level_new(false));
    ls_json_set(root, "post_processor", ls_json_new_null());
    ls_json_set(root, "decoder", byte_level_new(true));
    ls_json_set(root, "model", model_new(t));
    ls_json_write(root, 2, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(root);
}
