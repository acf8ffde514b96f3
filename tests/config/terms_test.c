/* terms_test.c - the terms of both tables, needs and conflicts, are about keys and values that
 * exist. */
#include "config/terms.h"

#include "config/conflicts.h"
#include "config/needs.h"
#include "test.h"

/* `words`: "a, b". */
static void check_words(const ls_term *t) {
    char *words = ls_format("%.*s", (int)(t->end - t->words), t->words), *rest = words;
    const ls_config_key *k = t->key;
    for (char *word; (word = strsep(&rest, ","));) {
        word += *word == ' ';
        bool known = k->type == LS_KEY_INTEGER || k->type == LS_KEY_REAL;
        if (known) known = *word && strspn(word, "0123456789") == strlen(word);
        for (int i = 0; k->type == LS_KEY_CHOICE && k->choices[i]; i++)
            known = known || strcmp(k->choices[i], word) == 0;
        if (!known) fail_msg("%s: '%s' is no value of %s", t->text, word, k->name);
    }
    free(words);
}

static void check_terms(const char *terms) {
    ls_term t;
    while (ls_term_read(&terms, &t)) {
        if (!t.key) fail_msg("%s: '%s' is no key", t.text, t.name);
        switch (t.is) {
        case LS_TERM_ONE_OF:
        case LS_TERM_NONE_OF: check_words(&t); break;
        case LS_TERM_ABOVE:
            assert_true(t.key->type == LS_KEY_INTEGER || t.key->type == LS_KEY_REAL);
            break;
        case LS_TERM_SET:
        case LS_TERM_UNSET:
            assert_true(ls_config_key_is_text(t.key) || ls_config_key_find_tree(t.name));
            break;
        case LS_TERM_LIST: assert_non_null(ls_config_key_find_tree(t.name)); break;
        case LS_TERM_UNIT: assert_int_equal(t.key->type, LS_KEY_SPAN); break;
        }
    }
}

static void test_tables(void **state) {
    (void)state;
    for (const ls_config_need *n = ls_config_needs; n->key; n++) {
        size_t len = strcspn(n->key, "*");
        bool found = ls_config_key_find(n->key) != NULL;
        for (int i = 0; n->key[len] && i < LS_NCONFIG_KEYS; i++)
            found = found || strncmp(ls_config_keys[i].name, n->key, len) == 0;
        if (!found) fail_msg("%s is no key", n->key);
        check_terms(n->needs);
    }
    for (const ls_config_conflict *row = ls_config_conflicts; row->one; row++) {
        check_terms(row->one);
        check_terms(row->others);
    }
}

static void test_hold(void **state) {
    (void)state;
    static const struct {
        const char *set, *terms;
        bool hold;
    } rows[] = {{"parallel.zero=2", "parallel.zero > 1", true},
                {"parallel.zero=1", "parallel.zero > 1", false},
                {"sync.mode=ssp", "sync.mode: async, ssp", true},
                {"sync.mode=local", "sync.mode: async, ssp", false},
                {"sync.mode=local", "sync.mode: other than async, ssp", true},
                {"sync.mode=ssp", "sync.mode: other than async, ssp", false},
                {"data.path=x", "data.path", true},
                {"data.path=x", "no data.path or data.mix", false},
                {"data.path=x", "no data.path or no data.mix", true},
                {"data.path=x", "data.path; no data.mix", true},
                {"data.path=x", "data.path; data.mix or train.freeze", false},
                {"train.batch=[[0, 64], [9, 128]]", "train.batch is a list", true},
                {"train.batch=64", "train.batch is a list", false},
                {"optim.warmup=0.5 epochs", "optim.warmup has a unit", true},
                {"optim.warmup=7", "optim.warmup has a unit", false},
                {"optim.warmup=auto", "optim.warmup has a unit", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ls_config c;
        ls_error e = {0};
        ls_config_defaults(&c);
        assert_ls_ok(ls_config_set(&c, rows[i].set, &e), e);
        if (ls_terms_hold(&c, rows[i].terms, LS_NONE_IS_OPEN) != rows[i].hold)
            fail_msg("%s: %s", rows[i].set, rows[i].terms);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables), cmocka_unit_test(test_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
