/* model_text_test.c - ends, pads and templates of a published model, by the precedence of
 * transformers, and both ways: import, export as GGUF, import again. */
#include "weights/model_text.h"

#include <string.h>

#include "base/json.h"
#include "folder.h"
#include "test.h"
#include "weights/export_weights.h"
#include "weights/import.h"
#include "weights/small_text.h"

static char *in; /* a directory with a model of 95 tokens: ' ' has the id 0, 'A' 33 */

static int make(void **state) {
    ls_error e = {0};
    ls_imported i = {0};
    if (make_folder(state) != 0) return -1;
    char *gguf = ls_format("%s/m.gguf", folder);
    in = ls_format("%s/in", folder);
    small_write_whole(&small_models[0], gguf);
    ls_status s = ls_model_import(gguf, in, LS_NBLOCK_TYPES, &i, &e);
    ls_imported_free(&i);
    free(gguf);
    return s == LS_OK ? 0 : -1;
}

static int drop(void **state) {
    free(in);
    return remove_folder(state);
}

/* NULL: removes it. */
static void put(const char *name, const char *text) {
    char *path = ls_format("%s/%s", in, name);
    if (text) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
        assert_int_equal(fclose(f), 0);
    } else {
        remove(path);
    }
    free(path);
}

/* Sets the ids of config.json. */
static void put_ids(const char *bos, const char *eos, const char *pad) {
    ls_json *o = NULL, *ids = NULL;
    ls_error e = {0};
    ls_buf text = {0};
    char *path = ls_format("%s/config.json", in);
    char *list = ls_format("[%s, %s, %s]", bos, eos, pad);
    assert_ls_ok(ls_json_read(path, 1 << 20, &o, &e), e);
    assert_ls_ok(ls_json_parse(list, strlen(list), "", &ids, &e), e);
    ls_json_set(o, "bos_token_id", ls_json_share(ls_json_at(ids, 0)));
    ls_json_set(o, "eos_token_id", ls_json_share(ls_json_at(ids, 1)));
    ls_json_set(o, "pad_token_id", ls_json_share(ls_json_at(ids, 2)));
    ls_json_write(o, 0, &text);
    put("config.json", text.data);
    ls_buf_free(&text);
    ls_json_free(o), ls_json_free(ids);
    free(list), free(path);
}

typedef struct model {
    ls_weights w;
    ls_model_text text;
} model;

static model open_model(const char *path) {
    model m = {0};
    ls_error e = {0};
    assert_ls_ok(ls_weights_open(path, &m.w, &e), e);
    assert_ls_ok(ls_model_text_read(&m.w, &m.text, &e), e);
    return m;
}

static void close_model(model *m) {
    ls_weights_close(&m->w);
    ls_model_text_free(&m->text);
}

/* ids: "bos pad | eos eos ..." */
static void check_ids(const ls_architecture *a, const char *want) {
    ls_buf text = {0};
    ls_buf_printf(&text, "%lld %lld |", (long long)a->bos, (long long)a->pad);
    for (int i = 0; i < a->neos; i++) ls_buf_printf(&text, " %lld", (long long)a->eos[i]);
    assert_string_equal(text.data, want);
    ls_buf_free(&text);
}

/* want: "bos eos pad unk", - for none */
static void check_special(const ls_model_text *t, const char *want) {
    ls_buf text = {0};
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        ls_buf_printf(&text, "%s%s", k ? " " : "", t->special[k] ? t->special[k] : "-");
    assert_string_equal(text.data, want);
    ls_buf_free(&text);
}

static void check_templates(const ls_model_text *t, const char *main, const char *tools) {
    assert_string_equal(t->templates.main.data ? t->templates.main.data : "", main);
    assert_string_equal(t->templates.tools.data ? t->templates.tools.data : "", tools);
}

static void check(const char *path, const char *ids, const char *special) {
    model m = open_model(path);
    check_ids(&m.w.arch, ids);
    check_special(&m.text, special);
    close_model(&m);
}

/* The imported directory says the same; a GGUF file has the tokenizer's end first, and other ends
 * of the model behind it. */
static void check_both_ways(const char *ids, const char *gguf_ids, const char *special) {
    ls_error e = {0};
    ls_imported i = {0};
    ls_written w = {0};
    char *again = ls_format("%s/again", folder), *gguf = ls_format("%s/x.gguf", folder);
    check(in, ids, special);
    assert_ls_ok(ls_model_import(in, again, LS_BLOCK_F32, &i, &e), e);
    check(again, ids, special);
    model m = open_model(again), n = open_model(in);
    const ls_token_ids a = ls_architecture_config_ids(&m.w.arch),
                       b = ls_architecture_config_ids(&n.w.arch);
    assert_true(a.bos == b.bos && a.pad == b.pad && a.neos == b.neos);
    assert_memory_equal(a.eos, b.eos, sizeof a.eos);
    const ls_export x = {
        .source = ls_source_of_weights(&m.w), .text = &m.text, .type = LS_BLOCK_F32};
    assert_ls_ok(ls_export_gguf(&x, gguf, &w, &e), e);
    ls_written_free(&w);
    close_model(&m), close_model(&n);
    m = open_model(gguf);
    check_ids(&m.w.arch, gguf_ids);
    close_model(&m);
    ls_imported_free(&i);
    assert_ls_ok(ls_file_remove_tree(again, &e), e);
    remove(gguf);
    free(again), free(gguf);
}

#define CONFIG(more) "{\"added_tokens_decoder\": {}" more "}"

/* The end of a turn is the third of the model's ends, as in Llama 3.1. */
static void test_tokens(void **state) {
    (void)state;
    put("tokenizer_config.json",
        CONFIG(
            ", \"bos_token\": \"!\", \"eos_token\": {\"content\": \"D\"}, \"pad_token\": \"E\""));
    put_ids("1", "[34, 35, 36]", "null");
    put("generation_config.json", NULL);
    check_both_ways("1 -1 | 34 35 36", "1 37 | 36 34 35", "! D E -");
    /* generation_config.json comes before config.json, and leaves what it doesn't say */
    put("generation_config.json", "{\"eos_token_id\": [36, 40], \"pad_token_id\": 38}");
    check_both_ways("1 38 | 36 40", "1 37 | 36 40", "! D E -");
    /* an end that the model does not stop at */
    put("generation_config.json", "{\"eos_token_id\": [40, 41, 42]}");
    check_both_ways("1 -1 | 40 41 42", "1 37 | 36 40 41", "! D E -");
    /* null stands for none; a missing key for the id of config.json */
    put("tokenizer_config.json", CONFIG(", \"bos_token\": null"));
    put("generation_config.json", NULL);
    put_ids("1", "[34, 35]", "39");
    check_both_ways("1 39 | 34 35", "1 39 | 34 35", "- B G -");
    /* the older form */
    put("tokenizer_config.json", "{\"eos_token\": \"B\"}");
    put("special_tokens_map.json", "{\"eos_token\": \"D\", \"unk_token\": {\"content\": \"?\"}}");
    check_both_ways("1 39 | 34 35", "1 39 | 36 34 35", "! D G ?");
    put("tokenizer_config.json", CONFIG(", \"eos_token\": \"B\""));
    check(in, "1 39 | 34 35", "! B G -");
    put("special_tokens_map.json", NULL);
}

static void refuses(const char *config, const char *says) {
    model m = {0};
    ls_error e = {0};
    put("tokenizer_config.json", config);
    assert_ls_ok(ls_weights_open(in, &m.w, &e), e);
    assert_ls_fails(ls_model_text_read(&m.w, &m.text, &e), LS_EINVAL, says, e);
    ls_weights_close(&m.w);
}

static void test_templates(void **state) {
    (void)state;
    ls_error e = {0};
    ls_imported i = {0};
    put("chat_template.jinja", NULL);
    put("tokenizer_config.json",
        CONFIG(", \"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, "
               "{\"name\": \"rag\", \"template\": \"r\"}, "
               "{\"name\": \"default\", \"template\": \"d\"}]"));
    model m = open_model(in);
    check_templates(&m.text, "d", "t");
    char *again = ls_format("%s/again", folder), *gguf = ls_format("%s/x.gguf", folder);
    const ls_export x = {
        .source = ls_source_of_weights(&m.w), .text = &m.text, .type = LS_BLOCK_F32};
    ls_written w = {0};
    assert_ls_ok(ls_export_gguf(&x, gguf, &w, &e), e);
    ls_written_free(&w);
    close_model(&m);
    m = open_model(gguf);
    check_templates(&m.text, "d", "t");
    close_model(&m);
    assert_ls_ok(ls_model_import(gguf, again, LS_BLOCK_F32, &i, &e), e);
    ls_imported_free(&i);
    m = open_model(again);
    check_templates(&m.text, "d", "t");
    close_model(&m);
    assert_ls_ok(ls_file_remove_tree(again, &e), e);
    remove(gguf);
    free(again), free(gguf);
    /* a file of its own comes first */
    put("chat_template.jinja", "own");
    m = open_model(in);
    check_templates(&m.text, "own", "");
    close_model(&m);
    put("chat_template.jinja", NULL);
    refuses(
        CONFIG(", \"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, {\"name\": "
               "\"rag\", \"template\": \"r\"}]"),
        "without one named 'default'; there are 'tool_use', 'rag'");
    refuses(CONFIG(", \"chat_template\": [{\"name\": \"default\"}]"), "no name and template");
    refuses(CONFIG(", \"chat_template\": 3"), "must be a text");
    refuses(CONFIG(", \"eos_token\": 3"), "eos_token is not a text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_templates),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
