/* chat_test.c - a conversation: what a turn costs, that retained keys and values change nothing,
 * how answers end, and what is refused. */
#include "infer/chat.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"
#include "weights/small_text.h"

static const char TEMPLATE[] =
    "{% for m in messages %}{{ m.role[0] }}{{ m.content | trim }}\n{% endfor %}"
    "{% if add_generation_prompt %}a{% endif %}";

static ls_trained trained;
static char *template_path;

static int open_model(void **state) {
    if (make_folder(state) != 0) return -1;
    ls_error e = {0};
    char *path = ls_format("%s/m.gguf", folder);
    template_path = ls_format("%s/t.jinja", folder);
    small_write_whole(&small_models[0], path);
    assert_ls_ok(ls_file_write(template_path, TEMPLATE, sizeof TEMPLATE - 1, &e), e);
    assert_ls_ok(ls_trained_open(path, &(ls_trained_options){0}, &trained, &e), e);
    free(path);
    return 0;
}

static int close_model(void **state) {
    ls_trained_close(&trained);
    free(template_path);
    return remove_folder(state);
}

static ls_chat open_chat(void) {
    ls_error e = {0};
    ls_chat c;
    assert_ls_ok(ls_chat_open(&trained, template_path, &c, &e), e);
    c.format.nends = 0; /* a random model would end its answers anywhere */
    return c;
}

typedef struct heard {
    char text[256];
    size_t n;
    volatile sig_atomic_t asked;
    size_t ask_at; /* bytes; 0: never */
} heard;

static ls_status hear(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    (void)e;
    heard *h = arg;
    assert_true(h->n + nbytes < sizeof h->text);
    memcpy(h->text + h->n, bytes, nbytes);
    h->n += nbytes;
    if (h->ask_at && h->n >= h->ask_at) h->asked = 1;
    return LS_OK;
}

static ls_generated say(ls_chat *c, const char *text, ls_writing o, heard *h) {
    ls_error e = {0};
    ls_generated g;
    const char *answer = NULL;
    o.fn = hear, o.arg = h, o.asked = &h->asked;
    assert_ls_ok(ls_chat_say(c, text, &o, &g, &answer, &e), e);
    h->text[h->n] = 0;
    assert_string_equal(answer, h->text);
    return g;
}

static const ls_writing SHORT = {.ntokens = 5, .seed = 3, .rule = {.temperature = 1}};

/* The second turn is the same if nothing of the first is retained. */
static void test_turns(void **state) {
    (void)state;
    ls_chat a = open_chat(), b = open_chat();
    heard first = {0}, second = {0}, again = {0}, fresh = {0};
    ls_talk_begin(&a.talk, NULL);
    ls_talk_begin(&b.talk, NULL);
    assert_int_equal(say(&a, "to", SHORT, &first).ntokens, 5);
    say(&b, "to", SHORT, &fresh);
    assert_string_equal(first.text, fresh.text);
    int64_t kept = a.writer.decode.npositions;
    say(&a, "be", SHORT, &second);
    assert_true(a.writer.decode.npositions > kept);
    b.writer.n = b.writer.decode.npositions = b.writer.decode.ntext = 0; /* read again, whole */
    say(&b, "be", SHORT, &again);
    assert_string_equal(second.text, again.text);
    ls_talk_begin(&a.talk, NULL);
    a.ndrawn = 0;
    heard anew = {0};
    say(&a, "to", SHORT, &anew);
    assert_string_equal(first.text, anew.text);
    ls_chat_close(&a);
    ls_chat_close(&b);
}

/* The message of the system is part of what the model reads, also after a new beginning. */
static void test_system(void **state) {
    (void)state;
    ls_chat c = open_chat();
    heard h = {0};
    ls_talk_begin(&c.talk, "so");
    assert_int_equal(c.talk.n, 1);
    say(&c, "to", SHORT, &h);
    assert_int_equal(c.talk.n, 3);
    int64_t with = c.writer.n;
    ls_talk_begin(&c.talk, NULL);
    heard other = {0};
    say(&c, "to", SHORT, &other);
    assert_true(c.writer.n < with);
    ls_chat_close(&c);
}

static void test_ends(void **state) {
    (void)state;
    ls_chat c = open_chat();
    ls_writing o = SHORT;
    heard all = {0}, some = {.ask_at = 2}, none = {0};
    o.ntokens = 12;
    ls_talk_begin(&c.talk, NULL);
    assert_int_equal(say(&c, "to", o, &all).end, LS_END_LENGTH);
    ls_talk_begin(&c.talk, NULL);
    c.ndrawn = 0;
    assert_int_equal(say(&c, "to", o, &some).end, LS_END_ASKED);
    assert_true(some.n < all.n && memcmp(some.text, all.text, some.n) == 0);
    uint32_t end = c.writer.text[c.writer.n - 1];
    ls_talk_begin(&c.talk, NULL);
    c.ndrawn = 0;
    c.format.ends[c.format.nends++] = end;
    ls_generated g = say(&c, "to", o, &none);
    assert_int_equal(g.end, LS_END_TOKEN);
    assert_true(none.n < some.n);
    ls_chat_close(&c);
}

/* The conversation stays as it was. */
static void test_refused(void **state) {
    (void)state;
    ls_chat c = open_chat();
    ls_error e = {0};
    ls_generated g;
    const char *answer = NULL;
    char *absent = ls_format("%s/absent", folder), *bad = ls_format("%s/bad", folder);
    char text[200];
    heard h = {0};
    ls_writing o = SHORT;
    o.fn = hear, o.arg = &h;
    memset(text, 'z', sizeof text - 1), text[sizeof text - 1] = 0;
    ls_talk_begin(&c.talk, NULL);
    say(&c, "to", SHORT, &h);
    size_t n = c.talk.n;
    assert_ls_fails(ls_chat_say(&c, text, &o, &g, &answer, &e), LS_EINVAL, "context 48", e);
    assert_int_equal(c.talk.n, n);
    ls_chat_close(&c);
    assert_ls_fails(ls_chat_open(&trained, absent, &c, &e), LS_EIO, "absent", e);
    assert_ls_ok(ls_file_write(bad, "{% if %}", 8, &e), e);
    assert_ls_fails(ls_chat_open(&trained, bad, &c, &e), LS_EINVAL, "bad:1:", e);
    assert_ls_ok(ls_file_replace(bad, "{# nothing #}", 13, &e), e);
    assert_ls_ok(ls_chat_open(&trained, bad, &c, &e), e);
    ls_talk_begin(&c.talk, NULL);
    assert_ls_fails(ls_chat_say(&c, "to", &o, &g, &answer, &e), LS_EINVAL,
                    "the chat template writes nothing", e);
    ls_chat_close(&c);
    free(absent), free(bad);
}

/* The last one: another program truncates the model's file. */
static void test_lost(void **state) {
    (void)state;
    ls_chat c = open_chat();
    ls_error e = {0};
    ls_generated g;
    const char *answer = NULL;
    heard h = {0};
    ls_writing o = SHORT;
    char *path = ls_format("%s/m.gguf", folder);
    o.fn = hear, o.arg = &h;
    ls_talk_begin(&c.talk, NULL);
    assert_int_equal(truncate(path, 100), 0);
    assert_ls_fails(ls_chat_say(&c, "to", &o, &g, &answer, &e), LS_EIO, "m.gguf", e);
    assert_int_equal(h.n, 0);
    ls_chat_close(&c);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns), cmocka_unit_test(test_system),
                                       cmocka_unit_test(test_ends), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_lost)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
