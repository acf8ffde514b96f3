/* model_test.c - a graph of layers: what ls_model_link() derives, and what it refuses. */
#include "model/model.h"

#include "graph_model.h"

static const ls_gpt_config SHAPE = {.layers = 2, .width = 8, .heads = 2, .context = 4, .vocab = 30};

static void test_derived(void **state) {
    (void)state;
    ls_model m;
    graph_make(&SHAPE, &m);
    static const int readers[GRAPH_LAYERS] = {5, 3, 5, 4, 5, 6, -1};
    for (int i = 0; i < GRAPH_LAYERS; i++)
        assert_int_equal(m.layers[i].link.last_reader, readers[i]);
    const ls_layer *sum = &m.layers[GRAPH_SUM];
    static const bool adds[] = {false, false, false, true}; /* it reads value 4 twice */
    for (int k = 0; k < 4; k++) assert_int_equal(sum->link.adds[k], adds[k]);
    assert_int_equal(sum->link.added_floats, 32);
    assert_true(m.layers[1].link.adds[0] &&
                m.layers[2].link.adds[0]); /* the sum begins the embedding's */
    assert_false(m.layers[3].link.adds[0]);
    /* Values that are needed at the same time are in different slots. */
    for (int l = 1; l < GRAPH_LAYERS; l++)
        for (int a = 0; a < l; a++)
            for (int b = 0; b < a; b++)
                if (m.layers[a].link.last_reader >= l && m.layers[b].link.last_reader >= l)
                    assert_int_not_equal(m.layers[a].link.slot, m.layers[b].link.slot);
    assert_int_equal(m.nslots, 4);
    static const bool cuts[GRAPH_LAYERS] = {false, true, false, false, false, false, true};
    for (int i = 0; i < GRAPH_LAYERS; i++) assert_int_equal(ls_model_cut(&m, i, NULL), cuts[i]);
    ls_model_free(&m);
}

static void test_chain(void **state) {
    (void)state;
    ls_model m;
    ls_error e = {0};
    assert_ls_ok(ls_gpt_create(&SHAPE, &m, &e), e);
    assert_int_equal(m.nslots, 2);
    assert_int_equal(m.nfloats % LS_BLOCK, 0);
    for (int i = 1; i < m.nlayers; i++) {
        int value = 0;
        assert_int_equal(ls_model_cut(&m, i, &value), 1);
        assert_int_equal(value, i - 1);
        assert_int_equal(m.layers[i].link.added_floats, 0);
    }
    ls_model_free(&m);
}

typedef void change(ls_model *);
static void reads_itself(ls_model *m) { m->layers[2].inputs[0] = 2; }
static void reads_nothing(ls_model *m) { m->layers[2].inputs[0] = -1; }
static void reads_later(ls_model *m) { m->layers[1].inputs[0] = 4; }
static void reads_loss(ls_model *m) { m->layers[3].traits.loss = true; }
static void is_not_read(ls_model *m) { m->layers[GRAPH_SUM].inputs[1] = 4; }
static void has_other_size(ls_model *m) { m->layers[3].y_floats = 7; }
static void has_many_inputs(ls_model *m) { m->layers[GRAPH_SUM].ninputs = 9; }

static void test_refused(void **state) {
    (void)state;
    static const struct {
        change *change;
        const char *says;
    } cases[] = {
        {reads_itself, "layer 'h.0.mlp' reads a value that no layer before it has"},
        {reads_nothing, "layer 'h.0.mlp' reads a value that no layer before it has"},
        {reads_later, "layer 'h.0.attn' reads a value that no layer before it has"},
        {reads_loss, "layer 'h.1.mlp' reads 'h.1.attn', which is a loss"},
        {is_not_read, "no layer reads the output of layer 'h.0.mlp'"},
        {has_other_size, "layer 'h.1.mlp' needs an input of 32 numbers; 'h.1.attn' has 7"},
        {has_many_inputs, "layer 'sum' has 9 inputs; at most 8 are possible"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_model m;
        ls_error e = {0};
        graph_make(&SHAPE, &m);
        cases[i].change(&m);
        assert_ls_fails(ls_model_link(&m, &e), LS_EINVAL, cases[i].says, e);
        ls_model_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
