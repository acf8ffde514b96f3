/* damaged_data_test.c - runs on samples of files with damaged records, which are refused, or left
 * out and counted (data.damaged: skip); and files that are truncated, overwritten, replaced or
 * removed while a run trains: it ends with a line that names the file, writes no checkpoint of
 * other data, and with the files restored continues to the same bits.
 */
/* ctest: slow seconds=20 */
#include "cli/program.h"

/* A run of an MLP on `path` of the sets that write_sets.py writes, with more settings. */
static void write_config(const char *name, const char *input, const char *path, int steps) {
    char text[512];
    int n = snprintf(text, sizeof text,
                     "model: {kind: mlp, hidden: [4], input: {%s}}\n"
                     "data: {path: %s/%s, val_fraction: 0.1}\n"
                     "train: {steps: %d, batch: 8, virtual_workers: 4, eval_every: 0}\n"
                     "optim: {warmup: 0}\n"
                     "checkpoint: {every: %d}\n",
                     input, folder, path, steps, steps / 2);
    write_file(name, text, (size_t)n);
}

static int make(void **state) {
    char line[128];
    if (folder_make(state)) return -1;
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s", folder);
    return system(line);
}

static void train(const char *run, const char *more, int code, const char *says) {
    expectf(code, says, "train @/c.yaml -o @/%s --set data.cache=@/cache %s", run, more);
}

static void remove_runs(void) { shell_of_run("", "rm -rf one three good cache"); }

/* ---- records that are damaged from the beginning ---- */

static const struct {
    const char *path, *input, *says;
    int n;            /* damaged records */
    const char *good; /* makes the same data without them, in `good` or good.csv; NULL: none */
} damaged[] = {
    {"bad.csv", "value: []", "bad.csv:42: column 1, 'id', has the text 'no'", 1,
     "sed /^no,/d bad.csv >good.csv"},
    {"bad.tfrecord", "floats: [2]", "bad.tfrecord: the record at byte 336 is damaged (its CRC-32C",
     1, NULL},
    {"badimages.tfrecord", "image: [2, 3, 3]",
     "badimages.tfrecord: the record at byte 688, 'image/encoded': not a JPEG or PNG image", 2,
     NULL},
    {"badphotos", "photo: {type: u8, dims: [2, 3, 3]}",
     "badphotos/shard.0.mds: sample 3: 'photo' is damaged", 1, NULL},
    {"bad.tar", "image: [2, 3, 3]", "bad.tar: member 0003.png at offset 12800: PNG image", 1, NULL},
};

/* However often a run opens the data, also in its workers, each of the first damaged records [n] is
 * logged once. */
static void assert_one_note(const char *more, int n) {
    char *output = output_of("train @/c.yaml -o @/noted -n 3 --set data.cache=@/cache %s", more);
    assert_int_equal(occurrences(output, "skipped: /"), n);
    free(output);
    shell_of_run("noted", "rm -r $r");
}

/* The same bits for one worker and three, and those of data without the damaged records. */
static void test_skipped(void **state) {
    (void)state;
    static const char skip[] = "--set data.damaged=skip ";
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        char left_out[64], three[64];
        remove_runs();
        write_config("c.yaml", damaged[i].input, damaged[i].path, 6);
        snprintf(left_out, sizeof left_out, "label i32 (%d damaged record%s left out), ",
                 damaged[i].n, damaged[i].n == 1 ? "" : "s");
        train("one", "-n 1", 1, damaged[i].says);
        assert_false(file_exists("one/checkpoints/step-3"));
        remove_runs();
        train("one", skip, 0, left_out);
        assert_one_note(skip, damaged[i].n);
        snprintf(three, sizeof three, "%s-n 3", skip);
        train("three", three, 0, NULL);
        same_hash("three", "one");
        if (!damaged[i].good) continue;
        shell_of_run("", damaged[i].good);
        train("good", "-n 2 --set data.path=@/good.csv", 0, NULL);
        same_hash("good", "one");
    }
}

/* An image is decoded when it is read, unless damage is left out: without it a run may end late. */
static void test_skipped_images(void **state) {
    (void)state;
    remove_runs();
    write_config("c.yaml", "image: [2, 3, 3]", "badtree", 20);
    train("one", "-n 1", 1,
          "badtree/bee/7.png: PNG image: the file ends early at byte 41; repair the file, or skip "
          "damaged records (--skip-damaged, data.damaged: skip)");
    remove_runs();
    train("one", "-n 2 --set data.damaged=skip", 0, "label i32 (1 damaged record left out)");
    assert_one_note("--set data.damaged=skip --set data.val_path=@/badtree", 1);
    static const char says[] = "skipped: /";
    char *output = NULL;
    static const char *const others[] = {"data @/badtree --skip-damaged",
                                         "eval @/one --set data.damaged=skip",
                                         "predict @/one @/badtree --set data.damaged=skip"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        output = output_of("%s", others[i]);
        assert_int_equal(occurrences(output, says), 1);
        free(output);
    }
    shell_of_run("", "cp -r badtree good && rm good/bee/7.png");
    train("three", "-n 3 --set data.path=@/good", 0, NULL);
    same_hash("three", "one");
}

/* A resumed run leaves out the same records, or refuses. */
static void test_resumed(void **state) {
    (void)state;
    remove_runs();
    write_config("c.yaml", "value: []", "bad.csv", 6);
    train("one", "-n 1 --set data.damaged=skip", 0, NULL);
    shell_of_run("three", "cp -r one $r && rm -r $r/checkpoints/step-6 $r/checkpoints/latest");
    train("three", "--resume --set data.damaged=refuse", 1, "bad.csv:42: column 1, 'id', has");
    shell_of_run("three", "cp bad.csv saved.csv && sed -i '4s/^2,/two,/' bad.csv");
    train("three", "--resume --set data.damaged=skip", 1,
          "bad.csv: is not the data that this run was trained with");
    shell_of_run("three", "mv saved.csv bad.csv");
    train("three", "--resume -n 3 --set data.damaged=skip", 0, "continuing from");
    same_hash("three", "one");
}

/* ---- files that change while a run trains ---- */

static const struct {
    const char *path, *input, *change, *says;
} changes[] = {
    {"data_batch_1.bin", "image: [32, 32, 3]",
     "printf xxxxxxxx | dd of=data_batch_1.bin bs=1 seek=5000 conv=notrunc status=none",
     "data_batch_1.bin: has changed since it was opened (then "},
    {"table.csv", "value: []", "truncate -s 0 table.csv",
     "table.csv: has changed since it was opened (then 1068 bytes, now 0); put the file back"},
    {"tree", "image: [2, 3, 3]", "cp tree/bee/1.png t && cp tree/bee/3.png tree/bee/1.png",
     "tree/bee/1.png: has changed since it was opened; put the file back"},
    {"lines.jsonl", "a: []", "sed -i 's/\"a\": 3/\"a\": 4/' lines.jsonl",
     "lines.jsonl: has changed since it was opened (then "},
    {"mdsphotos", "photo: {type: u8, dims: [2, 3, 3]}",
     "touch -r mdsphotos/shard.0.mds t && printf x | dd of=mdsphotos/shard.0.mds bs=1 seek=300 "
     "conv=notrunc status=none && "
     "touch -r t mdsphotos/shard.0.mds",
     "mdsphotos/shard.0.mds: has changed since it was opened (then "},
    {"all.tar", "image: [2, 3, 3]", "truncate -s 9000 all.tar", "all.tar: has changed since it"},
    {"all.tfrecord", "floats: [2]", "mv all.tfrecord elsewhere",
     "all.tfrecord: is no longer there"},
    {"tree", "image: [2, 3, 3]", "rm tree/bee/*.png", "tree/bee/"},
    {"table.csv.gz", "value: []", "printf x >>table.csv.gz", "table.csv.gz: has changed since it"},
};

static void test_changed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *output = NULL, command[256], name[64];
        remove_runs();
        write_config("c.yaml", changes[i].input, changes[i].path, 40);
        if (!runs_case((int)i, 2)) continue;
        int after = i % 4 < 2 ? 23 : 33, next = after < 30 ? 30 : 40;
        train("one", "-n 1", 0, NULL);
        hold_after("three", after);
        program p = program_start("train @/c.yaml -o @/three -n 2 --set data.cache=@/cache --set "
                                  "checkpoint.every=15",
                                  0);
        wait_for_file("three/metrics.jsonl");
        snprintf(command, sizeof command, "until grep -q '\"step\": %d' $m; do sleep 0.02; done",
                 after);
        shell_of_run("three", command);
        snprintf(command, sizeof command, "cp -r %s saved && %s", changes[i].path,
                 changes[i].change);
        shell_of_run("three", command);
        let_go("three");
        assert_int_equal(program_end(&p, &output), 1);
        assert_output_has(output, changes[i].says);
        free(output);
        snprintf(name, sizeof name, "three/checkpoints/step-%d", next);
        assert_false(file_exists(name));
        snprintf(command, sizeof command, "rm -rf %s && mv saved %s", changes[i].path,
                 changes[i].path);
        shell_of_run("three", command);
        train("three", "--resume -n 3", 0, "continuing from");
        same_hash("three", "one");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skipped), cmocka_unit_test(test_skipped_images),
        cmocka_unit_test(test_resumed), cmocka_unit_test(test_changed)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
