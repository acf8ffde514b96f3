/* values_test.c - lists of layers with several inputs, values by name, several losses, weights of
 * samples and metrics: each model from a config is that of the same calls. */
#include <stdlib.h>

#include "base/file.h"
#include "config/relations.h"
#include "folder.h"
#include "model/builder.h"
#include "networks/network.h"
#include "test.h"

static ls_status load(const char *text, ls_config *c, ls_error *e) {
    char *path = ls_format("%s/a.yaml", folder), *all = ls_format("data:\n  path: x\n%s", text);
    ls_status s = ls_file_replace(path, all, strlen(all), e);
    if (s == LS_OK) s = ls_config_load(path, NULL, 0, c, e);
    free(all);
    free(path);
    return s;
}

/* ---- the same model ---- */

static void check_layer(const ls_layer *a, const ls_layer *b) {
    assert_string_equal(a->name, b->name);
    assert_ptr_equal(a->ops, b->ops);
    assert_int_equal(a->ninputs, b->ninputs);
    assert_memory_equal(a->inputs, b->inputs, sizeof a->inputs);
    assert_memory_equal(a->y_dims, b->y_dims, sizeof a->y_dims);
    assert_int_equal(a->nfields, b->nfields);
    assert_memory_equal(a->field_at, b->field_at, sizeof a->field_at);
    assert_int_equal(a->nparams, b->nparams);
    assert_true(a->T == b->T && a->C == b->C && a->V == b->V);
}

static void check_same(const ls_model *a, const ls_model *b) {
    assert_int_equal(a->nlayers, b->nlayers);
    assert_int_equal(a->nlate, b->nlate);
    assert_int_equal(a->nmeasures, b->nmeasures);
    assert_int_equal(a->ninputs, b->ninputs);
    for (int i = 0; i < a->nlayers + a->nlate; i++) check_layer(&a->layers[i], &b->layers[i]);
    for (int i = 0; i < a->nmeasures; i++) {
        assert_string_equal(a->measures[i].name, b->measures[i].name);
        assert_int_equal(a->measures[i].kind, b->measures[i].kind);
        check_layer(&a->measures[i].layer, &b->measures[i].layer);
    }
    for (int i = 0; i < a->nparams; i++) {
        assert_string_equal(a->params[i].name, b->params[i].name);
        assert_memory_equal(a->params[i].dims, b->params[i].dims, sizeof a->params[i].dims);
        assert_true(a->params[i].init.std == b->params[i].init.std);
    }
    for (int i = 0; i < a->ninputs; i++) {
        assert_string_equal(a->inputs[i].name, b->inputs[i].name);
        assert_int_equal(a->inputs[i].type, b->inputs[i].type);
        assert_int_equal(a->classes[i], b->classes[i]);
    }
    assert_int_equal(a->weighing.has_field, b->weighing.has_field);
    assert_int_equal(a->weighing.field_at, b->weighing.field_at);
}

/* ---- models ---- */

/* Two embeddings and numbers; two losses, weights, metrics. */
static void build_tables(ls_model *m) {
    ls_value *user = ls_input(m, "user", LS_I32, LS_SCALAR);
    ls_value *words = ls_input(m, "words", LS_I32, LS_DIMS(5));
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_value *price = ls_input(m, "price", LS_F32, LS_SCALAR);
    ls_value *a = ls_embedding(m, user, .name = "users", .rows = 50, .width = 4);
    ls_value *b = ls_embedding_sum(m, words, .name = "text", .rows = 9, .width = 6, .mean = true);
    ls_value *h = ls_relu(m, ls_linear(m, ls_concat(m, -1, a, b, x), .out = 8));
    ls_value *kind = ls_linear(m, h, .name = "kind", .out = 3);
    ls_value *cost = ls_linear(m, h, .name = "cost", .out = 1);
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_cross_entropy(m, kind, label, .smoothing = 0.25f, .ignore = 2);
    ls_mean_squared_error(m, cost, price, .factor = 0.5f);
    ls_sample_weight(m, ls_input(m, "clicks", LS_F32, LS_SCALAR));
    ls_metric(m, "rmse", ls_root_squared_error(m, cost, price));
    ls_metric(m, "double", ls_absolute_error(m, ls_affine(m, cost, 2, 0), price));
    ls_metric(m, "r2", ls_r2(m, cost, price));
}

#define TABLES                                                                                     \
    "    - embedding: {of: user, rows: 50, width: 4, name: users}\n"                               \
    "    - embedding_sum: {of: words, rows: 9, width: 6, mean: true, name: text}\n"                \
    "    - concat: [users, text, x]\n"                                                             \
    "    - linear: 8\n"                                                                            \
    "    - relu: {name: h}\n"                                                                      \
    "    - linear: {out: 3, name: kind}\n"                                                         \
    "    - linear: {of: h, out: 1, name: cost}\n"                                                  \
    "    - affine: {of: cost, scale: 2, name: twice}\n"                                            \
    "  loss:\n"                                                                                    \
    "    - cross_entropy: {of: kind, smoothing: 0.25, ignore: 2}\n"                                \
    "    - mean_squared_error: {of: cost, target: price, factor: 0.5}\n"                           \
    "  sample_weight: clicks\n"                                                                    \
    "  metrics:\n"                                                                                 \
    "    - rmse: {target: price}\n"                                                                \
    "    - mae: {of: twice, target: price, name: double}\n"                                        \
    "    - r2: {target: price}\n"

static const char tables[] =
    "model:\n  kind: layers\n  input: {user: {type: i32, dims: []}, words: "
    "{type: i32, dims: [5]}, price: [], x: [3]}\n  layers:\n" TABLES;

/* A decoder of a sequence that reads another one; layers of several values. */
static void build_sequences(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(4, 6)),
             *z = ls_input(m, "z", LS_F32, LS_DIMS(24));
    ls_value *mask = ls_input(m, "mask", LS_U8, LS_DIMS(3));
    ls_value *y = ls_input(m, "y", LS_F32, LS_DIMS(5, 2));
    ls_value *places = ls_learned(m, LS_DIMS(4, 6), .name = "places", .deviation = 0.5f);
    ls_value *q = ls_add(m, ls_add(m, x, places), x);
    ls_value *kv = ls_slice(m, ls_reshape(m, z, LS_DIMS(-1, 6)), .dim = -2, .first = 1, .count = 3);
    kv = ls_linear(m, kv, .name = "kv", .out = 12);
    ls_value *a = ls_attention(m, q, .name = "a", .heads = 2, .keys = kv, .mask = mask);
    ls_value *b = ls_add_relu(m, a, q);
    ls_value *p = ls_multiply(m, b, q);
    ls_value *token = ls_learned(m, LS_DIMS(1, 6), .name = "token");
    ls_value *all = ls_concat(m, 0, token, p);
    ls_mean_squared_error(m, ls_linear(m, all, .out = 2), y, LS_DEFAULTS);
}

static const char sequences[] =
    "model:\n"
    "  kind: layers\n"
    "  input: {x: [4, 6], z: [24], mask: {type: u8, dims: [3]}, y: [5, 2]}\n"
    "  layers:\n"
    "    - learned: {dims: [4, 6], deviation: 0.5, name: places}\n"
    "    - add: {of: [x, places, x], name: q}\n"
    "    - reshape: {of: z, dims: [-1, 6]}\n"
    "    - slice: {dim: -2, first: 1, count: 3}\n"
    "    - linear: {out: 12, name: kv}\n"
    "    - attention: {of: q, heads: 2, keys: kv, mask: mask, name: a}\n"
    "    - add_relu: {of: [a, q], name: b}\n"
    "    - multiply: {of: [b, q], name: p}\n"
    "    - learned: {dims: [1, 6], name: token}\n"
    "    - concat: {of: [token, p], dim: 0}\n"
    "    - linear: 2\n"
    "  loss: {mean_squared_error: {target: y}}\n";

/* An autoencoder of images: its target is a value; names inside of repetitions. */
static void build_pixels(ls_model *m) {
    ls_value *image = ls_input(m, "image", LS_U8, LS_DIMS(4, 4, 1));
    ls_value *pixels = ls_affine(m, image, 0.5f, 0),
             *x = ls_flatten(m, ls_affine(m, image, 1 / 127.5f, -1));
    for (int i = 0; i < 2; i++) {
        ls_scope(m, "part.%d", i);
        ls_value *in = ls_linear(m, x, .name = "in", .out = 16);
        x = ls_add(m, ls_gelu(m, in), in);
        ls_scope_end(m);
    }
    ls_mean_squared_error(m, x, pixels, LS_DEFAULTS);
    ls_metric(m, "first", ls_squared_error(m, ls_relu(m, x), pixels));
}

static const char pixels[] = "model:\n"
                             "  kind: layers\n"
                             "  input: {image: [4, 4, 1]}\n"
                             "  layers:\n"
                             "    - affine: {of: image, scale: 0.5, name: pixels}\n"
                             "    - flatten: {of: image}\n"
                             "    - repeat:\n"
                             "        times: 2\n"
                             "        name: part\n"
                             "        layers:\n"
                             "          - linear: {out: 16, name: in}\n"
                             "          - gelu: {name: out}\n"
                             "          - add: {of: [out, in], name: sum}\n"
                             "    - relu: {name: late}\n"
                             "  loss: {mean_squared_error: {of: part.1.sum, target: pixels}}\n"
                             "  metrics: {mse: {of: late, target: pixels, name: first}}\n";

/* The loss of one label; all metrics of classes. */
static void build_classes(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(2)),
             *label = ls_input(m, "kind", LS_I32, LS_SCALAR);
    ls_value *y = ls_linear(m, x, .out = 2);
    ls_cross_entropy(m, y, label, LS_DEFAULTS);
    ls_metric(m, "accuracy", ls_is_top(m, y, label, 1));
    ls_metric(m, "top5", ls_is_top(m, y, label, 5));
    ls_metric(m, "top2", ls_is_top(m, y, label, 2));
    ls_metric(m, "auc", ls_auc(m, y, label));
    ls_metric(m, "kinds", ls_confusion(m, y, label));
}

static const char classes[] = "model:\n  kind: layers\n  input: {x: [2]}\n  layers: [linear: 2]\n"
                              "  loss: {cross_entropy: {target: kind}}\n"
                              "  metrics: [accuracy, top, top: 2, auc, confusion: {name: kinds}]\n";

/* Layers of a language model: grouped queries, rotary positions, a gate, logits tied to the
 * tokens. */
static void build_language(ls_model *m) {
    ls_value *tokens = ls_input(m, "tokens", LS_I32, LS_DIMS(6));
    ls_value *places = ls_input(m, "places", LS_I32, LS_DIMS(6));
    ls_value *next = ls_input(m, "next", LS_I32, LS_DIMS(6));
    ls_value *e = ls_embedding(m, tokens, .name = "embed", .rows = 11, .width = 8);
    ls_value *n = ls_rms_norm(m, e, .name = "n");
    ls_value *q = ls_rope(m, ls_linear(m, n, .out = 8, .no_bias = true), .heads = 2, .name = "q",
                          .positions = places);
    ls_value *k =
        ls_rope(m, ls_linear(m, n, .out = 4), .name = "k", .heads = 1, .positions = places);
    ls_value *v = ls_linear(m, n, .name = "v", .out = 4);
    ls_value *a = ls_attention(m, q, .heads = 2, .kv_heads = 1, .causal = true, .window = 3,
                               .keys = k, .values = v, .positions = places);
    ls_value *up = ls_linear(m, a, .name = "up", .out = 8),
             *gate = ls_linear(m, a, .name = "gate", .out = 8);
    ls_linear_cross_entropy(m, ls_silu_gate(m, gate, up), next, .tied = e);
}

static const char language[] =
    "model:\n"
    "  kind: layers\n"
    "  input: {tokens: {type: i32, dims: [6]}, places: {type: i32, dims: [6]}, next: {type: i32, "
    "dims: "
    "[6]}}\n"
    "  layers:\n"
    "    - embedding: {of: tokens, rows: 11, width: 8, name: embed}\n"
    "    - rms_norm: {name: n}\n"
    "    - linear: {out: 8, no_bias: true}\n"
    "    - rope: {heads: 2, positions: places, name: q}\n"
    "    - linear: {of: n, out: 4}\n"
    "    - rope: {heads: 1, positions: places, name: k}\n"
    "    - linear: {of: n, out: 4, name: v}\n"
    "    - attention: {of: q, heads: 2, kv_heads: 1, causal: true, window: 3, keys: k, values: v, "
    "positions: places}\n"
    "    - repeat: {times: 1, layers: [flatten], name: unread}\n"
    "    - reshape: {dims: [6, 8], name: a}\n"
    "    - linear: {of: a, out: 8, name: up}\n"
    "    - linear: {of: a, out: 8, name: gate}\n"
    "    - silu_gate: [gate, up]\n"
    "  loss: {linear_cross_entropy: {target: next, tied: embed}}\n";

/* An MLP joins all inputs. */
static void build_joined(ls_model *m) {
    ls_value *a = ls_input(m, "a", LS_F32, LS_SCALAR), *b = ls_input(m, "b", LS_F32, LS_DIMS(2, 2));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_value *x = ls_concat(m, 0, ls_flatten(m, a), ls_flatten(m, b));
    ls_scope(m, "hidden.0");
    x = ls_relu(m, ls_linear(m, x, .out = 7));
    ls_scope_end(m);
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = 3), label, LS_DEFAULTS);
}

static const char joined[] =
    "model: {kind: mlp, hidden: 7, classes: 3, input: {a: [], b: [2, 2]}}\n";

static void test_models(void **state) {
    (void)state;
    static const struct {
        const char *text;
        void (*build)(ls_model *);
    } cases[] = {{tables, build_tables},   {sequences, build_sequences}, {pixels, build_pixels},
                 {classes, build_classes}, {language, build_language},   {joined, build_joined}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ls_config c;
        ls_model a = {0}, b = {0};
        ls_error e = {0};
        assert_ls_ok(load(cases[i].text, &c, &e), e);
        assert_ls_ok(ls_network_create(&c, &a, &e), e);
        cases[i].build(&b);
        assert_ls_ok(ls_build_finish(&b, &e), e);
        check_same(&a, &b);
        ls_model_free(&a);
        ls_model_free(&b);
    }
}

/* ---- what the data decide ---- */

static ls_source source_of(const ls_field *fields, int n) {
    ls_source s = {.format = "test", .count = 1};
    ls_error e = {0};
    for (int i = 0; i < n; i++) assert_ls_ok(ls_source_add_field(&s, "test", &fields[i], &e), e);
    return s;
}

/* The fields that the config names, in the types that its layers read, and no others. */
static void test_resolved(void **state) {
    (void)state;
    static const ls_field fields[] = {
        {.name = "user", .type = LS_I64},
        {.name = "other", .type = LS_F32},
        {.name = "words", .type = LS_I32, .ndims = 1, .dims = {5}},
        {.name = "clicks", .type = LS_I32},
        {.name = "price", .type = LS_F64},
        {.name = "label", .type = LS_I32},
        {.name = "x", .type = LS_I32, .ndims = 1, .dims = {3}},
    };
    static ls_config c, d;
    ls_model a = {0}, b = {0};
    ls_error e = {0};
    ls_source s = source_of(fields, 7);
    assert_ls_ok(load("model:\n  kind: layers\n  layers:\n" TABLES, &c, &e), e);
    assert_true(ls_network_is_open(&c));
    assert_ls_ok(ls_network_resolve(&c, &s, &e), e);
    assert_ls_ok(ls_network_create(&c, &a, &e), e);
    assert_int_equal(a.ninputs, 6);
    assert_ls_ok(
        load("model:\n  kind: layers\n  input: {user: {type: i32, dims: []}, words: {type: "
             "i32, dims: [5]}, clicks: [], price: [], label: {type: i32, dims: []}, x: "
             "[3]}\n  layers:\n" TABLES,
             &d, &e),
        e);
    assert_ls_ok(ls_network_create(&d, &b, &e), e);
    check_same(&a, &b);
    ls_model_free(&a);
    ls_model_free(&b);

    /* A first layer that names nothing reads what is left; ids stay whole. */
    static const ls_field two[] = {{.name = "words", .type = LS_I32, .ndims = 1, .dims = {5}},
                                   {.name = "price", .type = LS_F32}};
    s = source_of(two, 2);
    assert_ls_ok(load("model:\n  kind: layers\n  layers: [embedding_sum: {rows: 3, width: 1}]\n"
                      "  loss: {mean_squared_error: {target: price}}\n",
                      &c, &e),
                 e);
    assert_ls_ok(ls_network_resolve(&c, &s, &e), e);
    assert_ls_ok(ls_network_create(&c, &a, &e), e);
    assert_int_equal(a.inputs[0].type, LS_I32);
    assert_int_equal(a.inputs[1].type, LS_F32);
    ls_model_free(&a);
}

/* ---- what is refused ---- */

static void test_refused(void **state) {
    (void)state;
    static const char head[] = "model:\n  kind: layers\n  input: {a: [2], b: [3]}\n";
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"  layers:\n    - linear: 3\n",
         "a.yaml:7: linear: which value does it read? Name one of a, b: linear: {of: NAME, ...}"},
        {"  layers:\n    - concat: [a, c]\n",
         "a.yaml:7: there is no value 'c' here; the values are a, b"},
        {"  layers:\n    - concat: a\n", "a.yaml:7: concat: options are a map"},
        {"  layers:\n    - concat: [a]\n", "a.yaml:7: concat reads several values: [NAME, NAME"},
        {"  layers:\n    - concat\n", "concat reads several values"},
        {"  layers:\n    - add: [a, b]\n",
         "a.yaml:7: add 'add': the inputs have other shapes: [2] and [3]"},
        {"  layers:\n    - linear: {of: [a, b], out: 3}\n", "linear: option 'of' is one name"},
        {"  layers:\n    - learned: {dims: [2], of: a}\n", "learned reads no value"},
        {"  layers:\n    - linear: {of: a, out: 3, name: b}\n",
         "a.yaml:7: linear 'b': another value has the name 'b'"},
        {"  layers:\n    - linear: {of: a, out: 3}\n  classes: 3\n",
         "model.input: nothing reads the field 'b'"},
        {"  layers:\n    - concat: [a, b]\n    - linear: 3\n  loss:\n    - cross_entropy\n    - "
         "mean_squared_error: {of: no, target: y}\n",
         "a.yaml:11: there is no value 'no' here"},
        {"  layers: [concat: [a, b], linear: 3]\n  loss:\n    - cross_entropy\n    - "
         "mean_squared_error: {target: y}\n",
         "a.yaml:9: the last layer has 3 numbers; the loss needs 1"},
        {"  layers: [concat: [a, b], linear: 3]\n  loss:\n    - cross_entropy: {of: [a, b]}\n",
         "a.yaml:8: model.loss: option 'of' is one name"},
        {"  layers: [concat: [a, b], linear: 3]\n  metrics: [acuracy]\n",
         "a.yaml:7: model.metrics: there is no 'acuracy'; choose among accuracy, auc, confusion, "},
        {"  layers: [concat: [a, b], linear: 3]\n  metrics:\n    - top: {n: 3}\n",
         "a.yaml:8: top has no option 'n'; its options are name, target, of, k"},
        {"  layers: [concat: [a, b], linear: 3]\n  metrics: [accuracy, accuracy]\n",
         "another metric has the name 'accuracy'"},
        {"  layers: [concat: [a, b], linear: 3]\n  metrics: [auc]\n",
         "a.yaml:7: auc 'auc': the score is [3]; one number, or the logits of two classes"},
        {"  layers: [concat: [a, b], linear: {out: 1, name: y}, linear: {of: a, out: 1, name: z}]\n"
         "  loss: [mean_squared_error: {of: y, target: s}, mean_squared_error: {of: z, target: "
         "t}]\n"
         "  metrics: rmse\n",
         "a.yaml:8: rmse: the model has several losses; name the field that it is compared with"},
        {"  layers: [concat: [a, b], linear: 3]\n  sample_weight: a\n",
         "ls_sample_weight(): the weight is no field of one f32 or i32"},
        {"  layers: [concat: [a, b], attention: {heads: 1, mask: [a]}]\n",
         "option 'mask': a list or a map is no name of a value"},
        {"  layers: [silu_gate: [a, b, a]]\n", "silu_gate reads two values: [NAME, NAME]"},
        {"  layers: [concat: [a, b], reshape: [1, 5]]\n  loss: {linear_cross_entropy: {classes: "
         "3}}\n  metrics: accuracy\n",
         "a.yaml:8: accuracy: its loss has no logits; name them by {of: VALUE}"},
        {"  layers: [reshape: {of: a, dims: [x]}]\n", "option 'dims': 'x' is no whole number"},
        {"  layers: [reshape: {of: a, dims: [1,1,1,1,2]}]\n", "a list of at most 4 numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ls_config c;
        ls_model m;
        ls_error e = {0};
        char *text = ls_format("%s%s", head, cases[i].text);
        ls_status s = load(text, &c, &e);
        if (s == LS_OK) s = ls_network_create(&c, &m, &e);
        if (s != LS_EINVAL || !strstr(e.msg, cases[i].says)) fail_msg("case %zu: %s", i, e.msg);
        free(text);
    }
}

/* As many fields as a sample has, with the longest names: a concat of more values than a layer
 * reads has them one after the other. */
static void test_many(void **state) {
    (void)state;
    static const char *const kinds[] = {"  kind: mlp\n  hidden: [3]\n",
                                        "  kind: layers\n  layers:\n    - concat: [%s]\n"
                                        "    - linear: 2\n",
                                        "  kind: layers\n  layers:\n    - add: {of: [%s], name: "
                                        "s}\n    - concat: [s, s]\n    - linear: 2\n"};
    for (int k = 0; k < 3; k++)
        for (int n = 2; n < LS_SOURCE_FIELDS; n += n < 10 ? 1 : 53) {
            ls_buf names = {0}, text = {0};
            for (int i = 0; i < n; i++) {
                char long_name[LS_FIELD_NAME] = "";
                memset(long_name, 'x', k == 2 || n > 10 ? 60 : LS_FIELD_NAME - 4);
                ls_buf_printf(&names, "%sf%02d%s", i ? ", " : "", i, long_name);
            }
            ls_buf_printf(&text, "model:\n");
            ls_buf_printf(&text, kinds[k], names.data);
            ls_buf_printf(&text, "  classes: 2\n  input:\n    label: {type: i32, dims: []}\n");
            char *rest = names.data;
            for (char *name; (name = strsep(&rest, ","));)
                ls_buf_printf(&text, "    %s: {type: f32, dims: []}\n", name + (*name == ' '));
            ls_config c;
            ls_model m;
            ls_error e = {0};
            assert_ls_ok(load(text.data, &c, &e), e);
            assert_ls_ok(ls_network_create(&c, &m, &e), e);
            assert_int_equal(m.ninputs, n + 1);
            assert_int_equal(m.params[0].dims[0], k < 2 ? n : 2);
            ls_model_free(&m);
            ls_buf_free(&names);
            ls_buf_free(&text);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_resolved),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
