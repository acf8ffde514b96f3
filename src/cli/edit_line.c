/* edit_line.c - see edit_line.h.
 *
 * libedit asks for characters by a function of ours. So an interrupt is let through only while we
 * wait, and ends the line; and the marks of a paste are taken out of the input.
 *
 * Characters are UTF-8, whatever the locale: this thread has one of its own while it edits. */
#include "cli/edit_line.h"

#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/library.h"
#include "base/mem.h"
#include "base/print.h"

enum { HISTORY = 1000, MARK_WAIT_MS = 25, MARK = 6, CTRL_D = 4 };
static const char PASTE_BEGINS[] = "\033[200~", PASTE_ENDS[] = "\033[201~";

/* Functions of libedit. */
typedef struct library {
    EditLine *(*init)(const char *program, FILE *in, FILE *out, FILE *err);
    void (*end)(EditLine *);
    const char *(*gets)(EditLine *, int *n);
    int (*set)(EditLine *, int op, ...);
    int (*get)(EditLine *, int op, ...);
    int (*source)(EditLine *, const char *file);
    History *(*history_init)(void);
    void (*history_end)(History *);
    int (*history)(History *, HistEvent *, int op, ...);
} library;

static const ls_symbol symbols[] = {
    {"el_init", offsetof(library, init)},
    {"el_end", offsetof(library, end)},
    {"el_gets", offsetof(library, gets)},
    {"el_set", offsetof(library, set)},
    {"el_get", offsetof(library, get)},
    {"el_source", offsetof(library, source)},
    {"history_init", offsetof(library, history_init)},
    {"history_end", offsetof(library, history_end)},
    {"history", offsetof(library, history)},
};

static library lib;

struct cli_editor {
    EditLine *el;
    History *history;
    locale_t utf8;
    const sigset_t *open;
    volatile sig_atomic_t *interrupted;
    const char *prompt;
    char waiting[MARK]; /* [nwaiting] bytes that were read while a mark was looked for */
    int nwaiting;
    bool pasting, has_marks;
    char *line;
};

/* ---- bytes ---- */

/* 1, 0 at the end of the input, -1 after an interrupt. */
static int read_byte(cli_editor *d, char *c) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (d->nwaiting) {
        *c = d->waiting[0];
        memmove(d->waiting, d->waiting + 1, (size_t)--d->nwaiting);
        return 1;
    }
    while (!*d->interrupted && ppoll(&in, 1, NULL, d->open) < 0) {
    }
    if (*d->interrupted) return -1;
    if (read(STDIN_FILENO, c, 1) != 1) return 0;
    if (!*c) *c = CTRL_D; /* so comes one that was typed before the terminal was ours */
    return 1;
}

/* The bytes of a mark come at once. */
static bool comes(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, MARK_WAIT_MS) > 0;
}

static bool begins_mark(const char *bytes, int n) {
    return strncmp(bytes, PASTE_BEGINS, (size_t)n) == 0 ||
           strncmp(bytes, PASTE_ENDS, (size_t)n) == 0;
}

/* After an escape: true if it was a mark. Else its bytes wait. */
static bool take_mark(cli_editor *d) {
    char bytes[MARK] = {PASTE_BEGINS[0]};
    int n = 1;
    while (n < MARK && (d->nwaiting || comes()) && read_byte(d, &bytes[n]) == 1) {
        n++;
        if (!begins_mark(bytes, n)) break;
    }
    if (n == MARK && begins_mark(bytes, n)) {
        d->pasting = memcmp(bytes, PASTE_BEGINS, MARK) == 0;
        return true;
    }
    memcpy(d->waiting, bytes + 1, (size_t)(n - 1));
    d->nwaiting = n - 1;
    return false;
}

static cli_editor *editor_of(EditLine *el) {
    void *d = NULL;
    lib.get(el, EL_CLIENTDATA, &d);
    return d;
}

/* The next character, for libedit: 1, or what read_byte() returned. */
static int read_character(EditLine *el, wchar_t *w) {
    cli_editor *d = editor_of(el);
    mbstate_t state = {0};
    for (char c = 0;;) {
        int got = read_byte(d, &c);
        if (got <= 0) return got;
        if (c == PASTE_BEGINS[0] && !d->nwaiting && take_mark(d)) continue;
        size_t n = mbrtowc(w, &c, 1, &state);
        if (n == (size_t)-1) memset(&state, 0, sizeof state); /* no character: it is left out */
        if (n <= 1) return 1;
    }
}

/* ---- the editor ---- */

static char *prompt_of(EditLine *el) { return (char *)(uintptr_t)editor_of(el)->prompt; }

static ls_status load(ls_error *e) {
    size_t n = sizeof symbols / sizeof *symbols;
    ls_error first = {0};
    if (lib.init) return LS_OK;
    if (ls_library_load("libedit.so.2", symbols, n, &lib, &first) == LS_OK) return LS_OK;
    if (ls_library_load("libedit.so.0", symbols, n, &lib, e) == LS_OK) return LS_OK;
    return ls_fail(e, LS_EIO, "libedit can't be loaded: %s", first.msg);
}

static bool set_up(cli_editor *d) {
    HistEvent event;
    const char *terminal = getenv("TERM");
    d->has_marks = terminal && strcmp(terminal, "dumb") != 0;
    d->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!d->utf8) return false;
    locale_t before = uselocale(d->utf8);
    d->el = lib.init("lockstep", stdin, stdout, stderr);
    d->history = lib.history_init();
    bool good = d->el && d->history;
    if (good) {
        lib.history(d->history, &event, H_SETSIZE, (int)HISTORY);
        lib.history(d->history, &event, H_SETUNIQUE, 1);
        lib.set(d->el, EL_CLIENTDATA, d);
        lib.set(d->el, EL_PROMPT, prompt_of);
        lib.set(d->el, EL_EDITOR, "emacs");
        lib.set(d->el, EL_HIST, lib.history, d->history);
        lib.set(d->el, EL_GETCFN, read_character);
        lib.source(d->el, NULL); /* the user's ~/.editrc, if there is one */
    }
    uselocale(before);
    return good;
}

ls_status cli_editor_open(const sigset_t *open, volatile sig_atomic_t *interrupted,
                          cli_editor **d_p, ls_error *e) {
    LS_TRY(load(e));
    cli_editor *d = LS_NEW(cli_editor);
    d->open = open;
    d->interrupted = interrupted;
    if (!set_up(d)) {
        cli_editor_close(d);
        return ls_fail(e, LS_EIO, "libedit can't be set up on this terminal");
    }
    *d_p = d;
    return LS_OK;
}

void cli_editor_close(cli_editor *d) {
    if (!d) return;
    if (d->el) lib.end(d->el);
    if (d->history) lib.history_end(d->history);
    if (d->utf8) freelocale(d->utf8);
    free(d->line);
    free(d);
}

/* Asks the terminal to mark what is pasted, or no longer. */
static void mark_pastes(const cli_editor *d, bool on) {
    const char *ask = on ? "\033[?2004h" : "\033[?2004l";
    if (!d->has_marks) return;
    ls_print_own(ask, strlen(ask));
    fflush(stdout);
}

/* Without its line break; a history of lines that say something. */
static void keep(cli_editor *d, const char *text, int n) {
    HistEvent event;
    free(d->line);
    d->line = ls_format("%.*s", n, text);
    d->line[strcspn(d->line, "\r\n")] = 0;
    if (d->line[strspn(d->line, " \t")]) lib.history(d->history, &event, H_ENTER, d->line);
}

cli_line_end cli_editor_read(cli_editor *d, const char *prompt, const char **text_p) {
    int n = 0;
    *d->interrupted = 0;
    d->prompt = prompt;
    locale_t before = uselocale(d->utf8);
    lib.set(d->el, EL_PREP_TERM, 1); /* before the prompt: a user who sees it may type */
    mark_pastes(d, true);
    const char *text = lib.gets(d->el, &n);
    bool has = text && n > 0;
    if (has) keep(d, text, n);
    mark_pastes(d, false);
    uselocale(before);
    if (has) *text_p = d->line;
    if (has && !*d->interrupted) return d->pasting ? CLI_LINE_PASTED : CLI_LINE_DONE;
    ls_print("\n");
    fflush(stdout);
    d->pasting = false;
    d->nwaiting = 0;
    return *d->interrupted ? CLI_LINE_INTERRUPTED : CLI_LINE_NONE;
}
