/* data_test.c - the data of a run: tokens that are overwritten, cut short or replaced while it
 * trains or between its parts are detected, and their file named, before a step uses them; no
 * result of them is saved; and when the file is restored, the run continues to the bits of an
 * undisturbed one.
 */
/* ctest: slow seconds=12 */
#include "cli/undisturbed.h"

static const char START[] = TRAIN_LINE("60", "20");

static void train(const char *run, const char *more, int code, const char *says) {
    expectf(code, says, START, run, more);
}

/* Makes the undisturbed run, and one on another text, whose tokens are valid, too. */
static int make_runs(void **state) {
    if (folder_make(state) != 0) return -1;
    train("undisturbed", "", 0, NULL);
    hash_of("undisturbed", undisturbed);
    shell_of_run("undisturbed", "tr a-y b-z < $OLDPWD/LICENSE > other.txt");
    char more[128];
    snprintf(more, sizeof more, " --set data.path=%s/other.txt", folder);
    train("another", more, 0, NULL);
    return 0;
}

/* Runs `damage` after step 21 of a run that is slow from there on: it ends with an error that
 * contains `says`. */
static void fails_after(const char *run, const char *more, const char *damage, const char *says) {
    char *output = NULL;
    hold_after(run, 21);
    program p = startf(START, run, more);
    wait_for_step(run, 21); /* the checkpoint of step 20 is complete */
    shell_of_run(run, "cp -p $r/tokens.bin saved.bin");
    shell_of_run(run, damage);
    let_go(run);
    int code = program_end(&p, &output);
    if (code != 1 || !strstr(output, says) || !strstr(output, "tokens.bin: ") ||
        strstr(output, "Sanitizer"))
        fail_msg("%s%s: exit code %d, expected: %s\noutput:\n%s", run, more, code, says, output);
    free(output);
}

/* All saved state comes from the right tokens, with which the run continues. */
static void resumes(const char *run, const char *more) {
    char args[128];
    shell_of_run(run, "cp saved.bin $r/tokens.bin");
    snprintf(args, sizeof args, "%s --resume", more);
    train(run, args, 0, "continuing from");
    has_undisturbed_bits(run);
}

static const char ALL_ONES[] = "head -c 20000 /dev/zero | tr '\\0' '\\377' | "
                               "dd of=$r/tokens.bin bs=64 seek=1 conv=notrunc status=none";

static void test_bad_ids(void **state) {
    (void)state;
    static const char says[] = "has id 4294967295, the vocabulary 300";
    fails_after("ids", "", ALL_ONES, says);
    train("ids", " --resume", 1, "tokens.bin: is damaged");
    train("ids", " --resume", 1, "; remove it: --resume makes it again from the text");
    resumes("ids", "");
    fails_after("ids-threads", THREADS, ALL_ONES, says);
    resumes("ids-threads", THREADS);
    fails_after("ids-zero", " --set parallel.zero=3 --set parallel.overlap=on", ALL_ONES, says);
    resumes("ids-zero", "");
}

/* Valid ids in a valid file; detected at a step or at a checkpoint. */
static void test_other_ids(void **state) {
    (void)state;
    fails_after("other", "", "cat another/tokens.bin > $r/tokens.bin", "tokens.bin: ");
    train("other", " --resume", 1, "tokens.bin: is not the one that this run was trained with");
    expect("eval @/other", 1, "tokens.bin: is not the one that this run was trained with");
    resumes("other", "");
}

static void test_exchanged(void **state) {
    (void)state;
    fails_after("exchanged", "", "cp another/tokens.bin x && mv x $r/tokens.bin",
                "has other tokens");
    resumes("exchanged", "");
}

static void test_cut_short(void **state) {
    (void)state;
    fails_after("short", "", "truncate -s 9000 $r/tokens.bin", "cut short");
    resumes("short", "");
}

/* Only evaluations read the end of the text. */
static void test_validation_part(void **state) {
    (void)state;
    fails_after(
        "val", " --set checkpoint.every=20",
        "n=$(stat -c %s $r/tokens.bin) && "
        "printf XXXX | dd of=$r/tokens.bin bs=1 seek=$((n - 80)) conv=notrunc status=none && "
        "touch -r saved.bin $r/tokens.bin",
        "has changed since it was opened");
    resumes("val", "");
}

/* A worker that replaces another reads the file again. */
static void test_killed_and_exchanged(void **state) {
    (void)state;
    char *output = NULL;
    pid_t pids[8];
    hold_after("killed", 21);
    program p = startf(START, "killed", "");
    wait_for_step("killed", 21);
    shell_of_run("killed",
                 "cp -p $r/tokens.bin saved.bin && cp another/tokens.bin x && mv x $r/tokens.bin");
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[1], SIGKILL);
    let_go("killed");
    assert_int_equal(program_end(&p, &output), 1);
    assert_non_null(strstr(output, "tokens.bin: "));
    free(output);
    resumes("killed", "");
}

/* ---- between the parts of a run ---- */

static void copy_half(const char *run, const char *damage) {
    shell_of_run(run, "cp -r undisturbed $r && rm -r $r/checkpoints/step-60");
    shell_of_run(run, damage);
}

static void test_other_tokenizer(void **state) {
    (void)state;
    copy_half("tokenizer", "cp another/tokenizer.json $r");
    train("tokenizer", " --resume", 1, "tokenizer.json: is not the one that this run was trained");
    copy_half("record", "echo {} > $r/corpus.json");
    train("record", " --resume", 1,
          "corpus.json: is not the record of a corpus, version 1; remove it: --resume takes the "
          "copy");
}

/* Removes the records, which runs of older versions do not have. */
static const char OLD[] =
    "rm $r/corpus.json $r/checkpoints/*/corpus.json && "
    "for m in $r/checkpoints/step-*/manifest.json; do "
    "python3 -c 'import json, sys; p = sys.argv[1]; m = json.load(open(p)); "
    "m[\"files\"] = [f for f in m[\"files\"] if f[\"name\"] != \"corpus.json\"]; "
    "json.dump(m, open(p, \"w\"))' $m; done";

/* A run whose tokens were not recorded continues, and has a record from then on. */
static void test_old_run(void **state) {
    (void)state;
    copy_half("old", OLD);
    train("old", " --resume", 0, "continuing from");
    has_undisturbed_bits("old");
    assert_true(file_exists("old/corpus.json"));
    shell_of_run("old", "rm -r $r/checkpoints/step-60 && cp another/tokens.bin $r");
    train("old", " --resume", 1, "tokens.bin: is not the one that this run was trained with");
}

/* ---- deleted files ---- */

static void restored(const char *run, const char *damage, const char *more, const char *says) {
    char args[300];
    copy_half(run, damage);
    snprintf(args, sizeof args, "%s --resume", more);
    train(run, args, 0, says);
    has_undisturbed_bits(run);
}

static void test_deleted(void **state) {
    (void)state;
    char more[256];
    restored("no-tokenizer", "rm $r/tokenizer.json", "",
             "tokenizer.json: was missing; restored from ");
    restored("no-tokens", "rm $r/tokens.bin", "",
             "tokens.bin: was missing; made again from LICENSE");
    restored("neither", "rm $r/tokens.bin $r/*.json", "",
             "corpus.json: was missing; restored from");
    snprintf(more, sizeof more, " --set data.path=%s/moved.txt", folder);
    shell_of_run("moved", "cp $OLDPWD/LICENSE moved.txt");
    restored("moved", "rm $r/tokens.bin", more, "made again from");
    copy_half("old-deleted", OLD);
    shell_of_run("old-deleted", "rm $r/tokens.bin");
    train("old-deleted", " --resume", 0, "tokens.bin: was missing; made again from LICENSE");
    has_undisturbed_bits("old-deleted");
}

/* The tokens are not made again from another text; the messages name the right source. */
static void test_deleted_and_text_changed(void **state) {
    (void)state;
    static const char how[] = "put one of them back, or name the text with --set data.path=FILE";
    char more[256];
    snprintf(more, sizeof more, " --set data.path=%s/other.txt --resume", folder);
    copy_half("changed", "rm $r/tokens.bin");
    train("changed", more, 1, "is not the text that it was made from");
    train("changed", more, 1, how);
    train("changed", " --set data.path=/nowhere --resume", 1, "/nowhere: can't be opened");
    train("changed", " --set data.path=/nowhere --resume", 1, how);
    expect("eval @/changed", 1, "tokens.bin: is missing; resuming the run (--resume) restores");
    expect("generate @/changed --tokens 3", 0, NULL);
    train("changed", " --resume", 0, "made again from LICENSE");
    has_undisturbed_bits("changed");
    copy_half("old-changed", OLD);
    shell_of_run("old-changed", "rm $r/tokens.bin");
    train("old-changed", more, 1, "is not the text that it was made from");
    train("old-changed", " --resume", 0, "made again from LICENSE");
    has_undisturbed_bits("old-changed");
}

/* Worker 0 is lost, too: its replacement makes the tokens again. */
static void test_deleted_and_killed(void **state) {
    (void)state;
    char *output = NULL;
    pid_t pids[8];
    hold_after("gone", 21);
    program p = startf(START, "gone", "");
    wait_for_step("gone", 21);
    shell_of_run("gone", "rm $r/tokens.bin $r/tokenizer.json");
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[0], SIGKILL);
    let_go("gone");
    int code = program_end(&p, &output);
    if (code != 0) fail_msg("exit code %d:\n%s", code, output);
    free(output);
    has_undisturbed_bits("gone");
    assert_true(file_exists("gone/tokens.bin") && file_exists("gone/tokenizer.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_other_ids),
        cmocka_unit_test(test_exchanged),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_validation_part),
        cmocka_unit_test(test_killed_and_exchanged),
        cmocka_unit_test(test_other_tokenizer),
        cmocka_unit_test(test_old_run),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_deleted_and_text_changed),
        cmocka_unit_test(test_deleted_and_killed),
    };
    return cmocka_run_group_tests(tests, make_runs, folder_remove);
}
