/* csv_table.c - see csv_table.h. */
#include "source/tables/csv_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "source/note.h"
#include "source/number.h"
#include "source/tables/csv_rules.h"

void ls_csv_table_begin(ls_csv_table *t, size_t n) {
    t->seen = LS_NEW_ARRAY(ls_csv_seen, n);
    for (size_t i = 0; i < n; i++) {
        char *name = ls_format("column%zu", i + 1);
        ls_features_add(&t->columns, name, strlen(name));
        free(name);
    }
}

void ls_csv_table_free(ls_csv_table *t) {
    ls_features_free(&t->columns);
    free(t->seen);
    *t = (ls_csv_table){0};
}

/* Does x count on from the number above? */
static bool is_next(double above, double x) { return x == above + 1 || x == 0 || x == 1; }

static void see_cell(ls_feature *f, ls_csv_seen *s, const ls_csv_cell *cell,
                     const ls_csv_form *form) {
    ls_cell_value v = ls_csv_value(cell, form);
    s->n[v.kind]++;
    if (v.kind == LS_CELL_NUMBER) {
        s->fractions = s->fractions || !ls_number_is_i32(v.number);
        s->huge = s->huge || !ls_number_is_f32(v.number);
        bool first = s->n[v.kind] == 1;
        s->counts = first || (s->counts && is_next(s->above, v.number));
        if (first) s->first = v.number;
        s->above = v.number;
    } else if (v.kind == LS_CELL_INTEGERS || v.kind == LS_CELL_REALS) {
        if (s->n[LS_CELL_INTEGERS] + s->n[LS_CELL_REALS] == 1) s->length = v.length;
        s->varies = s->varies || v.length != s->length;
        if (v.length > s->most) s->most = v.length;
    } else if (v.kind == LS_CELL_TEXT || v.kind == LS_CELL_MISSING) {
        char text[LS_CLASS_NBYTES + 1];
        ls_classes_add(&f->classes, text, ls_csv_unquote(cell, text, sizeof text));
        s->ndecorated += v.kind == LS_CELL_TEXT && ls_csv_is_decorated(cell);
        s->ndates += v.kind == LS_CELL_TEXT && ls_csv_is_date(cell);
    }
}

void ls_csv_table_see(ls_csv_table *t, const ls_csv_cell *cells, const ls_csv_form *form) {
    for (size_t i = 0; i < t->columns.n; i++)
        see_cell(&t->columns.list[i], &t->seen[i], &cells[i], form);
}

/* ---- parts of the rows ---- */

static uint64_t nlists(const ls_csv_seen *s) {
    return s->n[LS_CELL_INTEGERS] + s->n[LS_CELL_REALS];
}

static void join_numbers(ls_csv_seen *a, const ls_csv_seen *b) {
    if (!b->n[LS_CELL_NUMBER]) return;
    bool first = !a->n[LS_CELL_NUMBER];
    if (first) a->first = b->first;
    a->counts = b->counts && (first || (a->counts && is_next(a->above, b->first)));
    a->above = b->above;
    a->fractions = a->fractions || b->fractions;
    a->huge = a->huge || b->huge;
}

static void join_lists(ls_csv_seen *a, const ls_csv_seen *b) {
    if (!nlists(b)) return;
    bool differ = nlists(a) && a->length != b->length;
    if (!nlists(a)) a->length = b->length;
    a->varies = a->varies || b->varies || differ;
    if (b->most > a->most) a->most = b->most;
}

void ls_csv_table_join(ls_csv_table *t, ls_csv_table *from) {
    for (size_t i = 0; i < t->columns.n; i++) {
        ls_csv_seen *a = &t->seen[i];
        const ls_csv_seen *b = &from->seen[i];
        join_numbers(a, b);
        join_lists(a, b);
        ls_classes_join(&t->columns.list[i].classes, &from->columns.list[i].classes);
        for (int k = 0; k < LS_CELL_KINDS; k++) a->n[k] += b->n[k];
        a->ndecorated += b->ndecorated;
        a->ndates += b->ndates;
    }
    ls_csv_table_free(from);
}

/* ---- what a column has ---- */

typedef enum column_has { NOTHING, NUMBERS, LISTS, TEXTS } column_has;

/* Are n cells few enough beside `most` others to count as damage? */
static bool are_few(uint64_t n, uint64_t most) { return n <= most && (n <= 1 || n <= most / 9); }

static column_has find_has(const ls_csv_seen *s) {
    uint64_t numbers = s->n[LS_CELL_NUMBER] + s->n[LS_CELL_COMMA], texts = s->n[LS_CELL_TEXT];
    uint64_t lists = s->n[LS_CELL_INTEGERS] + s->n[LS_CELL_REALS] + s->n[LS_CELL_BROKEN];
    if (numbers + lists + texts == 0) return NOTHING;
    if (lists && are_few(numbers + texts, lists)) return LISTS;
    if (numbers && are_few(texts + lists, numbers)) return NUMBERS;
    return TEXTS;
}

/* ---- the header ---- */

/* 1, 2, 3 ... or 0, 1, 2 ..., as programs number columns without names. */
static bool is_numbered(const ls_csv_table *t, const ls_csv_cell *cells) {
    size_t first = cells[0].nbytes == 0; /* pandas writes an index, whose name is empty */
    double value = 0;
    for (size_t i = first; i < t->columns.n; i++)
        if (!ls_number_parse(cells[i].text, cells[i].nbytes, &value) ||
            value < (double)(i - first) || value > (double)(i - first))
            return false;
    if (!first) return t->columns.n > 3;
    return t->columns.n > 2 || (t->columns.n == 2 && t->seen[0].n[LS_CELL_MISSING] == 0);
}

/* Years, each the next one, as columns of statistics are named: there are texts beside them. */
static bool has_years(const ls_csv_cell *cells, size_t n) {
    enum { FEWEST = 4 };
    double value = 0, before = 0;
    size_t years = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        if (!ls_number_parse(cells[i].text, cells[i].nbytes, &value)) {
            others++;
            continue;
        }
        bool next = years ? value == before + 1 : value >= 1000 && value < 3000;
        if (!next) return false;
        before = value;
        years++;
    }
    return years >= FEWEST && others > 0;
}

/* A text above texts of which each comes again and again, and that is none of them. */
static bool is_above_classes(const ls_csv_seen *s, const ls_classes *c) {
    enum { TIMES = 10 };
    return !c->too_many && c->n > 0 && s->n[LS_CELL_TEXT] >= (uint64_t)c->n * TIMES;
}

static bool is_repeated(const ls_classes *c, const ls_csv_cell *cell) {
    char text[LS_CLASS_NBYTES];
    size_t n = ls_csv_unquote(cell, text, sizeof text);
    return n <= sizeof text && ls_classes_find(c, text, n) >= 0;
}

bool ls_csv_table_is_header(const ls_csv_table *t, const ls_csv_cell *cells,
                            const ls_csv_form *form) {
    bool numbers = false, texts = false, is_data = false, number_on_texts = false;
    int names = 0, repeated = 0;
    for (size_t i = 0; i < t->columns.n; i++) {
        const ls_csv_seen *s = &t->seen[i];
        ls_cell_kind kind = ls_csv_value(&cells[i], form).kind;
        column_has below = find_has(s);
        if (kind == LS_CELL_TEXT && (below == NUMBERS || below == LISTS)) return true;
        if (kind == LS_CELL_NUMBER && s->n[LS_CELL_NUMBER] == 0 && s->n[LS_CELL_TEXT] > 1)
            number_on_texts = true;
        numbers = numbers || (kind != LS_CELL_TEXT && kind != LS_CELL_MISSING);
        texts = texts || kind == LS_CELL_TEXT;
        if (kind == LS_CELL_MISSING && cells[i].nbytes && below == NUMBERS) is_data = true;
        const ls_classes *c = &t->columns.list[i].classes;
        if (kind != LS_CELL_TEXT) continue;
        if (is_repeated(c, &cells[i]))
            repeated++;
        else
            names += is_above_classes(s, c);
    }
    if (is_numbered(t, cells) || has_years(cells, t->columns.n)) return true;
    if (names && names >= repeated) return true;
    if (is_data || repeated) return false;
    return !numbers || (texts && number_on_texts);
}

char *ls_csv_name(const ls_csv_cell *cell, size_t column) {
    char *name = ls_alloc(cell->nbytes + 1), *from = name;
    size_t n = ls_csv_unquote(cell, name, cell->nbytes);
    while (n && strchr(" \t\r\n", name[n - 1])) n--;
    while (n && strchr(" \t\r\n", *from)) from++, n--;
    char *trimmed = n ? ls_format("%.*s", (int)n, from) : ls_format("column%zu", column + 1);
    free(name);
    return trimmed;
}

/* A name of two columns that matter, either of which might be read; NULL: there is none. */
const char *ls_csv_table_repeated(const ls_csv_table *t, const char *chosen) {
    static const char labels[] = "label\nclass\ntarget";
    for (size_t i = 0; i < t->columns.n; i++) {
        const ls_feature *f = &t->columns.list[i];
        bool matters = ls_csv_rules_has(chosen, f->name) || ls_csv_rules_has(labels, f->name);
        if (matters && ls_features_find(&t->columns, f->name) != f) return f->name;
    }
    return NULL;
}

void ls_csv_table_name(ls_csv_table *t, const ls_csv_cell *cells) {
    ls_features named = {0};
    for (size_t i = 0; i < t->columns.n; i++) {
        ls_feature *from = &t->columns.list[i];
        char *name = ls_csv_name(&cells[i], i);
        ls_feature *to = ls_features_add(&named, name, strlen(name));
        t->seen[i].unnamed = cells[i].nbytes == 0;
        to->classes = from->classes;
        from->classes = (ls_classes){0};
        free(name);
    }
    ls_features_free(&t->columns);
    t->columns = named;
}

/* ---- the columns ---- */

static void decide_list(ls_feature *f, const ls_csv_seen *s) {
    f->integers = s->varies || s->n[LS_CELL_REALS] == 0;
    f->whole = f->integers;
    f->ndims = 1;
    f->is_list = s->varies;
    f->dims[0] = (int64_t)(f->count = s->varies ? s->most : s->length);
}

static bool decide_column(ls_feature *f, const ls_csv_seen *s, bool asked, const char *path) {
    uint64_t others = s->n[LS_CELL_NUMBER] + s->n[LS_CELL_INTEGERS] + s->n[LS_CELL_REALS] +
                      s->n[LS_CELL_BROKEN] + s->n[LS_CELL_COMMA];
    if (f->unchosen) {
        f->spelled = true;
        ls_classes_free(&f->classes);
        return true;
    }
    column_has what = asked ? TEXTS : find_has(s);
    f->text = what == TEXTS;
    f->spelled = !f->text;
    if (what == NOTHING) f->left_out = "it has no values";
    if (f->text && !asked && 2 * s->ndecorated > s->n[LS_CELL_TEXT])
        ls_note(
            "%s: '%s' is read as texts, but %llu of them are numbers with signs, such as $ or %%, "
            "or signs between thousands: write numbers alone, or, if they are texts, set "
            "data.csv: {texts: [%s]}",
            path, f->name, (unsigned long long)s->ndecorated, f->name);
    if (f->text && !asked && 2 * s->ndates > s->n[LS_CELL_TEXT])
        ls_note("%s: '%s' is read as texts, but %llu of them are dates, whose order and distance "
                "are lost: write numbers, such as days since a date, the month or the weekday, "
                "or, if they are texts, set data.csv: {texts: [%s]}",
                path, f->name, (unsigned long long)s->ndates, f->name);
    if (f->text && others && !asked && !f->classes.too_many)
        ls_note("%s: '%s' is read as texts: %llu of its cells are, and %llu are numbers", path,
                f->name, (unsigned long long)s->n[LS_CELL_TEXT], (unsigned long long)others);
    if (f->text) return others == 0;
    ls_classes_free(&f->classes);
    uint64_t n = 0;
    for (int k = 0; k < LS_CELL_KINDS; k++) n += s->n[k];
    if (what == NUMBERS) f->whole = !s->fractions;
    f->row_numbers = s->unnamed && s->counts && (s->first == 0 || s->first == 1) &&
                     s->n[LS_CELL_NUMBER] == n && n > 2;
    if (what == NUMBERS) return s->n[LS_CELL_NUMBER] == n && !s->huge;
    if (what == LISTS) decide_list(f, s);
    if (what == NOTHING || s->n[LS_CELL_INTEGERS] == n) return true;
    return !s->varies && s->n[LS_CELL_INTEGERS] + s->n[LS_CELL_REALS] == n;
}

bool ls_csv_table_decide(ls_csv_table *t, const char *texts, const char *what) {
    bool uniform = true;
    for (size_t i = 0; i < t->columns.n; i++) {
        ls_feature *f = &t->columns.list[i];
        bool asked = ls_csv_rules_has(texts, f->name);
        if (!decide_column(f, &t->seen[i], asked, what)) uniform = false;
    }
    return uniform;
}
