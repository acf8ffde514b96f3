/* space_try.c - see space_try.h. */
#include "search/space_try.h"

#include <stdlib.h>
#include <string.h>

typedef struct word {
    const char *text;
    char *key;
    const char *kind; /* of a range in the file: "choice" .. */
    char **values;    /* [n] */
    int n;
} word;

static ls_status bad(const word *w, const char *what, ls_error *e) {
    return ls_fail(e, LS_EINVAL, LS_SPACE_TRY " %.100s: %s", w->text, what);
}

/* ---- a word ---- */

/* The place of the comma that ends a value, or of the text's end: commas in brackets, braces or
 * quotes belong to a value, e.g. a list. */
static const char *value_end(const char *s) {
    int depth = 0;
    char quote = 0;
    for (; *s; s++) {
        if (quote) {
            if (*s == quote) quote = 0;
        } else if (*s == '"' || *s == '\'') {
            quote = *s;
        } else if (strchr("[{", *s)) {
            depth++;
        } else if (strchr("]}", *s)) {
            depth--;
        } else if (*s == ',' && depth <= 0) {
            break;
        }
    }
    return s;
}

/* Between two values of a range, or of a list. */
static ls_status split(word *w, const char *s, ls_error *e) {
    for (;;) {
        const char *end = value_end(s), *from = s, *to = end;
        while (from < to && *from == ' ') from++;
        while (to > from && to[-1] == ' ') to--;
        if (from == to) return bad(w, "has an empty value between its commas", e);
        w->values = ls_grow(w->values, (size_t)w->n, sizeof *w->values);
        w->values[w->n++] = ls_format("%.*s", (int)(to - from), from);
        for (int i = 0; i < w->n - 1; i++)
            if (strcmp(w->values[i], w->values[w->n - 1]) == 0)
                return bad(w, "has the same value twice", e);
        if (!*end) return LS_OK;
        s = end + 1;
    }
}

static const char *const ranges[][2] = {
    {"log:", "log_uniform"}, {"lin:", "uniform"}, {"int:", "int"}};

static ls_status read_word(const char *text, word *w, ls_error *e) {
    const char *equals = strchr(text, '=');
    w->text = text;
    w->kind = "choice";
    if (!equals || equals == text || !equals[1])
        return bad(w, "expected KEY=VALUE,VALUE or KEY=log:LOW,HIGH, e.g. optim.lr=1e-4,1e-3", e);
    w->key = ls_format("%.*s", (int)(equals - text), text);
    const char *values = equals + 1;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (strncmp(values, ranges[i][0], strlen(ranges[i][0])) != 0) continue;
        w->kind = ranges[i][1];
        values += strlen(ranges[i][0]);
        break;
    }
    return split(w, values, e);
}

static bool is_range(const word *w) { return strcmp(w->kind, "choice") != 0; }

/* Does the config's key take these values? */
static ls_status check_values(const word *w, const ls_config *base, ls_error *e) {
    static const char from[] = "--set: ";
    if (is_range(w) && w->n != 2) return bad(w, "a range has a lowest and a highest value", e);
    for (int i = 0; i < w->n; i++) {
        ls_config c = *base;
        ls_error why = {0};
        char *assignment = ls_format("%s=%s", w->key, w->values[i]);
        ls_status s = ls_config_set(&c, assignment, &why);
        free(assignment);
        bool begins = strncmp(why.msg, from, strlen(from)) == 0;
        if (s != LS_OK)
            return ls_fail(e, s, LS_SPACE_TRY ": %s", why.msg + (begins ? strlen(from) : 0));
    }
    return LS_OK;
}

/* ---- the text ---- */

/* In double quotes, as YAML has them. */
static void put_quoted(const char *text, ls_buf *out) {
    ls_buf_printf(out, "\"");
    for (; *text; text++) {
        const char *line = *text == '\n' ? "\\n" : *text == '\t' ? "\\t" : NULL;
        if (*text == '"' || *text == '\\') ls_buf_printf(out, "\\");
        if (line)
            ls_buf_printf(out, "%s", line);
        else
            ls_buf_append(out, text, 1);
    }
    ls_buf_printf(out, "\"");
}

static void put_word(const word *w, ls_buf *out) {
    ls_buf_printf(out, "  ");
    put_quoted(w->key, out);
    ls_buf_printf(out, ": {%s: [", w->kind);
    for (int i = 0; i < w->n; i++) {
        if (i) ls_buf_printf(out, ", ");
        put_quoted(w->values[i], out);
    }
    ls_buf_printf(out, "]}\n");
}

static ls_status check_method(const char *method, ls_error *e) {
    ls_buf names = {0};
    bool found = false;
    for (int i = 0; ls_space_methods[i]; i++) {
        found = found || strcmp(ls_space_methods[i], method) == 0;
        ls_buf_printf(&names, "%s%s", i ? ", " : "", ls_space_methods[i]);
    }
    ls_status s =
        found ? LS_OK
              : ls_fail(e, LS_EINVAL, "--method: '%.60s' is not one of %s", method, names.data);
    ls_buf_free(&names);
    return s;
}

static ls_status put_all(const ls_space_tries *t, const word *words, ls_buf *out, ls_error *e) {
    bool draws = false;
    for (int i = 0; i < t->n; i++) draws = draws || is_range(&words[i]);
    const char *method = t->method ? t->method : draws ? "random" : "grid";
    bool grid = strcmp(method, "grid") == 0;
    LS_TRY(check_method(method, e));
    ls_buf_printf(out, "method: %s\n", method);
    if (!grid) ls_buf_printf(out, "trials: %d\n", LS_SPACE_TRY_TRIALS);
    ls_buf_printf(out, "space:\n");
    for (int i = 0; i < t->n; i++) put_word(&words[i], out);
    return LS_OK;
}

static ls_status check_once(const word *words, int i, ls_error *e) {
    for (int k = 0; k < i; k++)
        if (strcmp(words[k].key, words[i].key) == 0)
            return bad(&words[i], "another word has this key, too; give all its values in one", e);
    return LS_OK;
}

ls_status ls_space_try(const ls_space_tries *t, const ls_config *base, ls_buf *text, ls_error *e) {
    word *words = LS_NEW_ARRAY(word, (size_t)t->n + 1);
    ls_status s = LS_OK;
    for (int i = 0; i < t->n && s == LS_OK; i++) {
        s = read_word(t->words[i], &words[i], e);
        if (s == LS_OK) s = check_once(words, i, e);
        if (s == LS_OK) s = check_values(&words[i], base, e);
    }
    if (s == LS_OK) s = put_all(t, words, text, e);
    for (int i = 0; i < t->n; i++) {
        for (int k = 0; k < words[i].n; k++) free(words[i].values[k]);
        free(words[i].values);
        free(words[i].key);
    }
    free(words);
    return s;
}
