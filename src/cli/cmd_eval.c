/* cmd_eval.c - lockstep eval */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/print.h"
#include "cli/cli.h"
#include "infer/generate.h"
#include "storage/corpus.h"

enum { DATA, EMA, JSON };

/* The result of an evaluation. */
typedef struct measured {
    const char *checkpoint;
    bool ema;
    const char *data; /* a file; NULL: the validation part of the run's text */
    int64_t tokens;
    size_t file_tokens; /* tokens of that file */
    ls_evaluation model, bigram;
} measured;

static void set_level(ls_json *o, const char *key, const ls_evaluation *v) {
    ls_json *level = ls_json_new_object();
    ls_json_set_number(level, "loss", v->loss);
    ls_json_set_number(level, "perplexity", exp(v->loss));
    ls_json_set_number(level, "bits_per_byte", v->bits_per_byte);
    ls_json_set(o, key, level);
}

static void print_json(const measured *m) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "checkpoint", ls_json_new_path(m->checkpoint));
    ls_json_set_text(o, "weights", m->ema ? "ema" : "last");
    ls_json_set(o, "data", m->data ? ls_json_new_path(m->data) : ls_json_new_null());
    ls_json_set_integer(o, "tokens", m->tokens);
    set_level(o, "model", &m->model);
    if (!m->data) set_level(o, "bigram", &m->bigram);
    ls_print_json(o);
    ls_json_free(o);
}

static void print_level(const char *name, const ls_evaluation *v) {
    ls_print("%-8s loss %.4f nats/token, perplexity %.3f, %.4f bits/byte\n", name, v->loss,
             exp(v->loss), v->bits_per_byte);
}

static void print(const measured *m, bool json) {
    if (json) {
        print_json(m);
        return;
    }
    if (m->data)
        ls_print("%s on %s: %lld of %zu tokens, in whole contexts\n", m->checkpoint, m->data,
                 (long long)m->tokens, m->file_tokens);
    else
        ls_print("%s: %lld tokens of the validation part\n", m->checkpoint, (long long)m->tokens);
    print_level(m->ema ? "average" : "model", &m->model);
    if (!m->data) print_level("bigram", &m->bigram);
}

/* Evaluates on the validation part of the run's own text, beside the bigram level. */
static ls_status eval_run(const char *run, const ls_trained *t, bool json, ls_error *e) {
    ls_corpus c;
    LS_TRY(ls_corpus_open(&c, run, &t->config, e));
    ls_evaluation v;
    uint32_t *val = NULL;
    double bigram = 0, nbytes = 0;
    size_t nval = (size_t)c.nval * (size_t)t->config.model.context + 1;
    ls_status s = ls_tokens_read_all(&c.tokens, c.val_first, nval, &val, e);
    if (s == LS_OK) s = ls_trained_evaluate(t, val, nval, run, &v, e);
    if (s == LS_OK) s = ls_corpus_bigram(&c, nval, &bigram, &nbytes, e);
    if (s == LS_OK) {
        double tokens = (double)(nval - 1);
        measured m = {
            .checkpoint = t->path, .ema = t->ema, .tokens = (int64_t)nval - 1, .model = v};
        m.bigram = ls_evaluation_of(bigram * tokens, nbytes, nval - 1, 1);
        print(&m, json);
    }
    free(val);
    ls_corpus_free(&c);
    return s;
}

static ls_status eval_file(const char *path, const ls_trained *t, bool json, ls_error *e) {
    ls_mapped text;
    LS_TRY(ls_file_map(path, &text, e));
    ls_token_list tokens = {0};
    ls_evaluation v;
    ls_status s = ls_tokenizer_encode(t->tokenizer, text.data, text.nbytes, path, &tokens, e);
    if (s == LS_OK) s = ls_trained_evaluate(t, tokens.ids, tokens.n, path, &v, e);
    if (s == LS_OK) {
        measured m = {.checkpoint = t->path,
                      .ema = t->ema,
                      .data = path,
                      .file_tokens = tokens.n,
                      .model = v};
        m.tokens = (int64_t)v.nsamples * t->config.model.context;
        print(&m, json);
    }
    free(tokens.ids);
    ls_file_unmap(&text);
    return s;
}

/* The run directory of a checkpoint or of a link to one; of a run directory, itself. free() it. */
static char *run_of(const char *path) {
    static const char folder[] = "/checkpoints";
    enum { N = sizeof folder - 1 };
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    bool is_inside = slash && slash >= real + N && memcmp(slash - N, folder, N) == 0;
    if (is_inside) slash[-N] = 0;
    char *run = ls_strdup(is_inside ? real : path);
    free(real);
    return run;
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_trained t;
    if (ls_trained_open(a->words[0], cli_given(a, EMA), &t, &e) != LS_OK) return cli_fail(&e);
    const char *data = cli_value(a, DATA);
    bool json = cli_given(a, JSON);
    char *dir = run_of(a->words[0]);
    ls_status s = data ? eval_file(data, &t, json, &e) : eval_run(dir, &t, json, &e);
    free(dir);
    ls_trained_close(&t);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_eval = {
    .name = "eval",
    .words = "RUN",
    .min_words = 1,
    .max_words = 1,
    .summary = "measure a trained model's loss",
    .about = "Prints the loss of the run's newest checkpoint, or of the given checkpoint\n"
             "(RUN/checkpoints/best), on the validation part of the run's text, beside that of a\n"
             "bigram model of the same tokens; with --data, on another text.",
    .options = {[DATA] = {"data", 0, "FILE", "evaluate on this UTF-8 text"},
                [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
                [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/json.md)"}},
    .run = run,
};
