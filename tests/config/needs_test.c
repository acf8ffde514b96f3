/* needs_test.c - what is refused, what passes, and what a --set turns off. (terms_test.c checks the
 * table; tests/cli/keys_test.c trains with each key.) */
#include "config/needs.h"

#include <unistd.h>

#include "config/key_help.h"
#include "config/relations.h"
#include "config/write_config.h"
#include "test.h"

/* ---- what is refused, and what passes ---- */

static ls_status load(const char *text, const char *set, ls_config *c, ls_error *e) {
    char path[] = "/tmp/lockstep-needs-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_status s = ls_config_load(path, &set, set != NULL, c, e);
    unlink(path);
    return s;
}

#define DATA "data: {path: LICENSE}\n"

static void refused(const char *text, const char *set, const char *says) {
    ls_config c;
    ls_error e = {0};
    assert_ls_fails(load(text, set, &c, &e), LS_EINVAL, says, e);
    assert_null(strchr(e.msg, '\n'));
}

static void passes(const char *text) {
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(load(text, NULL, &c, &e), e);
}

/* A forgotten key, and a default that asks for something. */
static void test_refused(void **state) {
    (void)state;
    refused(DATA "model: {patch: 2}\n", NULL,
            "model.patch acts only with model.kind: vit; this config has model.kind: gpt2; set "
            "model.kind: vit, or leave the key out");
    refused(DATA, "model.head=own", "model.head acts only with model.kind: llama");
    refused(DATA "model: {kind: llama, rope: linear}\n", NULL,
            "this config has model.rope_factor: 1");
    refused(DATA "lora: {alpha: 8}\n", NULL, "this config has lora.rank: 0");
    refused(DATA "dpo: {beta: 0.1}\n", NULL, "dpo.beta acts only with train.loss: dpo");
    refused(DATA "optim: {decay_fraction: 0.2}\n", NULL, "acts only with optim.schedule: wsd");
    refused(DATA "data.packing: on\n", NULL, "data.packing acts only with data.format: chat");
    refused(DATA "data.packing: on\n", NULL, "; set data.format: chat, or leave the key out");
    refused(DATA, "optim.loss_scale=65536", "acts only with train.compute: f16");
    refused(DATA, "data.labels=x", "acts only with model.kind: other than gpt2, llama");
    refused("model: {from: x, patch: 2}\n" DATA, NULL, "has the model.kind of model.from");
    passes("model: {from: x, window: 8}\n" DATA); /* the files decide */
    passes("model: {from: x, dropout: 0.1}\n" DATA);
}

static void test_passes(void **state) {
    (void)state;
    passes(DATA "model: {dropout: 0, window: 0, qk_norm: off, rope: default, hidden: []}\n");
    passes(DATA "lora: {rank: 0}\ndata.packing: off\nparallel.mesh.pipe: 1\n");
    passes(DATA "optim: {optimizer: sgd, momentum: 0.9, nesterov: on}\n");
    passes(DATA "optim: {momentum: 0.9, groups: [{match: a, optimizer: sgd}]}\n");
    refused(DATA "optim: {momentum: 0.9, groups: [{match: a, optimizer: sgd, momentum: 0.1}]}\n",
            NULL, "optim.momentum acts only with");
}

/* A config that has all keys may be used again, and changed. */
static void test_whole(void **state) {
    (void)state;
    ls_config c;
    ls_error e = {0};
    ls_buf text = {0};
    assert_ls_ok(load(DATA, NULL, &c, &e), e);
    ls_config_write(&c, &text);
    passes(text.data);
    text.len = 0;
    c.model.patch = 2;
    ls_config_write(&c, &text);
    assert_ls_ok(load(text.data, NULL, &c, &e), e); /* which is logged */
    assert_int_equal(c.model.patch, 4);
    refused(text.data, "model.patch=2", "model.patch acts only with");
    ls_buf_free(&text);
}

/* A key of the file that a --set turns off has its default; that of a --set is refused. */
static void test_turned_off(void **state) {
    (void)state;
    static const char text[] =
        DATA "optim: {min_lr: 0.0005, ema: 0.9}\ntrain: {eval_weights: ema}\n";
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(load(text, "optim.schedule=constant", &c, &e), e);
    assert_true(c.optim.min_lr == 1e-4 && c.optim.ema == 0.9);
    assert_ls_ok(load(text, "sync.mode=local", &c, &e), e); /* one needs the other */
    assert_true(c.optim.min_lr == 0.0005 && c.optim.ema == 0 && c.train.eval_weights == 0);
    refused(DATA "optim: {schedule: constant, min_lr: 0.0005}\n", NULL, "optim.min_lr acts only");
    assert_ls_ok(load(text, "train.seed=3", &c, &e), e);
    ls_config_settle(&c); /* as a search does */
    assert_ls_ok(ls_config_set(&c, "optim.schedule=step", &e), e);
    assert_ls_ok(ls_config_set(&c, "optim.step_every=7", &e), e);
    ls_buf notes = {0};
    ls_config_drop_idle(&c, &notes);
    assert_ls_ok(ls_config_check(&c, "trial", &e), e);
    assert_string_equal(notes.data,
                        "optim.min_lr acts only with optim.schedule: cosine, linear, wsd; this "
                        "config has optim.schedule: step\n");
    ls_buf_free(&notes);
}

/* A number can be set over a list. */
static void test_layers(void **state) {
    (void)state;
    refused("model: {kind: layers, layers: [flatten, linear: 4]}\n" DATA, "model.layers=3",
            "model.layers is no list");
}

static void test_help(void **state) {
    (void)state;
    ls_buf help = {0};
    ls_error e = {0};
    assert_ls_ok(ls_config_help("model.dropout", &help, &e), e);
    assert_non_null(strstr(help.data, "Acts only with model.kind: gpt2, llama, mlp, cnn, vit."));
    assert_null(strstr(help.data, "model.patch"));
    ls_buf_free(&help);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_passes),
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_turned_off),
        cmocka_unit_test(test_layers),  cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
