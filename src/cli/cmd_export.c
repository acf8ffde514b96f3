/* cmd_export.c - lockstep export RUN|MODEL --to FORM -o PATH */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "infer/exported.h"
#include "infer/published.h"
#include "storage/adapter_gguf.h"
#include "storage/run_adapters.h"
#include "weights/blocks.h"

enum { TO, TYPE, OUTPUT, BASE, EMA, MERGE, EXTERNAL, JSON };

static const char *const forms[LS_EXPORT_FORMS] = {"safetensors", "gguf"};

typedef struct request {
    ls_export_request model;
    const char *base; /* of peft: the base model's name; NULL: its path here */
    bool external, json;
} request;

/* ---- weights ---- */

static void print_model(const request *q, const ls_written *w) {
    char hash[LS_HASH_TEXT];
    ls_hash_text(w->hash, hash);
    if (!q->json) {
        ls_print("%s: %lld parameters: %s, %.3f MB\nhash %s\n", q->model.to,
                 (long long)ls_architecture_count(&w->arch), w->types, (double)w->nbytes / 1e6,
                 hash);
        return;
    }
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "path", q->model.to);
    ls_json_set_text(o, "form", forms[q->model.form]);
    ls_json_set_text(o, "family", ls_family_name(w->arch.family));
    ls_json_set_integer(o, "parameters", ls_architecture_count(&w->arch));
    ls_json_set_integer(o, "bytes", (int64_t)w->nbytes);
    ls_json_set_text(o, "hash", hash);
    ls_print_json(o);
}

/* ---- adapters ---- */

static void print_base(const request *q, const char *base) {
    char *problem = base ? ls_export_base_problem(base, q->base != NULL) : NULL;
    if (!base)
        ls_print("base_model_name_or_path: none, since the run began with no model; --base NAME "
                 "gives it\n");
    else if (problem)
        ls_print("base_model_name_or_path: %s: transformers can't load that: %s\n", base, problem);
    else if (q->base)
        ls_print("base_model_name_or_path: %s\n", base);
    else
        ls_print("base_model_name_or_path: %s, a path of this machine; --base NAME writes another "
                 "one\n",
                 base);
    free(problem);
}

static void set_base(ls_json *o, const request *q, const char *base) {
    char *problem = base ? ls_export_base_problem(base, q->base != NULL) : NULL;
    ls_json_set(o, "base", base ? ls_json_new_path(base) : ls_json_new_null());
    ls_json_set(o, "base_problem", problem ? ls_json_new_text(problem) : ls_json_new_null());
    free(problem);
}

static void print_adapters(const request *q, bool gguf, const ls_peft_written *w) {
    ls_print("%s: adapters of %zu numbers in %zu tensors%s\n", q->model.to, w->count, w->ntensors,
             gguf ? ", for the base model; --merge writes a whole one" : "");
    if (!gguf) print_base(q, w->base);
}

static void print_adapters_json(const request *q, bool gguf, const ls_peft_written *w) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "path", q->model.to);
    ls_json_set_text(o, "form", gguf ? "gguf adapter" : "peft");
    ls_json_set_integer(o, "tensors", (int64_t)w->ntensors);
    ls_json_set_integer(o, "parameters", (int64_t)w->count);
    if (!gguf) set_base(o, q, w->base);
    ls_print_json(o);
}

/* Adapters alone, as llama.cpp loads them, or as peft does. */
static ls_status export_adapters(const request *q, bool gguf, ls_error *e) {
    const ls_export_request *m = &q->model;
    ls_peft_written w = {0};
    LS_TRY(gguf ? ls_adapter_gguf_export(m->from, m->ema, m->to, &w, e)
                : ls_peft_export(m->from, m->ema, q->base, m->to, &w, e));
    (q->json ? print_adapters_json : print_adapters)(q, gguf, &w);
    free(w.base);
    return LS_OK;
}

/* ---- ONNX ---- */

static const char *free_name(int64_t dim) { return dim == LS_ONNX_ROWS ? "T" : "N"; }

static ls_json *shape_of(const ls_onnx_shape *s) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < s->n; i++)
        ls_json_push(list, s->of[i] < 0 ? ls_json_new_text(free_name(s->of[i]))
                                        : ls_json_new_integer(s->of[i]));
    return list;
}

static ls_json *list_of(const ls_onnx_exported *x, bool outputs) {
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < x->nends; i++) {
        const ls_onnx_end *end = &x->ends[i];
        if (end->is_output != outputs) continue;
        ls_json *o = ls_json_new_object();
        ls_json_set_text(o, "name", end->name);
        ls_json_set_text(o, "type", ls_dtype_name(end->type));
        ls_json_set(o, "shape", shape_of(&end->shape));
        ls_json_push(list, o);
    }
    return list;
}

static void print_end(const ls_onnx_end *end) {
    ls_print("%s %s: %s [", end->is_output ? "output" : "input ", end->name,
             ls_dtype_name(end->type));
    for (int i = 0; i < end->shape.n; i++) {
        if (i) ls_print(", ");
        if (end->shape.of[i] < 0)
            ls_print("%s", free_name(end->shape.of[i]));
        else
            ls_print("%lld", (long long)end->shape.of[i]);
    }
    ls_print("]\n");
}

static void print_graph_json(const request *q, const ls_trained *t, const ls_onnx_exported *x) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "path", q->model.to);
    ls_json_set_text(o, "form", "onnx");
    if (x->file.data) ls_json_set_path(o, "data", x->file.data);
    ls_json_set_integer(o, "opset", LS_ONNX_OPSET);
    ls_json_set_integer(o, "parameters", (int64_t)t->model.count);
    ls_json_set_integer(o, "nodes", (int64_t)x->file.nnodes);
    ls_json_set_integer(o, "bytes", (int64_t)x->file.nbytes);
    ls_json_set(o, "inputs", list_of(x, false));
    ls_json_set(o, "outputs", list_of(x, true));
    ls_print_json(o);
}

static void print_graph(const request *q, const ls_trained *t, const ls_onnx_exported *x) {
    ls_print("%s: ONNX, operators of set %d: %zu parameters, %zu nodes, %.3f MB\n", q->model.to,
             LS_ONNX_OPSET, t->model.count, x->file.nnodes, (double)x->file.nbytes / 1e6);
    if (x->file.data) ls_print("%s: its numbers; both files belong together\n", x->file.data);
    for (size_t i = 0; i < x->nends; i++) print_end(&x->ends[i]);
}

static ls_status export_graph(const request *q, const ls_trained *t, ls_error *e) {
    ls_onnx_exported x;
    char *ids = NULL;
    LS_TRY(ls_export_onnx(t, q->model.to, q->external, &x, e));
    (q->json ? print_graph_json : print_graph)(q, t, &x);
    ls_onnx_exported_free(&x);
    if (t->is_published) return LS_OK;
    LS_TRY(ls_export_ids(t->path, q->model.to, &ids, e));
    if (ids && !q->json) ls_print("%s: which id is which row\n", ids);
    free(ids);
    return LS_OK;
}

static ls_status export_onnx(const request *q, ls_error *e) {
    ls_trained t;
    const ls_trained_options o = {.ema = q->model.ema, .in_f32 = true};
    LS_TRY(ls_file_check_new(q->model.to, "file", e));
    LS_TRY(ls_trained_open(q->model.from, &o, &t, e));
    ls_status s = export_graph(q, &t, e);
    ls_trained_close(&t);
    return s;
}

/* ---- the command ---- */

static ls_status take_form(const char *word, ls_export_request *q, ls_error *e) {
    int form = 0;
    if (!word) return ls_fail(e, LS_EINVAL, "--to is missing: safetensors, gguf, peft or onnx");
    while (form < LS_EXPORT_FORMS && strcmp(word, forms[form]) != 0) form++;
    q->form = (ls_export_form)form;
    if (form < LS_EXPORT_FORMS) return LS_OK;
    return ls_fail(e, LS_EINVAL, "--to %s: is not one of safetensors, gguf, peft and onnx", word);
}

static ls_status take_type(const char *word, ls_export_request *q, ls_error *e) {
    if (!word) return LS_OK;
    bool known = ls_block_named(word, &q->type) && ls_block_of(q->type)->pack;
    bool blocks = q->form == LS_EXPORT_GGUF; /* may its weights have types of blocks? */
    if (known && (blocks || ls_block_of(q->type)->elements == 1)) return LS_OK;
    ls_buf types = {0};
    ls_block_put_writable(&types);
    ls_status s = ls_fail(e, LS_EINVAL, "--type %s: %s has %s", word, forms[q->form],
                          blocks ? types.data : "F32, F16 or BF16");
    ls_buf_free(&types);
    return s;
}

/* Options that the form does not have. peft: adapters of a run alone. onnx: of any network;
 * adapters are part of the weights in any case. */
static ls_status check_options(const ls_args *a, bool peft, bool onnx, ls_error *e) {
    if (!peft && cli_given(a, BASE))
        return ls_fail(e, LS_EINVAL, "--base NAME is of --to peft: leave it out");
    if (!onnx && cli_given(a, EXTERNAL))
        return ls_fail(e, LS_EINVAL, "--external-data is of --to onnx: leave it out");
    if (peft && (cli_given(a, TYPE) || cli_given(a, MERGE)))
        return ls_fail(e, LS_EINVAL,
                       "--to peft: adapters are written in f32, and apart: leave %s out",
                       cli_given(a, TYPE) ? "--type" : "--merge");
    if (onnx && (cli_given(a, TYPE) || cli_given(a, MERGE)))
        return ls_fail(e, LS_EINVAL,
                       cli_given(a, TYPE)
                           ? "--to onnx: weights are written in f32: leave --type out"
                           : "--to onnx: adapters are part of the weights in any "
                             "case: leave --merge out");
    return LS_OK;
}

static ls_status take_words(const ls_args *a, bool other, ls_export_request *q, ls_error *e) {
    if (!other) LS_TRY(take_form(cli_value(a, TO), q, e));
    if (!other) LS_TRY(take_type(cli_value(a, TYPE), q, e));
    if (!q->to) return ls_fail(e, LS_EINVAL, "-o PATH is missing: what is written");
    return LS_OK;
}

/* Adapters that are not merged are a file of their own in GGUF. */
static ls_status export_weights(const request *q, bool has_type, ls_error *e) {
    const ls_export_request *m = &q->model;
    ls_written w = {0};
    bool adapters = false,
         may = m->form == LS_EXPORT_GGUF && !m->merge && !ls_published_is(m->from);
    if (may) LS_TRY(ls_run_has_adapters(m->from, &adapters, e));
    if (adapters && has_type)
        return ls_fail(e, LS_EINVAL,
                       "%s: has adapters, which are written in f32: leave --type out, or write the "
                       "whole model with --merge",
                       m->from);
    if (adapters) return export_adapters(q, true, e);
    LS_TRY(ls_export_model(m, &w, e));
    print_model(q, &w);
    ls_written_free(&w);
    return LS_OK;
}

static int run(const ls_args *a) {
    request q = {.model = {.from = a->words[0],
                           .to = cli_value(a, OUTPUT),
                           .type = LS_BLOCK_F32,
                           .ema = cli_given(a, EMA),
                           .merge = cli_given(a, MERGE)},
                 .base = cli_value(a, BASE),
                 .external = cli_given(a, EXTERNAL),
                 .json = cli_given(a, JSON)};
    ls_error e = {0};
    const char *to = cli_value(a, TO);
    bool peft = to && strcmp(to, "peft") == 0, onnx = to && strcmp(to, "onnx") == 0;
    if (check_options(a, peft, onnx, &e) != LS_OK ||
        take_words(a, peft || onnx, &q.model, &e) != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    ls_status s = peft   ? export_adapters(&q, false, &e)
                  : onnx ? export_onnx(&q, &e)
                         : export_weights(&q, cli_given(a, TYPE), &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_export = {
    .name = "export",
    .words = "RUN|CHECKPOINT|MODEL",
    .min_words = 1,
    .max_words = 1,
    .summary = "write a model for other programs",
    .about =
        "--to onnx writes any network as an ONNX graph with its weights: the fields of the data\n"
        "are its inputs, the predictions its outputs (docs/reference/onnx.md).\n"
        "\n"
        "The other forms are for a language model of a run (kinds gpt2 and llama), or a published\n"
        "one, with its tokenizer and chat template: a directory of Hugging Face's form, or a GGUF\n"
        "file. In f32 the weights have all their bits: the hash is that of `lockstep ckpt hash`.\n"
        "\n"
        "If the run has adapters (lora.rank), --merge adds them to the weights. Else --to peft\n"
        "writes them alone, as the Python package peft loads them, and --to gguf as llama.cpp\n"
        "does (--lora).\n"
        "\n"
        "docs/guide/pretrained.md describes these forms.",
    .options =
        {[TO] = {"to", 0, "FORM",
                 "safetensors (a directory), gguf (a file), peft (a directory), onnx (a file)"},
         [TYPE] = {"type", 0, "TYPE",
                   "of the weights: f32 (default), f16, bf16; gguf also q8_0, q5_1, q5_0, "
                   "q4_1, q4_0"},
         [OUTPUT] = {"output", 'o', "PATH", "the new directory or file"},
         [BASE] = {"base", 0, "NAME",
                   "of --to peft: the base model's name, or its path, for others"},
         [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
         [MERGE] = {"merge", 0, NULL, "add the run's adapters to the weights"},
         [EXTERNAL] =
             {"external-data", 0, NULL,
              "of --to onnx: the weights are in a file of their own, PATH.data, as those of "
              "models from 2 GB on are"},
         [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
