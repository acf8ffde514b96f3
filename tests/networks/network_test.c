/* network_test.c - models from configs: what they are made of, what the data decide, what is
 * refused, with file and line. */
#include "networks/network.h"

#include <stdlib.h>

#include "base/file.h"
#include "config/differences.h"
#include "config/relations.h"
#include "config/write_config.h"
#include "folder.h"
#include "test.h"

static ls_status load(const char *text, ls_config *c, ls_error *e) {
    char *path = ls_format("%s/a.yaml", folder), *all = ls_format("data:\n  path: x\n%s", text);
    ls_status s = ls_file_replace(path, all, strlen(all), e);
    if (s == LS_OK) s = ls_config_load(path, NULL, 0, c, e);
    free(all);
    free(path);
    return s;
}

static void check_names(const ls_model *m, const char *const *names) {
    int n = 0;
    for (; names[n]; n++) {
        assert_true(n < m->nparams);
        assert_string_equal(m->params[n].name, names[n]);
    }
    assert_int_equal(m->nparams, n);
}

static void test_list(void **state) {
    (void)state;
    static const char text[] = "model:\n"
                               "  kind: layers\n"
                               "  input: {image: [4, 4, 1]}\n"
                               "  classes: 3\n"
                               "  layers:\n"
                               "    - flatten\n"
                               "    - linear: 16\n"
                               "    - repeat:\n"
                               "        times: 2\n"
                               "        name: block\n"
                               "        layers:\n"
                               "          - residual: [gelu, linear: {out: 16, name: fc}]\n"
                               "    - linear: {out: 3, name: head}\n";
    static ls_config c, again;
    ls_model m;
    ls_error e = {0};
    assert_ls_ok(load(text, &c, &e), e);
    assert_false(ls_network_is_open(&c));
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    check_names(&m, (const char *const[]){"linear.weight", "linear.bias", "block.0.fc.weight",
                                          "block.0.fc.bias", "block.1.fc.weight", "block.1.fc.bias",
                                          "head.weight", "head.bias", NULL});
    assert_string_equal(m.inputs[0].name, "image");
    assert_int_equal(m.inputs[0].type, LS_U8);
    assert_string_equal(m.inputs[1].name, "label");
    assert_int_equal(m.classes[1], 3);
    ls_model_free(&m);

    /* The config that a run writes is the same one. */
    ls_buf written = {0};
    char *note = NULL;
    ls_config_write(&c, &written);
    char *path = ls_format("%s/config.yaml", folder);
    assert_ls_ok(ls_file_replace(path, written.data, written.len, &e), e);
    assert_ls_ok(ls_config_load(path, NULL, 0, &again, &e), e);
    assert_ls_ok(ls_config_compatible(&c, &again, &note, &e), e);
    assert_null(note);
    assert_null(strstr(written.data, "layers: 6")); /* the key's other meaning */
    assert_ls_ok(ls_network_create(&again, &m, &e), e);
    assert_int_equal(m.nparams, 8);
    ls_model_free(&m);
    assert_ls_ok(ls_config_set(&again, "model.layers=[flatten, linear: 3]", &e), e);
    assert_ls_fails(ls_config_compatible(&c, &again, &note, &e), LS_EINVAL, "model.layers is", e);
    free(path);
    ls_buf_free(&written);
}

/* Every layer that a list can name, with all of its options somewhere. */
static void test_all_layers(void **state) {
    (void)state;
    static const char text[] =
        "model:\n"
        "  kind: layers\n"
        "  input: {image: [8, 8, 3]}\n"
        "  classes: 3\n"
        "  layers:\n"
        "    - normalize: {mean: [0.5, 0.5, 0.4], deviation: [0.2, 0.3, 0.2]}\n"
        "    - conv2d: {channels: 8, kernel: 3, stride: 1, pad: 1, groups: 1, no_bias: true}\n"
        "    - group_norm: {groups: 2, eps: 0.001, relu: true}\n"
        "    - conv2d: {channels: 8, kernel: 3, kernel_w: 1, groups: 8, pad: -1}\n"
        "    - batch_norm: {momentum: 0.01, eps: 0.001, relu: true}\n"
        "    - max_pool: {kernel: 3, kernel_w: 2, stride: 1, pad: 1}\n"
        "    - average_pool: {kernel: 2, count_pad: true}\n"
        "    - conv2d_transposed: {channels: 4, kernel: 2, stride: 2}\n"
        "    - silu\n"
        "    - patches: 2\n"
        "    - layer_norm\n"
        "    - rms_norm: {eps: 0.001}\n"
        "    - scale: 0.5\n"
        "    - linear: {out: 6, no_bias: true}\n"
        "    - tanh\n"
        "    - mean: 0\n"
        "    - dropout: 0.25\n"
        "    - sigmoid\n"
        "    - affine: {scale: 2, shift: -1}\n"
        "    - residual: [linear: 6, gelu, linear: 6]\n"
        "    - relu\n"
        "    - linear: 3\n"
        "    - softmax\n";
    static ls_config c;
    ls_model m;
    ls_error e = {0};
    assert_ls_ok(load(text, &c, &e), e);
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    assert_int_equal(m.nlayers, 27); /* with the sum, and the loss */
    ls_model_free(&m);
}

/* How many layers and parameters the usual networks have. */
static void test_usual(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        int nlayers;
        size_t count;
    } cases[] = {
        {"kind: mlp\n  hidden: [5, 4]\n  dropout: 0.1", 9, 364},
        {"kind: cnn", 13, 65379},
        {"kind: cnn\n  norm: batch", 13, 65379 + 2 * 192},
        {"kind: resnet\n  channels: [4, 8]\n  blocks: 2", 28, 2807},
        {"kind: resnet\n  channels: [4, 8]\n  blocks: 2\n  norm: batch", 28, 2807 + 2 * 60},
        {"kind: vit\n  width: 8\n  heads: 2\n  layers: 2", 29, 1955},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ls_config c;
        ls_model m;
        ls_error e = {0};
        char *text =
            ls_format("model:\n  input: {image: [8, 8, 1]}\n  classes: 3\n  %s\n", cases[i].keys);
        assert_ls_ok(load(text, &c, &e), e);
        assert_ls_ok(ls_network_create(&c, &m, &e), e);
        assert_int_equal(m.nlayers, cases[i].nlayers);
        assert_int_equal(m.count, cases[i].count);
        ls_model_free(&m);
        free(text);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char head[] =
        "model:\n  kind: layers\n  input: {image: [4, 4, 1]}\n  classes: 3\n";
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"  layers:\n    - flatten\n    - linaer: 3\n",
         "a.yaml:9: there is no layer 'linaer'; did you mean 'linear'?"},
        {"  layers:\n    - lstm: 3\n", "a.yaml:8: there is no layer 'lstm'; the layers are add, "},
        {"  layers:\n    - lstm: 3\n", ", softmax, tanh, residual, repeat"},
        {"  layers:\n    - linear: {outs: 3}\n",
         "a.yaml:8: linear has no option 'outs'; its options are name, of, out"},
        {"  layers:\n    - linear: {out: 3,\n               name: x, out: 4}\n",
         "'out' occurs twice"},
        {"  layers:\n    - linear:\n        out: a lot\n",
         "a.yaml:9: option 'out': 'a lot' is no whole number"},
        {"  layers:\n    - linear: 2.5\n", "a.yaml:8: option 'out': '2.5' is no whole number"},
        {"  layers:\n    - linear: 0\n", "option 'out': 0 is out of range; expected 1 to"},
        {"  layers:\n    - linear: [1]\n", "linear: options are a map"},
        {"  layers:\n    - linear: 3\n", "the last layer has 48 numbers; the loss needs 3"},
        {"  layers:\n    - residual: [linear: 2]\n",
         "a.yaml:8: add 'add': the inputs have other shapes: [4, 4, 1] and [4, 4, 2]"},
        {"  layers:\n    - residual: {layer: []}\n", "residual: a list of layers, or {layers"},
        {"  layers:\n    - repeat: {times: 0, layers: []}\n", "a.yaml:8: repeat: {times: N"},
        {"  layers:\n    - [flatten]\n", "a layer is 'NAME' or 'NAME: {option: value, ...}'"},
        {"  layers: {flatten: 1}\n", "model.layers: a list of layers is expected"},
        {"  layers: [flatten, linear: 3]\n  loss: nothing\n",
         "a.yaml:8: model.loss: there is no 'nothing'; choose among binary_cross_entropy, "},
        {"  layers: [flatten, linear: 3]\n  loss: {cross_entropy: {smooth: 1}}\n",
         "cross_entropy has no option 'smooth'"},
        {"  layers: [flatten, linear: 3]\n  loss: [[cross_entropy]]\n",
         "a.yaml:8: model.loss is KIND"},
        {"  layers: [flatten, linear: 3]\n  norm: batch\n",
         "model.norm acts only with model.kind: cnn, resnet; this config has model.kind: "},
        {"  loss: cross_entropy\n", "model.kind is layers, and model.layers is no list of layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ls_config c;
        ls_model m;
        ls_error e = {0};
        char *text = ls_format("%s%s", head, cases[i].text);
        ls_status s = load(text, &c, &e);
        if (s == LS_OK) s = ls_network_create(&c, &m, &e);
        assert_int_equal(s, LS_EINVAL);
        if (!strstr(e.msg, cases[i].says)) fail_msg("case %zu: %s", i, e.msg);
        free(text);
    }
}

static void test_bad_input(void **state) {
    (void)state;
    static const char *const inputs[] = {
        "[1]", "{image: 3}",      "{image: [0]}", "{a: {dims: [1]}}", "{a: {type: f64, dims: [1]}}",
        "{}",  "{a: [1,1,1,1,1]}"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        static ls_config c;
        ls_model m;
        ls_error e = {0};
        char *text = ls_format("model:\n  kind: mlp\n  classes: 2\n  input: %s\n", inputs[i]);
        assert_ls_ok(load(text, &c, &e), e);
        assert_ls_fails(ls_network_create(&c, &m, &e), LS_EINVAL, "a.yaml:6: model.input", e);
        free(text);
    }
}

/* A source of samples with these fields; labels 0 to 4. */
static ls_status read_label(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    const ls_field *f = ls_source_field(s, "label");
    int32_t x = (int32_t)(i % 5);
    memcpy((char *)sample + f->offset, &x, sizeof x);
    return LS_OK;
}

/* Whole numbers of a table, which are f32: classes 0 to 6, with -1 for none; or a half. */
static ls_status read_kind(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    const ls_field *f = ls_source_field(s, "kind");
    float x = (float)(i % 8) - 1;
    if (!f->is_whole) x = 0.5f;
    memcpy((char *)sample + f->offset, &x, sizeof x);
    return LS_OK;
}

static void test_whole_classes(void **state) {
    (void)state;
    static ls_config c;
    ls_error e = {0};
    ls_source s = {.format = "test", .count = 50, .read = read_kind};
    const ls_field x = {.name = "x", .type = LS_F32};
    const ls_field kind = {.name = "kind", .type = LS_F32, .is_whole = true};
    assert_ls_ok(ls_source_add_field(&s, "test", &x, &e), e);
    assert_ls_ok(ls_source_add_field(&s, "test", &kind, &e), e);
    assert_ls_ok(load("model:\n  kind: mlp\n  loss: {cross_entropy: {target: kind}}\n", &c, &e), e);
    assert_ls_ok(ls_network_resolve(&c, &s, &e), e);
    assert_int_equal(c.model.classes, 7);
    s.fields[1].is_whole = false;
    assert_ls_ok(load("model:\n  kind: mlp\n  loss: {cross_entropy: {target: kind}}\n", &c, &e), e);
    assert_ls_fails(ls_network_resolve(&c, &s, &e), LS_EINVAL,
                    "field 'kind' has numbers that are no classes (whole numbers from 0)", e);
    s.nfields = 1;
    s.fields[0].is_whole = true;
    assert_ls_ok(load("model:\n  kind: mlp\n  loss: {mean_squared_error: {target: x}}\n", &c, &e),
                 e);
    assert_ls_ok(ls_network_resolve(&c, &s, &e), e);
    ls_model m;
    assert_ls_fails(ls_network_create(&c, &m, &e), LS_EINVAL,
                    "the data have no field that the model can read beside 'x'", e);
}

static void test_resolved(void **state) {
    (void)state;
    static ls_config c;
    ls_model m;
    ls_error e = {0};
    ls_source s = {.format = "test", .count = 50, .read = read_label};
    const ls_field image = {.name = "image", .type = LS_U8, .ndims = 3, .dims = {6, 5, 3}};
    const ls_field label = {.name = "label", .type = LS_I32};
    assert_ls_ok(ls_source_add_field(&s, "test", &image, &e), e);
    assert_ls_ok(ls_source_add_field(&s, "test", &label, &e), e);
    assert_ls_ok(load("model:\n  kind: mlp\n  hidden: [7]\n", &c, &e), e);
    assert_true(ls_network_is_open(&c));
    assert_ls_fails(ls_network_create(&c, &m, &e), LS_EINVAL, "model.input or model.classes", e);
    assert_ls_ok(ls_network_resolve(&c, &s, &e), e);
    assert_false(ls_network_is_open(&c));
    assert_int_equal(c.model.classes, 5);
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    assert_int_equal(m.params[0].dims[0], 90);
    assert_int_equal(m.params[0].dims[1], 7);
    assert_int_equal(m.params[2].dims[1], 5);
    ls_model_free(&m);
    assert_ls_ok(load("model:\n  kind: mlp\n  loss: {cross_entropy: {target: kind}}\n", &c, &e), e);
    assert_ls_fails(ls_network_resolve(&c, &s, &e), LS_EINVAL, "no field 'kind'", e);
}

/* Writes the config as a run has it, and reads it as the run that continues does. */
static void read_again(const ls_config *c, ls_config *saved) {
    ls_buf text = {0};
    ls_error e = {0};
    char *path = ls_format("%s/config.yaml", folder);
    ls_config_write(c, &text);
    assert_ls_ok(ls_file_replace(path, text.data, text.len, &e), e);
    assert_ls_ok(ls_config_load_saved(path, NULL, 0, saved, &e), e);
    ls_buf_free(&text);
    free(path);
}

/* What is left open stays so when it is written, and a run keeps the number that it began with. */
static void check_saved(const ls_config *c, int64_t micro) {
    static ls_config saved;
    read_again(c, &saved);
    ls_network_choose_micro(&saved);
    assert_int_equal(saved.train.micro_batch, micro);
}

/* What a config without train.micro_batch trains at once. */
static void test_micro(void **state) {
    (void)state;
    static const char mlp[] = "model:\n  kind: mlp\n  input: {x: [9]}\n  classes: 2\n";
    static const char gpt[] =
        "model:\n  kind: gpt2\n  layers: 4\n  width: 32\n  heads: 2\n  context: 64\n";
    static const char moe[] =
        "model:\n  kind: llama\n  layers: 1\n  width: 16\n  heads: 2\n  context: "
        "16\n  experts: 4\n  ffn: 8\n";
    static const struct {
        const char *model, *more;
        int64_t micro;
    } cases[] = {
        {mlp, "batch: 64", 8},
        {mlp, "batch: 8", 1},
        {mlp, "batch: 8000", 256},
        {mlp, "batch: 64\n  micro_batch: 1", 1},
        {"model:\n  kind: cnn\n  input: {image: [28, 28, 1]}\n  classes: 2\n", "batch: 64", 1},
        {gpt, "batch: [[0, 8], [100, 64]]", 4},
        {gpt, "batch: 64", 4},
        {gpt, "batch: 24", 3},
        {gpt, "batch: 64\nparallel:\n  mesh: {pipe: 2}", 1},
        {moe, "batch: 24\nparallel:\n  expert_virtual: 3\n  mesh: {pipe: 2}", 3},
        {moe, "batch: 64\n  compute: bf16\nparallel:\n  expert_virtual: 2", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ls_config c;
        ls_error e = {0};
        char *text = ls_format("%strain:\n  %s\n", cases[i].model, cases[i].more);
        assert_ls_ok(load(text, &c, &e), e);
        check_saved(&c, cases[i].micro);
        ls_network_choose_micro(&c);
        assert_int_equal(c.train.micro_batch, cases[i].micro);
        c.train.batch *= 100;
        check_saved(&c, cases[i].micro);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),          cmocka_unit_test(test_all_layers),
        cmocka_unit_test(test_usual),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_input),     cmocka_unit_test(test_resolved),
        cmocka_unit_test(test_whole_classes), cmocka_unit_test(test_micro)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
