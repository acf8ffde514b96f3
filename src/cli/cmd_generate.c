/* cmd_generate.c - lockstep generate */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/sampling.h"
#include "cli/stream_text.h"

enum { PROMPT, PROMPTS, TOKENS, SEED, EMA = SEED + CLI_SAMPLING, JSON };
enum {
    MAX_PROMPTS = 64 << 20, /* largest file of prompts, in bytes */
    FEW = 32                /* tokens: preparing the weights for fewer takes longer than it saves */
};

typedef ls_status write_fn(const ls_trained *, const char *prompt, ls_writing *, ls_error *);

static ls_status write_text(const ls_trained *t, const char *prompt, ls_writing *w, ls_error *e) {
    cli_stream out = cli_stream_open();
    ls_generated done;
    w->fn = cli_stream_write;
    w->arg = &out;
    ls_status status = ls_generate(t, prompt, w, &done, e);
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
static ls_status write_json(const ls_trained *t, const char *prompt, ls_writing *w, ls_error *e) {
    ls_buf text = {0};
    ls_generated done;
    w->fn = collect;
    w->arg = &text;
    ls_status status = ls_generate(t, prompt, w, &done, e);
    if (status == LS_OK) {
        size_t n = *prompt ? strlen(prompt) : 1; /* an empty prompt is a line end */
        ls_json *line = ls_json_new_object();
        ls_json_set_text(line, "prompt", prompt);
        ls_json_set(line, "text", ls_json_new_bytes(text.data + n, text.len - n));
        ls_json_set_integer(line, "tokens", done.ntokens);
        ls_json_set_text(line, "end", ls_written_end_name(done.end));
        ls_print_json(line);
        if (fflush(stdout) != 0 || ferror(stdout))
            status = ls_fail(e, LS_EIO, "standard output can't be written: %s", strerror(errno));
    }
    ls_buf_free(&text);
    return status;
}

/* ---- one prompt, or each line of a file ---- */

static ls_status write_all(const ls_trained *t, const char *path, ls_writing *w, write_fn *fn,
                           ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read_text(path, MAX_PROMPTS, &text, e));
    ls_buf_append(&text, "", 1);
    ls_status status = LS_OK;
    char *rest = text.data, *line;
    for (; status == LS_OK && (line = ls_lines_split(&rest)); w->number++) {
        if (w->number > 0 && fn == write_text) ls_print("\n");
        status = fn(t, line, w, e);
    }
    ls_buf_free(&text);
    return status;
}

static int run(const ls_args *a) {
    const char *prompt = cli_value(a, PROMPT), *prompts = cli_value(a, PROMPTS);
    ls_writing w = {.ntokens = 100};
    ls_error e = {0};
    if (!cli_integer(&cmd_generate, a, TOKENS, 0, 1000000, &w.ntokens) ||
        !cli_sampling_read(&cmd_generate, a, SEED, &w))
        return CLI_USAGE;
    if (prompt && prompts) {
        ls_log("give --prompt or --prompts, not both");
        return CLI_USAGE;
    }
    ls_trained t;
    ls_trained_options o = {.ema = cli_given(a, EMA),
                            .writes = prompts || w.ntokens >= FEW,
                            .sets = a->options[SEED + CLI_SET].values,
                            .nsets = a->options[SEED + CLI_SET].n,
                            .device = cli_device(a, SEED + CLI_DEVICE)};
    ls_text_form form = {0};
    ls_status status = cli_form_read(a, SEED, &form, &e);
    if (status == LS_OK) status = ls_trained_open(a->words[0], &o, &t, &e);
    if (status == LS_OK) {
        ls_trained_complete_rule(&t, &(ls_sampler_rule){.temperature = 1}, &w.rule);
        write_fn *fn = cli_given(a, JSON) ? write_json : write_text;
        status = ls_text_form_prepare(&form, &t, &e);
        w.constraint = form.constraint;
        if (status == LS_OK)
            status =
                prompts ? write_all(&t, prompts, &w, fn, &e) : fn(&t, prompt ? prompt : "", &w, &e);
        ls_trained_close(&t);
    }
    ls_text_form_free(&form);
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
        "machine. A run's model uses only the last model.context tokens of a prompt; when\n"
        "the context is full, its older half is dropped. A published model ends its text itself,\n"
        "and a text that its context has no room for is refused. Options that are not given have\n"
        "the values of its generation_config.json, also for a run that began with it.\n"
        "\n"
        "With --prompts each line has random numbers of its own; the first line gets the text\n"
        "that --prompt would get.\n"
        "\n"
        "--json-schema, --json-object and --regex give the continuation a form: at each place "
        "only\n"
        "tokens are drawn with which it can still be reached, and the text ends when it can't go "
        "on.\n"
        "--tokens may cut it (docs/guide/generate.md).\n"
        "\n"
        "A file or a pipe gets the bytes that the model writes; on a terminal, control\n"
        "characters except line ends and tabs are escaped (\\x1b).\n"
        "\n"
        "MODEL is a published model, a GGUF file or a directory (docs/guide/pretrained.md).",
    .options = {[PROMPT] = {"prompt", 0, "TEXT", "the beginning of the text (default: a line end)"},
                [PROMPTS] = {"prompts", 0, "FILE", "continue each line of FILE, in order"},
                [TOKENS] = {"tokens", 0, "N", "number of tokens to write (default: 100)"},
                [SEED] = CLI_SAMPLING_OPTIONS("1", "1, all", "end"),
                [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
                [JSON] = {"json", 0, NULL, "one JSON object per line: prompt, text, tokens, end"}},
    .run = run,
};
