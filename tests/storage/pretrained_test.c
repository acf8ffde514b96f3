/* pretrained_test.c - a run that begins with a published model: its keys, its weights, whole or in
 * the parts that a worker owns, and what is refused. */
#include "storage/pretrained.h"

#include "base/intern.h"
#include "folder.h"
#include "networks/network.h"
#include "test.h"
#include "weights/small_model.h"
#include "weights/write_model.h"

static ls_config config_of(int model) {
    ls_config c;
    ls_config_defaults(&c);
    small_write_folder(&small_models[model], folder);
    c.model.from = ls_intern(folder);
    c.model.context = 32;
    return c;
}

static const small_tensor *find(const small_tensor *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].hf, name) == 0) return &list[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Every element is the file's where a part is owned, and untouched elsewhere. */
static void check_params(const ls_model *m, int model, const float *params,
                         const ls_train_state *s) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(&small_models[model], list);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        float *want = small_values(find(list, n, p->name));
        for (size_t k = 0; k < p->count; k++) {
            size_t at = p->offset + k;
            bool owned = !s->owned;
            for (int b = 0; b < s->nowned; b++)
                owned = owned || (s->owned[b].first <= at && at < s->owned[b].end);
            assert_true(params[at] == (owned ? want[k] : -77));
        }
        free(want);
    }
    assert_int_equal(m->nparams, n);
}

static void test_models(void **state) {
    (void)state;
    static const int models[] = {0, 1, 2, 3, SMALL_GEMMA3, SMALL_SMOLLM3};
    for (int k = 0; k < 6; k++) {
        int i = models[k];
        ls_config c = config_of(i);
        ls_model m = {0};
        ls_error e = {0};
        assert_ls_ok(ls_pretrained_resolve(&c, NULL, &e), e);
        assert_int_equal(c.model.kind, LS_MODEL_LLAMA);
        assert_int_equal(c.model.width, 64);
        assert_int_equal(c.model.kv_heads, 2);
        assert_int_equal(c.model.head == LS_HEAD_TIED, small_models[i].tied);
        assert_int_equal(c.model.bias, small_models[i].biases ? LS_BIAS_QKV : LS_BIAS_NONE);
        assert_int_equal(c.model.qk_norm, small_models[i].qk_norm);
        assert_int_equal(c.model.block == LS_BLOCKS_GEMMA3, i == SMALL_GEMMA3);
        assert_int_equal(c.model.full_attention_every, i == SMALL_GEMMA3 ? 2 : 0);
        assert_int_equal(c.model.no_rope_every, i == SMALL_SMOLLM3 ? 4 : 0);
        assert_ls_ok(ls_network_create(&c, &m, &e), e);
        float *params = LS_NEW_ARRAY(float, m.nfloats);
        ls_train_state s = {.model = &m, .flat = {1, {params}}};
        for (int part = 0; part < 2; part++) {
            const ls_range owned[] = {{.first = 100, .end = 3000},
                                      {.first = 5001, .end = 5002},
                                      {.first = 9000, .end = m.nfloats - 700}};
            for (size_t f = 0; f < m.nfloats; f++) params[f] = -77;
            s.owned = part ? owned : NULL;
            s.nowned = part ? 3 : 0;
            assert_ls_ok(ls_pretrained_load(c.model.from, &s, &e), e);
            check_params(&m, i, params, &s);
        }
        free(params);
        ls_model_free(&m);
    }
}

/* A model of kind gpt2 whose samples are shorter than the model allows has the first of the learned
 * positions. */
static void test_gpt2(void **state) {
    (void)state;
    ls_config c = config_of(SMALL_GPT2);
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_pretrained_resolve(&c, NULL, &e), e);
    assert_int_equal(c.model.kind, LS_MODEL_GPT2);
    assert_int_equal(c.model.context, 32);
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    assert_string_equal(m.params[1].name, "wpe.weight");
    assert_int_equal(m.params[1].dims[0], 32);
    float *params = LS_NEW_ARRAY(float, m.nfloats);
    ls_train_state s = {.model = &m, .flat = {1, {params}}};
    assert_ls_ok(ls_pretrained_load(c.model.from, &s, &e), e);
    check_params(&m, SMALL_GPT2, params, &s);
    free(params);
    ls_model_free(&m);
}

/* A run that continues has the keys, and does not look for the model. */
static void test_resumed(void **state) {
    (void)state;
    ls_config c = config_of(0);
    ls_error e = {0};
    char *config = ls_format("%s/config.yaml", folder);
    write_bytes(config, "", 0);
    c.model.from = "gone";
    assert_ls_ok(ls_pretrained_resolve(&c, folder, &e), e);
    assert_string_equal(c.model.from, "gone");
    unlink(config);
    free(config);
}

static void refuse(ls_config *c, const char *why) {
    ls_error e = {0};
    assert_true(ls_pretrained_resolve(c, NULL, &e) != LS_OK);
    if (!strstr(e.msg, why)) fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void test_refusals(void **state) {
    (void)state;
    ls_config c = config_of(0);
    c.model.context = 49;
    refuse(&c, "model.context is 49; ");
    c = config_of(4);
    refuse(&c, "models of family gpt2 whose feed-forward layer is not 4 times the width can't be");
    c.model.from = "gone";
    refuse(&c, "model.from: gone: can't be opened: No such file or directory; models are not");
    c.model.from = "/dev/null";
    refuse(&c, "is a file, and a directory is needed: `lockstep import /dev/null -o models/NAME`");
    c = config_of(0);
    small_model far = small_models[0];
    far.config = SMALL_SIZES "\"tie_word_embeddings\": true, \"rope_scaling\": {\"rope_type\": "
                             "\"llama3\", \"factor\": 2, \"low_freq_factor\": 1, "
                             "\"high_freq_factor\": 4, "
                             "\"original_max_position_embeddings\": 1048577}";
    small_write_config(&far, folder);
    refuse(&c, "its model.rope_original is not supported: a config has 1 to 1048576");
}

/* Frozen parameters are read apart. */
static void test_frozen(void **state) {
    (void)state;
    ls_config c = config_of(0);
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_pretrained_resolve(&c, NULL, &e), e);
    c.train.freeze = "model.layers.*.mlp.*";
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    small_tensor list[SMALL_TENSORS];
    int n = small_list(&small_models[0], list), nfrozen = 0;
    float *params = LS_NEW_ARRAY(float, m.nfloats), *frozen = LS_NEW_ARRAY(float, m.frozen_floats);
    ls_train_state s = {.model = &m, .flat = {1, {params}}};
    assert_ls_ok(ls_pretrained_load(c.model.from, &s, &e), e);
    assert_ls_ok(ls_pretrained_load_frozen(c.model.from, &m, frozen, &e), e);
    for (int i = 0; i < m.nparams; i++) {
        const ls_param *p = &m.params[i];
        float *want = small_values(find(list, n, p->name));
        nfrozen += p->frozen;
        assert_memory_equal((p->frozen ? frozen : params) + p->offset, want,
                            p->count * sizeof *want);
        free(want);
    }
    assert_int_equal(nfrozen, 6);
    free(params), free(frozen);
    ls_model_free(&m);
}

/* Writes the folder's weights anew, in bf16. */
static void narrow_folder(void) {
    ls_weights w = {0};
    ls_error e = {0};
    assert_ls_ok(ls_weights_open(folder, &w, &e), e);
    ls_model_source source = ls_source_of_weights(&w);
    char *path = ls_format("%s/model.safetensors", folder);
    assert_int_equal(unlink(path), 0);
    assert_ls_ok(ls_write_safetensors(&source, folder, LS_BLOCK_BF16, 0, &e), e);
    ls_weights_close(&w);
    free(path);
}

/* A file's values of the type are used where it has them; the others are opened one at a time. */
static void test_in_place(void **state) {
    (void)state;
    ls_config c = config_of(0);
    ls_model m = {0};
    ls_error e = {0};
    ls_pretrained f = {0};
    narrow_folder();
    assert_ls_ok(ls_pretrained_resolve(&c, NULL, &e), e);
    c.train.freeze = "model.layers.*.mlp.*";
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    float *want = LS_NEW_ARRAY(float, m.frozen_floats);
    assert_ls_ok(ls_pretrained_load_frozen(c.model.from, &m, want, &e), e);
    static const ls_dtype types[] = {LS_BF16, LS_F16};
    static const size_t all_placed[] = {6, 0};
    for (int t = 0; t < 2; t++) {
        size_t nplaced = 0;
        assert_ls_ok(ls_pretrained_open_for(c.model.from, &m, types[t], &f, &e), e);
        for (int i = 0; i < m.nparams; i++) {
            const ls_param *p = &m.params[i];
            bool placed = f.values[i].data;
            nplaced += placed;
            assert_null(f.copies[i]);
            if (!p->frozen) {
                assert_false(placed);
                continue;
            }
            assert_true(!placed || f.values[i].type == ls_block_of_dtype(types[t]));
            if (!placed) assert_ls_ok(ls_pretrained_open_param(&f, &m, i, &e), e);
            float *got = LS_NEW_ARRAY(float, p->count);
            ls_stored_read(f.files.kernels, f.values[i], 0, (int64_t)p->count, got);
            assert_memory_equal(got, want + p->offset, p->count * sizeof *got);
            free(got);
            if (!placed) ls_pretrained_close_param(&f, i);
            assert_true(placed == (f.values[i].data != NULL));
        }
        assert_int_equal(nplaced, all_placed[t]);
        ls_pretrained_close(&f);
    }
    free(want);
    ls_model_free(&m);
}

/* The file has another shape than it had when the run began. */
static void test_changed(void **state) {
    (void)state;
    ls_config c = config_of(0);
    ls_model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_pretrained_resolve(&c, NULL, &e), e);
    c.model.ffn = 80;
    assert_ls_ok(ls_network_create(&c, &m, &e), e);
    float *params = LS_NEW_ARRAY(float, m.nfloats);
    ls_train_state s = {.model = &m, .flat = {1, {params}}};
    assert_int_equal(ls_pretrained_load(c.model.from, &s, &e), LS_EINVAL);
    assert_non_null(
        strstr(e.msg, "has no tensor 'model.layers.0.mlp.gate_proj.weight' of the model's"));
    free(params);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),  cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_resumed), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_changed), cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_in_place)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
