/* published_record_test.c - what a run keeps of the published model that it began with. */
#include "dataset/published_record.h"

#include <string.h>

#include "base/intern.h"
#include "folder.h"
#include "test.h"
#include "weights/small_text.h"

static char *run_path, *model_path, *record_path;

static int make(void **state) {
    if (make_folder(state) != 0) return -1;
    run_path = ls_format("%s/run", folder);
    model_path = ls_format("%s/m.gguf", folder);
    record_path = ls_format("%s/run/" LS_PUBLISHED_RECORD, folder);
    small_write_whole(&small_models[0], model_path);
    return ls_file_make_dirs(run_path, NULL) == LS_OK ? 0 : -1;
}

static int drop(void **state) {
    free(run_path), free(model_path), free(record_path);
    return remove_folder(state);
}

static ls_config *config_from(const char *model, const char *run) {
    ls_config *c = LS_NEW(ls_config);
    ls_config_defaults(c);
    c->model.from = ls_intern(model);
    c->train.from = ls_intern(run);
    return c;
}

static void make_record(const char *run, const ls_config *c) {
    ls_error e = {0};
    assert_ls_ok(ls_published_record_make(run, c, &e), e);
}

static ls_published_record read_record(const char *path) {
    ls_error e = {0};
    ls_published_record r;
    assert_ls_ok(ls_published_record_read(path, &r, &e), e);
    return r;
}

/* The model's template; data.template in its place; a run that begins with this one. */
static void test_made(void **state) {
    static const char own[] = "own {{ messages }}";
    (void)state;
    ls_error e = {0};
    assert_false(read_record(run_path).there);
    ls_config *c = config_from(model_path, "");
    make_record(run_path, c);
    ls_published_record r = read_record(run_path);
    assert_true(r.there && r.arch.width > 0);
    assert_true(r.templates.main.len == strlen(SMALL_CHAT));
    assert_memory_equal(r.templates.main.data, SMALL_CHAT, r.templates.main.len);
    ls_published_record_free(&r);

    char *template = ls_format("%s/t.jinja", folder), *second = ls_format("%s/second", folder);
    assert_ls_ok(ls_file_write(template, own, sizeof own - 1, &e), e);
    assert_ls_ok(ls_file_make_dirs(second, &e), e);
    ls_config *d = config_from("", run_path);
    d->data.template = ls_intern(template);
    make_record(second, d);
    r = read_record(second);
    assert_true(r.there && r.templates.main.len == sizeof own - 1);
    assert_memory_equal(r.templates.main.data, own, sizeof own - 1);
    ls_published_record_free(&r);

    char *checkpoint = ls_format("%s/checkpoints/step-3", run_path);
    assert_ls_ok(ls_file_make_dirs(checkpoint, &e), e);
    r = read_record(checkpoint); /* in the run */
    assert_true(r.there);
    ls_published_record_free(&r);
    free(checkpoint), free(template), free(second), free(c), free(d);
}

static void refuses(const char *text, const char *says) {
    ls_error e = {0};
    ls_published_record r;
    ls_status s = ls_published_record_parse(text, strlen(text), "here.json", &r, &e);
    if (s != LS_EINVAL || !strstr(e.msg, says) || !strstr(e.msg, "here.json"))
        fail_msg("%s: '%s' does not say '%s'", text, e.msg, says);
}

#define WITH(more)                                                                                 \
    "{\"config\": {\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 1, \"n_head\": 1, "       \
    "\"n_positions\": 9, \"layer_norm_epsilon\": 1e-5, \"activation_function\": \"gelu_new\", "    \
    "\"vocab_size\": 20, \"bos_token_id\": 3, \"eos_token_id\": 4}, \"template\": \"x\"" more "}"

static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_published_record r;
    assert_ls_ok(ls_published_record_parse(WITH(""), strlen(WITH("")), "here.json", &r, &e), e);
    assert_true(r.there && !r.says[LS_EOS_TOKEN] && r.arch.bos == 3);
    ls_published_record_free(&r);
    refuses("", "here.json");
    refuses("[]", "config is missing");
    refuses("{\"template\": \"x\"}", "config is missing");
    refuses("{\"config\": {}}", "template is missing");
    refuses(WITH(", \"tool_template\": 1"), "tool_template is missing or not a text");
    refuses(WITH(", \"generation\": 1"), "is not a JSON object");
    refuses(WITH(", \"generation\": {\"top_p\": 7}"), "top_p");
    refuses(WITH(", \"bos_token\": 1"), "bos_token is not a text");
    refuses(WITH(", \"eos_token\": {}"), "eos_token is not a text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
