/* bench_comm_test.c - lockstep bench comm: every operation's results are right, its lines can
 * be parsed, and requests that it can't meet are refused. Scripts stand in for peers. No time is
 * judged. */
/* ctest: slow busy seconds=30 */
#include "base/json.h"
#include "cli/program.h"

#include <sys/stat.h>

static const char *const ops[] = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast",    "reduce", "gather", "scatter",
    "all_to_all", "gather_v",       "scatter_v",  "all_to_all_v", "scan",   "exscan", "barrier"};
enum { NOPS = sizeof ops / sizeof *ops };

static const char FEW[] = "--rounds 5 --sizes 0,1000,64K";

static ls_json *parse_line(const char *line, const char *end) {
    ls_error e = {0};
    ls_json *j = NULL;
    assert_ls_ok(ls_json_parse(line, (size_t)(end - line), "line", &j, &e), e);
    return j;
}

static double number_of(const ls_json *j, const char *key) {
    double value = -1;
    if (!ls_json_number(ls_json_get(j, key), &value)) print_error("no number '%s'\n", key);
    return value;
}

/* Runs it with --json and checks each line; returns their number. */
static int lines_of(const char *options) {
    char line[512], *output = NULL;
    snprintf(line, sizeof line, "bench comm --json %s", options);
    int code = run_program(line, &output), n = 0;
    if (code != 0) print_error("lockstep %s\n%s\n", line, output);
    assert_int_equal(code, 0);
    for (const char *s = output, *end; (end = strchr(s, '\n')); s = end + 1, n++) {
        ls_json *j = parse_line(s, end);
        if (number_of(j, "wrong") != 0) print_error("%s\n%s\n", line, s);
        assert_true(number_of(j, "wrong") == 0);
        assert_true(number_of(j, "median_s") > 0);
        assert_true(number_of(j, "algbw") >= 0 && number_of(j, "busbw") >= 0);
        assert_string_equal(ls_json_text(ls_json_get(j, "system")), "lockstep");
        assert_non_null(ls_json_text(ls_json_get(j, "algorithm")));
        assert_non_null(ls_json_text(ls_json_get(j, "why")));
        ls_json_free(j);
    }
    free(output);
    return n;
}

/* A line for each possible place; a barrier has one line. */
static int lines_expected(const char *op) {
    if (strcmp(op, "barrier") == 0) return 1;
    static const char one_place[] = "broadcast gather scatter gather_v scatter_v all_to_all_v";
    return strcmp(op, "all_to_all") != 0 && strstr(one_place, op) ? 3 : 6;
}

static void test_ops(void **state) {
    (void)state;
    static const char *const how[] = {"-n 2", "-n 3 --private", "-n 3 --transport thread"};
    char options[256];
    for (int i = 0; i < NOPS; i++)
        for (int k = 0; k < 3; k++) {
            if (!runs_case(i + k, 3)) continue;
            snprintf(options, sizeof options, "--op %s %s %s", ops[i], FEW, how[k]);
            assert_int_equal(lines_of(options), lines_expected(ops[i]));
        }
    assert_int_equal(lines_of("-n 1 --rounds 5 --sizes 8,64K"), 4);
    assert_int_equal(lines_of("-n 2 --rounds 5 --sizes 8 --transport thread --private"), 2);
}

/* Every type and every operation, in a part of their combinations; coll/ops_test.c has them all. */
static void test_dtypes_and_redops(void **state) {
    (void)state;
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16", "i64", "i32", "i8",
                                         "u8",  "u16", "u32",  "u64", "i16", "bool"};
    static const char *const redops[] = {"sum", "avg",  "prod", "min", "max", "land",
                                         "lor", "lxor", "band", "bor", "bxor"};
    char options[256];
    for (int d = 0; d < 13; d++)
        for (int r = 0; r < 11; r++) {
            bool logical = r >= 5 && r < 8;
            if (d == 12 ? !logical : r == 1 ? d > 3 : r > 4 && d < 4)
                continue; /* this combination does not exist */
            if ((d + r) % 3 != 0 || !runs_case((d + r) / 3 + d, 6)) continue;
            snprintf(options, sizeof options,
                     "--dtype %s --redop %s -n 3 --transport thread --rounds 1 --sizes 100",
                     dtypes[d], redops[r]);
            assert_int_equal(lines_of(options), 2);
        }
}

static void test_pairs(void **state) {
    (void)state;
    static const char *const dtypes[] = {"f64_i64", "f32_i32", "i64_i64", "i32_i32"};
    char options[256];
    for (int d = 0; d < 4; d++) {
        snprintf(options, sizeof options,
                 "--dtype %s --redop %s -n 3 --transport thread --rounds 1 --sizes 100", dtypes[d],
                 d % 2 ? "minloc" : "maxloc");
        assert_int_equal(lines_of(options), 2);
    }
}

static void test_algorithm_and_place(void **state) {
    (void)state;
    assert_int_equal(lines_of("-n 3 --rounds 5 --sizes 8,64K --algorithm ring --place in"), 2);
    assert_int_equal(lines_of("-n 3 --rounds 5 --sizes 8 --op reduce_scatter --place out"), 1);
    expect("bench comm -n 3 --rounds 5 --sizes 8 --algorithm ring", 0,
           "of 3 workers: forced: ring, ");
}

/* Every operation over tcp, with every algorithm that supports it: a line for each. */
static void test_all_algorithms(void **state) {
    (void)state;
    /* of 3 workers: all_reduce has 8, reduce_scatter 3 ... */
    static const int algorithms[NOPS] = {8, 3, 3, 4, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2};
    char options[256];
    for (int i = 0; i < NOPS; i++) {
        if (!runs_case(i, 2)) continue;
        bool barrier = strcmp(ops[i], "barrier") == 0;
        snprintf(options, sizeof options,
                 "--op %s -n 3 --transport tcp --algorithm all --rounds 2 --sizes 0,5000", ops[i]);
        assert_int_equal(lines_of(options), (barrier ? 1 : 2) * algorithms[i]);
    }
    assert_int_equal(lines_of("-n 2 --algorithm all --rounds 2 --sizes 1K"), 9);
    char *output =
        output_of("bench comm -n 3 --transport tcp --algorithm all --rounds 2 --sizes 8");
    assert_output_has(output, "ring*");
    assert_output_has(output, "chosen");
    free(output);
    expect("bench comm -n 2 --algorithm shared --rounds 2 --sizes 8", 0, "  shared memory");
}

/* The chosen algorithm and the reason; measured links, and links from a file. */
static void test_links(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/links.yaml", folder);
    char *output =
        output_of("bench comm -n 2 --transport tcp --rounds 2 --sizes 8 --save %s", path);
    assert_output_has(output, "# links (measured): latency");
    assert_output_has(output, "# links are saved");
    free(output);
    setenv("LOCKSTEP_LINKS", path, 1);
    expect("bench comm -n 2 --transport tcp --rounds 2 --sizes 8", 0, "# links (from a file)");
    static const char slow[] = "links: {latency_us: 1, byte_ns: 9, busy_message_us: 1, "
                               "busy_byte_ns: 9, reduce_ns: 9}\n";
    write_file("links.yaml", slow, strlen(slow));
    output = output_of("bench comm -n 2 --transport tcp --rounds 2 --sizes 4M");
    assert_output_has(output, "# all_reduce f32 sum, 1048576 elements of 2 workers: direct, ");
    assert_output_has(output, "0  direct");
    free(output);
    write_file("links.yaml", "links: 7\n", 9);
    expect("bench comm -n 2 --transport tcp --rounds 2 --sizes 8", 1,
           "is not a key of a file of links");
    unsetenv("LOCKSTEP_LINKS");
}

static void test_insecure(void **state) {
    (void)state;
    static const char says[] = "no key and no encryption";
    expect("bench comm -n 2 --transport tcp --insecure --rounds 2 --sizes 8", 0, says);
    expect("run -n 2 --insecure " LOCKSTEP_PROGRAM
           " bench comm --transport tcp --rounds 2 --sizes 8",
           0, says);
}

static void test_table(void **state) {
    (void)state;
    expect("bench comm -n 2 --rounds 5 --sizes 8,1K", 0, "#wrong");
    expect("bench comm -n 2 --rounds 5 --sizes 8,1K", 0, "# wrong elements: 0");
    expect("bench comm -n 2 --rounds 5 --sizes 1K", 0, "        1024          256    f32    sum");
    expect("bench comm -n 2 --rounds 5 --op barrier", 0, "N/A");
    expect("bench comm -n 2 --rounds 5 --sizes 8 --op all_to_all_v", 0, "N/A");
}

/* Measures beside processes of its own that compute; they end with it. */
static void test_busy(void **state) {
    (void)state;
    expect("bench comm -n 2 --rounds 2 --sizes 8 --busy 1", 0, "# beside 1 busy process\n");
    expect("bench comm -n 2 --rounds 2 --sizes 8 --busy 2", 0, "# beside 2 busy processes\n");
    expect("bench comm -n 2 --rounds 2 --sizes 8 --busy 65", 2, "--busy");
    expect("bench machine --busy 1", 2, "--busy is an option of bench comm");
    expect("run -n 2 " LOCKSTEP_PROGRAM " bench comm --rounds 5 --sizes 8 --busy 1", 2,
           "--busy: bench must start the workers itself");
}

/* Started by a launcher, the command is one of its workers. */
static void test_under_run(void **state) {
    (void)state;
    static const char start[] = "run -n 2 " LOCKSTEP_PROGRAM " bench comm --rounds 5";
    expectf(0, "transport shm, 2 workers", "%s --sizes 8,1K", start);
    expectf(2, "--workers 3, but lockstep gives 2", "%s --sizes 8 -n 3", start);
    expectf(1, "in the arena", "%s --sizes 128M", start);
}

static void refuses(const char *options, int code, const char *says) {
    char line[512];
    snprintf(line, sizeof line, "bench %s", options);
    expect_line(line, code, says);
}

static void test_bad_input(void **state) {
    (void)state;
    refuses("comm --op fly", 2, "--op: 'fly' is not one of all_reduce,");
    refuses("comm --dtype f99", 2, "--dtype: 'f99' is not one of f32,");
    refuses("comm --redop xor", 2, "--redop: 'xor' is not one of sum,");
    refuses("comm --redop bxor --dtype f32", 2, "--redop: no bxor of f32; it is for integers");
    refuses("comm --redop avg --dtype i32", 2, "no avg of i32");
    refuses("comm --redop minloc", 2, "no minloc of f32; it is for pairs");
    refuses("comm --op scan --redop avg", 2, "scan has no averages");
    refuses("comm --op barrier --redop sum", 2, "barrier reduces nothing");
    refuses("comm --sizes 8,x", 2, "--sizes: '8,x' is not a list");
    refuses("comm --sizes 8K,", 2, "is not a list");
    refuses("comm --sizes 99999999999G", 2, "is not a list");
    refuses("comm --sizes 1000000G", 1, "no memory for 1073741824000000 bytes");
    refuses("comm --place up", 2, "--place: 'up'");
    refuses("comm --place in --op all_to_all_v", 2, "all_to_all_v is not possible in place");
    refuses("comm --transport pigeon", 2, "--transport: 'pigeon'");
    refuses("comm --algorithm fly", 2, "'fly' does not exist");
    refuses("comm --algorithm ring --op barrier", 2, "'ring' does not support this operation");
    refuses("comm --algorithm native --rounds 1", 1, "transport shm has no collectives of its own");
    refuses("comm --algorithm shared --transport tcp", 1, "not all workers share memory");
    refuses("comm --insecure", 2, "--insecure: it is for --transport tcp, not for shm");
    refuses("comm --save README.md/x --rounds 1 --sizes 8", 1, "--transport tcp or mpi");
    refuses("comm --save README.md/x --transport tcp --rounds 1 --sizes 8", 1, "README.md/x");
    refuses("comm -n 0", 2, "whole number from 1");
    refuses("comm --rounds 0", 2, "whole number from 1");
    refuses("comm more", 2, "one argument too many");
    refuses("comm --steps 3", 2, "--steps is an option of bench train");
    refuses("train configs/tiny.yaml --op all_reduce", 2, "--op is an option of bench comm");
    refuses("train", 2, "CONFIG.yaml is missing");
    refuses("fly", 2, "there is no 'fly'");
}

/* ---- compare_comm.py, with a link to the program, beside which there are no peers but those made
 * here ---- */

static void peer_make(const char *name, const char *script) {
    char path[128];
    shellf("mkdir -p %s/bench", folder);
    snprintf(path, sizeof path, "bench/%s", name);
    write_file(path, script, strlen(script));
    snprintf(path, sizeof path, "%s/bench/%s", folder, name);
    assert_int_equal(chmod(path, 0755), 0);
}

/* The script, with the link. */
#define COMPARE "bench/peers/compare_comm.py %s/lockstep %s -n 2 --rounds 5 "

/* Runs it with these peers; returns its output: free() it. */
static char *compare(const char *peers, const char *options, int code) {
    char command[1024];
    char *output = calloc(1, MAX_OUTPUT + 1);
    snprintf(command, sizeof command, "ln -sf %s %s/lockstep; " COMPARE "%s 2>&1", LOCKSTEP_PROGRAM,
             folder, folder, peers, options);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    fread(output, 1, MAX_OUTPUT, f);
    int how = pclose(f);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != code) print_error("%s\n%s\n", command, output);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == code);
    return output;
}

static void assert_says(char *output, const char *says) {
    if (!strstr(output, says)) {
        print_error("%s\nexpected: %s\n", output, says);
        fail();
    }
    free(output);
}

static void test_missing_peers(void **state) {
    (void)state;
    static const char *const says[] = {"peer-openmpi does not exist; `make bench` builds it",
                                       "peer-mpich does not exist", "peer-gloo does not exist",
                                       "bench/floor does not exist"};
    for (int i = 0; i < 4; i++)
        assert_says(compare("openmpi,mpich,gloo,floor", "--sizes 8", 0), says[i]);
    assert_says(compare("floor", "--sizes 8 -n 3", 0),
                "it only measures all_reduce of f32 sum with 2 workers");
    assert_says(compare("nccl", "--sizes 8", 2), "'nccl' is not one of openmpi, mpich");
    assert_says(compare("gloo,gloo", "--sizes 8", 2), "'gloo' occurs twice");
    assert_says(compare("gloo", "--sizes 8 --redop xor", 1), "'xor' is not one of sum");
}

/* A fast peer that has no result for the second size, and prints other lines beside results. */
static void test_join(void **state) {
    (void)state;
    peer_make("peer-gloo",
              "#!/bin/sh\n"
              "[ \"$*\" = '-n 2 all_reduce f32 5 8,1024,8 sum' ] || { echo \"$*\" >&2; exit 1; }\n"
              "echo noise\n"
              "echo '{\"op\":\"round_trip\",\"place\":\"in\",\"asked\":8,\"nbytes\":8,"
              "\"median_s\":7,\"wrong\":0}'\n"
              "for i in 1 2; do echo '{\"system\":\"gloo\",\"version\":\"9\",\"variant\":\"v\","
              "\"op\":\"all_reduce\",\"place\":\"in\",\"asked\":8,\"nbytes\":8,"
              "\"median_s\":0.5,\"wrong\":0}'; done\n");
    char *output = compare("gloo", "--sizes 8,1K,8 --json", 0);
    const char *line = output;
    for (int i = 0; i < 3; i++) {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        ls_json *j = parse_line(line, end);
        const ls_json *ours = ls_json_get(j, "ours"),
                      *peer = ls_json_at(ls_json_get(j, "peers"), 0);
        assert_int_equal((int)number_of(j, "asked"), i == 1 ? 1024 : 8);
        assert_true(number_of(ours, "median_s") > 0);
        assert_int_equal((int)number_of(ours, "passes"), 3);
        assert_int_equal((int)number_of(peer, "passes"), i == 1 ? 0 : 3);
        if (i != 1) {
            double x = number_of(ours, "median_s") / 0.5;
            assert_true(number_of(peer, "median_s") > 0.499 && number_of(peer, "median_s") < 0.501);
            assert_true(number_of(peer, "x") > 0.99 * x && number_of(peer, "x") < 1.01 * x);
        }
        ls_json_free(j);
        line = end + 1;
    }
    free(output);
}

static void test_failing_peer(void **state) {
    (void)state;
    peer_make("peer-gloo", "#!/bin/sh\necho ------ >&2\necho no luck today >&2\nexit 3\n");
    peer_make("floor", "#!/bin/sh\necho nothing of use\n");
    assert_says(compare("gloo,floor", "--sizes 8", 0), "# gloo: exit code 3: no luck today");
    assert_says(compare("gloo,floor", "--sizes 8", 0), "# floor: it printed no result");
    peer_make("floor", "#!/bin/sh\necho '{\"op\":\"all_reduce\",\"place\":\"out\",\"asked\":8,"
                       "\"nbytes\":8,\"median_s\":0.25,\"wrong\":3,\"system\":\"floor-x\"}'\n");
    assert_says(compare("floor", "--sizes 8", 0), "250000.00");
    assert_says(compare("floor", "--sizes 8", 0), "# floor-x: 9 wrong elements");
    assert_says(compare("gloo", "--sizes 8 --json", 0), "\"failed\": \"exit code 3: no luck");
}

/* SIGTERM to the script kills its peer and the peer's children at once; on a busy machine a process
 * that was killed takes a moment to end. */
static void test_interrupted(void **state) {
    (void)state;
    peer_make("peer-gloo", "#!/bin/sh\nsleep 100 &\necho $! > $(dirname $0)/pid\nwait\n");
    shellf("ln -sf %s %s/lockstep; f=%s/bench/pid; rm -f $f; "
           "{ " COMPARE "--sizes 8 & } 2>/dev/null; "
           "for i in $(seq 200); do [ -s $f ] && break; sleep 0.1; done; "
           "kill $!; wait $!; [ $? -eq 143 ] || exit 1; "
           "for i in $(seq 100); do "
           "grep -qs 'State:.[RSD]' /proc/$(cat $f)/status || exit 0; sleep 0.1; done; exit 1",
           LOCKSTEP_PROGRAM, folder, folder, folder, "gloo");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_dtypes_and_redops),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_algorithm_and_place),
        cmocka_unit_test(test_all_algorithms),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_insecure),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_under_run),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_missing_peers),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_failing_peer),
        cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
