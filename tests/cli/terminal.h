/* terminal.h - a command on a real terminal: what it shows, and what is typed. */
#ifndef LS_TEST_TERMINAL_H
#define LS_TEST_TERMINAL_H

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>

#include "cli/program.h"

/* What a terminal has shown, and how much of it was looked at. */
typedef struct shown {
    int terminal;
    pid_t pid;
    struct termios began; /* how it was when the command began */
    char text[65536];
    size_t n, at;
} shown;

/* terminal_end() ends it. */
static inline shown *terminal_start(const char *line, int columns, int rows) {
    shown *x = calloc(1, sizeof *x);
    const struct winsize w = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    x->pid = forkpty(&x->terminal, NULL, NULL, &w);
    assert_true(x->pid >= 0);
    if (x->pid == 0) {
        char *argv[MAX_ARGS], text[4096];
        setenv("TERM", "xterm", 1);
        split_line(line, argv, text, sizeof text);
        exec_program(argv);
    }
    assert_int_equal(tcgetattr(x->terminal, &x->began), 0);
    return x;
}

/* Reads until the text comes, or nothing for PATIENCE_S. */
static inline bool terminal_shows(shown *x, const char *text) {
    struct pollfd p = {.fd = x->terminal, .events = POLLIN};
    for (;;) {
        const char *found = strstr(x->text + x->at, text);
        if (found) x->at = (size_t)(found - x->text) + strlen(text);
        if (found) return true;
        bool more = x->n < sizeof x->text - 1 && poll(&p, 1, PATIENCE_S * 1000) > 0;
        ssize_t got = more ? read(x->terminal, x->text + x->n, sizeof x->text - 1 - x->n) : 0;
        if (got <= 0) return false;
        x->n += (size_t)got;
    }
}

static inline void terminal_expect(shown *x, const char *text) {
    if (!terminal_shows(x, text))
        fail_msg("'%s' does not come; the terminal has: %s", text, x->text);
}

static inline void terminal_type(shown *x, const char *text) {
    assert_int_equal(write(x->terminal, text, strlen(text)), (ssize_t)strlen(text));
}

/* Waits for the end of the command, which leaves the terminal as it was. Returns how it ended. */
static inline int terminal_end(shown *x) {
    struct termios now;
    int how = -1;
    assert_false(terminal_shows(x, "no such text"));
    assert_int_equal(waitpid(x->pid, &how, 0), x->pid);
    assert_int_equal(tcgetattr(x->terminal, &now), 0);
    assert_true(now.c_lflag == x->began.c_lflag && now.c_iflag == x->began.c_iflag &&
                now.c_oflag == x->began.c_oflag);
    close(x->terminal);
    free(x);
    return how;
}

#endif
