/* cmd_generate.c - lockstep generate */
#include <stdio.h>

#include "cli/cli.h"
#include "train/generate.h"

enum { PROMPT, TOKENS, SEED, TEMPERATURE, TOP_K };

static void write_out(const uint8_t *bytes, size_t nbytes, void *arg) {
    (void)arg;
    fwrite(bytes, 1, nbytes, stdout);
    fflush(stdout);
}

static int run(const ls_args *a) {
    int64_t ntokens = 100, seed = 1, top_k = 0;
    double temperature = 1.0;
    if (!cli_integer(&cmd_generate, a, TOKENS, 0, 1000000, &ntokens) ||
        !cli_integer(&cmd_generate, a, SEED, 0, INT64_MAX, &seed) ||
        !cli_integer(&cmd_generate, a, TOP_K, 0, INT64_MAX, &top_k) ||
        !cli_real(&cmd_generate, a, TEMPERATURE, 0, 1000, &temperature))
        return CLI_USAGE;
    const char *prompt = cli_value(a, PROMPT);
    ls_sampling s = {prompt ? prompt : "", ntokens, (uint64_t)seed, temperature, top_k};
    ls_error e = {0};
    ls_trained t;
    if (ls_trained_open(a->words[0], &t, &e) != LS_OK) return cli_fail(&e);
    ls_status status = ls_generate(&t, &s, write_out, NULL, &e);
    ls_trained_close(&t);
    if (status != LS_OK) return cli_fail(&e);
    putchar('\n');
    return 0;
}

const ls_command cmd_generate = {
    .name = "generate",
    .words = "RUN|CHECKPOINT",
    .min_words = 1,
    .max_words = 1,
    .summary = "write text with a trained model",
    .about = "Prints the prompt and what the model writes after it. The same seed gives the same\n"
             "text on any machine. Of a prompt the latest model.context tokens count; where the\n"
             "context is full, its older half is dropped.",
    .options = {[PROMPT] = {"prompt", 0, "TEXT", "what the text begins with (default: a line end)"},
                [TOKENS] = {"tokens", 0, "N", "how many to write (default: 100)"},
                [SEED] = {"seed", 0, "S", "of the random choices (default: 1)"},
                [TEMPERATURE] = {"temperature", 0, "T",
                                 "below 1 bolder choices are rarer; 0: always "
                                 "the likeliest (default: 1)"},
                [TOP_K] = {"top-k", 0, "K", "choose among the K likeliest (default: all)"}},
    .run = run,
};
