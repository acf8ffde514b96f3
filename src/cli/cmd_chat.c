/* cmd_chat.c - lockstep chat
 *
 * On a terminal an interrupt ends the answer, and at the prompt the line that is being typed.
 * Otherwise it ends the program, as usual. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/output.h"
#include "base/print.h"
#include "base/utf8.h"
#include "cli/chat_partner.h"
#include "cli/cli.h"
#include "cli/edit_line.h"
#include "cli/sampling.h"
#include "cli/stream_text.h"
#include "infer/chat_file.h"

enum {
    SYSTEM,
    TEMPLATE,
    CONTINUE,
    SAVE,
    TOKENS,
    SEED,
    EMA = SEED + CLI_SAMPLING,
    JSON,
    URL,
    MODEL,
    KEY_FILE,
    AUTHORITIES
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

typedef struct session {
    cli_partner partner;
    ls_talk *talk; /* the partner's */
    ls_writing how;
    const char *system, *save, *from; /* files; NULL: none */
    char *saved;                      /* the file of the last /save; NULL: none */
    ls_chat_file file;
    ls_text_form form;  /* of answers */
    cli_editor *editor; /* NULL: lines are read as they come */
    bool at_terminal, json, ends;
    sigset_t open; /* the signals that the program lets through, an interrupt among them */
} session;

/* Interrupts are for this thread alone, and only while it waits for a line or writes an answer: so
 * none is missed. Threads that begin later let none through. */
static void catch_interrupts(session *s) {
    struct sigaction notice = {.sa_handler = on_interrupt};
    sigset_t interrupt;
    if (!s->at_terminal) return;
    sigaction(SIGINT, &notice, NULL);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &s->open);
    sigdelset(&s->open, SIGINT);
}

/* ---- a turn ---- */

static ls_status collect(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    (void)bytes, (void)nbytes, (void)arg, (void)e;
    return LS_OK;
}

static void print_json(const char *user, const char *answer, const ls_generated *g) {
    ls_json *line = ls_json_new_object();
    ls_json_set(line, "user", ls_json_new_bytes(user, strlen(user)));
    ls_json_set(line, "answer", ls_json_new_bytes(answer, strlen(answer)));
    ls_json_set(line, "tokens",
                g->ntokens < 0 ? ls_json_new_null() : ls_json_new_integer(g->ntokens));
    ls_json_set_text(line, "end", ls_written_end_name(g->end));
    ls_print_json(line);
}

static ls_status say(session *s, const char *text, ls_error *e) {
    cli_stream out = cli_stream_open();
    ls_generated done = {0};
    const char *answer = NULL;
    interrupted = 0;
    s->how.fn = s->json ? collect : cli_stream_write;
    s->how.arg = &out;
    sigset_t blocked;
    if (s->at_terminal) pthread_sigmask(SIG_SETMASK, &s->open, &blocked);
    ls_status status = cli_partner_say(&s->partner, text, &s->how, &done, &answer, e);
    if (s->at_terminal) pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    if (s->json && status == LS_OK) print_json(text, answer, &done);
    if (!s->json && (status == LS_OK || out.begun)) cli_stream_end(&out);
    if (status != LS_OK) return status;
    if (s->at_terminal && done.end == LS_END_LENGTH && done.ntokens >= 0)
        ls_print("(ended after %lld tokens)\n", (long long)done.ntokens);
    if (fflush(stdout) == 0 && !ferror(stdout)) return LS_OK;
    return ls_fail(e, LS_EIO, "standard output can't be written: %s", strerror(errno));
}

static ls_status save(session *s, const char *path, ls_error *e) {
    ls_error why = {0};
    if (!path || ls_chat_file_write(&s->file, s->talk, path, &why) == LS_OK) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s", why.msg); /* the conversation can go on */
}

/* ---- lines that are no messages ---- */

static ls_status begin_again(session *s, const char *system, ls_error *e) {
    (void)e;
    ls_chat_file_end(&s->file, s->talk);
    ls_talk_begin(s->talk, system);
    return LS_OK;
}

static ls_status do_reset(session *s, const char *text, ls_error *e) {
    (void)text;
    return begin_again(s, s->system, e);
}

/* A file of this session is written anew, no other. */
static ls_status do_save(session *s, const char *path, ls_error *e) {
    bool own = (s->save && strcmp(path, s->save) == 0) || (s->saved && !strcmp(path, s->saved));
    if (!own && ls_file_exists(path))
        return ls_fail(e, LS_EINVAL, "/save %s: exists; give another name", path);
    LS_TRY(save(s, path, e));
    free(s->saved);
    s->saved = ls_strdup(path);
    if (s->at_terminal) ls_print("%s: saved\n", path);
    return LS_OK;
}

static ls_status do_exit(session *s, const char *text, ls_error *e) {
    (void)text, (void)e;
    s->ends = true;
    return LS_OK;
}

static ls_status do_help(session *s, const char *text, ls_error *e);

static const struct {
    const char *name, *takes; /* NULL: nothing behind it */
    ls_status (*fn)(session *, const char *text, ls_error *);
    const char *help;
} commands[] = {
    {"reset", NULL, do_reset, "begin a new conversation"},
    {"system", "TEXT", begin_again, "begin a new one, with this system message"},
    {"save", "FILE", do_save, "write the conversations as JSON lines, which training reads"},
    {"help", NULL, do_help, "print this"},
    {"exit", NULL, do_exit, "end the program, as Ctrl-D does; Ctrl-C ends an answer"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static ls_status do_help(session *s, const char *text, ls_error *e) {
    (void)s, (void)text, (void)e;
    for (int i = 0; i < COMMANDS; i++) {
        const char *takes = commands[i].takes ? commands[i].takes : "";
        ls_print("/%s %-*s %s\n", commands[i].name, 12 - (int)strlen(commands[i].name), takes,
                 commands[i].help);
    }
    ls_print("//TEXT         the message /TEXT\n"
             "A line that ends in \\ continues in the next one, and lines that are pasted are one "
             "message.\n");
    return LS_OK;
}

/* The letters behind the slash that a line begins with, if a word of letters alone is there; else
 * 0: it is a message, as "/usr/bin" is. */
static size_t command_word(const char *line) {
    size_t n = *line == '/' ? strspn(line + 1, "abcdefghijklmnopqrstuvwxyz"
                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
                            : 0;
    return n && strchr(" \t", line[1 + n]) ? n : 0; /* also at the line's end */
}

static ls_status obey(session *s, const char *line, size_t n, ls_error *e) {
    const char *word = line + 1, *text = word + n + strspn(word + n, " \t");
    for (int i = 0; i < COMMANDS; i++) {
        if (strlen(commands[i].name) != n || strncmp(commands[i].name, word, n) != 0) continue;
        if (commands[i].takes && !*text)
            return ls_fail(e, LS_EINVAL, "/%s %s: %s is missing", commands[i].name,
                           commands[i].takes, commands[i].takes);
        if (!commands[i].takes && *text)
            return ls_fail(e, LS_EINVAL, "/%s takes nothing; '%.40s' is too much", commands[i].name,
                           text);
        return commands[i].fn(s, text, e);
    }
    return ls_fail(e, LS_EINVAL,
                   "/%.*s is no command; /help lists them, and //%.*s... is a message that begins "
                   "with /",
                   (int)n, word, (int)n, word);
}

/* ---- the session ---- */

/* False: an interrupt came. */
static bool wait_for_line(const session *s) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    ls_print("> ");
    fflush(stdout);
    if (ppoll(&in, 1, NULL, &s->open) >= 0) return true;
    ls_print("\n");
    return false;
}

typedef struct input {
    char *text; /* what getline() has read */
    size_t room;
    char *rest; /* lines of it that end in CR, which were not taken yet */
} input;

/* Sets *line_p to the next line, without its end; NULL: there are no more. */
static ls_status read_line(const session *s, input *in, char **line_p, ls_error *e) {
    *line_p = in->rest ? ls_lines_split(&in->rest) : NULL;
    if (*line_p) return LS_OK;
    while (s->at_terminal && !wait_for_line(s)) {
    }
    bool first = !in->rest;
    ssize_t n = getline(&in->text, &in->room, stdin);
    in->rest = in->text;
    if (n >= 0) {
        size_t mark = first ? ls_utf8_mark(in->text, (size_t)n) : 0;
        LS_TRY(ls_utf8_check(in->text, (size_t)n, "standard input", e));
        in->rest += mark;
        *line_p = ls_lines_split(&in->rest);
        if (!*line_p) *line_p = in->rest;
    } else if (s->at_terminal) {
        ls_print("\n");
    }
    return LS_OK;
}

/* Reads a line of the terminal, which the user can edit. */
static ls_status edit_line(const session *s, bool *goes_on_p, const char *prompt, char **line_p) {
    const char *text = NULL;
    cli_line_end end = cli_editor_read(s->editor, prompt, &text);
    *goes_on_p = end == CLI_LINE_PASTED;
    *line_p = text ? ls_strdup(text) : NULL;
    if (end == CLI_LINE_INTERRUPTED) *line_p = ls_strdup("");
    return LS_OK;
}

/* Is the last character a backslash? It is taken away. */
static bool takes_next(ls_buf *b) {
    bool goes_on = b->len && b->data[b->len - 1] == '\\';
    if (goes_on) b->data[--b->len] = 0;
    return goes_on;
}

/* Sets *there_p, and appends the next message or command to *b: a line, or lines that belong
 * together. An interrupt drops it. */
static ls_status read_message(const session *s, input *in, ls_buf *b, bool *there_p, ls_error *e) {
    bool goes_on = true;
    for (bool first = true; goes_on; first = false) {
        char *line = NULL;
        bool pasted = false;
        if (s->editor)
            LS_TRY(edit_line(s, &pasted, first ? "> " : ". ", &line));
        else
            LS_TRY(read_line(s, in, &line, e));
        *there_p = line != NULL || !first;
        if (!line) return LS_OK;
        if (!first) ls_buf_append(b, "\n", 1);
        ls_buf_append(b, line, strlen(line));
        if (s->editor) free(line);
        goes_on = pasted || (s->at_terminal && takes_next(b));
        if (s->at_terminal && interrupted) b->len = 0, goes_on = false;
    }
    return LS_OK;
}

/* What has been read: a command, or a message that is answered. */
static ls_status answer(session *s, const char *text, ls_error *e) {
    size_t command = command_word(text);
    if (!text[strspn(text, " \t\n")]) return LS_OK;
    if (command) return obey(s, text, command, e);
    LS_TRY(say(s, text[0] == '/' && text[1] == '/' ? text + 1 : text, e));
    return save(s, s->save, e);
}

static ls_status begin(session *s, ls_error *e) {
    ls_talk_begin(s->talk, s->system);
    if (!s->from) return LS_OK;
    LS_TRY(ls_chat_file_read(&s->file, s->from, s->talk, e));
    if (s->at_terminal)
        ls_print("%s: continuing a conversation of %zu messages\n", s->from, s->talk->n);
    return LS_OK;
}

static ls_status converse(session *s, ls_error *e) {
    input in = {0};
    ls_buf text = {0};
    bool there = true;
    ls_status status = begin(s, e);
    while (status == LS_OK && !s->ends) {
        text.len = 0;
        interrupted = 0;
        status = read_message(s, &in, &text, &there, e);
        if (status != LS_OK || !there) break;
        if (text.len) status = answer(s, text.data, e);
        if (status != LS_OK && status != LS_ENOMEM &&
            s->at_terminal) { /* it can be said in another way */
            cli_fail(e);
            status = LS_OK;
        }
    }
    free(in.text);
    ls_buf_free(&text);
    return status;
}

/* Lines can be edited at a terminal, if libedit is there. */
static void open_editor(session *s) {
    ls_error e = {0};
    if (s->at_terminal && cli_editor_open(&s->open, &interrupted, &s->editor, &e) != LS_OK)
        ls_log("lines are read without editing and history: %s", e.msg);
}

/* A file that is there is one to go on with, and nothing else is replaced. */
static ls_status check_files(const session *s, ls_error *e) {
    if (s->from && s->system)
        return ls_fail(e, LS_EINVAL,
                       "--system and --continue: the conversation has its own system message, or "
                       "none; leave one of them out");
    if (!s->save) return LS_OK;
    if (ls_file_exists(s->save) && !(s->from && strcmp(s->from, s->save) == 0))
        return ls_fail(e, LS_EINVAL,
                       "--save %s: exists; --continue %s continues its last conversation, or "
                       "give another name",
                       s->save, s->save);
    return ls_output_check(s->save, e);
}

/* The model is here, or a server has it: what concerns the other one is refused. */
static bool check_partner(const ls_args *a) {
    static const struct {
        int option;
        bool of_server;
        const char *name;
    } options[] = {{TEMPLATE, false, "template"},  {EMA, false, "ema"},
                   {SEED + CLI_SET, false, "set"}, {SEED + CLI_DEVICE, false, "device"},
                   {MODEL, true, "model"},         {KEY_FILE, true, "api-key-file"},
                   {AUTHORITIES, true, "ca"}};
    bool remote = cli_given(a, URL);
    if (remote == (a->nwords > 0)) {
        ls_log(remote ? "chat: %s and --url: give one of them"
                      : "chat: RUN|CHECKPOINT|DIR is missing, or --url",
               remote ? a->words[0] : "");
        return false;
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!cli_given(a, options[i].option) || options[i].of_server == remote) continue;
        ls_log(remote ? "chat: --%s: with --url the server decides it; leave it out"
                      : "chat: --%s is for --url; leave it out",
               options[i].name);
        return false;
    }
    return true;
}

static cli_partner_options partner_of(const ls_args *a, ls_text_form *form) {
    bool remote = cli_given(a, URL);
    return (cli_partner_options){.path = remote ? NULL : a->words[0],
                                 .form = form,
                                 .template = cli_value(a, TEMPLATE),
                                 .trained = {.ema = cli_given(a, EMA),
                                             .writes = true,
                                             .sets = a->options[SEED + CLI_SET].values,
                                             .nsets = a->options[SEED + CLI_SET].n,
                                             .device = cli_device(a, SEED + CLI_DEVICE)},
                                 .server = {.url = cli_value(a, URL),
                                            .model = cli_value(a, MODEL),
                                            .key_file = cli_value(a, KEY_FILE),
                                            .authorities = cli_value(a, AUTHORITIES)}};
}

static void greet(const session *s, const cli_partner_options *o) {
    if (!s->at_terminal) return;
    if (o->path)
        ls_print("%s: /help lists commands\n", o->path);
    else
        ls_print("%s at %s: /help lists commands\n", ls_remote_model(s->partner.remote),
                 o->server.url);
}

static ls_status open_and_converse(const ls_args *a, session *s, ls_error *e) {
    LS_TRY(check_files(s, e));
    LS_TRY(cli_form_read(a, SEED, &s->form, e));
    const cli_partner_options o = partner_of(a, &s->form);
    catch_interrupts(s);
    LS_TRY(cli_partner_open(&o, &s->how, &s->partner, e));
    s->talk = cli_partner_talk(&s->partner);
    s->how.asked = &interrupted;
    greet(s, &o);
    open_editor(s);
    ls_status status = converse(s, e);
    cli_editor_close(s->editor);
    ls_chat_file_free(&s->file);
    free(s->saved);
    cli_partner_close(&s->partner);
    return status;
}

static int run(const ls_args *a) {
    session s = {.how.ntokens = cli_given(a, URL) ? LS_REMOTE_TOKENS : 512,
                 .system = cli_value(a, SYSTEM),
                 .save = cli_value(a, SAVE),
                 .from = cli_value(a, CONTINUE),
                 .json = cli_given(a, JSON)};
    ls_error e = {0};
    s.at_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !s.json;
    if (!check_partner(a) || !cli_integer(&cmd_chat, a, TOKENS, 1, 1000000, &s.how.ntokens) ||
        !cli_sampling_read(&cmd_chat, a, SEED, &s.how))
        return CLI_USAGE;
    ls_status status = open_and_converse(a, &s, &e);
    ls_text_form_free(&s.form);
    return status == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_chat = {
    .name = "chat",
    .words = "[RUN|CHECKPOINT|DIR]",
    .min_words = 0,
    .max_words = 1,
    .summary = "talk with a model, here or on a server",
    .about =
        "A conversation with a published model, with one that a run has tuned, or by --url with "
        "one\n"
        "that a server has (lockstep serve, or another one with OpenAI's API): each line is\n"
        "a message, and the model's answer is printed as it is written. Ctrl-C ends an answer,\n"
        "Ctrl-D the program. Lines that begin with a slash and a word are commands: /help lists\n"
        "them. At a terminal lines can be edited, and a line that ends in \\ continues in the "
        "next.\n"
        "\n"
        "The model's own chat template is used. Keys and values of the conversation are kept,\n"
        "so a turn costs what is new in it. With input from a pipe the answers alone are\n"
        "printed. The same lines and seed give the same answers on any machine, if the template\n"
        "does not ask for the date. Options that are not given have the values of the model's\n"
        "generation_config.json; with --url the server has the template, and decides them.",
    .options =
        {[SYSTEM] = {"system", 0, "TEXT", "the system message (default: that of the template)"},
         [TEMPLATE] = {"template", 0, "FILE", "a chat template (Jinja) in place of the model's"},
         [CONTINUE] = {"continue", 0, "FILE", "continue the last conversation of FILE"},
         [SAVE] = {"save", 0, "FILE", "write the conversations after each answer, as JSON lines"},
         [TOKENS] = {"tokens", 0, "N",
                     "at most N tokens an answer (default: 512; with --url the server's)"},
         [SEED] = CLI_SAMPLING_OPTIONS("0.7", "0.95", "end an answer"),
         [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
         [JSON] = {"json", 0, NULL, "one JSON object a turn: user, answer, tokens, end"},
         [URL] = {"url", 0, "URL", "the server that answers, as http://HOST:PORT or .../v1"},
         [MODEL] = {"model", 0, "NAME", "of the server's models (default: the first it lists)"},
         [KEY_FILE] = {"api-key-file", 0, "FILE", "the server's key is its first line"},
         [AUTHORITIES] = {"ca", 0, "FILE",
                          "certificates of authorities to trust, in PEM (default: the system's)"}},
    .run = run,
};
