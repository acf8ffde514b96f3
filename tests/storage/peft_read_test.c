/* peft_read_test.c - adapter_config.json: each key that peft writes is used, known to change
 * nothing, or refused by its name. */
#include "storage/adapter_file.h"

#include <string.h>

#include "base/intern.h"
#include "folder.h"
#include "test.h"

/* What peft 0.21 writes of LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj"]). */
static const char *const written[] = {
    "\"alora_invocation_tokens\": null",
    "\"alpha_pattern\": {}",
    "\"arrow_config\": null",
    "\"auto_mapping\": null",
    "\"base_model_name_or_path\": \"someone/model\"",
    "\"bias\": \"none\"",
    "\"corda_config\": null",
    "\"ensure_weight_tying\": false",
    "\"eva_config\": null",
    "\"exclude_modules\": null",
    "\"fan_in_fan_out\": false",
    "\"inference_mode\": true",
    "\"init_lora_weights\": true",
    "\"kasa_config\": null",
    "\"layer_replication\": null",
    "\"layers_pattern\": null",
    "\"layers_to_transform\": null",
    "\"loftq_config\": {}",
    "\"lora_alpha\": 8",
    "\"lora_bias\": false",
    "\"lora_dropout\": 0.25",
    "\"lora_ga_config\": null",
    "\"megatron_config\": null",
    "\"megatron_core\": \"megatron.core\"",
    "\"modules_to_save\": null",
    "\"monteclora_config\": null",
    "\"peft_type\": \"LORA\"",
    "\"peft_version\": \"0.21.2\"",
    "\"qalora_group_size\": 16",
    "\"r\": 4",
    "\"rank_pattern\": {}",
    "\"revision\": null",
    "\"target_modules\": [\"q_proj\"]",
    "\"target_parameters\": null",
    "\"task_type\": \"CAUSAL_LM\"",
    "\"trainable_token_indices\": null",
    "\"use_bdlora\": null",
    "\"use_dora\": false",
    "\"use_qalora\": false",
    "\"use_rslora\": false",
    "\"velora_config\": null",
};
enum { NWRITTEN = sizeof written / sizeof *written };

static size_t key_length(const char *member) { return strcspn(member, ":"); }

static ls_status adopt_text(const ls_buf *text, ls_config *c, ls_error *e) {
    char *path = ls_format("%s/adapter_config.json", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text->data, 1, text->len, f), text->len);
    assert_int_equal(fclose(f), 0);
    free(path);
    ls_config_defaults(c);
    c->model.adapter = ls_intern(folder);
    c->model.from = "/base";
    return ls_adapter_file_adopt(c, e);
}

/* The file with this member in the place of the one of its key, or beside all. */
static ls_status adopt(const char *member, ls_config *c, ls_error *e) {
    ls_buf text = {0};
    for (int i = 0; i < NWRITTEN; i++) {
        size_t n = key_length(member);
        if (n == key_length(written[i]) && strncmp(member, written[i], n) == 0) continue;
        ls_buf_printf(&text, "%s%s", text.len ? ", " : "{", written[i]);
    }
    ls_buf_printf(&text, ", %s}", member);
    ls_status s = adopt_text(&text, c, e);
    ls_buf_free(&text);
    return s;
}

/* What is missing has peft's default, or is refused. */
static void test_missing(void **state) {
    (void)state;
    ls_config *c = LS_NEW(ls_config);
    ls_error e = {0};
    ls_buf text = {0};
    ls_buf_printf(&text, "{\"peft_type\": \"LORA\", \"target_modules\": [\"q_proj\"]}");
    assert_ls_ok(adopt_text(&text, c, &e), e);
    assert_true(c->lora.rank == 8 && c->lora.alpha == 8 && c->lora.dropout == 0);
    ls_buf_free(&text);
    ls_buf_printf(&text, "{\"peft_type\": \"LORA\"}");
    assert_ls_fails(adopt_text(&text, c, &e), LS_EINVAL, "target_modules", e);
    ls_buf_free(&text);
    free(c);
}

static void takes(const char *member, ls_config *c) {
    ls_error e = {0};
    if (adopt(member, c, &e) != LS_OK) fail_msg("%s: %s", member, e.msg);
    assert_int_equal(c->lora.rank, 4);
}

/* The message names the key. */
static void refuses(const char *member, const char *says) {
    ls_config *c = LS_NEW(ls_config);
    ls_error e = {0};
    char *key = ls_format("%.*s", (int)key_length(member) - 2, member + 1);
    if (adopt(member, c, &e) != LS_EINVAL || !strstr(e.msg, key) || !strstr(e.msg, says))
        fail_msg("%s: '%s' does not say '%s'", member, e.msg, says);
    free(key);
    free(c);
}

static void test_used(void **state) {
    (void)state;
    ls_config *c = LS_NEW(ls_config);
    takes("\"foo\": null", c);
    assert_true(c->lora.alpha == 8 && c->lora.dropout == 0.25 && !c->lora.rs && !c->lora.dora);
    assert_string_equal(c->lora.targets, "q_proj");
    assert_string_equal(c->lora.train, "");
    takes("\"use_rslora\": true", c);
    assert_true(c->lora.rs);
    takes("\"use_dora\": true", c);
    assert_true(c->lora.dora);
    takes("\"lora_dropout\": null", c);
    assert_true(c->lora.dropout == 0);
    takes("\"target_modules\": \"all-linear\"", c);
    assert_string_equal(c->lora.targets, "all-linear");
    free(c);
}

/* First values that a file replaces, and notes. */
static void test_harmless(void **state) {
    (void)state;
    static const char *const members[] = {"\"init_lora_weights\": false",
                                          "\"init_lora_weights\": \"gaussian\"",
                                          "\"init_lora_weights\": \"eva\"",
                                          "\"init_lora_weights\": \"orthogonal\"",
                                          "\"eva_config\": {\"rho\": 2.0}",
                                          "\"loftq_config\": {\"loftq_bits\": 4}",
                                          "\"auto_mapping\": {\"base_model_class\": \"X\"}",
                                          "\"revision\": \"main\"",
                                          "\"qalora_group_size\": 32",
                                          "\"inference_mode\": false",
                                          "\"ensure_weight_tying\": true",
                                          "\"task_type\": null"};
    ls_config *c = LS_NEW(ls_config);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) takes(members[i], c);
    free(c);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const inits[] = {"pissa", "pissa_niter_4", "olora", "corda",
                                        "loftq", "lora_ga",       "mica",  "other"};
    for (size_t i = 0; i < sizeof inits / sizeof *inits; i++) {
        char *member = ls_format("\"init_lora_weights\": \"%s\"", inits[i]);
        refuses(member, "leave the base's weights as they are");
        free(member);
    }
    static const char *const on[] = {"\"alora_invocation_tokens\": [1]",
                                     "\"arrow_config\": {\"top_k\": 2}",
                                     "\"enable_lora\": [true]",
                                     "\"fan_in_fan_out\": true",
                                     "\"kasa_config\": {\"beta\": 1}",
                                     "\"layer_replication\": [[0, 1]]",
                                     "\"lora_bias\": true",
                                     "\"megatron_config\": {\"a\": 1}",
                                     "\"monteclora_config\": {\"num_samples\": 8}",
                                     "\"target_parameters\": [\"x\"]",
                                     "\"trainable_token_indices\": [1]",
                                     "\"use_bdlora\": {\"a\": 1}",
                                     "\"use_qalora\": true",
                                     "\"velora_config\": {\"a\": 1}"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) refuses(on[i], "it must be empty");
    refuses("\"bias\": \"all\"", "none is possible");
    refuses("\"task_type\": \"SEQ_CLS\"", "CAUSAL_LM is possible");
    refuses("\"peft_type\": \"LOHA\"", "type LORA");
    refuses("\"use_something_new\": true", "is not known");
    refuses("\"use_something_new\": false", "is not known");
    refuses("\"use_rslora\": \"yes\"", "true or false");
    refuses("\"use_dora\": 1", "true or false");
    refuses("\"lora_dropout\": \"0.1\"", "a number");
    refuses("\"lora_alpha\": \"8\"", "a number above 0");
    refuses("\"bias\": false", "a text");
    refuses("\"rank_pattern\": [4]", "is not an object of names and numbers");
    refuses("\"rank_pattern\": {\"q_proj\": 2.5}",
            "'q_proj' is not a rank, a whole number above 0");
    refuses("\"rank_pattern\": {\"q_proj\": 65537}", "'q_proj' is not a rank");
    refuses("\"alpha_pattern\": {\"q_proj\": 0}", "'q_proj' is not a number above 0");
    refuses("\"alpha_pattern\": {\"(?!q)proj\": 1}", "'(?!q)proj': character ");
    refuses("\"modules_to_save\": \"norm\"", "a list of names");
    refuses("\"modules_to_save\": [3]", "a list of names");
}

/* peft compares ends of names without regard to dots, and takes all that is in a module. */
static void test_saved(void **state) {
    (void)state;
    ls_config *c = LS_NEW(ls_config);
    takes("\"modules_to_save\": [\"norm\", \"base_model.model.model.layers.0.mlp\"]", c);
    assert_string_equal(c->lora.train, "*norm.*\n*model.layers.0.mlp.*");
    takes("\"modules_to_save\": [\"a*[b\"]", c);
    assert_string_equal(c->lora.train, "*a\\*\\[b.*");
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_used),
        cmocka_unit_test(test_harmless), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_saved),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
