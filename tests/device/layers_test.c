/* layers_test.c - layers that calls of lockstep/model.h add: forward and backward on a device, of
 * every kind, have the bits of the host. */
#include "device/both_sides.h"
#include "layers/fork.h"
#include "layers/positions.h"
#include "layers/vocabulary_slices.h"

/* ---- models ---- */

enum { T = 21, V = 37, WIDTH = 20 };

static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(T, WIDTH)); }
static void end(ls_model *m, ls_value *x) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(T));
    ls_linear_cross_entropy(m, x, labels, .classes = V);
}

/* Ids of which some stand for none. */
static void embeddings(ls_model *m) {
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(T));
    ls_value *x = ls_embedding(m, ids, .rows = V, .width = WIDTH);
    end(m, ls_add(m, x, ls_embedding(m, ids, .rows = V, .width = WIDTH, .positions = true)));
}
static void tied(ls_model *m) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(T));
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(T));
    ls_value *x = ls_embedding(m, ids, .rows = V, .width = WIDTH);
    ls_linear_cross_entropy(m, ls_rms_norm(m, x, LS_DEFAULTS), labels, .tied = x);
}
static void frozen_table(ls_model *m) {
    tied(m);
    ls_freeze(m, "embedding*");
}
/* A label of each row. */
static void all_labels(ls_model *m) {
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(T));
    end(m, ls_embedding(m, ids, .rows = V, .width = WIDTH));
}
/* A norm whose input's gradient is begun by a later layer. */
static void norms(ls_model *m) {
    ls_value *x = ls_gelu(m, rows(m)), *y = ls_rms_norm(m, x, .eps = 1e-3f);
    end(m, ls_add(m, x, ls_layer_norm(m, y, LS_DEFAULTS)));
}
static void linears(ls_model *m) {
    ls_value *x = ls_linear(m, rows(m), .out = 33);
    x = ls_linear(m, x, .out = 7, .no_bias = true);
    x = ls_linear(m, x, .out = 70, .out_in = true);
    end(m, ls_linear(m, x, .out = WIDTH, .out_in = true, .no_bias = true));
}
static void one_row(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(9)), .out = 5, .out_in = true);
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(1));
    ls_linear_cross_entropy(m, ls_reshape(m, x, LS_DIMS(1, 5)), labels, .classes = 3);
}
static void gates(ls_model *m) {
    ls_value *x = rows(m), *g = ls_linear(m, x, .out = WIDTH);
    x = ls_silu_gate(m, g, ls_linear(m, x, .out = WIDTH, .out_in = true));
    end(m, ls_layers_gelu_gate(m, x, ls_multiply(m, x, g)));
}
/* Grouped heads, with places of their own, and a window. */
static void heads(ls_model *m) {
    ls_value *places = ls_input(m, "places", LS_I32, LS_DIMS(T)), *x = rows(m);
    ls_value *q = ls_rope(m, ls_linear(m, x, .out = 24), .heads = 4, .positions = places,
                          .turned = 4, .divisors = (const float[]){1, 2.5f});
    ls_value *k = ls_rope(m, ls_linear(m, x, .out = 12), .heads = 2, .base = 500, .turned = 4);
    ls_value *v = ls_linear(m, x, .out = 12);
    x = ls_attention(m, q, .heads = 4, .kv_heads = 2, .keys = k, .values = v, .causal = true,
                     .window = 5, .positions = places);
    end(m, ls_linear(m, x, .out = WIDTH));
}
/* Preferences; the second text begins somewhere. */
static void dpo(ls_model *m, ls_dpo_loss loss) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(T));
    ls_dpo_fields fields = {labels, ls_input(m, "rejected", LS_I32, LS_DIMS(1)),
                            ls_input(m, "reference", LS_F32, LS_DIMS(2))};
    ls_linear_dpo(m, ls_gelu(m, rows(m)), &fields,
                  (ls_dpo_options){.classes = V, .loss = loss, .beta = 0.3, .smoothing = 0.1});
}
static void dpo_sigmoid(ls_model *m) { dpo(m, LS_DPO_SIGMOID); }
static void dpo_hinge(ls_model *m) { dpo(m, LS_DPO_HINGE); }
static void dpo_ipo(ls_model *m) { dpo(m, LS_DPO_IPO); }

static void dropouts(ls_model *m) {
    ls_value *x = ls_dropout(m, rows(m), .rate = 0.3f);
    end(m, ls_dropout(m, x, LS_DEFAULTS));
}
/* Masks that begin within a block of a wider tensor. */
static void dropout_parts(ls_model *m) {
    ls_value *x = rows(m);
    for (uint32_t i = 0; i < 3; i++)
        x = ls_layers_dropout(
            m, x, (ls_dropout_mask){.rate = 0.5f, .number = i, .first = 71 + (int64_t)(i << 30)});
    end(m, x);
}
/* Probabilities with a mask: of grouped heads, with a window, and of more queries than keys. */
static void heads_dropout(ls_model *m) {
    ls_value *places = ls_input(m, "places", LS_I32, LS_DIMS(T)), *x = rows(m);
    ls_value *q = ls_linear(m, x, .out = 24), *kv = ls_linear(m, x, .out = 24);
    x = ls_attention(m, q, .heads = 4, .kv_heads = 2, .keys = kv, .causal = true, .window = 5,
                     .positions = places, .dropout = 0.4f);
    end(m, ls_linear(m, x, .out = WIDTH));
}
static void long_heads_dropout(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(130, 6));
    ls_value *y = ls_input(m, "y", LS_F32, LS_DIMS(70, 12));
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(130));
    x = ls_attention(m, x, .heads = 2, .keys = ls_gelu(m, y), .dropout = 0.3f);
    x = ls_attention(m, ls_linear(m, x, .out = 18), .heads = 2, .causal = true, .dropout = 0.2f);
    ls_linear_cross_entropy(m, x, labels, .classes = 5);
}
static void adapters(ls_model *m) {
    ls_lora lora = {.rank = 4}, drops = {.rank = 3, .dropout = 0.4f, .rs = true};
    ls_value *x = ls_linear(m, rows(m), .out = 33, .out_in = true, .lora = lora);
    end(m, ls_linear(m, x, .out = WIDTH, .out_in = true, .no_bias = true, .lora = drops));
}
static void dora(ls_model *m) {
    ls_lora lora = {.rank = 4, .dora = true}, drops = {.rank = 3, .dropout = 0.4f, .dora = true};
    ls_value *x = ls_linear(m, rows(m), .out = 33, .out_in = true, .lora = lora);
    end(m, ls_linear(m, x, .out = WIDTH, .out_in = true, .no_bias = true, .lora = drops));
}

/* ---- slices and chunks ---- */

enum { SLICES = 3 };

/* An embedding and the end of a model, which are cut into slices; the weights are tied. */
static void sliced(ls_model *m, ls_value *labels, ls_value *all) {
    static const char *const names[] = {"words.0", "words.1", "words.2"};
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(T)), *words[SLICES], *x[SLICES];
    for (int k = 0; k < SLICES; k++) {
        int64_t first = V * k / SLICES, end = V * (k + 1) / SLICES;
        ls_embedding_options o = {.name = names[k], .rows = end - first, .width = WIDTH};
        ls_build_slice(m, k, SLICES);
        words[k] = ls_layers_embedding_slice(m, ids, o, first, V);
        x[k] = ls_layers_copy(m, words[k]);
    }
    ls_layers_fork(m, ls_layers_join(m, x, SLICES), SLICES, x);
    ls_layers_vocabulary(
        m, x, labels,
        &(ls_vocabulary_slices){
            .n = SLICES, .classes = V, .tied = words, .name = "head", .all_labels = all});
}
static void vocabulary(ls_model *m) { sliced(m, ls_input(m, "labels", LS_I32, LS_DIMS(T)), NULL); }
/* The rows are the second half of a sample's. */
static void vocabulary_chunk(ls_model *m) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(2 * T));
    sliced(m, ls_build_part(m, labels, T, T), labels);
}
static void chunk(ls_model *m) {
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(2 * T));
    ls_linear_cross_entropy_options o = {.name = "head", .classes = V};
    ls_layers_chunk_cross_entropy(m, rows(m), ls_build_part(m, labels, T, T), labels, o);
}
/* Norms by weights that are values, and positions of rows that begin at the fourth. */
static void rows_of_slices(ls_model *m) {
    ls_value *x = ls_layers_rms_norm_by(m, rows(m), ls_layers_weight(m, "rms", WIDTH, true), 1e-3f);
    x = ls_layers_layer_norm_by(m, x, ls_layers_ones_zeros(m, "layer", WIDTH));
    end(m, ls_layers_positions(m, x, (ls_row_range){3, T + 9}, "places", 0.1f));
}

static void test_slices(void **state) {
    (void)state;
    check(vocabulary, V);
    check(vocabulary_chunk, V);
    check(chunk, V);
    check(rows_of_slices, V);
}
static void test_embedding(void **state) {
    (void)state;
    check(embeddings, V);
    check(tied, V);
    check(frozen_table, V);
    check(all_labels, V);
}
static void test_rows(void **state) {
    (void)state;
    check(norms, V);
    check(gates, V);
    check(heads, T);
}
static void test_linear(void **state) {
    (void)state;
    check(linears, V);
    check(one_row, 3);
}
static void test_preferences(void **state) {
    (void)state;
    check(dpo_sigmoid, T);
    check(dpo_hinge, T);
    check(dpo_ipo, T);
}
static void test_dropout(void **state) {
    (void)state;
    check(dropouts, V);
    check(dropout_parts, V);
    check(heads_dropout, T);
    check(long_heads_dropout, 5);
}
static void test_lora(void **state) {
    (void)state;
    check(adapters, V);
    check(dora, V);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_linear),    cmocka_unit_test(test_preferences),
        cmocka_unit_test(test_dropout),   cmocka_unit_test(test_lora),
        cmocka_unit_test(test_slices)};
    return run_layers_on_devices(tests, sizeof tests / sizeof *tests);
}
