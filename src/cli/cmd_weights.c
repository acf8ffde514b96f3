/* cmd_weights.c - lockstep weights FILE|DIR: what is in weight files. */
#include <string.h>

#include "base/columns.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/print.h"
#include "base/wrap.h"
#include "cli/cli.h"
#include "weights/config_json.h"
#include "weights/listing.h"

enum { KEYS, JSON };
enum { ELEMENTS = 8, TEXT = 72, NAME = 40, INDENT = 11 };

/* ---- for people ---- */

static void put_text(ls_gguf_text t, ls_buf *b) {
    ls_buf text = {0};
    ls_buf_escape(&text, LS_ESCAPE_LINE, t.data, t.n < 4 * TEXT ? t.n : 4 * TEXT);
    size_t fits = text.data ? ls_columns_cut(text.data, text.len, TEXT) : 0;
    ls_buf_printf(b, "\"%.*s%s\"", (int)fits, text.data ? text.data : "",
                  fits < text.len || t.n > 4 * TEXT ? "..." : "");
    ls_buf_free(&text);
}

static void put_element(const ls_gguf_value *v, size_t i, ls_buf *b) {
    ls_gguf_text text;
    int64_t integer;
    double number;
    bool yes;
    if (ls_gguf_text_at(v, i, &text))
        put_text(text, b);
    else if (ls_gguf_integer(v, i, &integer))
        ls_buf_printf(b, "%lld", (long long)integer);
    else if (ls_gguf_number(v, i, &number))
        ls_buf_printf(b, "%.7g", number);
    else if (ls_gguf_bool(v, i, &yes))
        ls_buf_printf(b, "%s", yes ? "true" : "false");
    else
        ls_buf_printf(b, "above 2^63");
}

static void put_keys(const ls_gguf *g, ls_buf *b) {
    ls_buf_printf(b, "\n");
    for (size_t i = 0; i < g->nvalues; i++) {
        const ls_gguf_value *v = &g->values[i];
        size_t begin = b->len;
        ls_buf_escape(b, LS_ESCAPE_LINE, v->key, strlen(v->key));
        ls_buf_printf(b, "%*s ", begin + NAME > b->len ? (int)(begin + NAME - b->len) : 0, "");
        if (v->is_array)
            ls_buf_printf(b, "%zu %s%s", v->n, ls_gguf_kind_name(v->kind), v->n ? ": " : "");
        for (size_t k = 0; k < v->n && k < ELEMENTS; k++) {
            ls_buf_printf(b, "%s", k ? ", " : "");
            put_element(v, k, b);
        }
        ls_buf_printf(b, "%s\n", v->n > ELEMENTS ? ", ..." : "");
    }
}

static void put_rows(const ls_weights_listing *l, ls_buf *b) {
    size_t widest = 0;
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->rows[i].name) > widest) widest = strlen(l->rows[i].name);
    ls_buf_printf(b, "\n");
    for (size_t i = 0; i < l->n; i++) {
        const ls_weights_row *r = &l->rows[i];
        size_t begin = b->len;
        ls_buf_escape(b, LS_ESCAPE_LINE, r->name, strlen(r->name));
        size_t pad = begin + widest > b->len ? begin + widest - b->len : 0;
        ls_buf_printf(b, "%*s  %-5s [", (int)pad, "", r->type);
        for (int d = 0; d < r->ndims; d++)
            ls_buf_printf(b, "%s%lld", d ? ", " : "", (long long)r->dims[d]);
        ls_buf_printf(b, "]\n");
    }
}

static void print_listing(const ls_weights_listing *l, bool keys) {
    const ls_weights *w = &l->model;
    ls_buf b = {0};
    ls_buf_printf(&b, "format     %s", l->format);
    if (l->keys) ls_buf_printf(&b, " version %u", l->keys->version);
    if (w->list) {
        ls_buf text = {0};
        ls_architecture_describe(&w->arch, &text);
        ls_buf_printf(&b, "\nmodel      ");
        ls_buf_wrap(&b, text.data, INDENT, INDENT);
        ls_buf_free(&text);
        ls_buf_printf(&b,
                      "weights    %lld parameters: ", (long long)ls_architecture_count(&w->arch));
        ls_weights_put_types(w, &b);
    }
    ls_buf_printf(&b, "\ntensors    %zu, %.3f MB\n", l->n,
                  (double)ls_weights_listing_nbytes(l) / 1e6);
    if (keys && l->keys) put_keys(l->keys, &b);
    put_rows(l, &b);
    ls_print_text(b.data, b.len);
    ls_buf_free(&b);
}

/* ---- for programs ---- */

static ls_json *text_json(ls_gguf_text t) {
    ls_buf copy = {0};
    ls_buf_append(&copy, t.data, t.n);
    ls_json *j = ls_json_new_path(copy.data); /* up to a zero byte */
    ls_buf_free(&copy);
    return j;
}

static ls_json *element_json(const ls_gguf_value *v, size_t i) {
    ls_gguf_text text;
    int64_t integer;
    double number;
    bool yes;
    if (ls_gguf_text_at(v, i, &text)) return text_json(text);
    if (ls_gguf_integer(v, i, &integer)) return ls_json_new_integer(integer);
    if (ls_gguf_number(v, i, &number)) return ls_json_new_number(number);
    if (ls_gguf_bool(v, i, &yes)) return ls_json_new_bool(yes);
    return ls_json_new_null(); /* above 2^63 */
}

static ls_json *keys_json(const ls_gguf *g) {
    ls_json *o = ls_json_new_object();
    for (size_t i = 0; i < g->nvalues; i++) {
        const ls_gguf_value *v = &g->values[i];
        ls_json *list = v->is_array ? ls_json_new_array() : element_json(v, 0);
        for (size_t k = 0; v->is_array && k < v->n; k++) ls_json_push(list, element_json(v, k));
        ls_json_set(o, v->key, list);
    }
    return o;
}

static ls_json *row_json(const ls_weights_row *r) {
    ls_json *o = ls_json_new_object(), *shape = ls_json_new_array();
    for (int d = 0; d < r->ndims; d++) ls_json_push(shape, ls_json_new_integer(r->dims[d]));
    ls_json_set_text(o, "name", r->name);
    if (r->stored) ls_json_set_text(o, "stored", r->stored);
    ls_json_set_text(o, "type", r->type);
    ls_json_set(o, "shape", shape);
    ls_json_set_integer(o, "bytes", (int64_t)r->nbytes);
    return o;
}

static void print_json(const ls_weights_listing *l, const ls_error *why) {
    const ls_weights *w = &l->model;
    ls_json *o = ls_json_new_object(), *tensors = ls_json_new_array();
    for (size_t i = 0; i < l->n; i++) ls_json_push(tensors, row_json(&l->rows[i]));
    ls_json_set_path(o, "path", l->path);
    ls_json_set_text(o, "format", l->format);
    if (w->list) {
        ls_json_set_integer(o, "parameters", ls_architecture_count(&w->arch));
        ls_json_set(o, "config", ls_config_json_new(&w->arch, "float32"));
    } else {
        ls_json_set(o, "config", ls_json_new_null());
        if (why->msg[0]) ls_json_set_path(o, "unsupported", why->msg);
    }
    ls_json_set_integer(o, "bytes", (int64_t)ls_weights_listing_nbytes(l));
    if (l->keys) ls_json_set(o, "metadata", keys_json(l->keys));
    ls_json_set(o, "tensors", tensors);
    ls_print_json(o);
}

/* ---- the command ---- */

static int run(const ls_args *a) {
    ls_weights_listing l;
    ls_error why = {0}, e = {0};
    if (ls_weights_list(a->words[0], &l, &why, &e) != LS_OK) return cli_fail(&e);
    if (cli_given(a, JSON))
        print_json(&l, &why);
    else
        print_listing(&l, cli_given(a, KEYS));
    ls_weights_listing_free(&l);
    return why.msg[0] ? cli_fail(&why) : 0;
}

const ls_command cmd_weights = {
    .name = "weights",
    .words = "FILE|DIR",
    .min_words = 1,
    .max_words = 1,
    .summary = "inspect the weights of a language model",
    .about =
        "Prints the architecture of a published language model, and its tensors: names, types and\n"
        "shapes. DIR has config.json, and model.safetensors, its shards or model.gguf. FILE is a\n"
        "GGUF file, or a safetensors file, of which only the tensors are listed.\n"
        "\n"
        "Exit code 1, and a line with the reason, if the model can't be used; the tensors of a\n"
        "whole GGUF file are printed all the same. docs/reference/weights.md describes what is\n"
        "supported.",
    .options = {[KEYS] = {"keys", 0, NULL, "the metadata of a GGUF file, too"},
                [JSON] = {"json", 0, NULL,
                          "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
