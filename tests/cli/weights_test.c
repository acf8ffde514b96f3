/* weights_test.c - lockstep weights: what it prints of models and of files that are none, for
 * people and for programs. */
#include "cli/program.h"

#include "base/json.h"
#include "weights/small_model.h"

static char gguf[96], model[96];

static int make(void **state) {
    if (folder_make(state)) return -1;
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    snprintf(model, sizeof model, "%s/model", folder);
    return ls_file_make_dirs(model, NULL) == LS_OK ? 0 : -1;
}

static void test_gguf(void **state) {
    (void)state;
    small_write_gguf(&small_models[0], gguf);
    char *output = output_of("weights @/m.gguf");
    assert_output_has(output, "format     GGUF version 3\n");
    assert_output_has(output,
                      "model      llama: 2 layers, width 64, feed-forward 96, 4 heads of 16, ");
    assert_output_has(output, "rope base 50000");
    assert_output_has(output, "weights    68160 parameters: 20 F32\n");
    assert_output_has(output, "tensors    20, 0.273 MB\n");
    assert_output_has(output, "model.layers.1.self_attn.k_proj.weight          F32   [32, 64]\n");
    assert_null(strstr(output, "general.architecture"));
    free(output);
    output = output_of("weights @/m.gguf --keys");
    assert_output_has(output, "general.architecture                     \"llama\"\n");
    assert_output_has(output, "llama.attention.head_count_kv            2\n");
    free(output);
}

/* Keys and names that would change the terminal or forge lines. */
static void test_keys(void **state) {
    (void)state;
    ls_buf more = {0};
    small_tensor list[SMALL_TENSORS];
    int n = small_list(&small_models[0], list);
    put_key_text(&more, "a.text", "one\ntwo \x1b[31m");
    put_key(&more, "a.bool", BOOL), ls_buf_append(&more, "\1", 1);
    put_key(&more, "a.list", ARRAY), put32(&more, U32), put64(&more, 9);
    for (uint32_t i = 0; i < 9; i++) put32(&more, i);
    put_key(&more, "a.none", ARRAY), put32(&more, TEXT), put64(&more, 0);
    put_key(&more, "a.huge", U64), put64(&more, UINT64_MAX);
    put_key(&more, "a\nb", U32), put32(&more, 1);
    snprintf(list[1].gguf, sizeof list[1].gguf, "no such\nthing");
    small_write_gguf_of(&small_models[0], list, n, &more, 6, gguf);
    ls_buf_free(&more);
    char *output = NULL;
    assert_int_equal(run_program("weights @/m.gguf --keys", &output), 1);
    assert_output_has(output, "a.text                                   \"one\\ntwo \\x1b[31m\"\n");
    assert_output_has(output, "a.bool                                   true\n");
    assert_output_has(
        output, "a.list                                   9 u32: 0, 1, 2, 3, 4, 5, 6, 7, ...\n");
    assert_output_has(output, "a.none                                   0 text\n");
    assert_output_has(output, "a.huge                                   above 2^63\n");
    assert_output_has(output, "a\\nb  ");
    assert_output_has(output, "no such\\nthing  ");
    assert_output_has(output, "m.gguf: has no tensor 'blk.0.attn_norm.weight'");
    free(output);
}

static void test_folder(void **state) {
    (void)state;
    small_write_folder(&small_models[3], model);
    char *output = output_of("weights @/model");
    assert_output_has(output, "format     safetensors\n");
    assert_output_has(output, "model      qwen3: 2 layers");
    assert_output_has(output, "untied");
    free(output);
    expect("weights @/model/model.safetensors", 0, "lm_head.weight");
    small_write_text(model, "config.json", "{\"model_type\": \"gemma\"}");
    expect_line("weights @/model", 1, "model_type is \"gemma\"");
    expect_line("weights @/none", 1, "/none: can't be opened");
    expect_line("weights @/model/config.json", 1, "is not a GGUF file");
    expect_line("weights", 2, "FILE|DIR is missing");
    write_file("x.safetensors", "xxxxxxxxxxxx", 12);
    expect_line("weights @/x.safetensors", 1, "is not a safetensors file");
}

static void test_json(void **state) {
    (void)state;
    ls_error e = {0};
    ls_json *j = NULL;
    small_write_gguf(&small_models[4], gguf);
    char *output = output_of("weights @/m.gguf --json");
    assert_ls_ok(ls_json_parse(output, strlen(output), "output", &j, &e), e);
    int64_t n = 0;
    assert_true(ls_json_integer(ls_json_get(j, "parameters"), &n) && n > 60000);
    assert_true(ls_json_integer(ls_json_get(j, "bytes"), &n) && n > 240000);
    assert_string_equal(ls_json_text(ls_json_get(j, "format")), "GGUF");
    const ls_json *config = ls_json_get(j, "config"), *keys = ls_json_get(j, "metadata");
    assert_true(ls_json_integer(ls_json_get(config, "n_embd"), &n) && n == 64);
    assert_string_equal(ls_json_text(ls_json_get(keys, "general.architecture")), "gpt2");
    const ls_json *t = ls_json_at(ls_json_get(j, "tensors"), 4);
    assert_string_equal(ls_json_text(ls_json_get(t, "name")), "h.0.attn.c_attn.weight");
    assert_string_equal(ls_json_text(ls_json_get(t, "stored")), "blk.0.attn_qkv.weight");
    assert_true(ls_json_integer(ls_json_at(ls_json_get(t, "shape"), 1), &n) && n == 192);
    ls_json_free(j);
    free(output);
    write_bytes(gguf, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    assert_int_equal(run_program("weights @/m.gguf --json", &output), 1);
    assert_output_has(output, "\"config\": null, \"unsupported\": \"");
    assert_output_has(output, "general.architecture is missing");
    free(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
