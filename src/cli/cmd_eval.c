/* cmd_eval.c - lockstep eval */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/print.h"
#include "cli/cli.h"
#include "train/corpus.h"
#include "train/generate.h"

enum { DATA };

static void print_level(const char *who, const ls_evaluation *v) {
    ls_print("%-8s loss %.4f nats/token, perplexity %.3f, %.4f bits/byte\n", who, v->loss,
             exp(v->loss), v->bits_per_byte);
}

/* On the validation part of the run's own text, beside the bigram level. */
static ls_status eval_run(const char *run, const ls_trained *t, ls_error *e) {
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
        ls_evaluation level = ls_evaluation_of(bigram * tokens, nbytes, nval - 1, 1);
        ls_print("%s: %zu tokens of the validation part\n", t->path, nval - 1);
        print_level("model", &v);
        print_level("bigram", &level);
    }
    free(val);
    ls_corpus_free(&c);
    return s;
}

static ls_status eval_file(const char *path, const ls_trained *t, ls_error *e) {
    ls_mapped text;
    LS_TRY(ls_file_map(path, &text, e));
    uint32_t *tokens = NULL;
    size_t n = 0;
    ls_evaluation v;
    ls_status s = ls_tokenizer_encode(t->tokenizer, text.data, text.nbytes, path, &tokens, &n, e);
    if (s == LS_OK) s = ls_trained_evaluate(t, tokens, n, path, &v, e);
    if (s == LS_OK) {
        ls_print("%s on %s: %llu of %zu tokens, in whole contexts\n", t->path, path,
                 (unsigned long long)v.nsamples * (unsigned long long)t->config.model.context, n);
        print_level("model", &v);
    }
    free(tokens);
    ls_file_unmap(&text);
    return s;
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_trained t;
    if (ls_trained_open(a->words[0], &t, &e) != LS_OK) return cli_fail(&e);
    const char *data = cli_value(a, DATA);
    ls_status s = data ? eval_file(data, &t, &e) : eval_run(a->words[0], &t, &e);
    ls_trained_close(&t);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_eval = {
    .name = "eval",
    .words = "RUN",
    .min_words = 1,
    .max_words = 1,
    .summary = "measure a trained model's loss",
    .about =
        "Prints the loss of the run's newest checkpoint on the validation part of its text,\n"
        "beside that of a bigram model of the same tokens; with --data, on another text (then\n"
        "a checkpoint's folder will do, too).",
    .options = {[DATA] = {"data", 0, "FILE", "a UTF-8 text to measure on"}},
    .run = run,
};
