/* cmd_export.c - lockstep export RUN|MODEL --to FORM -o PATH */
#include <string.h>

#include "base/json.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/export_adapters.h"
#include "cli/export_onnx.h"
#include "infer/published.h"
#include "storage/run_adapters.h"
#include "storage/run_model.h"
#include "weights/blocks.h"
#include "weights/export.h"

enum { TO, TYPE, OUTPUT, BASE, EMA, MERGE, EXTERNAL, JSON };

typedef ls_status export_fn(const ls_export *, const char *path, ls_written *w_p, ls_error *);

static const struct {
    const char *name;
    export_fn *fn;
    bool blocks; /* may its weights have types of blocks? */
} forms[] = {{"safetensors", ls_export_folder, false}, {"gguf", ls_export_gguf, true}};
enum { FORMS = sizeof forms / sizeof *forms };

typedef struct request {
    const char *from, *to;
    int form;
    ls_block_type type;
    bool ema, merge;
} request;

/* ---- what is exported ---- */

static ls_status export_run(const request *q, ls_written *w, ls_error *e) {
    ls_run_model r;
    LS_TRY(ls_run_model_open(q->from, (ls_run_model_options){q->ema, q->merge}, &r, e));
    const ls_export x = {.source = ls_source_of_run(&r), .text = &r.text, .type = q->type};
    ls_status s = forms[q->form].fn(&x, q->to, w, e);
    ls_run_model_close(&r);
    return s;
}

static ls_status export_weights(const request *q, const ls_weights *from, ls_written *w,
                                ls_error *e) {
    ls_model_text text = {0};
    LS_TRY(ls_model_text_read(from, &text, e));
    const ls_export x = {.source = ls_source_of_weights(from), .text = &text, .type = q->type};
    ls_status s = forms[q->form].fn(&x, q->to, w, e);
    ls_model_text_free(&text);
    return s;
}

static ls_status export_published(const request *q, ls_written *w, ls_error *e) {
    ls_weights from = {0};
    if (q->ema)
        return ls_fail(e, LS_EINVAL, "%s: is a published model, without an average of its weights",
                       q->from);
    if (q->merge)
        return ls_fail(e, LS_EINVAL, "%s: is a published model, without adapters to merge",
                       q->from);
    LS_TRY(ls_weights_open(q->from, &from, e));
    ls_status s = export_weights(q, &from, w, e);
    ls_weights_close(&from);
    return s;
}

/* ---- the command ---- */

static void print(const request *q, const ls_written *w, bool json) {
    char hash[LS_HASH_TEXT];
    ls_hash_text(w->hash, hash);
    if (!json) {
        ls_print("%s: %lld parameters: %s, %.3f MB\nhash %s\n", q->to,
                 (long long)ls_architecture_count(&w->arch), w->types, (double)w->nbytes / 1e6,
                 hash);
        return;
    }
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "path", ls_json_new_path(q->to));
    ls_json_set_text(o, "form", forms[q->form].name);
    ls_json_set_text(o, "family", ls_family_name(w->arch.family));
    ls_json_set_integer(o, "parameters", ls_architecture_count(&w->arch));
    ls_json_set_integer(o, "bytes", (int64_t)w->nbytes);
    ls_json_set_text(o, "hash", hash);
    ls_print_json(o);
    ls_json_free(o);
}

static ls_status take_form(const char *word, request *q, ls_error *e) {
    if (!word) return ls_fail(e, LS_EINVAL, "--to is missing: safetensors, gguf, peft or onnx");
    while (q->form < FORMS && strcmp(word, forms[q->form].name) != 0) q->form++;
    if (q->form < FORMS) return LS_OK;
    return ls_fail(e, LS_EINVAL, "--to %s: is not one of safetensors, gguf, peft and onnx", word);
}

static ls_status take_type(const char *word, request *q, ls_error *e) {
    if (!word) return LS_OK;
    bool known = ls_block_named(word, &q->type) && ls_block_of(q->type)->pack;
    if (known && (forms[q->form].blocks || ls_block_of(q->type)->elements == 1)) return LS_OK;
    ls_buf types = {0};
    ls_block_put_writable(&types);
    ls_status s = ls_fail(e, LS_EINVAL, "--type %s: %s has %s", word, forms[q->form].name,
                          forms[q->form].blocks ? types.data : "F32, F16 or BF16");
    ls_buf_free(&types);
    return s;
}

static ls_status take_words(const ls_args *a, request *q, ls_error *e) {
    LS_TRY(take_form(cli_value(a, TO), q, e));
    LS_TRY(take_type(cli_value(a, TYPE), q, e));
    if (!q->to) return ls_fail(e, LS_EINVAL, "-o PATH is missing: what is written");
    return LS_OK;
}

/* Of a run alone. */
static int export_adapters(const ls_args *a) {
    ls_error e = {0};
    const char *to = cli_value(a, OUTPUT);
    if (cli_given(a, TYPE) || cli_given(a, MERGE))
        ls_fail(&e, LS_EINVAL, "--to peft: adapters are written in f32, and apart: leave %s out",
                cli_given(a, TYPE) ? "--type" : "--merge");
    else if (!to)
        ls_fail(&e, LS_EINVAL, "-o PATH is missing: what is written");
    if (e.code != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    const cli_adapters x = {.from = a->words[0],
                            .to = to,
                            .base = cli_value(a, BASE),
                            .ema = cli_given(a, EMA),
                            .json = cli_given(a, JSON)};
    return cli_export_adapters(&x, &e) == LS_OK ? 0 : cli_fail(&e);
}

/* Of any network. Adapters are part of the weights in any case. */
static int export_onnx(const ls_args *a) {
    ls_error e = {0};
    const char *to = cli_value(a, OUTPUT);
    if (cli_given(a, TYPE) || cli_given(a, MERGE))
        ls_fail(&e, LS_EINVAL,
                cli_given(a, TYPE) ? "--to onnx: weights are written in f32: leave --type out"
                                   : "--to onnx: adapters are part of the weights in any case: "
                                     "leave --merge out");
    else if (!to)
        ls_fail(&e, LS_EINVAL, "-o PATH is missing: what is written");
    if (e.code != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    const cli_onnx x = {.from = a->words[0],
                        .to = to,
                        .ema = cli_given(a, EMA),
                        .json = cli_given(a, JSON),
                        .external = cli_given(a, EXTERNAL)};
    return cli_export_onnx(&x, &e) == LS_OK ? 0 : cli_fail(&e);
}

/* Adapters that are not merged are a file of their own in GGUF. */
static ls_status export_gguf_adapters(const request *q, bool has_type, bool json, ls_error *e) {
    const cli_adapters x = {
        .from = q->from, .to = q->to, .gguf = true, .ema = q->ema, .json = json};
    if (has_type)
        return ls_fail(e, LS_EINVAL,
                       "%s: has adapters, which are written in f32: leave --type out, or write the "
                       "whole model with --merge",
                       q->from);
    return cli_export_adapters(&x, e);
}

static ls_status has_adapters(const request *q, bool *has_p, ls_error *e) {
    bool may = strcmp(forms[q->form].name, "gguf") == 0 && !q->merge && !ls_published_is(q->from);
    return may ? ls_run_has_adapters(q->from, has_p, e) : LS_OK;
}

static int run(const ls_args *a) {
    request q = {.from = a->words[0],
                 .to = cli_value(a, OUTPUT),
                 .type = LS_BLOCK_F32,
                 .ema = cli_given(a, EMA),
                 .merge = cli_given(a, MERGE)};
    ls_written w = {0};
    ls_error e = {0};
    if (cli_given(a, TO) && strcmp(cli_value(a, TO), "peft") == 0) return export_adapters(a);
    if (cli_given(a, BASE)) {
        ls_fail(&e, LS_EINVAL, "--base NAME is of --to peft: leave it out");
        cli_fail(&e);
        return CLI_USAGE;
    }
    if (cli_given(a, TO) && strcmp(cli_value(a, TO), "onnx") == 0) return export_onnx(a);
    if (cli_given(a, EXTERNAL)) {
        ls_fail(&e, LS_EINVAL, "--external-data is of --to onnx: leave it out");
        cli_fail(&e);
        return CLI_USAGE;
    }
    if (take_words(a, &q, &e) != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    bool adapters = false;
    ls_status s = has_adapters(&q, &adapters, &e);
    if (s == LS_OK && adapters) {
        s = export_gguf_adapters(&q, cli_given(a, TYPE), cli_given(a, JSON), &e);
        return s == LS_OK ? 0 : cli_fail(&e);
    }
    if (s == LS_OK) s = (ls_published_is(q.from) ? export_published : export_run)(&q, &w, &e);
    if (s != LS_OK) return cli_fail(&e);
    print(&q, &w, cli_given(a, JSON));
    ls_written_free(&w);
    return 0;
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
        "Of a run with adapters (lora.rank), --merge adds them to the weights. Else --to peft\n"
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
