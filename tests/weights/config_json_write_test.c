/* config_json_write_test.c - a config.json that is written is read as the same;
 * generation_config.json, written and read. */
#include "folder.h"
#include "weights/published_config.h"

static ls_buf text_of(const ls_architecture *a) {
    ls_json *o = ls_config_json_new(a, "float32");
    ls_buf text = {0};
    ls_json_write(o, 2, &text);
    ls_json_free(o);
    return text;
}

/* By what is written of them: structs have padding. */
static void is_same(const ls_architecture *a, const ls_architecture *b) {
    ls_buf one = text_of(a), other = text_of(b);
    assert_string_equal(one.data, other.data);
    assert_null(ls_architecture_difference(a, b));
    ls_buf_free(&one), ls_buf_free(&other);
}

/* What is written is read as the same, with either of its forms of the rotation alone. */
static void test_written(void **state) {
    (void)state;
    for (size_t i = 0; i < NALL; i++) {
        ls_architecture a = good(all[i]), b;
        if (i == 2) a.rope = (ls_rotation){.type = LS_ROPE_LINEAR, .base = 1e4, .factor = 1.5};
        ls_buf text = text_of(&a);
        b = good(text.data);
        is_same(&a, &b);
        if (a.family == LS_FAMILY_GEMMA3) {
            b = good_with(text.data, "layer_types", NULL);
            is_same(&a, &b);
            b = good_with(text.data, "sliding_window_pattern", NULL);
            is_same(&a, &b);
        }
        if (a.family == LS_FAMILY_SMOLLM3) {
            b = good_with(text.data, "no_rope_layers", NULL);
            is_same(&a, &b);
        }
        if (a.family != LS_FAMILY_GPT2) {
            b = good_with(text.data, "rope_parameters", NULL);
            is_same(&a, &b);
            char *five = changed(text.data, "rope_scaling", NULL);
            b = good_with(five, "rope_theta", NULL);
            is_same(&a, &b);
            free(five);
        }
        ls_buf_free(&text);
    }
}

static void test_generation(void **state) {
    (void)state;
    ls_architecture a = good(smollm), b = a;
    ls_error e = {0};
    char *path = ls_format("%s/generation_config.json", folder);
    assert_ls_ok(ls_generation_json_load(path, &a, &e), e); /* there is none */
    assert_memory_equal(&a, &b, sizeof a);
    static const char text[] = "{\"eos_token_id\": [7, 9], \"temperature\": 0.6}";
    assert_ls_ok(ls_file_replace(path, text, sizeof text - 1, &e), e);
    assert_ls_ok(ls_generation_json_load(path, &a, &e), e);
    assert_true(a.neos == 2 && a.eos[0] == 7 && a.eos[1] == 9);
    ls_json *o = ls_generation_json_new(&a);
    ls_buf out = {0};
    ls_json_write(o, 0, &out);
    ls_json_free(o);
    assert_string_equal(out.data, "{\"bos_token_id\": 1, \"eos_token_id\": [7, 9], "
                                  "\"pad_token_id\": 2, \"do_sample\": true, "
                                  "\"temperature\": 0.6}");
    ls_buf_free(&out);
    static const char *const bad[] = {"[]",
                                      "{\"eos_token_id\": \"x\"}",
                                      "{\"eos_token_id\": 999999}",
                                      "{",
                                      "{\"temperature\": \"hot\"}",
                                      "{\"temperature\": -1}",
                                      "{\"top_p\": 1.5}",
                                      "{\"top_k\": 1e300}",
                                      "{\"do_sample\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ls_ok(ls_file_replace(path, bad[i], strlen(bad[i]), &e), e);
        assert_ls_fails(ls_generation_json_load(path, &b, &e), LS_EINVAL, path, e);
    }
    free(path);
}

static ls_generation generation_of(const char *text) {
    ls_architecture a = good(smollm);
    ls_error e = {0};
    ls_json *o = NULL;
    assert_ls_ok(ls_json_parse(text, strlen(text), "x", &o, &e), e);
    assert_ls_ok(ls_generation_json_read(o, "x", &a, &e), e);
    ls_json_free(o);
    return a.generation;
}

/* How text is drawn, as Qwen's file says it; a model that does not draw. */
static void test_drawing(void **state) {
    (void)state;
    ls_generation g = generation_of("{\"do_sample\": true, \"repetition_penalty\": 1.05, "
                                    "\"temperature\": 0.7, \"top_k\": 20, \"top_p\": 0.8, "
                                    "\"min_p\": null}");
    assert_true(g.temperature == 0.7 && g.top_k == 20 && g.top_p == 0.8 && g.penalty == 1.05);
    assert_true(g.min_p == 0 && !g.greedy);
    assert_true(generation_of("{\"do_sample\": false, \"temperature\": 0.7}").greedy);
    assert_true(generation_of("{\"temperature\": 0}").greedy);
    g = generation_of("{\"top_p\": 0.9}");
    assert_true(!g.greedy && g.temperature == 0 && g.top_p == 0.9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_generation),
        cmocka_unit_test(test_drawing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
