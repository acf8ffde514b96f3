/* conversation_test.c - lockstep chat: lines from a pipe, as text and as JSON, and a real
 * terminal. */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "cli/models.h"

static int make_model(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    return 0;
}

/* Runs the command with this input, and expects this exit code; returns its output. */
static char *chat_ends(const char *options, const char *input, int code) {
    char *path = ls_format("%s/input", folder), *line = ls_format("chat @/m.gguf %s", options);
    write_file("input", input, strlen(input));
    int in = open(path, O_RDONLY), own = dup(0);
    assert_true(in >= 0 && own >= 0);
    dup2(in, 0);
    char *output = NULL;
    assert_int_equal(run_program(line, &output), code);
    dup2(own, 0);
    close(in), close(own);
    free(path), free(line);
    return output;
}

static char *chat(const char *options, const char *input) { return chat_ends(options, input, 0); }

/* A line a turn, the same at each call; blank lines and commands are no turns. */
static void test_pipe(void **state) {
    (void)state;
    char *a = chat("--tokens 3", "to\nbe\n"), *b = chat("--tokens 3", "to\r\n\n   \nbe");
    char *c = chat("--tokens 3 --json", "to\n/reset\nbe\n/exit\nto\n");
    assert_string_equal(a, b);
    assert_int_equal(count_of(c, "\"answer\": "), 2);
    assert_int_equal(count_of(c, "\"user\": \"be\""), 1);
    assert_non_null(strstr(c, "\"tokens\": "));
    assert_int_equal(count_of(a, ">"), count_of(b, ">"));
    free(a), free(b), free(c);
    a = chat("--tokens 3 --seed 4 --temperature 2", "to\n");
    b = chat("--tokens 3 --seed 5 --temperature 2", "to\n");
    assert_string_not_equal(a, b);
    free(a), free(b);
}

/* Words behind a slash are commands, or named; other lines with a slash are messages. */
static void test_commands(void **state) {
    (void)state;
    char *a =
        chat("--tokens 3 --json", "/usr/bin\n/reset\n//exit now\n/reset\n/ x\n/reset\n/1st\n");
    const char *const messages[] = {"\"user\": \"/usr/bin\"", "\"user\": \"/exit now\"",
                                    "\"user\": \"/ x\"", "\"user\": \"/1st\""};
    for (int i = 0; i < 4; i++) assert_int_equal(count_of(a, messages[i]), 1);
    free(a);
    static const char *const lines[][2] = {{"/rest\nto\n", "/rest is no command; /help lists them"},
                                           {"/tmp is full\n", "/tmp is no command"},
                                           {"/save\n", "/save FILE: FILE is missing"},
                                           {"/reset now\n", "/reset takes nothing; 'now' is"}};
    for (int i = 0; i < 4; i++) {
        a = chat_ends("--tokens 3 --json", lines[i][0], 1);
        assert_non_null(strstr(a, lines[i][1]));
        assert_int_equal(count_of(a, "\"answer\""), 0);
        free(a);
    }
}

static void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

/* What is saved goes on with the same answers as without a break; earlier conversations stay. */
static void test_saved(void **state) {
    (void)state;
    char *whole = chat("--tokens 3 --temperature 0", "to\nbe\n");
    char *a = chat("--tokens 3 --temperature 0 --save @/new/talk", "not\n/reset\nto\n");
    char *b = chat("--tokens 3 --temperature 0 --continue @/new/talk --save @/new/talk", "be\n");
    size_t n = strlen(b), all = strlen(whole);
    assert_true(n < all && strcmp(whole + all - n, b) == 0);
    shell_of_run("new",
                 "test $(grep -c . $r/talk) = 2 && head -1 $r/talk | grep -q '\"not\"' && tail "
                 "-1 $r/talk | grep -q 'user.*\"to\".*assistant.*user.*\"be\".*assistant'");
    free(whole), free(a), free(b);
    char *lines = ls_format("to\n/save %s/other\n", folder);
    free(chat("--tokens 3", lines));
    shell_of_run("other", "grep -q '\"to\"' $r");
    free(lines);
    expect("chat @/m.gguf --save @/new/talk", 1, "--continue ");
    expect("chat @/m.gguf --continue @/new/talk --system x", 1, "leave one of them out");
    write_text("bad", "\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n");
    expect("chat @/m.gguf --continue @/bad", 1, "/bad:2: ends with a message of the user");
    write_text("bad", "{\"messages\": [{\"role\": \"king\", \"content\": \"x\"}]}\n");
    expect("chat @/m.gguf --continue @/bad", 1, "/bad:1: message 1 has the role \"king\"");
    write_text("bad", "\n");
    expect("chat @/m.gguf --continue @/bad", 1, "/bad: has no conversation");
}

static void test_refused(void **state) {
    (void)state;
    static const char none[] = "";
    expect("chat", 2, "chat: RUN|CHECKPOINT|DIR is missing");
    expect("chat @/absent", 1, "does not exist");
    expect("chat @/m.gguf --tokens 0", 2, "not a whole number from 1");
    expect("chat @/m.gguf --stop=", 2, "--stop: the text is empty");
    expect("chat @/m.gguf --template @/absent", 1, "absent");
    write_file("empty.jinja", none, 0);
    expect("chat @/m.gguf --template @/empty.jinja", 1, "give one with --template");
}

/* ---- a terminal ---- */

/* What a terminal has shown, and how much of it was looked at. */
typedef struct shown {
    int terminal;
    char text[16384];
    size_t n, at;
} shown;

/* Reads until the text comes, or for ten seconds. */
static bool wait_for(shown *x, const char *text) {
    struct pollfd p = {.fd = x->terminal, .events = POLLIN};
    for (;;) {
        const char *found = strstr(x->text + x->at, text);
        if (found) x->at = (size_t)(found - x->text) + strlen(text);
        if (found) return true;
        bool more = x->n < sizeof x->text - 1 && poll(&p, 1, 10000) > 0;
        ssize_t got = more ? read(x->terminal, x->text + x->n, sizeof x->text - 1 - x->n) : 0;
        if (got <= 0) return false;
        x->n += (size_t)got;
    }
}

static void expect_shown(shown *x, const char *text) {
    if (!wait_for(x, text)) fail_msg("'%s' does not come; the terminal has: %s", text, x->text);
}

static void type(int terminal, const char *text) {
    assert_int_equal(write(terminal, text, strlen(text)), (ssize_t)strlen(text));
}

static pid_t start_on_terminal(const char *options, int *terminal_p) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[MAX_ARGS], text[4096];
        setsid();
        int side = open(ptsname(terminal), O_RDWR);
        ioctl(side, TIOCSCTTY, 0);
        for (int i = 0; i < 3; i++) dup2(side, i);
        close(terminal);
        char *line = ls_format("chat @/m.gguf --tokens 4 %s", options);
        setenv("TERM", "xterm", 1);
        split_line(line, argv, text, sizeof text);
        exec_program(argv);
    }
    *terminal_p = terminal;
    return pid;
}

/* Behind a request that the terminal marks what is pasted. */
#define PROMPT "\033[?2004h> "
#define MORE   "\033[?2004h. "

/* An interrupt drops the line; the end of the input, or /exit, ends the program. */
static void test_terminal(void **state) {
    (void)state;
    static const char *const ways[] = {"/exit\n", "\4"};
    for (int i = 0; i < 2; i++) {
        int terminal = -1, status = -1;
        shown *x = calloc(1, sizeof *x);
        pid_t pid = start_on_terminal("", &terminal);
        x->terminal = terminal;
        expect_shown(x, PROMPT);
        type(terminal, "be\3");
        expect_shown(x, PROMPT);
        type(terminal, "/help\n");
        expect_shown(x, "begin a new conversation");
        expect_shown(x, PROMPT);
        type(terminal, "to\n");
        expect_shown(x, PROMPT);
        type(terminal, ways[i]);
        assert_false(wait_for(x, "no such text"));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(terminal);
        free(x);
    }
}

/* Lines are edited, and come again from the history; several are one message. */
static void test_editing(void **state) {
    (void)state;
    static const struct {
        const char *typed, *then;
    } steps[] = {
        {"tx\177o b\xc3\xa9\n", PROMPT}, /* a wrong letter is taken back */
        {"\033[A!\n", PROMPT},           /* the line before, and more */
        {"/reset\n", PROMPT},
        {"/nothing\n", "/nothing is no command"},
        {"", PROMPT},
        {"\033[200~one\ntwo\033[201~", "two"}, /* pasted */
        {"\033[D_\n", PROMPT},
        {"/reset\n", PROMPT},
        {"a\\\n", MORE},
        {"b\n", PROMPT},
        {"\4", "\n"},
    };
    int terminal = -1, status = -1;
    shown *x = calloc(1, sizeof *x);
    pid_t pid = start_on_terminal("--save @/typed", &terminal);
    x->terminal = terminal;
    expect_shown(x, PROMPT);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        type(terminal, steps[i].typed);
        expect_shown(x, steps[i].then);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    static const char *const messages[] = {"to b\xc3\xa9", "to b\xc3\xa9!", "one\\\\ntw_o",
                                           "a\\\\nb"};
    for (int i = 0; i < 4; i++) {
        char *line = ls_format("grep -q 'content\": \"%s\"' $r", messages[i]);
        shell_of_run("typed", line);
        free(line);
    }
    close(terminal);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),    cmocka_unit_test(test_commands),
        cmocka_unit_test(test_saved),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_editing), cmocka_unit_test(test_terminal)};
    return cmocka_run_group_tests(tests, make_model, folder_remove);
}
