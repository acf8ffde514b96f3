/* csv_rules.c - see csv_rules.h. */
#include "source/tables/csv_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "source/bytes.h"
#include "source/number.h"

/* ---- data.csv ---- */

static ls_status fail_option(const ls_yaml_node *n, const char *file, const char *is, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s:%d: data.csv: %s is %s", file, n->line, n->key, is);
}

static const char *text_of(const ls_yaml_node *n) { return n->kind == LS_YAML_TEXT ? n->text : ""; }

static ls_status set_header(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    const char *text = text_of(n);
    bool yes = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0 || strcmp(text, "on") == 0;
    bool no = strcmp(text, "no") == 0 || strcmp(text, "false") == 0 || strcmp(text, "off") == 0;
    w->header = yes ? LS_HEADER_YES : LS_HEADER_NO;
    return yes || no ? LS_OK : fail_option(n, file, "yes or no", e);
}

/* ASCII characters that separate or quote cells. */
static bool are_signs(const char *text) {
    if (!*text) return false;
    for (; *text; text++)
        if (strchr("\r\n", *text) || (*text & 0x80)) return false;
    return true;
}

static ls_status set_separator(const ls_yaml_node *n, const char *file, ls_csv_rules *w,
                               ls_error *e) {
    const char *text = text_of(n);
    if (strcmp(text, "\\t") == 0 || strcmp(text, "tab") == 0) text = "\t";
    if (!are_signs(text) || strlen(text) >= LS_CSV_SEPARATOR)
        return fail_option(n, file,
                           "one character, e.g. \";\", up to seven, e.g. \"::\", tab or blanks", e);
    snprintf(w->form.separator, LS_CSV_SEPARATOR, "%s", text);
    return LS_OK;
}

static ls_status set_quote(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    const char *text = text_of(n);
    w->form.unquoted = strcmp(text, "none") == 0;
    if (w->form.unquoted) return LS_OK;
    if (!are_signs(text) || text[1])
        return fail_option(n, file, "one character, e.g. \"'\", or none", e);
    w->form.quote = *text;
    return LS_OK;
}

static ls_status set_decimal(const ls_yaml_node *n, const char *file, ls_csv_rules *w,
                             ls_error *e) {
    w->form.comma = strcmp(text_of(n), ",") == 0;
    if (w->form.comma || strcmp(text_of(n), ".") == 0) return LS_OK;
    return fail_option(n, file, "\".\" or \",\"", e);
}

static ls_status set_skip(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    enum { MOST = 1000000 };
    double x = 0;
    const char *text = text_of(n);
    bool is = ls_number_parse(text, strlen(text), &x) && ls_number_is_i32(x) && x >= 0 && x <= MOST;
    if (!is) return fail_option(n, file, "a number of lines from 0 to 1000000", e);
    w->form.skip = (size_t)x;
    return LS_OK;
}

static ls_status set_texts(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    ls_buf b = {0};
    bool good = n->kind == LS_YAML_LIST && n->nitems;
    for (int i = 0; good && i < n->nitems; i++) {
        good = *text_of(n->items[i]) != 0;
        ls_buf_printf(&b, "%s%s", i ? "\n" : "", text_of(n->items[i]));
    }
    free(w->texts);
    w->texts = b.data;
    return good ? LS_OK : fail_option(n, file, "a list of columns, e.g. [zip, code]", e);
}

static ls_status set_option(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    if (strcmp(n->key, "header") == 0) return set_header(n, file, w, e);
    if (strcmp(n->key, "separator") == 0) return set_separator(n, file, w, e);
    if (strcmp(n->key, "quote") == 0) return set_quote(n, file, w, e);
    if (strcmp(n->key, "decimal") == 0) return set_decimal(n, file, w, e);
    if (strcmp(n->key, "skip") == 0) return set_skip(n, file, w, e);
    if (strcmp(n->key, "texts") == 0) return set_texts(n, file, w, e);
    return ls_fail(e, LS_EINVAL,
                   "%s:%d: data.csv: there is no '%.40s'; choose among header, separator, quote, "
                   "decimal, texts, skip",
                   file, n->line, n->key);
}

/* A map: its place, and what reads an item of it. */
typedef struct map_reader {
    const char *file;
    int line;
    const char *is; /* the message if it is no map */
    ls_status (*set)(const ls_yaml_node *, const char *file, ls_csv_rules *, ls_error *);
} map_reader;

static ls_status read_map(const char *text, const map_reader *m, ls_csv_rules *w, ls_error *e) {
    ls_yaml_node *root = NULL;
    if (!*text) return LS_OK;
    LS_TRY(ls_yaml_parse_tree(text, m->file, m->line, &root, e));
    ls_status s = LS_OK;
    if (root->kind != LS_YAML_MAP) s = ls_fail(e, LS_EINVAL, "%s:%d: %s", m->file, m->line, m->is);
    for (int i = 0; s == LS_OK && i < root->nitems; i++) s = m->set(root->items[i], m->file, w, e);
    ls_yaml_node_free(root);
    return s;
}

static ls_status check_form(const ls_csv_rules *w, const char *file, int line, ls_error *e) {
    const ls_csv_asked *f = &w->form;
    char quote = f->unquoted ? 0 : f->quote ? f->quote : '"';
    if (quote && strchr(f->separator, quote))
        return ls_fail(e, LS_EINVAL, "%s:%d: data.csv: the separator has the quote's character",
                       file, line);
    if (f->comma && strcmp(f->separator, ",") == 0)
        return ls_fail(e, LS_EINVAL, "%s:%d: data.csv: separator and decimal are both a comma",
                       file, line);
    return LS_OK;
}

ls_status ls_csv_rules_read_csv(const char *csv, const char *file, int line, ls_csv_rules *w,
                                ls_error *e) {
    LS_TRY(read_map(csv,
                    &(map_reader){file, line,
                                  "data.csv is a map, e.g. {separator: \";\", decimal: \",\"}",
                                  set_option},
                    w, e));
    return check_form(w, file, line, e);
}

/* ---- data.missing ---- */

static ls_status add_rule(const ls_yaml_node *n, const char *file, ls_csv_rules *w, ls_error *e) {
    static const char *const words[] = {ls_missing_words(LS_CHOICE_WORD) NULL};
    for (int i = 0; words[i]; i++) {
        if (strcmp(text_of(n), words[i]) != 0) continue;
        w->rules = ls_grow(w->rules, w->nrules, sizeof *w->rules);
        w->rules[w->nrules++] =
            (ls_missing_rule){.column = ls_strdup(n->key), .rule = (ls_missing)i};
        return LS_OK;
    }
    return ls_fail(e, LS_EINVAL, "%s:%d: data.missing: %s is refuse, drop or mean", file, n->line,
                   n->key);
}

ls_status ls_csv_rules_read_missing(const char *missing, const char *file, int line,
                                    ls_csv_rules *w, ls_error *e) {
    return read_map(missing,
                    &(map_reader){file, line,
                                  "data.missing is refuse, drop, mean, or a map of columns, e.g. "
                                  "{age: mean}",
                                  add_rule},
                    w, e);
}

/* ---- the value ---- */

static char *copy_of(const char *text) { return text && *text ? ls_strdup(text) : NULL; }

ls_csv_rules ls_csv_rules_of(const char *columns, const char *na) {
    return (ls_csv_rules){.columns = copy_of(columns), .na = copy_of(na)};
}

ls_csv_rules ls_csv_rules_copy(const ls_csv_rules *from) {
    if (!from) return (ls_csv_rules){0};
    ls_csv_rules w = *from;
    w.columns = copy_of(from->columns);
    w.na = copy_of(from->na);
    w.texts = copy_of(from->texts);
    w.rules = NULL;
    if (w.nrules) w.rules = LS_NEW_ARRAY(ls_missing_rule, from->nrules);
    for (size_t i = 0; i < w.nrules; i++) {
        w.rules[i] = from->rules[i];
        w.rules[i].column = ls_strdup(from->rules[i].column);
    }
    return w;
}

void ls_csv_rules_free(ls_csv_rules *w) {
    for (size_t i = 0; i < w->nrules; i++) free(w->rules[i].column);
    free(w->rules);
    free(w->columns);
    free(w->na);
    free(w->texts);
    *w = (ls_csv_rules){0};
}

bool ls_csv_rules_are_of_csv(const ls_csv_rules *w) {
    if (!w) return false;
    const ls_csv_asked *f = &w->form;
    return w->na || w->texts || w->header || *f->separator || f->quote || f->unquoted || f->comma ||
           f->skip;
}

bool ls_csv_rules_has(const char *list, const char *name) {
    size_t n = strlen(name);
    for (; list && *list; list += strcspn(list, "\n"), list += *list == '\n')
        if (strcspn(list, "\n") == n && strncmp(list, name, n) == 0) return true;
    return false;
}

ls_missing ls_csv_rules_missing(const ls_csv_rules *w, const char *column, ls_missing other,
                                bool *own_p) {
    *own_p = false;
    for (size_t i = 0; i < w->nrules; i++) {
        if (strcmp(w->rules[i].column, "*") == 0) other = w->rules[i].rule;
        if (strcmp(w->rules[i].column, column) != 0) continue;
        *own_p = true;
        return w->rules[i].rule;
    }
    return other;
}

void ls_csv_rules_put(const ls_csv_rules *w, ls_buf *b) {
    if (!w) return;
    const ls_csv_asked *f = &w->form;
    const char *const lists[] = {w->columns, w->na, w->texts, f->separator};
    const uint64_t numbers[] = {w->header,   (uint8_t)f->quote, f->comma,
                                f->unquoted, f->skip,           w->nrules};
    for (int i = 0; i < 4; i++) ls_bytes_put_text(b, lists[i] ? lists[i] : "");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) ls_bytes_put_u64(b, numbers[i]);
    for (size_t i = 0; i < w->nrules; i++) {
        ls_bytes_put_text(b, w->rules[i].column);
        ls_bytes_put_u64(b, w->rules[i].rule);
    }
}
