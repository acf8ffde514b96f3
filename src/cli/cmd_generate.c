/* cmd_generate.c - lockstep generate */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/stream_text.h"
#include "infer/generate.h"

enum { PROMPT, PROMPTS, TOKENS, SEED, TEMPERATURE, TOP_K, TOP_P, MIN_P, PENALTY, STOP, EMA, JSON };
enum {
    MAX_PROMPTS = 64 << 20, /* largest file of prompts, in bytes */
    FEW = 32                /* tokens: preparing the weights for fewer takes longer than it saves */
};

static ls_status write_text(const ls_trained *t, const ls_sampling *s, ls_error *e) {
    cli_stream out = cli_stream_open();
    ls_generated done;
    ls_status status = ls_generate(t, s, cli_stream_write, &out, &done, e);
    if (status == LS_OK || out.begun) cli_stream_end(&out);
    return status;
}

/* ---- as JSON ---- */

static ls_status collect(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    (void)e;
    ls_buf_append(arg, bytes, nbytes);
    return LS_OK;
}

/* Writes the prompt and its continuation. */
static ls_status write_json(const ls_trained *t, const ls_sampling *s, ls_error *e) {
    ls_buf text = {0};
    ls_generated done;
    ls_status status = ls_generate(t, s, collect, &text, &done, e);
    if (status == LS_OK) {
        size_t n = *s->prompt ? strlen(s->prompt) : 1; /* an empty prompt is a line end */
        ls_json *line = ls_json_new_object();
        ls_json_set_text(line, "prompt", s->prompt);
        ls_json_set(line, "text", ls_json_new_bytes(text.data + n, text.len - n));
        ls_json_set_integer(line, "tokens", done.ntokens);
        ls_json_set_text(line, "end", ls_written_end_name(done.end));
        ls_print_json(line);
        ls_json_free(line);
        if (fflush(stdout) != 0 || ferror(stdout))
            status = ls_fail(e, LS_EIO, "standard output can't be written: %s", strerror(errno));
    }
    ls_buf_free(&text);
    return status;
}

/* ---- one prompt, or each line of a file ---- */

typedef ls_status write_fn(const ls_trained *, const ls_sampling *, ls_error *);

static ls_status write_all(const ls_trained *t, ls_sampling s, const char *path, write_fn *fn,
                           ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read_text(path, MAX_PROMPTS, &text, e));
    ls_buf_append(&text, "", 1);
    ls_status status = LS_OK;
    char *rest = text.data, *line;
    for (; status == LS_OK && (line = ls_lines_split(&rest)); s.number++) {
        s.prompt = line;
        if (s.number > 0 && fn == write_text) ls_print("\n");
        status = fn(t, &s, e);
    }
    ls_buf_free(&text);
    return status;
}

static bool read_options(const ls_args *a, ls_sampling *s) {
    int64_t seed = 1;
    s->ntokens = 100;
    s->rule = LS_RULE_UNKNOWN;
    s->stops = a->options[STOP].values;
    s->nstops = a->options[STOP].n;
    bool good = cli_integer(&cmd_generate, a, TOKENS, 0, 1000000, &s->ntokens) &&
                cli_integer(&cmd_generate, a, SEED, 0, INT64_MAX, &seed) &&
                cli_integer(&cmd_generate, a, TOP_K, 0, INT64_MAX, &s->rule.top_k) &&
                cli_real(&cmd_generate, a, TOP_P, 0, 1, &s->rule.top_p) &&
                cli_real(&cmd_generate, a, MIN_P, 0, 1, &s->rule.min_p) &&
                cli_real(&cmd_generate, a, PENALTY, 0.01, 100, &s->rule.penalty) &&
                cli_real(&cmd_generate, a, TEMPERATURE, 0, 1000, &s->rule.temperature);
    s->seed = (uint64_t)seed;
    return good;
}

static ls_status check_options(const ls_args *a, const ls_sampling *s, ls_error *e) {
    if (cli_value(a, PROMPT) && cli_value(a, PROMPTS))
        return ls_fail(e, LS_EINVAL, "give --prompt or --prompts, not both");
    for (int i = 0; i < s->nstops; i++)
        if (!*s->stops[i]) return ls_fail(e, LS_EINVAL, "--stop: the text is empty");
    return LS_OK;
}

static int run(const ls_args *a) {
    const char *prompt = cli_value(a, PROMPT), *prompts = cli_value(a, PROMPTS);
    ls_sampling s = {.prompt = prompt ? prompt : ""};
    ls_error e = {0};
    if (!read_options(a, &s)) return CLI_USAGE;
    if (check_options(a, &s, &e) != LS_OK) {
        cli_fail(&e);
        return CLI_USAGE;
    }
    ls_trained t;
    ls_trained_options o = {.ema = cli_given(a, EMA), .writes = prompts || s.ntokens >= FEW};
    if (ls_trained_open(a->words[0], &o, &t, &e) != LS_OK) return cli_fail(&e);
    ls_trained_complete_rule(&t, &(ls_sampler_rule){.temperature = 1}, &s.rule);
    write_fn *fn = cli_given(a, JSON) ? write_json : write_text;
    ls_status status = prompts ? write_all(&t, s, prompts, fn, &e) : fn(&t, &s, &e);
    ls_trained_close(&t);
    return status == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_generate = {
    .name = "generate",
    .words = "RUN|CHECKPOINT|MODEL",
    .min_words = 1,
    .max_words = 1,
    .summary = "write text with a trained model",
    .about =
        "Prints the prompt and the model's continuation. The same seed gives the same text on any\n"
        "machine. Of a run's model only the last model.context tokens of a prompt are used; when\n"
        "the context is full, its older half is dropped. A published model ends its text itself,\n"
        "and a text that its context has no room for is refused. Options that are not given have\n"
        "the values of its generation_config.json, also for a run that began with it.\n"
        "\n"
        "With --prompts each line has random numbers of its own; the first line gets the text\n"
        "that --prompt would get.\n"
        "\n"
        "A file or a pipe gets the bytes that the model writes; on a terminal, control\n"
        "characters except line ends and tabs are escaped (\\x1b).\n"
        "\n"
        "MODEL is a published model, a GGUF file or a directory (docs/guide/pretrained.md).",
    .options =
        {[PROMPT] = {"prompt", 0, "TEXT", "the beginning of the text (default: a line end)"},
         [PROMPTS] = {"prompts", 0, "FILE", "continue each line of FILE, in order"},
         [TOKENS] = {"tokens", 0, "N", "number of tokens to write (default: 100)"},
         [SEED] = {"seed", 0, "S", "seed of the random choices (default: 1)"},
         [TEMPERATURE] = {"temperature", 0, "T",
                          "below 1 unlikely tokens are chosen less often; 0: always the likeliest "
                          "(default: the model's, else 1)"},
         [TOP_K] = {"top-k", 0, "K",
                    "choose among the K likeliest (default: the model's, else all)"},
         [TOP_P] = {"top-p", 0, "P",
                    "choose among the likeliest whose probabilities add up to P (default: "
                    "the model's, else 1, all)"},
         [MIN_P] = {"min-p", 0, "P",
                    "choose among tokens at least P times as likely as the likeliest (default: "
                    "the model's, else 0, all)"},
         [PENALTY] = {"repetition-penalty", 0, "X",
                      "above 1: tokens that were there become less likely (default: the "
                      "model's, else 1)"},
         [STOP] = {"stop", 0, "TEXT", "end before TEXT; may be given several times"},
         [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
         [JSON] = {"json", 0, NULL, "one JSON object per line: prompt, text, tokens, end"}},
    .run = run,
};
