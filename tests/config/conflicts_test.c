/* conflicts_test.c - each row of the table is tried: each alternative of one side, with each value
 * that it names, is refused with each of the other. And the pages of the reference that the tables
 * make are fresh; LOCKSTEP_UPDATE=1 writes them. */
#include "config/conflicts.h"

#include "base/file.h"
#include "config/key_help.h"
#include "config/relations.h"
#include "config/terms.h"
#include "test.h"

/* ---- rows ---- */

/* Makes the term hold. word: the number of one of the words that it names, from 0; false: it has
 * fewer. */
static bool make_hold(ls_config *c, const ls_term *t, int word) {
    static const char *const texts[] = {[LS_KEY_TEXT] = "x",
                                        [LS_KEY_LIST] = "x",
                                        [LS_KEY_MAPS] = "[{match: x}]",
                                        [LS_KEY_TREE] = "[x]"};
    char value[64] = "";
    const char *s = t->words;
    for (int i = 0; t->is == LS_TERM_ONE_OF && i < word; i++) {
        s = memchr(s, ',', (size_t)(t->end - s));
        if (!s) return false;
        s += 2;
    }
    switch (t->is) {
    case LS_TERM_ONE_OF: snprintf(value, sizeof value, "%.*s", (int)strcspn(s, ",; "), s); break;
    case LS_TERM_NONE_OF:
        for (int i = 0; !*value; i++) {
            ls_config_key_set(c, t->key, "test", t->key->choices[i], NULL);
            if (ls_term_holds(c, t, LS_NONE_IS_OPEN))
                snprintf(value, sizeof value, "%s", t->key->choices[i]);
        }
        break;
    case LS_TERM_ABOVE: snprintf(value, sizeof value, "%.15g", strtod(t->words, NULL) + 1); break;
    case LS_TERM_SET: snprintf(value, sizeof value, "%s", texts[t->key->type]); break;
    case LS_TERM_UNSET: break;
    case LS_TERM_LIST: snprintf(value, sizeof value, "[[0, 64], [9, 128]]"); break;
    case LS_TERM_UNIT: snprintf(value, sizeof value, "0.5 epochs"); break;
    }
    if (t->is == LS_TERM_ABOVE && t->key->type == LS_KEY_REAL) snprintf(value, sizeof value, "0.5");
    char *set = ls_format("%s=%s", t->name, value);
    ls_error e = {0};
    assert_ls_ok(ls_config_set(c, set, &e), e);
    free(set);
    return (t->is == LS_TERM_ONE_OF || word == 0) && ls_term_holds(c, t, LS_NONE_IS_OPEN);
}

/* Makes an alternative of `terms` hold, with one of the values that its terms name. number: counts
 * both alternatives and values, from 0; false: there are fewer. */
static bool make_hold_all(ls_config *c, const char *terms, int number) {
    ls_term t;
    for (const char *first = terms; *terms; first = terms) {
        int nwords = 1;
        do {
            ls_term_read(&terms, &t);
            for (int w = 1; t.is == LS_TERM_ONE_OF && w < 16; w++) {
                ls_config other = *c;
                if (make_hold(&other, &t, w) && w >= nwords) nwords = w + 1;
            }
        } while (!t.alternative && *terms);
        if (number >= nwords) {
            number -= nwords;
            continue;
        }
        for (const char *s = first; s < terms;) {
            ls_term_read(&s, &t);
            if (!make_hold(c, &t, number)) make_hold(c, &t, 0);
        }
        return true;
    }
    return false;
}

static void test_rows(void **state) {
    (void)state;
    int ntried = 0;
    for (const ls_config_conflict *row = ls_config_conflicts; row->one; row++) {
        ls_config one, both;
        ls_error e = {0};
        for (int i = 0; ls_config_defaults(&one), make_hold_all(&one, row->one, i); i++)
            for (int j = 0; both = one, make_hold_all(&both, row->others, j); j++, ntried++) {
                assert_ls_fails(ls_config_check_conflict(&both, row, "x.yaml", &e), LS_EINVAL,
                                row->why, e);
                assert_true(strncmp(e.msg, "x.yaml: ", 8) == 0 && !strchr(e.msg, '\n'));
                assert_true(strlen(e.msg) < sizeof e.msg - 1);
                assert_int_equal(ls_config_check_conflicts(&both, "x.yaml", &e), LS_EINVAL);
            }
    }
    print_message("%d pairs of values\n", ntried);
    assert_true(ntried > 200);
}

/* A config without anything particular has no conflict. */
static void test_none(void **state) {
    (void)state;
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_check_conflicts(&c, "x", &e), e);
}

/* An optimizer of a group counts where its average needs a constant rate. */
static void test_groups(void **state) {
    (void)state;
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, "data.path=x", &e), e);
    assert_ls_ok(ls_config_set(&c, "optim.groups=[{match: a, optimizer: schedule-free}]", &e), e);
    assert_ls_fails(ls_config_check(&c, "x", &e), LS_EINVAL,
                    "optim.optimizer: schedule-free does not go with optim.schedule: cosine", e);
    assert_ls_ok(ls_config_set(&c, "optim.schedule=constant", &e), e);
    assert_ls_ok(ls_config_check(&c, "x", &e), e);
}

static void test_help(void **state) {
    (void)state;
    ls_buf help = {0};
    ls_error e = {0};
    assert_ls_ok(ls_config_help("parallel.zero", &help, &e), e);
    assert_non_null(strstr(help.data, "parallel.zero > 1 does not go with sync.mode: async, ssp."));
    help.len = 0;
    assert_ls_ok(ls_config_help("train.from", &help, &e), e);
    assert_non_null(strstr(help.data, "data.format: chat needs model.from or train.from."));
    ls_buf_free(&help);
}

/* ---- pages ---- */

/* Each alternative in a line of its own. */
static void put_cell(const char *terms, ls_buf *out) {
    ls_term t;
    ls_buf_printf(out, " `");
    while (ls_term_read(&terms, &t))
        ls_buf_printf(out, "%.*s%s", (int)(t.end - t.text), t.text,
                      !*terms         ? "` |"
                      : t.alternative ? "`<br>`"
                                      : "` and `");
}

static void put_conflicts(const char *was, ls_buf *out) {
    const char *table = strstr(was, "|---|---|---|\n");
    assert_non_null(table);
    ls_buf_printf(out, "%.*s|---|---|---|\n", (int)(table - was), was);
    for (const ls_config_conflict *row = ls_config_conflicts; row->one; row++) {
        ls_buf_printf(out, "|");
        put_cell(row->one, out);
        put_cell(row->others, out);
        ls_buf_printf(out, " %s |\n", row->why);
    }
}

/* Below "$ lockstep help config GROUP" stands what it prints. */
static void put_keys(const char *was, ls_buf *out) {
    static const char prompt[] = "    $ lockstep help config ";
    bool shown = false;
    for (const char *end = NULL; *was; was = end) {
        end = was + strcspn(was, "\n");
        end += *end == '\n';
        shown = shown && (strncmp(was, "    ", 4) == 0 || *was == '\n');
        if (!shown) ls_buf_append(out, was, (size_t)(end - was));
        if (strncmp(was, prompt, strlen(prompt)) != 0) continue;
        char *group =
            ls_format("%.*s", (int)(end - was - 1) - (int)strlen(prompt), was + strlen(prompt));
        ls_buf help = {0};
        ls_error e = {0};
        assert_ls_ok(ls_config_help(group, &help, &e), e);
        char *rest = help.data;
        for (char *line; (line = strsep(&rest, "\n")) && (*line || rest);)
            ls_buf_printf(out, *line ? "    %s\n" : "\n", line);
        if (strstr(end, "\n## ")) ls_buf_printf(out, "\n");
        ls_buf_free(&help);
        free(group);
        shown = true;
    }
}

static void check_page(const char *path, void (*put)(const char *was, ls_buf *out)) {
    ls_buf was = {0}, now = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 1 << 20, &was, &e), e);
    put(was.data, &now);
    if (getenv("LOCKSTEP_UPDATE"))
        assert_ls_ok(ls_file_replace(path, now.data, now.len, &e), e);
    else if (strcmp(was.data, now.data) != 0)
        fail_msg("%s is not as the tables say; LOCKSTEP_UPDATE=1 writes it anew", path);
    ls_buf_free(&was);
    ls_buf_free(&now);
}

static void test_pages(void **state) {
    (void)state;
    check_page("docs/reference/what-goes-with-what.md", put_conflicts);
    check_page("docs/reference/keys.md", put_keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_none),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_help), cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
