/* recorded_bits_test.c - the promise over time: a run has the bits that recorded_bits.txt has for
 * its types, with each variant of the kernels that this machine can run.
 *
 * A change that is meant to change bits renews the record: LOCKSTEP_UPDATE=1 ctest -R recorded_bits
 */
/* ctest: seconds=8 */

#include "base/hash.h"
#include "tensor/kernels.h"
#include "train/tiny_run.h"

static const char RECORD[] = "tests/train/recorded_bits.txt";
static const char *const computes[] = {"f32", "bf16", "f16"};
static const char *const reduces[] = {"f32", "bf16", "f16"};
#ifdef __SANITIZE_ADDRESS__ /* pairs of one type; portable kernels are not optimized: of one pair */
enum { SHORT = 1 };
#else
enum { SHORT = 0 };
#endif
enum { NTYPES = 3, MOST_RECORDS = 32, LINE = 128 };

typedef struct record {
    char compute[8], reduce[8]; /* train.compute, train.reduce_dtype */
    char weights[LS_HASH_TEXT], optimizer[LS_HASH_TEXT];
} record;

/* Trains configs/tiny.yaml for some steps with these types. */
static record train(const char *compute, const char *reduce) {
    char type[64], reduce_type[64], run[128];
    snprintf(type, sizeof type, "train.compute=%s", compute);
    snprintf(reduce_type, sizeof reduce_type, "train.reduce_dtype=%s", reduce);
    snprintf(run, sizeof run, "%s/run-%d", folder, nruns++);
    const char *const sets[] = {"log.every=1000",
                                "train.steps=6",
                                "optim.warmup=2",
                                "parallel.transport=thread",
                                type,
                                reduce_type,
                                NULL};
    ls_error e = {0};
    assert_ls_ok(try_run(run, 2, sets, (const char *const[]){NULL}, &e), e);
    result last = last_of(run);
    record r;
    snprintf(r.compute, sizeof r.compute, "%s", compute);
    snprintf(r.reduce, sizeof r.reduce, "%s", reduce);
    snprintf(r.weights, sizeof r.weights, "%s", last.weights);
    snprintf(r.optimizer, sizeof r.optimizer, "%s", last.states);
    return r;
}

/* Each line is "compute reduce weights optimizer"; "#" begins a comment. Returns the number of
 * records. */
static int read_records(record *records) {
    FILE *f = fopen(RECORD, "r");
    char line[LINE];
    int n = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        record *r = &records[n];
        if (*line == '#') continue;
        assert_true(n < MOST_RECORDS);
        assert_int_equal(
            sscanf(line, "%7s %7s %32s %32s", r->compute, r->reduce, r->weights, r->optimizer), 4);
        n++;
    }
    fclose(f);
    return n;
}

static const record *find(const record *records, int n, const record *got) {
    for (int i = 0; i < n; i++)
        if (strcmp(records[i].compute, got->compute) == 0 &&
            strcmp(records[i].reduce, got->reduce) == 0)
            return &records[i];
    return NULL;
}

/* Are the bits the recorded ones? If not, `message` has the types, the recorded bits and the
 * computed ones. */
static bool is_recorded(const record *records, int n, const record *got, const char *kernels,
                        char message[512]) {
    const record *want = find(records, n, got);
    *message = 0;
    if (want && strcmp(want->weights, got->weights) == 0 &&
        strcmp(want->optimizer, got->optimizer) == 0)
        return true;
    snprintf(message, 512,
             "the bits of train.compute=%s train.reduce_dtype=%s have changed (%s kernels):\n"
             "  recorded: weights %s optimizer %s\n"
             "  got:      weights %s optimizer %s\n",
             got->compute, got->reduce, kernels, want ? want->weights : "none",
             want ? want->optimizer : "none", got->weights, got->optimizer);
    return false;
}

static void write_records(void) {
    FILE *f = fopen(RECORD, "w");
    assert_non_null(f);
    fprintf(f, "# Hashes of a short run of configs/tiny.yaml (recorded_bits_test.c):\n"
               "# train.compute, train.reduce_dtype, weights, optimizer\n");
    for (int i = 0; i < NTYPES * NTYPES; i++) {
        record r = train(computes[i / NTYPES], reduces[i % NTYPES]);
        fprintf(f, "%s %s %s %s\n", r.compute, r.reduce, r.weights, r.optimizer);
    }
    assert_int_equal(fclose(f), 0);
}

static void test_recorded(void **state) {
    (void)state;
    record records[MOST_RECORDS];
    const ls_kernels *k = NULL;
    char message[512];
    int changed = 0;
    if (getenv("LOCKSTEP_UPDATE")) write_records();
    int n = read_records(records);
    for (int v = 0; (k = ls_kernels_at(v)); v++) {
        assert_int_equal(setenv("LOCKSTEP_CPU", k->name, 1), 0);
        int runs = 0;
        for (int i = 0; i < NTYPES * NTYPES; i++) {
            if ((v > 0 || (SHORT && !all_cases())) && i / NTYPES != i % NTYPES)
                continue; /* variant_bits compares the rest */
            if (SHORT && i && strcmp(k->name, "portable") == 0) continue;
            record got = train(computes[i / NTYPES], reduces[i % NTYPES]);
            runs++;
            if (is_recorded(records, n, &got, k->name, message)) continue;
            print_error("%s", message);
            changed++;
        }
        print_message("%s kernels: %d runs compared\n", k->name, runs);
    }
    assert_int_equal(unsetenv("LOCKSTEP_CPU"), 0);
    assert_int_equal(changed, 0);
}

/* Each pair of types is recorded once, and no two have the same bits. */
static void test_record_is_complete(void **state) {
    (void)state;
    record records[MOST_RECORDS];
    int n = read_records(records);
    assert_int_equal(n, NTYPES * NTYPES);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(records[i].weights, records[k].weights);
}

static void test_can_fail(void **state) {
    (void)state;
    record records[MOST_RECORDS];
    int n = read_records(records);
    char message[512];
    record got = *find(records, n, &(record){.compute = "bf16", .reduce = "f32"});
    assert_true(is_recorded(records, n, &got, "avx2", message));
    got.weights[0] = got.weights[0] == '0' ? '1' : '0';
    assert_false(is_recorded(records, n, &got, "avx2", message));
    assert_non_null(strstr(message, "train.compute=bf16 train.reduce_dtype=f32"));
    assert_non_null(strstr(message, got.weights));
    snprintf(got.reduce, sizeof got.reduce, "f64");
    assert_false(is_recorded(records, n, &got, "avx2", message));
    assert_non_null(strstr(message, "recorded: weights none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded),
                                       cmocka_unit_test(test_record_is_complete),
                                       cmocka_unit_test(test_can_fail)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
