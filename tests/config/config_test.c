/* config_test.c - reading, refusing, writing and comparing configs. */
#include "config/config.h"

#include <unistd.h>

#include "base/intern.h"
#include "config/differences.h"
#include "config/key.h"
#include "config/key_help.h"
#include "config/relations.h"
#include "config/write_config.h"
#include "test.h"

static const char PATH[] = "data.path=LICENSE";

/* Reads `text` from a temporary file. */
static ls_status read_text(const char *text, ls_config *c, ls_error *e) {
    char path[] = "/tmp/lockstep-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_status s = ls_config_read(path, c, e);
    unlink(path);
    return s;
}

static ls_config defaults(void) {
    ls_config c;
    ls_error e;
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, PATH, &e), e);
    return c;
}

static void test_read(void **state) {
    (void)state;
    ls_config c;
    ls_error e;
    assert_ls_ok(
        read_text("train:\n  steps: 7 # seven\nparallel: {reduce: fastest, bucket_mb: 1.5}\n"
                  "data:\n  path: \"a \\\"b\\\" \\u00e9\"\n",
                  &c, &e),
        e);
    assert_int_equal(c.train.steps, 7);
    assert_int_equal(c.parallel.reduce, LS_REDUCE_FASTEST);
    assert_true(c.parallel.bucket_mb == 1.5);
    assert_string_equal(c.data.path, "a \"b\" é");
    assert_int_equal(c.train.virtual_workers, 8); /* a default */
    assert_ls_ok(read_text("", &c, &e), e);
    assert_int_equal(c.train.steps, 1000);
}

/* Keys that are on or off. */
static void test_switches(void **state) {
    (void)state;
    ls_config c = defaults();
    ls_error e;
    assert_ls_ok(read_text("model: {qk_norm: true}\noptim: {nesterov: on}\n", &c, &e), e);
    assert_true(c.model.qk_norm == 1 && c.optim.nesterov == 1);
    assert_ls_ok(ls_config_set(&c, "model.qk_norm=false", &e), e);
    assert_int_equal(c.model.qk_norm, 0);
    assert_ls_ok(ls_config_set(&c, "parallel.overlap=true", &e), e);
    assert_int_equal(c.parallel.overlap, LS_OVERLAP_ON);
}

static void assert_same_value(const ls_config *a, const ls_config *b, const ls_config_key *k) {
    const void *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
    const ls_config_span *p = x, *q = y;
    if (ls_config_key_is_text(k))
        assert_string_equal(ls_config_key_text(a, k), ls_config_key_text(b, k));
    else if (k->type == LS_KEY_SPAN)
        assert_true(p->n == q->n && p->unit == q->unit);
    else if (k->type == LS_KEY_REAL)
        assert_memory_equal(x, y, sizeof(double));
    else
        assert_int_equal(ls_config_key_whole(a, k), ls_config_key_whole(b, k));
}

/* What ls_config_write() writes is read back as the same config, to the last bit of each real. */
static void test_round_trip(void **state) {
    (void)state;
    ls_config c = defaults(), again;
    ls_error e;
    assert_ls_ok(ls_config_set(&c, "optim.lr=0.0012345678901234567", &e), e);
    assert_ls_ok(ls_config_set(&c, "optim.eps=3.3333333333333331e-17", &e), e);
    assert_ls_ok(ls_config_set(&c, "train.seed=9223372036854775807", &e), e);
    assert_ls_ok(ls_config_set(&c, "data.path=a: \"b\" \\c #d \ttab\nline", &e), e);
    assert_ls_ok(ls_config_set(&c, "parallel.transport=thread", &e), e);
    ls_buf text = {0};
    ls_config_write(&c, &text);
    assert_ls_ok(read_text(text.data, &again, &e), e);
    for (int i = 0; i < LS_NCONFIG_KEYS; i++) assert_same_value(&c, &again, &ls_config_keys[i]);
    ls_buf_free(&text);
}

/* A list of files, in YAML and on the command line, and back. */
static void test_list(void **state) {
    (void)state;
    ls_config c, again;
    ls_error e = {0};
    assert_ls_ok(read_text("data:\n  path: [a.txt, 'b *.txt']\n", &c, &e), e);
    assert_string_equal(c.data.path, "a.txt\nb *.txt");
    ls_buf text = {0};
    ls_config_write(&c, &text);
    assert_non_null(strstr(text.data, "path: [\"a.txt\", \"b *.txt\"]\n"));
    assert_ls_ok(read_text(text.data, &again, &e), e);
    assert_string_equal(again.data.path, c.data.path);
    ls_buf_free(&text);
    assert_ls_ok(ls_config_set(&c, "data.path=[x, y]", &e), e);
    assert_string_equal(c.data.path, "x\ny");
    assert_ls_ok(ls_config_set(&c, "data.path=x, y", &e), e);
    assert_string_equal(c.data.path, "x, y");
    assert_ls_fails(ls_config_set(&c, "data.path=[x", &e), LS_EINVAL, "--set", e);
    assert_ls_fails(read_text("train:\n  steps: [1, 2]\n", &c, &e), LS_EINVAL,
                    "'train.steps' is a list; a single value is expected", e);
}

/* The check of a config with one or two settings; set2 may be NULL. */
static ls_status set_and_check(const char *set1, const char *set2, ls_error *e) {
    ls_config c = defaults();
    c.data.path = "a.txt";
    LS_TRY(ls_config_set(&c, set1, e));
    if (set2) LS_TRY(ls_config_set(&c, set2, e));
    return ls_config_check(&c, "x", e);
}

/* NULL: the settings are good. */
static void expect_message(const char *set1, const char *set2, const char *says) {
    ls_error e = {0};
    if (says)
        assert_ls_fails(set_and_check(set1, set2, &e), LS_EINVAL, says, e);
    else
        assert_ls_ok(set_and_check(set1, set2, &e), e);
}

/* optim.groups, in forms that are refused with one clear line, and in some that are not. */
static void test_groups(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[{match: a}]", NULL},
        {"[{match: \"h.*\", lr_scale: 2}] # a comment", NULL},
        {"", NULL},
        {"[]", NULL},
        {"[{}]", "'optim.groups' has an empty map"},
        {"[{match: a}, {}]", "group 2 of optim.groups: has no `match`"},
        {"[{match: \"\"}]", "group 1 of optim.groups: match is empty"},
        {"[{match: a, match: b}]", "group 1 of optim.groups: 'match' occurs twice"},
        {"[{match: a, lr_scale: 2, lr_scale: 2}]", "'lr_scale' occurs twice"},
        {"[{match: [a]}]", "has a list in a map of a list"},
        {"[[{match: a}]]", "has a list in a list"},
        {"[{match: {a: b}}]", "has a map in a map of a list"},
        {"[a]", "'optim.groups' is a list of maps: [{key: value, ...}, ...]"},
        {"{match: a}", "'optim.groups' is a list of maps"},
        {"a", "'optim.groups' is a list of maps"},
        {"[{match: a}]\ntrain.steps: 3", "optim.groups: other keys follow the list"},
        {"[{match: \"a\\tb\"}]", "has a tab or a line end in a map of a list"},
        {"[{match: &a b}]", "anchors are not supported"},
        {"[{match: a, lr: 2}]", "'lr' is not a key of a group; these are match, lr_scale"},
        {"[{match: a, optimizer: sgd, nesterov: on}]",
         "group 1 of optim.groups: optim.nesterov acts only with optim.optimizer: sgd and "
         "optim.momentum > 0"},
        {"[{match: a}, {match: b, momentum: 0.5}]",
         "group 2 of optim.groups: optim.momentum acts only with optim.optimizer: sgd, lars, muon; "
         "the group has optim.optimizer: adamw"},
        {"[{match: a, lr_scale: 1e999}]", "'1e999' is not a number from 0 to 1000"},
        {"[{match: a", "is not valid YAML"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *set = ls_format("optim.groups=%s", cases[i][0]);
        expect_message(set, NULL, cases[i][1]);
        free(set);
    }
}

/* 15 groups, of patterns of up to 127 bytes. */
static void test_many_groups(void **state) {
    (void)state;
    for (int n = 15; n <= 16; n++) {
        ls_buf set = {0};
        ls_buf_printf(&set, "optim.groups=[");
        for (int i = 0; i < n; i++) ls_buf_printf(&set, "%s{match: a%d}", i ? ", " : "", i);
        ls_buf_printf(&set, "]");
        expect_message(set.data, NULL, n == 16 ? "at most 15 groups" : NULL);
        ls_buf_free(&set);
    }
    for (int n = 127; n <= 128; n++) {
        char *set = ls_format("optim.groups=[{match: %0*d}]", n, 7);
        expect_message(set, NULL, n == 128 ? "is longer than 127 bytes" : NULL);
        free(set);
    }
}

/* A momentum that no parameter has is refused. */
static void test_momentum(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"optim.momentum=0.9",
         "optim.groups=", "optim.momentum acts only with optim.optimizer: sgd"},
        {"optim.nesterov=on", "optim.groups=", "optim.nesterov acts only with"},
        {"optim.scale_lr=sqrt",
         "optim.groups=", "optim.scale_lr acts only with optim.scale_batch > 0"},
        {"optim.scale_batch=64",
         "optim.groups=", "optim.scale_batch acts only with optim.scale_lr: linear, sqrt"},
        {"optim.scale_batch=64", "optim.scale_lr=linear", NULL},
        {"optim.optimizer=schedule-free", "optim.groups=", "set optim.schedule: constant"},
        {"optim.nesterov=on", "optim.optimizer=sgd", "this config has optim.momentum: 0"},
        {"optim.momentum=0.9", "optim.optimizer=sgd", NULL},
        {"optim.momentum=0.9", "optim.groups=[{match: a, optimizer: sgd}]", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_message(cases[i][0], cases[i][1], cases[i][2]);
}

/* Text that YAML would change or refuse if it were not escaped: line breaks and control codes of
 * Unicode. */
static void test_odd_text(void **state) {
    (void)state;
    static const char *const texts[] = {
        "\x01\x1f\x7f",
        "\xc2\x85\xc2\x80\xc2\xa0",
        "\xe2\x80\xa8\xe2\x80\xa9",
        "\xef\xbb\xbfmark",
        "\xef\xbf\xbe\xef\xbf\xbf",
        "\xf0\x9f\x98\x80",
        " spaces at both ends ",
        "\r\n\t",
        "~",
        "\xf4\x8f\xbf\xbe \\x41 %",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_config c = defaults(), again;
        ls_error e;
        ls_buf text = {0};
        c.data.path = ls_intern(texts[i]);
        ls_config_write(&c, &text);
        assert_ls_ok(read_text(text.data, &again, &e), e);
        assert_string_equal(again.data.path, texts[i]);
        ls_buf_free(&text);
    }
}

/* Errors in a file are reported with the line. */
static void test_lines(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"\ntrain:\n  setps: 5\n", ":3: unknown key 'train.setps'; did you mean 'train.steps'?"},
        {"train:\n  steps: ten\n", ":2: train.steps: 'ten' is not a whole number; expected 1 to "
                                   "1000000000"},
        {"train:\n  seed: -1\n", ":2: train.seed: -1 is out of range; expected 0 to "
                                 "9223372036854775807"},
        {"train:\nmodel:\n  width: 8\n", ":1: 'train' is a group, not a key"},
        {"model: 5\n",
         "the groups are model, data, train, lora, dpo, optim, parallel, sync, compress, "
         "survival, checkpoint, log"},
        {"log:\n  every: 5\n  every: 5\n", ":3: 'log.every' occurs twice; first in line 2"},
        {"optim:\n  lr: .nan\n", ":2: optim.lr: '.nan' is not a number; expected 0 to 1000"},
        {"parallel:\n  overlap: yes\n", ":2: parallel.overlap: 'yes' is not one of auto, on, off"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_config c;
        ls_error e;
        assert_ls_fails(read_text(cases[i][0], &c, &e), LS_EINVAL, cases[i][1], e);
    }
}

/* A small rate lowers the usual one at the end, and is refused with one that is written. */
static void test_min_lr(void **state) {
    (void)state;
    char path[] = "/tmp/lockstep-config-XXXXXX";
    static const char text[] = "data: {path: LICENSE}\noptim: {lr: 2e-5}\n";
    static const char *const larger[] = {"optim.lr=1e-3"}, *const written[] = {"optim.min_lr=1e-4"};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(ls_config_load(path, NULL, 0, &c, &e), e);
    assert_true(c.optim.min_lr == 2e-6);
    assert_ls_ok(ls_config_load(path, larger, 1, &c, &e), e);
    assert_true(c.optim.min_lr == 1e-4);
    assert_ls_fails(ls_config_load(path, written, 1, &c, &e), LS_EINVAL,
                    "optim.min_lr 0.0001 is more than optim.lr 2e-05; set optim.min_lr=0", e);
    unlink(path);
}

/* Runs of older versions have keys that can't act: they load, and what is written now is
 * checked. */
static void test_older(void **state) {
    (void)state;
    static const char text[] = "data: {path: LICENSE}\nsync: {every: 50}\nmodel: {patch: 2}\n";
    static const char *const sets[] = {"sync.delay=3"};
    char path[] = "/tmp/lockstep-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(ls_config_load_saved(path, NULL, 0, &c, &e), e);
    assert_int_equal(c.model.patch, 2);
    assert_ls_fails(ls_config_load_saved(path, sets, 1, &c, &e), LS_EINVAL, "sync.delay acts", e);
    assert_ls_fails(ls_config_load(path, NULL, 0, &c, &e), LS_EINVAL, "model.patch acts", e);
    /* cut short: what is left may be a config, too */
    assert_int_equal(truncate(path, (off_t)(strlen(text) - 3)), 0);
    assert_ls_fails(ls_config_load_saved(path, NULL, 0, &c, &e), LS_EINVAL, "cut short", e);
    assert_int_equal(truncate(path, 0), 0);
    assert_ls_fails(ls_config_load_saved(path, NULL, 0, &c, &e), LS_EINVAL, "is empty or", e);
    unlink(path);
}

/* The reference names every key that is written. */
static void test_help(void **state) {
    (void)state;
    ls_config c = defaults();
    ls_buf help = {0}, text = {0};
    ls_error e = {0};
    assert_ls_ok(ls_config_help(NULL, &help, &e), e);
    ls_config_write(&c, &text);
    char group[32] = "", word[64], key[128];
    int n = 0, used = 0;
    for (const char *s = text.data; sscanf(s, " %63[a-z_0-9.]:%n", word, &used) == 1;) {
        bool in_group = *s == ' ';
        if (in_group) snprintf(key, sizeof key, "  %s.%s = ", group, word);
        if (in_group) assert_non_null(strstr(help.data, key));
        if (!in_group) snprintf(group, sizeof group, "%.31s", word);
        n += in_group;
        s = strchr(s, '\n') + 1;
    }
    /* of model.layers, train.batch and data.missing one of two is set; train.micro_batch is open */
    assert_int_equal(n, LS_NCONFIG_KEYS - 4);
    assert_non_null(strstr(help.data, "train.seed = 1 (0 to 9223372036854775807)"));
    ls_buf_free(&help);
    ls_buf_free(&text);
}

static void set_fails(const char *assignment, const char *says) {
    ls_config c = defaults();
    ls_error e;
    assert_ls_fails(ls_config_set(&c, assignment, &e), LS_EINVAL, says, e);
}

static void test_set(void **state) {
    (void)state;
    set_fails("train.step=5", "did you mean 'train.steps'?");
    set_fails("steps=5", "did you mean 'train.steps'?");
    set_fails("=5", "--set: unknown key");
    set_fails("optim=5", "--set: 'optim' is a group, not a key");
    set_fails("train.steps=1_000", "is not a whole number");
    set_fails("train.steps=+", "is not a whole number");
    set_fails("train.steps", "--set: 'train.steps' has no '='");
    set_fails("train.seed=9223372036854775808", "is out of range");
    set_fails("optim.lr=0x1p-3", "is not a number");
    set_fails("optim.lr=1e-3x", "is not a number");
    set_fails("optim.lr=1e", "is not a number");
    set_fails("optim.lr=", "is not a number");
    set_fails("data.path=caf\xe9", "is not UTF-8");
    set_fails("data.path=\xc0\xaf", "is not UTF-8");         /* overlong */
    set_fails("data.path=\xed\xa0\x80", "is not UTF-8");     /* surrogate */
    set_fails("data.path=\xf4\x90\x80\x80", "is not UTF-8"); /* above U+10FFFF */
    set_fails("data.path=a\xe2\x82", "is not UTF-8");        /* cut off */
    set_fails("train.steps=", "is not a whole number");
    set_fails("train.steps= 5", "is not a whole number");
    set_fails("train.steps=5.0", "is not a whole number");
    set_fails("train.steps=0x10", "is not a whole number");
    set_fails("train.steps=99999999999999999999", "is out of range");
    set_fails("train.steps=-1", "is out of range");
    set_fails("optim.lr=inf", "is not a number");
    set_fails("optim.lr=1e999", "is out of range");
    set_fails("optim.lr=-1", "is out of range");
    set_fails("optim.beta1=1", "is out of range");
    set_fails("optim.eps=0", "is out of range");
    set_fails("model.vocab=1", "is out of range; expected 2");
    char longest[2 * LS_CONFIG_TEXT];
    memset(longest, 'a', sizeof longest - 1);
    longest[10 + LS_CONFIG_TEXT] = 0;
    ls_config c = defaults();
    ls_error e;
    memcpy(longest, "data.path=", 10);
    assert_ls_ok(ls_config_set(&c, longest, &e), e); /* a list may be longer */
    assert_string_equal(c.data.path, longest + 10);
    memcpy(longest, "model.from", 10);
    longest[10] = '=', longest[10 + LS_CONFIG_TEXT] = 'a';
    longest[11 + LS_CONFIG_TEXT] = 0;
    set_fails(longest, "model.from: is longer than 1023 bytes");
    longest[11 + LS_CONFIG_TEXT - 1] = 0; /* fits */
    assert_ls_ok(ls_config_set(&c, longest, &e), e);
    assert_string_equal(c.model.from, longest + 11);
}

static void check_fails(const char *assignment, const char *says) {
    ls_config c = defaults();
    ls_error e;
    assert_ls_ok(ls_config_set(&c, assignment, &e), e);
    assert_ls_fails(ls_config_check(&c, "here", &e), LS_EINVAL, says, e);
}

static void test_check(void **state) {
    (void)state;
    ls_config c = defaults();
    ls_error e;
    assert_ls_ok(ls_config_check(&c, "here", &e), e);
    check_fails("model.heads=3",
                "here: model.heads 3 does not divide model.width 256; choose heads "
                "among 1, 2, 4");
    check_fails("model.vocab=255", "a tokenizer for a text has at least 256 tokens");
    check_fails("train.batch=20", "a batch of 16 or 24 works");
    check_fails("train.batch=4", "a batch of 8 works");
    check_fails("train.micro_batch=3", "more than the samples of a virtual worker: 2");
    check_fails("data.path=", "data.path is missing");
    check_fails("optim.warmup=1001", "more than train.steps 1000");
    check_fails("optim.min_lr=1", "more than optim.lr");
}

static ls_status compatible(const char *assignment, char **note, ls_error *e) {
    ls_config was = defaults(), now = defaults();
    assert_ls_ok(ls_config_set(&now, assignment, e), *e);
    *note = NULL;
    return ls_config_compatible(&was, &now, note, e);
}

static void test_compatible(void **state) {
    (void)state;
    static const char *const fixed[] = {"model.layers=2",        "train.batch=32",
                                        "train.seed=2",          "optim.ema=0.5",
                                        "data.val_fraction=0.1", "train.virtual_workers=4"};
    static const char *const free_keys[] = {"train.micro_batch=2", "parallel.threads=2",
                                            "checkpoint.every=5",  "log.every=2",
                                            "train.eval_every=3",  "parallel.transport=thread"};
    static const char *const noted[] = {"train.steps=2000", "data.path=other",
                                        "parallel.reduce=fastest", "optim.lr=2e-3", "optim.clip=0"};
    char *note = NULL;
    ls_error e;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        assert_ls_fails(compatible(fixed[i], &note, &e), LS_EINVAL, "but the run began with", e);
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++) {
        assert_ls_ok(compatible(free_keys[i], &note, &e), e);
        assert_null(note);
    }
    for (size_t i = 0; i < sizeof noted / sizeof *noted; i++) {
        assert_ls_ok(compatible(noted[i], &note, &e), e);
        assert_non_null(note);
        free(note);
    }
}

/* A key with two forms has the one that was set last. */
static void test_two_forms(void **state) {
    (void)state;
    ls_config *c = LS_NEW(ls_config);
    ls_error e = {0};
    ls_config_defaults(c);
    assert_ls_ok(ls_config_set(c, "data.missing=drop", &e), e);
    assert_ls_ok(ls_config_set(c, "data.missing={age: mean}", &e), e);
    assert_int_equal(c->data.missing, LS_MISSING_REFUSE);
    assert_ls_ok(ls_config_set(c, "data.missing=mean", &e), e);
    assert_string_equal(c->data.missing_by.text, "");
    assert_int_equal(c->data.missing, LS_MISSING_MEAN);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_set),
        cmocka_unit_test(test_check),       cmocka_unit_test(test_compatible),
        cmocka_unit_test(test_odd_text),    cmocka_unit_test(test_lines),
        cmocka_unit_test(test_list),        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_many_groups), cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_help),        cmocka_unit_test(test_min_lr),
        cmocka_unit_test(test_older),       cmocka_unit_test(test_two_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
