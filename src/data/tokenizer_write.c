/* tokenizer_write.c - writes tokenizers as Hugging Face's tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/bpe.h"
#include "data/spelling.h"

static const ls_added_token *added_find(const ls_tokenizer *t, uint32_t id) {
    for (uint32_t i = 0; i < t->added.n; i++)
        if (t->added.tokens[i].id == id) return &t->added.tokens[i];
    return NULL;
}

void ls_tokenizer_spell(const ls_tokenizer *t, uint32_t id, ls_buf *out) {
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(t, id, &n);
    ls_token_kind kind = ls_bpe_kind(t, id);
    if (kind == LS_TOKEN_ADDED || kind == LS_TOKEN_SPECIAL) {
        const ls_added_token *a = added_find(t, id);
        ls_buf_append(out, a->content, a->nbytes);
    } else if (kind == LS_TOKEN_BYTE) {
        ls_buf_printf(out, "<0x%02X>", bytes[0]);
    } else if (t->byte_level) {
        ls_spelling_write(bytes, n, out);
    } else {
        ls_spelling_write_spaces(bytes, n, out);
    }
}

/* ---- the steps ---- */

static ls_json *typed_new(const char *type) {
    ls_json *j = ls_json_new_object();
    ls_json_set_text(j, "type", type);
    return j;
}

static ls_json *byte_level_new(bool add_prefix_space, bool use_regex) {
    ls_json *j = typed_new("ByteLevel");
    ls_json_set_bool(j, "add_prefix_space", add_prefix_space);
    ls_json_set_bool(j, "trim_offsets", true);
    ls_json_set_bool(j, "use_regex", use_regex);
    return j;
}

/* An object with one text. */
static ls_json *one_new(const char *key, const char *text) {
    ls_json *j = ls_json_new_object();
    ls_json_set_text(j, key, text);
    return j;
}

static ls_json *replace_new(const char *from, const char *to) {
    ls_json *j = typed_new("Replace");
    ls_json_set(j, "pattern", one_new("String", from));
    ls_json_set_text(j, "content", to);
    return j;
}

static ls_json *sequence_new(const char *key, ls_json *steps) {
    ls_json *j = typed_new("Sequence");
    ls_json_set(j, key, steps);
    return j;
}

static ls_json *normalizer_new(const ls_tokenizer *t) {
    if (t->compose) return typed_new("NFC");
    if (t->byte_level || t->spaces >= LS_SPACE_NEVER) return ls_json_new_null();
    ls_json *replace = replace_new(" ", LS_SPACE_MARK), *steps = ls_json_new_array();
    if (t->spaces == LS_SPACE_PREPEND) {
        ls_json *prepend = typed_new("Prepend");
        ls_json_set_text(prepend, "prepend", LS_SPACE_MARK);
        ls_json_push(steps, prepend);
    }
    ls_json_push(steps, replace);
    return sequence_new("normalizers", steps);
}

/* NULL: GPT-2's, which ByteLevel includes. */
static ls_json *cut_new(const ls_cut_step *step) {
    ls_json *j = NULL;
    if (step->kind == LS_CUT_EXPRESSION) {
        j = typed_new("Split");
        ls_json_set(j, "pattern", one_new("Regex", step->regex));
        ls_json_set_text(j, "behavior", "Isolated");
        ls_json_set_bool(j, "invert", false);
    } else if (step->kind == LS_CUT_DIGIT || step->kind == LS_CUT_DIGITS) {
        j = typed_new("Digits");
        ls_json_set_bool(j, "individual_digits", step->kind == LS_CUT_DIGIT);
    }
    return j;
}

static ls_json *metaspace_new(const ls_tokenizer *t) {
    static const char *const schemes[] = {
        [LS_SPACE_NEVER] = "never", [LS_SPACE_FIRST] = "first", [LS_SPACE_ALWAYS] = "always"};
    const ls_pretokenizer *p = &t->pretokenizer;
    if (t->spaces < LS_SPACE_NEVER) return ls_json_new_null();
    ls_json *j = typed_new("Metaspace");
    ls_json_set_text(j, "replacement", LS_SPACE_MARK);
    ls_json_set_text(j, "prepend_scheme", schemes[t->spaces]);
    ls_json_set_bool(j, "split", p->nsteps && p->steps[0].kind == LS_CUT_SPACE);
    return j;
}

static ls_json *pretokenizer_new(const ls_tokenizer *t) {
    const ls_pretokenizer *p = &t->pretokenizer;
    if (!t->byte_level) return metaspace_new(t);
    bool use_regex = p->nsteps && p->steps[p->nsteps - 1].kind == LS_CUT_GPT2;
    if (p->nsteps == use_regex) return byte_level_new(false, use_regex);
    ls_json *steps = ls_json_new_array();
    for (int i = 0; i < p->nsteps - use_regex; i++) ls_json_push(steps, cut_new(&p->steps[i]));
    ls_json_push(steps, byte_level_new(false, use_regex));
    return sequence_new("pretokenizers", steps);
}

static ls_json *decoder_new(const ls_tokenizer *t) {
    if (t->byte_level) return byte_level_new(true, true);
    ls_json *steps = ls_json_new_array();
    ls_json_push(steps, replace_new(LS_SPACE_MARK, " "));
    ls_json_push(steps, typed_new("ByteFallback"));
    ls_json_push(steps, typed_new("Fuse"));
    if (t->strip) {
        ls_json *strip = typed_new("Strip");
        ls_json_set_text(strip, "content", " ");
        ls_json_set_integer(strip, "start", 1);
        ls_json_set_integer(strip, "stop", 0);
        ls_json_push(steps, strip);
    }
    return sequence_new("decoders", steps);
}

/* ---- post_processor ---- */

typedef struct ends_writer {
    const ls_tokenizer *t;
    ls_json *special_tokens;
} ends_writer;

static void special_push(ends_writer *w, uint32_t id, int type_id, ls_json *template) {
    ls_buf text = {0};
    ls_tokenizer_spell(w->t, id, &text);
    ls_json *piece = ls_json_new_object(), *name = one_new("id", text.data);
    ls_json_set_integer(name, "type_id", type_id);
    ls_json_set(piece, "SpecialToken", name);
    ls_json_push(template, piece);
    ls_json *token = one_new("id", text.data), *ids = ls_json_new_array(),
            *tokens = ls_json_new_array();
    ls_json_push(ids, ls_json_new_integer(id));
    ls_json_push(tokens, ls_json_new_text(text.data));
    ls_json_set(token, "ids", ids);
    ls_json_set(token, "tokens", tokens);
    ls_json_set(w->special_tokens, text.data, token);
    ls_buf_free(&text);
}

/* A sequence and what is put around it. */
static void sequence_push(ends_writer *w, const char *which, int type_id, ls_json *template) {
    for (int i = 0; i < w->t->begin.n; i++) special_push(w, w->t->begin.ids[i], type_id, template);
    ls_json *piece = ls_json_new_object(), *text = one_new("id", which);
    ls_json_set_integer(text, "type_id", type_id);
    ls_json_set(piece, "Sequence", text);
    ls_json_push(template, piece);
    for (int i = 0; i < w->t->end.n; i++) special_push(w, w->t->end.ids[i], type_id, template);
}

static ls_json *ends_new(const ls_tokenizer *t) {
    if (t->begin.n + t->end.n == 0) return ls_json_new_null();
    ends_writer w = {t, ls_json_new_object()};
    ls_json *single = ls_json_new_array(), *pair = ls_json_new_array();
    sequence_push(&w, "A", 0, single);
    sequence_push(&w, "A", 0, pair);
    sequence_push(&w, "B", 1, pair);
    ls_json *j = typed_new("TemplateProcessing");
    ls_json_set(j, "single", single);
    ls_json_set(j, "pair", pair);
    ls_json_set(j, "special_tokens", w.special_tokens);
    return j;
}

/* ---- tokens and merges ---- */

static ls_json *added_new(const ls_tokenizer *t) {
    ls_json *list = ls_json_new_array();
    for (uint32_t id = 0; t->added.n && id < t->tokens.n; id++) {
        const ls_added_token *a = added_find(t, id);
        if (!a) continue;
        ls_json *j = ls_json_new_object();
        ls_json_set_integer(j, "id", id);
        ls_json_set_text(j, "content", a->content);
        ls_json_set_bool(j, "single_word", a->single_word);
        ls_json_set_bool(j, "lstrip", a->lstrip);
        ls_json_set_bool(j, "rstrip", a->rstrip);
        ls_json_set_bool(j, "normalized", a->normalized);
        ls_json_set_bool(j, "special", a->special);
        ls_json_push(list, j);
    }
    return list;
}

static ls_json *vocab_new(const ls_tokenizer *t) {
    ls_json *vocab = ls_json_new_object();
    ls_buf text = {0};
    for (uint32_t id = 0; id < t->tokens.n; id++) {
        text.len = 0;
        ls_tokenizer_spell(t, id, &text);
        ls_json_set_integer(vocab, text.data, id);
    }
    ls_buf_free(&text);
    return vocab;
}

static ls_json *merges_new(const ls_tokenizer *t) {
    ls_json *merges = ls_json_new_array();
    ls_buf text = {0};
    for (uint32_t i = 0; i < t->nmerges; i++) {
        text.len = 0;
        ls_tokenizer_spell(t, t->merges[i].a, &text);
        ls_buf_append(&text, " ", 1);
        ls_tokenizer_spell(t, t->merges[i].b, &text);
        ls_json_push(merges, ls_json_new_text(text.data));
    }
    ls_buf_free(&text);
    return merges;
}

static ls_json *unknown_new(const ls_tokenizer *t) {
    if (t->unknown == LS_NO_TOKEN) return ls_json_new_null();
    ls_buf text = {0};
    ls_tokenizer_spell(t, t->unknown, &text);
    ls_json *j = ls_json_new_text(text.data);
    ls_buf_free(&text);
    return j;
}

static ls_json *model_new(const ls_tokenizer *t) {
    ls_json *model = typed_new("BPE");
    bool byte_fallback = !t->byte_level && t->byte_token[0] != LS_NO_TOKEN;
    ls_json_set(model, "dropout", ls_json_new_null());
    ls_json_set(model, "unk_token", unknown_new(t));
    ls_json_set(model, "continuing_subword_prefix", ls_json_new_null());
    ls_json_set(model, "end_of_word_suffix", ls_json_new_null());
    ls_json_set_bool(model, "fuse_unk", t->fuse_unknown);
    ls_json_set_bool(model, "byte_fallback", byte_fallback);
    ls_json_set_bool(model, "ignore_merges", t->ignore_merges);
    ls_json_set(model, "vocab", vocab_new(t));
    ls_json_set(model, "merges", merges_new(t));
    return model;
}

void ls_tokenizer_write(const ls_tokenizer *t, ls_buf *out) {
    ls_json *root = ls_json_new_object();
    ls_json_set_text(root, "version", "1.0");
    ls_json_set(root, "truncation", ls_json_new_null());
    ls_json_set(root, "padding", ls_json_new_null());
    ls_json_set(root, "added_tokens", added_new(t));
    ls_json_set(root, "normalizer", normalizer_new(t));
    ls_json_set(root, "pre_tokenizer", pretokenizer_new(t));
    ls_json_set(root, "post_processor", ends_new(t));
    ls_json_set(root, "decoder", decoder_new(t));
    ls_json_set(root, "model", model_new(t));
    ls_json_write(root, 2, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(root);
}
