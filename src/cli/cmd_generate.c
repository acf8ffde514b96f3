/* cmd_generate.c - lockstep generate */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "train/generate.h"

enum { PROMPT, TOKENS, SEED, TEMPERATURE, TOP_K };

/* Text on its way to standard output. What a model writes are bytes, and a pipe or a file gets them
 * as they are. To a terminal control characters go escaped, as everything that this program shows;
 * there a character whose last bytes are still to come waits in `text`. */
typedef struct writer {
    bool to_terminal;
    ls_buf text;
} writer;

static ls_status write_out(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    writer *w = arg;
    if (w->to_terminal) {
        ls_buf_append(&w->text, bytes, nbytes);
        size_t n = ls_utf8_complete(w->text.data, w->text.len), rest = w->text.len - n;
        ls_print_text(w->text.data, n);
        memmove(w->text.data, w->text.data + n, rest);
        w->text.len = rest;
    } else {
        fwrite(bytes, 1, nbytes, stdout);
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) return LS_OK;
    return ls_fail(e, LS_EIO, "standard output can't be written: %s", strerror(errno));
}

static void end_text(writer *w) {
    ls_print_text(w->text.data, w->text.len);
    ls_print("\n");
    ls_buf_free(&w->text);
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
    writer w = {.to_terminal = isatty(STDOUT_FILENO) == 1};
    ls_status status = ls_generate(&t, &s, write_out, &w, &e);
    ls_trained_close(&t);
    end_text(&w);
    return status == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_generate = {
    .name = "generate",
    .words = "RUN|CHECKPOINT",
    .min_words = 1,
    .max_words = 1,
    .summary = "write text with a trained model",
    .about = "Prints the prompt and what the model writes after it. The same seed gives the same\n"
             "text on any machine. Of a prompt the latest model.context tokens count; where the\n"
             "context is full, its older half is dropped.\n"
             "\n"
             "A file or a pipe gets the bytes that the model writes; on a terminal, control\n"
             "characters are shown escaped (\\x1b), but for line ends and tabs.",
    .options = {[PROMPT] = {"prompt", 0, "TEXT", "what the text begins with (default: a line end)"},
                [TOKENS] = {"tokens", 0, "N", "how many to write (default: 100)"},
                [SEED] = {"seed", 0, "S", "of the random choices (default: 1)"},
                [TEMPERATURE] = {"temperature", 0, "T",
                                 "below 1 bolder choices are rarer; 0: always "
                                 "the likeliest (default: 1)"},
                [TOP_K] = {"top-k", 0, "K", "choose among the K likeliest (default: all)"}},
    .run = run,
};
