/* export_weights.c - see export_weights.h. */
#include "weights/export_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/fresh.h"
#include "base/log.h"
#include "weights/gguf_model.h"
#include "weights/gguf_tokenizer.h"

enum { PIECE = 1 << 20 };                /* elements that are hashed at once */
static const int64_t SHARD = 5000000000; /* bytes, as Hugging Face's programs have them */

/* ---- the hash ---- */

static bool all_finite(const float *x, size_t n) {
    uint32_t largest = 0; /* of the exponents: a loop that the compiler vectorizes */
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7f800000u;
        if (bits > largest) largest = bits;
    }
    return largest < 0x7f800000u;
}

static ls_status hash_tensor(const ls_weights *w, const ls_weight *t, float *x, ls_hasher *h,
                             ls_error *e) {
    int64_t width = t->id.ndims > 1 ? t->id.dims[1] : 1, rows = t->id.dims[0];
    int64_t step = PIECE / width > 1 ? PIECE / width : 1;
    ls_hasher_add(h, t->id.name, strlen(t->id.name) + 1);
    const int64_t ndims = t->id.ndims;
    ls_hasher_add(h, &ndims, sizeof ndims);
    ls_hasher_add(h, t->id.dims, (size_t)ndims * sizeof *t->id.dims);
    for (int64_t i = 0; i < rows; i += step) {
        int64_t end = rows - i < step ? rows : i + step;
        size_t n = (size_t)((end - i) * width);
        LS_TRY(ls_weights_rows(w, t, i, end, x, e));
        if (!all_finite(x, n))
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' has a number that is not finite", w->path,
                           t->id.name);
        ls_hasher_add(h, x, n * sizeof *x);
    }
    return LS_OK;
}

ls_status ls_weights_hash(const ls_weights *w, ls_hash *h_p, ls_error *e) {
    int64_t widest = PIECE;
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].id.dims[1] > widest) widest = w->list[i].id.dims[1];
    float *x = LS_NEW_ARRAY(float, (size_t)widest);
    ls_hasher *h = ls_hasher_new();
    ls_status s = LS_OK;
    ls_bar bar = ls_bar_begin("reading weights: tensors", w->n);
    for (size_t i = 0; s == LS_OK && i < w->n; i++) {
        s = hash_tensor(w, w->by_name[i], x, h, e);
        ls_bar_at(&bar, i + 1);
    }
    ls_bar_end(&bar);
    ls_hash hash = ls_hasher_finish(h);
    if (s == LS_OK) *h_p = hash;
    free(x);
    return s;
}

/* ---- reading again ---- */

ls_status ls_written_read(const char *path, ls_written *w_p, ls_error *e) {
    ls_weights w = {0};
    LS_TRY(ls_weights_open(path, &w, e));
    ls_buf types = {0};
    ls_weights_put_types(&w, &types);
    ls_written r = {.arch = w.arch, .types = types.data, .nbytes = ls_weights_nbytes(&w)};
    ls_status s = ls_weights_hash(&w, &r.hash, e);
    ls_weights_close(&w);
    if (s == LS_OK)
        *w_p = r;
    else
        ls_written_free(&r);
    return s;
}

void ls_written_free(ls_written *w) {
    free(w->types);
    w->types = NULL;
}

/* ---- a directory ---- */

static ls_status write_folder(const ls_export *x, const char *folder, ls_error *e) {
    LS_TRY(ls_write_config(x->source.arch, folder, x->type, e));
    LS_TRY(ls_write_safetensors(&x->source, folder, x->type, SHARD, e));
    return x->text->tokenizer ? ls_model_text_write(x->source.arch, x->text, folder, e) : LS_OK;
}

typedef ls_status writer(const ls_export *, const char *path, ls_error *);

/* Writes it whole, or not at all. */
static ls_status write_fresh(const ls_export *x, const char *path, ls_fresh_kind kind,
                             writer *write, ls_written *w_p, ls_error *e) {
    ls_fresh f = {0};
    ls_written w = {0};
    LS_TRY(ls_fresh_begin(path, kind, &f, e));
    ls_status s = write(x, f.at, e);
    if (s == LS_OK) s = ls_written_read(f.at, &w, e);
    if (s == LS_OK)
        s = ls_fresh_end(&f, e);
    else
        ls_fresh_discard(&f);
    if (s == LS_OK)
        *w_p = w;
    else
        ls_written_free(&w);
    return s;
}

ls_status ls_export_folder(const ls_export *x, const char *path, ls_written *w_p, ls_error *e) {
    return write_fresh(x, path, LS_FRESH_DIRECTORY, write_folder, w_p, e);
}

/* ---- a GGUF file ---- */

/* The id of a special token; `other`: the model has none, or one without an id. */
static int64_t id_of(const ls_model_text *t, ls_special_token k, int64_t other) {
    uint32_t id = t->special[k] ? ls_special_token_id(t->tokenizer, t->special[k]) : LS_NO_TOKEN;
    return id == LS_NO_TOKEN ? other : (int64_t)id;
}

/* GGUF has one id where a directory has that of the tokenizer, which writes texts, and those of the
 * model: as llama.cpp converts it, the tokenizer's; an end of the model's is another end. */
static ls_architecture with_ids(const ls_architecture *a, const ls_model_text *t) {
    ls_architecture b = *a;
    b.bos = id_of(t, LS_BOS_TOKEN, a->bos);
    b.pad = id_of(t, LS_PAD_TOKEN, a->pad);
    int64_t first = id_of(t, LS_EOS_TOKEN, a->neos ? a->eos[0] : LS_TOKEN_NONE);
    if (first == LS_TOKEN_NONE) return b;
    b.eos[0] = first;
    b.neos = 1;
    for (int i = 0; i < a->neos && b.neos < LS_MAX_EOS; i++)
        if (a->eos[i] != first) b.eos[b.neos++] = a->eos[i];
    return b;
}

static ls_status write_gguf(const ls_export *x, const char *path, ls_error *e) {
    ls_gguf_writer w = {0};
    ls_architecture a = with_ids(x->source.arch, x->text);
    ls_model_source source = x->source;
    source.arch = &a;
    for (int i = LS_GGUF_ENDS; i < a.neos; i++)
        ls_log("GGUF has keys for %d ends of a text: token %lld is not written as one",
               LS_GGUF_ENDS, (long long)a.eos[i]);
    ls_status s = ls_gguf_put_tokenizer(&w, x->text->tokenizer, &a, e);
    ls_model_templates_put(&x->text->templates, &w);
    if (s == LS_OK) s = ls_write_gguf(&source, path, x->type, &w, e);
    ls_gguf_writer_free(&w);
    return s;
}

ls_status ls_export_gguf(const ls_export *x, const char *path, ls_written *w_p, ls_error *e) {
    if (!x->text->tokenizer)
        return ls_fail(e, LS_EINVAL, "a GGUF file has a tokenizer, and this model has none");
    return write_fresh(x, path, LS_FRESH_FILE, write_gguf, w_p, e);
}
