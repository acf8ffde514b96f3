/* output_test.c - output for people, on a terminal or not. */
/* ctest: long-asan: it starts the program hundreds of times; base/escape escapes the same */
#include <sys/ioctl.h>
#include <termios.h>

#include "base/hash.h"
#include "cli/program.h"
#include "perf/round_machine.h"

/* ---- control characters of files, of the command line and of a model ---- */

/* Expects no control character except line ends and tabs, as bytes or as UTF-8, and no direction
 * mark. */
static void expect_clean(const char *line, const char *output) {
    bool bad = strstr(output, "\xe2\x80\xae") != NULL;
    for (const unsigned char *p = (const unsigned char *)output; *p; p++) {
        bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
        if ((*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f || c1) bad = true;
    }
    if (!bad) return;
    print_error("lockstep %s\nshows control characters:\n%s\n", line, output);
    fail();
}

/* The output is safe to show, and contains `says`. */
static void expect_escaped(const char *line, int code, const char *says) {
    char *output = NULL;
    int got = run_program(line, &output);
    expect_clean(line, output);
    if (got != code || !strstr(output, says)) {
        print_error("lockstep %s\nexit code %d, expected %d; output:\n%s\nexpected: %s\n", line,
                    got, code, output, says);
        fail();
    }
    free(output);
}

static void test_names(void **state) {
    (void)state;
    expect_escaped("fly\x1b[31m", 2, "'fly\\x1b[31m'");
    expect_escaped("help fly\x1b[31m", 2, "'fly\\x1b[31m'");
    expect_escaped("train a\x1b[31m.yaml -o @/x", 1, "a\\x1b[31m.yaml: can't be opened");
    expect_escaped("train a\nb\xc2\x9b"
                   "c\xe2\x80\xae.yaml -o @/x",
                   1, "a\\nb\\u009bc\\u202e.yaml: can't be opened");
    expect_escaped("train configs/tiny.yaml --\x1b[31m", 2, "\\x1b[31m");
    expect_escaped("plan configs/tiny.yaml --set optim.\x1b[31m=1", 1, "\\x1b[31m");
    expect_escaped("plan configs/tiny.yaml --set parallel.reduce=\x1b[31m", 1, "\\x1b[31m");
    expect_escaped("plan configs/tiny.yaml --machine @/\x1b[31m", 1, "\\x1b[31m");
    expect_escaped("run -n 1 \x1b[31m", 127, "\\x1b[31m");
    static const char keys[] = "optim:\n  \"lr\\e[31m\": 3\n";
    write_file("key.yaml", keys, strlen(keys));
    expect_escaped("plan @/key.yaml", 1, "'optim.lr\\x1b[31m'");
    static const char value[] = "parallel:\n  reduce: \"\\e[31m\\n\\u202e\"\n";
    write_file("value.yaml", value, strlen(value));
    expect_escaped("plan @/value.yaml", 1, "'\\x1b[31m\\n\\u202e'");
    static const char json[] = "{\"a\x1b[31m\": 1}";
    write_file("bad.json", json, strlen(json));
    expect_escaped("plan --diff @/bad.json @/bad.json", 1, "bad.json");
}

/* Replaces `from` by `to`, of the same length, in a file of the run's checkpoint. */
static void replace_in(const char *file, const char *from, const char *to) {
    char path[256];
    snprintf(path, sizeof path, "%s/run/checkpoints/step-2/%s", folder, file);
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 24, &b, &e), e);
    char *at = memmem(b.data, b.len, from, strlen(from));
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    assert_ls_ok(ls_file_replace(path, b.data, b.len, &e), e);
    ls_buf_free(&b);
}

static void hash_file(const char *file, char text[LS_HASH_TEXT]) {
    char path[256];
    snprintf(path, sizeof path, "%s/run/checkpoints/step-2/%s", folder, file);
    ls_mapped m;
    ls_error e = {0};
    assert_ls_ok(ls_file_map(path, &m, &e), e);
    ls_hash_text(ls_hash_bytes(m.data, m.nbytes), text);
    ls_file_unmap(&m);
}

static void test_tensor_names(void **state) {
    (void)state;
    char was[LS_HASH_TEXT], is[LS_HASH_TEXT];
    expect("train configs/tiny.yaml -n 1 -o @/run --set train.steps=2 --set optim.warmup=1", 0,
           NULL);
    hash_file("model.safetensors", was);
    replace_in("model.safetensors", "\"wpe.weight\"", "\"\\u001b[31m\"");
    hash_file("model.safetensors", is);
    replace_in("manifest.json", was, is);
    expect_escaped("ckpt show @/run", 0, "\\x1b[31m ");
    replace_in("model.safetensors", "\"\\u001b[31m\"", "\"wpe.weight\"");
    replace_in("manifest.json", is, was);
    expect("ckpt verify @/run", 0, "good");
}

/* Runs it with a terminal as its standard output; returns that output, with \n as line ends. */
static char *run_on_terminal(const char *line) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(side >= 0);
    struct termios how;
    assert_int_equal(tcgetattr(side, &how), 0);
    how.c_oflag &= ~(tcflag_t)OPOST;
    assert_int_equal(tcsetattr(side, TCSANOW, &how), 0);
    char *argv[MAX_ARGS], text[4096], *output = calloc(1, MAX_OUTPUT + 1);
    split_line(line, argv, text, sizeof text);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(side, 1);
        exec_program(argv);
    }
    close(side);
    size_t n = 0; /* reading fails when no process has the other side open */
    for (ssize_t got; n < MAX_OUTPUT && (got = read(terminal, output + n, MAX_OUTPUT - n)) > 0;)
        n += (size_t)got;
    close(terminal);
    int how_ended = 0;
    assert_int_equal(waitpid(pid, &how_ended, 0), pid);
    assert_int_equal(how_ended, 0);
    return output;
}

/* A pipe gets the bytes unchanged; a terminal gets no control characters. */
static void test_generated(void **state) {
    (void)state;
    static const char line[] = "generate @/run --tokens 0 --prompt "
                               "\x1b[31m\xc2\x9b\xc3\xa9\xe2\x80\xae\tend";
    char *output = output_of("%s", line);
    assert_string_equal(output, "\x1b[31m\xc2\x9b\xc3\xa9\xe2\x80\xae\tend\n");
    free(output);
    output = run_on_terminal(line);
    expect_clean(line, output);
    assert_string_equal(output, "\\x1b[31m\\u009b\xc3\xa9\\u202e\tend\n");
    free(output);
    /* the output of an untrained model, written token by token */
    output = run_on_terminal("generate @/run --tokens 200 --temperature 100 --seed 3");
    expect_clean("generate", output);
    free(output);
}

/* ---- 80 columns ---- */

/* Characters of the line, without its end. The path of the test's folder counts as if it were in
 * /tmp. */
static int columns_of(const char *line, size_t n) {
    static const char usual[] = "/tmp/lockstep-test-XXXXXX";
    int columns = 0;
    if (memmem(line, n, folder, strlen(folder))) columns = (int)strlen(usual) - (int)strlen(folder);
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)line[i] & 0xc0) != 0x80;
    return columns;
}

/* The command succeeds and prints at least one line, none over 80 columns except messages. */
static void expect_narrow(const char *line) {
    char *output = NULL;
    int code = run_program(line, &output), nlines = 0;
    for (const char *at = output; *at; nlines++) {
        size_t n = strcspn(at, "\n");
        bool message = strncmp(at, "lockstep: ", 10) == 0;
        if (!message && columns_of(at, n) > 80) {
            print_error("lockstep %s\nhas a line of %d columns:\n%.*s\n", line, columns_of(at, n),
                        (int)n, at);
            fail();
        }
        at += n + (at[n] == '\n');
    }
    if (code != 0 || nlines == 0)
        print_error("lockstep %s: exit code %d\n%s\n", line, code, output);
    assert_int_equal(code, 0);
    assert_true(nlines > 0);
    free(output);
}

static void test_help_width(void **state) {
    (void)state;
    static const char *const topics[] = {
        "train",  "eval",         "generate", "chat",    "plan",   "bench",   "run",
        "ckpt",   "scale",        "data",     "check",   "help",   "weights", "tokens",
        "import", "export",       "replay",   "compare", "report", "batch",   "tune",
        "config", "config optim", "predict",  "status",  "watch",  "serve"};
    char line[64];
    expect_narrow("help");
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
        snprintf(line, sizeof line, "help %s", topics[i]);
        expect_narrow(line);
    }
    /* no command is left out above */
    char *all = output_of("help");
    int ncommands = 0, used = 0;
    char name[32];
    for (const char *at = strstr(all, "commands:\n") + 10; *at == ' '; at = strchr(at, '\n') + 1)
        ncommands += sscanf(at, "  %31[a-z]%n", name, &used) == 1 && used < 13;
    assert_int_equal(ncommands, 25);
    free(all);
}

/* bench comm is left out: it has nccl-tests' columns, which take more than 80. */
static void test_table_width(void **state) {
    (void)state;
    static const char *const lines[] = {
        "plan configs/tiny.yaml -n 2",
        "plan configs/tiny.yaml -n 2 --actions",
        "plan configs/tiny.yaml -n 1",
        "plan configs/tiny.yaml -n 4 --set parallel.transport=tcp --set parallel.zero=3",
        "plan configs/tiny.yaml -n 4 --set train.compute=bf16 --set parallel.recompute=2",
        "plan configs/tiny.yaml -n 2 --set parallel.optimizer_state=file",
        "plan configs/tiny.yaml -n 2 --fit 10MB",
        "plan configs/tiny.yaml -n 2 --machine @/round.yaml",
        "plan configs/tiny.yaml -n 2,1024 --machine @/round.yaml --link 1Gb/s,5us",
        "plan configs/tiny.yaml -n 2 --machine @/round.yaml --link 1Gb/s,5us --algorithm ring",
        "plan configs/tiny.yaml -n 2,4 --machine @/round.yaml --set parallel.memory_limit_mb=1",
        "plan configs/tiny.yaml -n 2,4 --strong --machine @/round.yaml",
        "plan configs/tiny.yaml -n 2 --machine @/round.yaml --trace @/a.json",
        "plan --diff @/a.json @/a.json",
        "bench train configs/tiny.yaml -n 2 --steps 2",
        "bench generate configs/tiny.yaml --tokens 3",
        "bench kernels --rows 5 --rounds 1",
        "ckpt show @/run",
        "ckpt list @/run",
        "ckpt hash @/run",
    };
    ls_buf text = {0};
    round_machine_text(&text);
    write_file("round.yaml", text.data, text.len);
    ls_buf_free(&text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) expect_narrow(lines[i]);
}

static void test_help_config(void **state) {
    (void)state;
    char *output = output_of("help config optim");
    static const char first[] = "  optim.optimizer = \"adamw\" (adamw, adam, sgd, lion, adagrad, "
                                "schedule-free,\n      lars, lamb, adafactor, muon, soap, "
                                "onebit_adam, onebit_lamb,\n      rowwise_adagrad)\n      the "
                                "update";
    assert_int_equal(strncmp(output, first, strlen(first)), 0);
    assert_null(strstr(output, "\n  train."));
    free(output);
    expect("help config opt", 2,
           "help config: there is no group or key 'opt' (did you mean 'optim.optimizer'?); the "
           "groups are model, data");
    expect("help train optim", 2, "only config has groups, as in 'lockstep help config optim'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_tensor_names),
        cmocka_unit_test(test_generated),   cmocka_unit_test(test_help_width),
        cmocka_unit_test(test_table_width), cmocka_unit_test(test_help_config),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
