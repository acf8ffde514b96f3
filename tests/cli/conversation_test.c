/* conversation_test.c - lockstep chat: lines from a pipe, as text and as JSON, and a real
 * terminal. */
#include "cli/models.h"
#include "cli/terminal.h"

static int make_model(void **state) {
    if (models_make(state) != 0) return -1;
    small_write_whole(&small_models[0], gguf);
    return 0;
}

/* Runs the command with this input, and expects this exit code; returns its output. */
static char *chat_ends(const char *options, const char *input, int code) {
    char *line = ls_format("chat @/m.gguf %s", options);
    char *output = output_with_input(line, input, code);
    free(line);
    return output;
}

static char *chat(const char *options, const char *input) { return chat_ends(options, input, 0); }

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
    char *again = chat_ends("--tokens 3", lines, 1); /* of another session */
    assert_non_null(strstr(again, "other: exists; give another name"));
    free(again), free(lines);
    lines = ls_format("to\n/save %s/third\nbe\n/save %s/third\n", folder, folder);
    free(chat("--tokens 3", lines));
    shell_of_run("third", "grep -q '\"be\"' $r");
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

/* A line a turn, the same at each call; blank lines and commands are no turns. */
static void test_pipe(void **state) {
    (void)state;
    char *a = chat("--tokens 3", "to\nbe\n"), *b = chat("--tokens 3", "to\r\n\n   \nbe");
    char *c = chat("--tokens 3 --json", "to\n/reset\nbe\n/exit\nto\n");
    assert_string_equal(a, b);
    assert_int_equal(occurrences(c, "\"answer\": "), 2);
    assert_int_equal(occurrences(c, "\"user\": \"be\""), 1);
    assert_non_null(strstr(c, "\"tokens\": "));
    assert_int_equal(occurrences(a, ">"), occurrences(b, ">"));
    free(a), free(b), free(c);
    a = chat("--tokens 3 --seed 4 --temperature 2", "to\n");
    b = chat("--tokens 3 --seed 5 --temperature 2", "to\n");
    assert_string_not_equal(a, b);
    free(a), free(b);
    a = chat("--tokens 3", "to \xE2\x82\xAC\n");
    assert_output_has(a, "left out, for which the tokenizer has no token");
    free(a);
    write_text("odd.txt", "be\nto \xE2\x82\xAC\n");
    expect("predict @/m.gguf @/odd.txt", 0, "/odd.txt:2: ");
}

/* Words behind a slash are commands, or named; other lines with a slash are messages. */
static void test_commands(void **state) {
    (void)state;
    char *a =
        chat("--tokens 3 --json", "/usr/bin\n/reset\n//exit now\n/reset\n/ x\n/reset\n/1st\n");
    const char *const messages[] = {"\"user\": \"/usr/bin\"", "\"user\": \"/exit now\"",
                                    "\"user\": \"/ x\"", "\"user\": \"/1st\""};
    for (int i = 0; i < 4; i++) assert_int_equal(occurrences(a, messages[i]), 1);
    free(a);
    static const char *const lines[][2] = {{"/rest\nto\n", "/rest is no command; /help lists them"},
                                           {"/tmp is full\n", "/tmp is no command"},
                                           {"/save\n", "/save FILE: FILE is missing"},
                                           {"/reset now\n", "/reset takes nothing; 'now' is"}};
    for (int i = 0; i < 4; i++) {
        a = chat_ends("--tokens 3 --json", lines[i][0], 1);
        assert_non_null(strstr(a, lines[i][1]));
        assert_int_equal(occurrences(a, "\"answer\""), 0);
        free(a);
    }
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

static shown *start(const char *options) {
    char *line = ls_format("chat @/m.gguf --tokens 4 %s", options);
    shown *x = terminal_start(line, 80, 24);
    free(line);
    return x;
}

/* Behind a request that the terminal marks what is pasted. */
#define PROMPT "\033[?2004h> "
#define MORE   "\033[?2004h. "

/* An interrupt drops the line; the end of the input, or /exit, ends the program. */
static void test_terminal(void **state) {
    (void)state;
    static const char *const ways[] = {"/exit\n", "\4"};
    for (int i = 0; i < 2; i++) {
        shown *x = start("");
        terminal_expect(x, PROMPT);
        terminal_type(x, "be\3");
        terminal_expect(x, PROMPT);
        terminal_type(x, "/help\n");
        terminal_expect(x, "begin a new conversation");
        terminal_expect(x, PROMPT);
        terminal_type(x, "to\n");
        terminal_expect(x, PROMPT);
        terminal_type(x, ways[i]);
        assert_int_equal(terminal_end(x), 0);
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
    shown *x = start("--save @/typed");
    terminal_expect(x, PROMPT);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        terminal_type(x, steps[i].typed);
        terminal_expect(x, steps[i].then);
    }
    assert_int_equal(terminal_end(x), 0);
    static const char *const messages[] = {"to b\xc3\xa9", "to b\xc3\xa9!", "one\\\\ntw_o",
                                           "a\\\\nb"};
    for (int i = 0; i < 4; i++) {
        char *line = ls_format("grep -q 'content\": \"%s\"' $r", messages[i]);
        shell_of_run("typed", line);
        free(line);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),    cmocka_unit_test(test_commands),
        cmocka_unit_test(test_saved),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_editing), cmocka_unit_test(test_terminal)};
    return cmocka_run_group_tests(tests, make_model, folder_remove);
}
