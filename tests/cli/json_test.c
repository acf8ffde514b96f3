/* json_test.c - output of commands for programs: JSON with the fields of docs/reference/json.md,
 * integers as integers. */
#include "cli/program.h"

#include "base/json.h"
#include "perf/round_machine.h"
#include "weights/small_text.h"

/* Returns the command's standard output, without messages. */
static char *stdout_of(const char *line, int code) {
    char *argv[MAX_ARGS], text[4096], *output = NULL;
    int ends[2];
    split_line(line, argv, text, sizeof text);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        exec_program(argv);
    }
    close(ends[1]);
    program p = {pid, ends[0]};
    int got = program_end(&p, &output);
    if (got != code) print_error("lockstep %s: exit code %d\n%s\n", line, got, output);
    assert_int_equal(got, code);
    return output;
}

/* The type of a value: i an integer, r a real number, t text, o an object, a an array, b a truth
 * value, n null. */
static char type_of(const ls_json *j) {
    int64_t whole = 0;
    double real = 0;
    if (ls_json_integer(j, &whole)) return 'i';
    if (ls_json_number(j, &real)) return 'r';
    if (ls_json_text(j)) return 't';
    if (ls_json_is_object(j)) return 'o';
    if (ls_json_is_array(j)) return 'a';
    return ls_json_is_null(j) ? 'n' : 'b';
}

/* The object has these fields and no others: "i:step t:path", in any order. */
static void has_fields(const ls_json *o, const char *fields) {
    char list[1024], *rest = list, *word;
    size_t n = 0;
    snprintf(list, sizeof list, "%s", fields);
    while ((word = strtok_r(rest, " ", &rest))) {
        const ls_json *value = ls_json_get(o, word + 2);
        if (!value || type_of(value) != word[0]) {
            print_error("field %s: %s\n", word, value ? "of another type" : "is missing");
            fail();
        }
        n++;
    }
    assert_int_equal(ls_json_count(o), n);
}

/* Checks that each line is an object with these fields; returns their number. The last is *last_p,
 * if it is not NULL. */
static int lines_have(const char *line, int code, const char *fields, ls_json **last_p) {
    char *output = stdout_of(line, code);
    int n = 0;
    for (char *at = output, *end; *at; at = end + 1, n++) {
        ls_json *j = NULL;
        ls_error e = {0};
        end = strchr(at, '\n');
        assert_non_null(end);
        assert_ls_ok(ls_json_parse(at, (size_t)(end - at), line, &j, &e), e);
        has_fields(j, fields);
        if (last_p && !end[1])
            *last_p = j;
        else
            ls_json_free(j);
    }
    free(output);
    return n;
}

static int64_t integer_of(const ls_json *o, const char *key) {
    int64_t value = -1;
    assert_true(ls_json_integer(ls_json_get(o, key), &value));
    return value;
}

static int make(void **state) {
    if (folder_make(state)) return -1;
    ls_buf text = {0};
    round_machine_text(&text);
    write_file("round.yaml", text.data, text.len);
    ls_buf_free(&text);
    expect("train configs/tiny.yaml -n 2 -o @/run --set train.steps=20 --set checkpoint.every=10",
           0, NULL);
    return 0;
}

static void test_eval(void **state) {
    (void)state;
    ls_json *j = NULL;
    static const char level[] = "r:loss r:perplexity r:bits_per_byte";
    assert_int_equal(lines_have("eval @/run --json", 0,
                                "t:checkpoint t:weights n:data i:tokens o:model o:bigram", &j),
                     1);
    has_fields(ls_json_get(j, "model"), level);
    has_fields(ls_json_get(j, "bigram"), level);
    ls_json_free(j);
    lines_have("eval @/run --data README.md --json", 0,
               "t:checkpoint t:weights t:data i:tokens o:model", &j);
    assert_string_equal(ls_json_text(ls_json_get(j, "data")), "README.md");
    ls_json_free(j);
    assert_int_equal(lines_have("eval @/none --json", 1, "", NULL), 0);
}

static void test_checkpoints(void **state) {
    (void)state;
    static const char info[] =
        "t:checkpoint i:step i:tensors i:parameters i:bytes t:weights t:optimizer";
    char hash[256], want[256];
    ls_json *j = NULL;
    lines_have("ckpt verify @/run --json", 0, info, NULL);
    assert_int_equal(lines_have("ckpt hash @/run --json", 0, info, &j), 1);
    assert_int_equal(integer_of(j, "step"), 20);
    assert_int_equal(integer_of(j, "parameters"), 22464);
    hash_of("run", hash);
    snprintf(want, sizeof want, "weights %s\noptimizer %s\n",
             ls_json_text(ls_json_get(j, "weights")), ls_json_text(ls_json_get(j, "optimizer")));
    assert_string_equal(hash, want);
    ls_json_free(j);
    lines_have("ckpt show @/run --json", 0, "t:checkpoint i:step i:parameters a:tensors", &j);
    const ls_json *first = ls_json_at(ls_json_get(j, "tensors"), 0), *shape;
    has_fields(first, "t:name t:dtype a:shape b:frozen");
    int64_t dim = 0;
    shape = ls_json_get(first, "shape");
    assert_true(ls_json_count(shape) == 2 && ls_json_integer(ls_json_at(shape, 0), &dim));
    assert_int_equal(dim, 300);
    ls_json_free(j);
    assert_int_equal(lines_have("ckpt list @/run --json", 0, "t:checkpoint i:step i:bytes", &j), 2);
    assert_int_equal(integer_of(j, "step"), 10); /* the newest first */
    ls_json_free(j);
    expect("ckpt list @/run", 0, "run/checkpoints/step-20\n");
    expect("ckpt list @/none", 1, "is not a run directory");
}

static void test_ledger(void **state) {
    (void)state;
    static const char fields[] = "t:run b:clean i:steps i:missing i:min_workers i:max_workers "
                                 "i:view_changes i:samples i:epochs i:rest a:changed";
    ls_json *j = NULL;
    assert_int_equal(lines_have("ckpt ledger @/run --json", 0, fields, &j), 1);
    assert_true(ls_json_is_true(ls_json_get(j, "clean")));
    assert_int_equal(integer_of(j, "steps"), 20);
    assert_int_equal(integer_of(j, "max_workers"), 2);
    ls_json_free(j);
}

static void test_plan(void **state) {
    (void)state;
    static const char sizes[] =
        "i:parameters i:frozen_parameters i:workers i:virtual_workers i:buckets i:actions a:layers "
        "o:memory";
    static const char prediction[] =
        "i:workers i:hosts i:zero i:recompute r:step_s r:tokens_per_s r:efficiency r:exposed_s "
        "r:least_wait r:most_wait "
        "r:communication_s i:memory_bytes b:fits t:algorithm o:kinds_s";
    char fields[512];
    ls_json *j = NULL;
    assert_int_equal(lines_have("plan configs/tiny.yaml -n 2 --json", 0, sizes, &j), 1);
    has_fields(ls_json_get(j, "memory"),
               "i:worker i:parameters i:frozen_parameters i:gradients i:wide_sums "
               "i:compression_errors i:codes i:optimizer i:activations i:work i:scratch i:writing "
               "i:samples i:sums i:update i:arrivals i:peak i:file "
               "i:checkpoint_copy");
    ls_json_free(j);
    assert_int_equal(lines_have("plan configs/tiny.yaml -n 2 --json --set sync.mode=gossip", 0,
                                "i:parameters i:frozen_parameters i:workers i:virtual_workers "
                                "i:buckets i:actions a:layers o:memory o:sync",
                                &j),
                     1);
    has_fields(ls_json_get(j, "sync"), "i:replicas i:every r:bytes_within r:bytes_between "
                                       "r:bytes_synchronous r:bytes_mean");
    ls_json_free(j);
    snprintf(fields, sizeof fields, "%s o:prediction o:run", sizes);
    lines_have("plan configs/tiny.yaml -n 2 --machine @/round.yaml --json", 0, fields, &j);
    has_fields(ls_json_get(j, "prediction"), prediction);
    ls_json_free(j);
    snprintf(fields, sizeof fields, "%s i:batch b:best", prediction);
    assert_true(lines_have("plan configs/tiny.yaml -n 2,4 --machine @/round.yaml --json", 0, fields,
                           NULL) >= 8);
    assert_true(lines_have("plan configs/tiny.yaml -n 2 --fit 10MB --json", 0,
                           "i:workers i:zero i:recompute i:recompute_layers i:micro_batch "
                           "r:bucket_mb t:accumulate t:optimizer_state i:memory_bytes r:computing "
                           "r:sent",
                           NULL) > 0);
    assert_true(
        lines_have("plan configs/tiny.yaml -n 4 --mesh auto --json", 0,
                   "i:data i:pipe i:tensor i:context i:expert t:schedule i:chunks i:zero "
                   "i:recompute i:micro_batch r:step_s r:bubble r:exposed_s r:received_bytes "
                   "i:memory_bytes",
                   NULL) > 1);
    expect("plan --diff a.json b.json --json", 2, "--json: not with --diff");
    expect("plan configs/tiny.yaml -w 1 --json", 2, "--json: not with --worker");
}

static void test_tune(void **state) {
    (void)state;
    static const char space[] =
        "method: grid\nsteps: 1\nspace: {optim.lr: {choice: [0.01, 0.1]}}\n";
    static const char trial[] = "i:trial i:step r:metric t:state o:values t:run";
    ls_json *j = NULL;
    write_file("space.yaml", space, strlen(space));
    lines_have(
        "tune configs/tiny.yaml --space @/space.yaml -o @/tune -n 1 --set optim.warmup=0 --json", 0,
        "t:metric a:trials a:rungs i:steps o:best t:config", &j);
    has_fields(ls_json_get(j, "best"), trial);
    has_fields(ls_json_at(ls_json_get(j, "trials"), 1), trial);
    has_fields(ls_json_at(ls_json_get(j, "rungs"), 0), "i:step i:trials");
    ls_json_free(j);
}

/* Scales a running run. */
static void test_scale(void **state) {
    (void)state;
    ls_json *j = NULL;
    program p =
        program_start("train configs/tiny.yaml -n 1 -o @/scaled --set train.steps=1000000", 0);
    wait_for_file("scaled/metrics.jsonl");
    wait_for_file("scaled/control/socket");
    assert_int_equal(lines_have("scale @/scaled 2 --json", 0, "t:run i:from i:to", &j), 1);
    assert_int_equal(integer_of(j, "from"), 1);
    assert_int_equal(integer_of(j, "to"), 2);
    ls_json_free(j);
    kill(p.pid, SIGTERM);
    program_expect(&p, 75, NULL);
}

/* docs/reference/metrics.md describes every field of a step and of an evaluation. */
static void test_metrics(void **state) {
    (void)state;
    char path[256];
    ls_buf text = {0}, docs = {0};
    ls_error e = {0};
    int steps = 0, evaluations = 0;
    snprintf(path, sizeof path, "%s/run/metrics.jsonl", folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    assert_ls_ok(ls_file_read("docs/reference/metrics.md", 1 << 20, &docs, &e), e);
    for (char *at = text.data, *end; *at; at = end + 1) {
        ls_json *j = NULL;
        end = strchr(at, '\n');
        assert_ls_ok(ls_json_parse(at, (size_t)(end - at), path, &j, &e), e);
        bool evaluation = ls_json_get(j, "val_loss"), start = ls_json_get(j, "started");
        char fields[256];
        snprintf(fields, sizeof fields, "%s%s",
                 evaluation ? "i:step r:val_loss r:val_bits_per_byte i:val_samples"
                 : start    ? "i:step t:started i:started_s t:host i:pid i:workers "
                              "r:peak_flops_per_s t:command"
                            : "i:step i:epoch i:first i:samples i:view i:workers r:loss r:lr "
                              "r:grad_norm r:seconds r:tokens_per_s r:data_wait_s",
                 ls_json_get(j, "memory_bytes") ? " i:memory_bytes" : "");
        if (!evaluation && !start) strcat(fields, " r:mfu");
        has_fields(j, fields);
        const char *key = NULL;
        const ls_json *value = NULL;
        for (void *it = NULL; (it = ls_json_next(j, it, &key, &value));) {
            char word[64];
            snprintf(word, sizeof word, "`%s`", key);
            assert_non_null(strstr(docs.data, word));
        }
        steps += !evaluation && !start;
        evaluations += evaluation;
        ls_json_free(j);
    }
    assert_int_equal(steps, 20);
    assert_true(evaluations >= 1);
    ls_buf_free(&text);
    ls_buf_free(&docs);
}

static void test_adapters(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/adapters --set model.kind=llama --set model.heads=6 "
           "--set lora.rank=2 --set train.steps=2 --set optim.warmup=1 --set train.eval_every=0",
           0, NULL);
    lines_have("export @/adapters --to peft -o @/peft --json", 0,
               "t:path t:form i:tensors i:parameters n:base n:base_problem", NULL);
}

static void test_import(void **state) {
    (void)state;
    char *path = ls_format("%s/m.gguf", folder);
    ls_json *j = NULL;
    small_write_whole(&small_models[0], path);
    lines_have("import @/m.gguf -o @/model --json", 0,
               "t:path t:family i:parameters i:bytes t:hash i:tokens b:template", &j);
    assert_int_equal(integer_of(j, "parameters"), 68160);
    assert_int_equal(integer_of(j, "bytes"), 4 * 68160);
    assert_int_equal(integer_of(j, "tokens"), SMALL_TOKENS);
    ls_json_free(j);
    lines_have("export @/model --to gguf -o @/other --json", 0,
               "t:path t:form t:family i:parameters i:bytes t:hash", NULL);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eval),    cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_ledger),  cmocka_unit_test(test_plan),
        cmocka_unit_test(test_metrics), cmocka_unit_test(test_scale),
        cmocka_unit_test(test_import),  cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_tune),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
