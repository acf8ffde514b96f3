/* cmd_tokens.c - lockstep tokens: what a tokenizer makes of a text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/fresh.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "cli/tokens_chat.h"
#include "data/tokenizer.h"
#include "weights/gguf_tokenizer.h"

enum { SPECIAL, ENDS, SAVE, CHAT, TEMPLATE, LOSS, JSON };

/* Reads standard input to its end. */
static ls_status read_input(ls_buf *text, ls_error *e) {
    char piece[16384];
    for (size_t n; (n = fread(piece, 1, sizeof piece, stdin)) > 0;) ls_buf_append(text, piece, n);
    if (!ferror(stdin)) return LS_OK;
    return ls_fail(e, LS_EIO, "standard input can't be read: %s", strerror(errno));
}

/* The tokenizer.json of a run, a checkpoint or a model's directory, or a file. */
static char *path_of(const char *word) {
    return ls_file_is_dir(word) ? ls_format("%s/tokenizer.json", word) : ls_strdup(word);
}

static ls_status load(const char *path, ls_tokenizer **t_p, ls_error *e) {
    if (!ls_gguf_is(path)) return ls_tokenizer_load(path, t_p, e);
    ls_gguf g;
    LS_TRY(ls_gguf_open(path, &g, e));
    ls_status s = ls_gguf_read_tokenizer(&g, t_p, e);
    ls_gguf_close(&g);
    return s;
}

/* ---- a text's tokens ---- */

static ls_json *piece_new(const ls_tokenizer *t, uint32_t id) {
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(t, id, &n);
    return ls_json_new_bytes((const char *)bytes, n);
}

static void tokens_json(const ls_tokenizer *t, const ls_token_list *l, size_t nbytes) {
    ls_json *o = ls_json_new_object(), *ids = ls_json_new_array(), *pieces = ls_json_new_array();
    for (size_t i = 0; i < l->n; i++) {
        ls_json_push(ids, ls_json_new_integer(l->ids[i]));
        ls_json_push(pieces, piece_new(t, l->ids[i]));
    }
    ls_json_set_integer(o, "bytes", (int64_t)nbytes);
    ls_json_set_integer(o, "dropped", (int64_t)l->dropped);
    ls_json_set(o, "ids", ids);
    ls_json_set(o, "pieces", pieces);
    ls_print_json(o);
}

static void print_token(uint32_t id, const char *bytes, size_t n) {
    ls_buf piece = {0};
    ls_buf_escape(&piece, LS_ESCAPE_LINE, bytes, n);
    ls_print("%8u  \"%s\"\n", id, piece.data ? piece.data : "");
    ls_buf_free(&piece);
}

static void tokens_print(const ls_tokenizer *t, const ls_token_list *l, size_t nbytes) {
    for (size_t i = 0; i < l->n; i++) {
        size_t n = 0;
        const uint8_t *bytes = ls_tokenizer_bytes(t, l->ids[i], &n);
        print_token(l->ids[i], (const char *)bytes, n);
    }
    ls_print("%zu token%s of %zu byte%s\n", l->n, ls_plural((int64_t)l->n), nbytes,
             ls_plural((int64_t)nbytes));
}

/* word: the text, or "-" for standard input. */
static ls_status show_text(const ls_tokenizer *t, const char *word, const ls_args *a, ls_error *e) {
    bool input = strcmp(word, "-") == 0, ends = cli_given(a, ENDS);
    const ls_encoding how = {.what = input ? "standard input" : "the text",
                             .special = cli_given(a, SPECIAL),
                             .begin = ends,
                             .end = ends};
    ls_buf text = {0};
    ls_token_list l = {0};
    ls_status s = LS_OK;
    if (input)
        s = read_input(&text, e);
    else
        ls_buf_append(&text, word, strlen(word));
    if (s == LS_OK) s = ls_tokenizer_encode(t, (const uint8_t *)text.data, text.len, &how, &l, e);
    if (s == LS_OK) {
        (cli_given(a, JSON) ? tokens_json : tokens_print)(t, &l, text.len);
        ls_token_list_log_dropped(&l, how.what);
    }
    free(l.ids);
    ls_buf_free(&text);
    return s;
}

/* ---- the tokenizer itself ---- */

static void tokenizer_json(const ls_tokenizer *t) {
    const ls_added_tokens *added = ls_tokenizer_added(t);
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (uint32_t i = 0; i < added->n; i++) {
        const ls_added_token *token = &added->tokens[i];
        ls_json *j = ls_json_new_object();
        ls_json_set_integer(j, "id", token->id);
        ls_json_set_text(j, "content", token->content);
        ls_json_set_bool(j, "special", token->special);
        ls_json_push(list, j);
    }
    ls_json_set_text(o, "kind", ls_tokenizer_kind(t));
    ls_json_set_integer(o, "tokens", ls_tokenizer_vocab(t));
    ls_json_set_integer(o, "merges", ls_tokenizer_merges(t));
    ls_json_set(o, "added", list);
    ls_print_json(o);
}

static void tokenizer_print(const ls_tokenizer *t) {
    const ls_added_tokens *added = ls_tokenizer_added(t);
    ls_print("%s: %u tokens, %u merges\n", ls_tokenizer_kind(t), ls_tokenizer_vocab(t),
             ls_tokenizer_merges(t));
    for (int special = 1; special >= 0; special--) {
        bool first = true;
        for (uint32_t i = 0; i < added->n; i++) {
            const ls_added_token *token = &added->tokens[i];
            if (token->special != special) continue;
            if (first) ls_print(special ? "special:\n" : "added, not special:\n");
            print_token(token->id, token->content, token->nbytes);
            first = false;
        }
    }
}

static ls_status save(const ls_tokenizer *t, const char *path, ls_error *e) {
    ls_buf json = {0};
    ls_fresh f;
    LS_TRY(ls_fresh_begin(path, LS_FRESH_FILE, &f, e));
    ls_tokenizer_write(t, &json);
    ls_status s = ls_file_write(f.at, json.data, json.len, e);
    if (s == LS_OK)
        s = ls_fresh_end(&f, e);
    else
        ls_fresh_discard(&f);
    ls_buf_free(&json);
    return s;
}

/* --chat */
static int run_chat(const ls_args *a) {
    static const char *const losses[] = {ls_chat_loss_words(LS_CHOICE_WORD) NULL};
    ls_error e = {0};
    const char *loss = cli_value(a, LOSS);
    ls_tokens_chat o = {.model = a->words[0],
                        .file = cli_value(a, CHAT),
                        .template = cli_value(a, TEMPLATE),
                        .json = cli_given(a, JSON)};
    int i = 0;
    while (loss && losses[i] && strcmp(losses[i], loss) != 0) i++;
    o.loss = (ls_chat_loss)i;
    ls_status s = LS_OK;
    if (!losses[i])
        s = ls_fail(&e, LS_EINVAL, "--loss is assistant, all or completion, not '%s'", loss);
    else if (a->nwords == 2)
        s = ls_fail(&e, LS_EINVAL, "--chat shows conversations; leave TEXT out");
    else
        s = ls_tokens_chat_print(&o, &e);
    return s == LS_OK ? 0 : cli_fail(&e);
}

/* A file's name is a text like others, and perhaps not what was meant. */
static void say_file(const char *text) {
    if (ls_file_exists(text))
        ls_log(
            "tokens: these are the tokens of the file's name; - <%s reads the file, and --chat %s "
            "its conversations",
            text, text);
}

static int run(const ls_args *a) {
    if (cli_given(a, CHAT)) return run_chat(a);
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    const char *to = cli_value(a, SAVE);
    char *path = path_of(a->words[0]);
    ls_status s = load(path, &t, &e);
    if (s == LS_OK && to) s = save(t, to, &e);
    if (s == LS_OK && a->nwords == 2) {
        say_file(a->words[1]);
        s = show_text(t, a->words[1], a, &e);
    } else if (s == LS_OK && !to)
        (cli_given(a, JSON) ? tokenizer_json : tokenizer_print)(t);
    ls_tokenizer_free(t);
    free(path);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_tokens = {
    .name = "tokens",
    .words = "RUN|MODEL|FILE [TEXT|-]",
    .min_words = 1,
    .max_words = 2,
    .summary = "show a text as tokens",
    .about =
        "Prints the id of each token of TEXT, or of standard input (-), and the bytes that it\n"
        "stands for; without a text, what the tokenizer is. The tokenizer is that of a run,\n"
        "Hugging Face's tokenizer.json (FILE, or in a directory), or that in a GGUF file.\n"
        "--chat shows conversations for training, with a MODEL that has a chat template.\n"
        "\n"
        "Bytes of a piece that are no character are shown as \\xe2; as JSON, as U+FFFD.",
    .options = {[SPECIAL] = {"special", 0, NULL,
                             "names of special tokens in the text become these tokens, as in a "
                             "chat template (default: they are ordinary text)"},
                [ENDS] = {"ends", 0, NULL,
                          "add the tokens that the tokenizer puts before and after a text"},
                [SAVE] = {"save", 0, "FILE", "write the tokenizer as tokenizer.json to a new FILE"},
                [CHAT] = {"chat", 0, "FILE",
                          "show the conversations in FILE as the model's template writes them "
                          "(docs/reference/conversations.md), with brackets around what is trained "
                          "on; on a terminal in colour"},
                [TEMPLATE] = {"template", 0, "FILE",
                              "with --chat: another chat template than the model's"},
                [LOSS] = {"loss", 0, "WHAT",
                          "with --chat: what is trained on: assistant (default), all, completion"},
                [JSON] = {"json", 0, NULL, "one JSON object; with --chat, one a conversation"}},
    .run = run,
};
