/* thought_test.c - thoughts before answers, also while these are written. */
#include "chat/thought.h"

#include "chat/small_chat.h"
#include "test.h"

typedef struct wanted_thought {
    const char *text, *thought, *rest;
    bool begun;
    const char *tool;
} wanted_thought;

static const wanted_thought cases[] = {
    {"Hello.", "", "Hello.", false, ""},
    {"", "", "", false, ""},
    {"<think>\nHm, so.\n</think>\n\nHello.", "Hm, so.", "Hello.", false, ""},
    {" <think>a</think> b</think>", "a", "b</think>", false, ""},
    {"a <think>b</think>", "", "a <think>b</think>", false, ""},
    {"<think>\n\n</think>\n\nHello.", "", "Hello.", false, ""},
    {"<thinker>", "", "<thinker>", false, ""},
    {"<thin", "", "<thin", false, ""},
    {"<think>cut", "cut", "", false, ""},
    {"<think>cut</thi", "cut</thi", "", false, ""},
    {"\nHm.\n</think>\nHello.", "Hm.", "Hello.", true, ""},
    {"<think>\nHm.</think>Hello.", "Hm.", "Hello.", true, ""},
    {"</think>Hello.", "", "Hello.", true, ""},
    {"Hm", "Hm", "", true, ""},
    {"a <call> b </think><call>c", "a <call> b", "<call>c", true, "<call>"},
    {"a\n<call>b", "a", "<call>b", true, "<call>"},
    {"<think>a<call>b", "a", "<call>b", false, "<call>"},
    {"<call>b", "", "<call>b", true, "<call>"}};

/* What is read of a beginning only grows. */
static void check_growth(const ls_thought_form *f, const wanted_thought *c) {
    size_t n = strlen(c->text), thought = 0, rest = 0;
    for (size_t k = 0; k <= n + 1; k++) {
        bool ended = k > n;
        size_t m = ended ? n : k;
        ls_thought_text t = ls_thought_read(f, c->begun, c->tool, c->text, m, ended);
        size_t now = t.open ? 0 : m - t.rest;
        if (t.to - t.from < thought || strncmp(c->text + t.from, c->thought, t.to - t.from) != 0)
            fail_msg("%s: another thought after %zu bytes", c->text, k);
        if (now < rest || strncmp(c->text + t.rest, c->rest, now) != 0)
            fail_msg("%s: another answer after %zu bytes", c->text, k);
        thought = t.to - t.from;
        rest = now;
    }
}

static void test_texts(void **state) {
    const ls_thought_form f = {"<think>", "</think>", {1, 2}}, none = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wanted_thought *c = &cases[i];
        size_t n = strlen(c->text);
        ls_thought_text t = ls_thought_read(&f, c->begun, c->tool, c->text, n, true);
        if (t.to - t.from != strlen(c->thought) ||
            strncmp(c->text + t.from, c->thought, t.to - t.from) != 0 ||
            strcmp(c->text + t.rest, c->rest) != 0)
            fail_msg("%s: %zu to %zu, then %zu", c->text, t.from, t.to, t.rest);
        check_growth(&f, c);
        t = ls_thought_read(&none, false, "", c->text, n, false);
        assert_true(t.rest == 0 && t.to == 0 && !t.open);
    }
}

static void test_prompts(void **state) {
    const ls_thought_form f = {"<think>", "</think>", {1, 2}}, none = {0};
    static const uint32_t open[] = {5, 1, 9}, closed[] = {1, 9, 2, 9}, old[] = {1, 5, 5, 5, 5};
    ls_tokenizer *t = small_chat_tokenizer();
    (void)state;
    assert_true(ls_thought_is_open(&f, open, 3));
    assert_false(ls_thought_is_open(&f, closed, 4));
    assert_false(ls_thought_is_open(&f, old, 5));
    assert_false(ls_thought_is_open(&f, open, 0));
    assert_false(ls_thought_is_open(&none, open, 3));
    assert_null(ls_thought_form_of(t).open);
    ls_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_prompts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
