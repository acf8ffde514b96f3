/* csv_columns.c - see csv_columns.h. */
#include "source/tables/csv_columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "source/note.h"
#include "source/number.h"
#include "source/plain.h"
#include "source/tables/csv_cell.h"
#include "source/tables/csv_rules.h"
#include "source/tables/csv_table.h"

enum { MOST_CELLS = 4096 };

typedef struct column_rule {
    ls_missing missing;
    bool own; /* data.missing names the column */
} column_rule;

typedef struct reading {
    const ls_csv_wanted *w;
    const ls_plain *file;
    ls_csv csv;
    ls_csv_rules rules;
    column_rule of[LS_CSV_COLUMNS];
    ls_csv_cell *cells;     /* [MOST_CELLS] of the present row */
    int ncells;             /* of each row; 0: not known yet */
    int at[LS_CSV_COLUMNS]; /* the cell of each wanted column; -1: there is none */
    bool header;            /* the first line is one */
    uint64_t nrows;         /* that the reader got */
} reading;

static ls_status split(reading *r, int *n_p, ls_error *e) {
    ls_csv_cell cell = {0};
    int n = 0;
    while (!cell.last) {
        const char *wrong = ls_csv_next(&r->csv, &cell);
        if (wrong) return ls_fail(e, LS_EINVAL, "column %d %s", n + 1, wrong);
        if (n == MOST_CELLS) return ls_fail(e, LS_EINVAL, "has over %d columns", MOST_CELLS);
        r->cells[n++] = cell;
    }
    *n_p = n;
    return LS_OK;
}

/* ---- the header ---- */

static bool is_named(const ls_csv_cell *cell, size_t column, const char *name) {
    char *has = ls_csv_name(cell, column);
    bool same = strcmp(has, name) == 0;
    free(has);
    return same;
}

/* The column of this name in a header; -1: there is none. LS_EINVAL: there are two. */
static ls_status find_in_header(const reading *r, int n, const char *name, int *at_p, ls_error *e) {
    *at_p = -1;
    for (int i = 0; i < n; i++) {
        if (!is_named(&r->cells[i], (size_t)i, name)) continue;
        if (*at_p >= 0)
            return ls_fail(e, LS_EINVAL, "%s: columns %d and %d are both named '%.60s'; rename one",
                           r->file->path, *at_p + 1, i + 1, name);
        *at_p = i;
    }
    return LS_OK;
}

/* The number in "column3", less 1; -1: the name is another one. */
static int number_in(const char *name) {
    int number = 0, end = 0;
    if (sscanf(name, "column%d%n", &number, &end) != 1 || name[end]) return -1;
    return number >= 1 && number <= MOST_CELLS ? number - 1 : -1;
}

static ls_status fail_header(const reading *r, int n, const char *name, ls_error *e) {
    static const char *const hints[] = {
        [LS_HEADER_FOUND] = "name columns of a header, or without one column1, column2, ...",
        [LS_HEADER_YES] = "name columns of this header (data.csv: header: yes)",
        [LS_HEADER_NO] = "name columns column1, column2, ... (data.csv: header: no)"};
    ls_buf all = {0};
    for (int i = 0; i < n && all.len < 300; i++) {
        char *has = ls_csv_name(&r->cells[i], (size_t)i);
        ls_buf_printf(&all, "%s%.60s", i ? ", " : "", r->cells[i].nbytes ? has : "");
        free(has);
    }
    ls_status s =
        ls_fail(e, LS_EINVAL, "%s: has no column '%.60s'; its first line is %.300s: %s",
                r->file->path, name, all.data ? all.data : "empty", hints[r->rules.header]);
    ls_buf_free(&all);
    return s;
}

/* Finds the columns by the names in the first line, or by their numbers. */
static ls_status find_columns(reading *r, int n, ls_error *e) {
    int nnamed = 0;
    for (int k = 0; k < r->w->n; k++) {
        r->at[k] = -1;
        if (r->rules.header == LS_HEADER_NO) continue;
        LS_TRY(find_in_header(r, n, r->w->columns[k].name, &r->at[k], e));
        nnamed += r->at[k] >= 0;
    }
    r->header = nnamed > 0 || r->rules.header == LS_HEADER_YES;
    for (int k = 0; k < r->w->n && !r->header; k++) r->at[k] = number_in(r->w->columns[k].name);
    for (int k = 0; k < r->w->n; k++)
        if ((r->at[k] < 0 || r->at[k] >= n) && !r->w->columns[k].may_lack)
            return fail_header(r, n, r->w->columns[k].name, e);
    return LS_OK;
}

/* Finds the columns in the first line, and passes over it if it is a header. */
static ls_status read_header(reading *r, ls_error *e) {
    ls_csv begin = r->csv;
    ls_error why = {0};
    int n = 0;
    if (!ls_csv_find_row(&r->csv)) return LS_OK;
    if (split(r, &n, &why) != LS_OK) return ls_fail(e, LS_EINVAL, "%s: %s", r->file->path, why.msg);
    LS_TRY(find_columns(r, n, e));
    r->ncells = n;
    if (!r->header) r->csv = begin;
    return LS_OK;
}

/* ---- rows ---- */

static bool is_missing(const reading *r, int k, const ls_csv_cell *cell) {
    switch (r->w->columns[k].kind) {
    case LS_CSV_NUMBER:
    case LS_CSV_FILLED: return ls_csv_is_missing(cell, &r->csv.form);
    case LS_CSV_ID:
        if (cell->nbytes == 0 || ls_csv_is_in(r->rules.na, cell->text, cell->nbytes)) return true;
        break;
    case LS_CSV_TEXT: break;
    }
    return r->of[k].own && ls_csv_is_missing(cell, &r->csv.form);
}

static ls_status fail_missing(const reading *r, int k, const ls_csv_cell *cell, ls_error *e) {
    const ls_csv_column *c = &r->w->columns[k];
    const char *mean = c->kind == LS_CSV_FILLED ? ", or mean" : "";
    if (r->of[k].missing == LS_MISSING_MEAN)
        return ls_fail(e, LS_EINVAL,
                       "column '%.60s' has no value, and %s have no mean (data.missing); set drop, "
                       "which leaves such rows out",
                       c->name, c->kind == LS_CSV_NUMBER ? "ratings, times and clicks" : "texts");
    if (cell->nbytes == 0)
        return ls_fail(e, LS_EINVAL,
                       "column '%.60s' is empty; set data.missing to drop, which leaves such rows "
                       "out%s",
                       c->name, mean);
    return ls_fail(e, LS_EINVAL,
                   "column '%.60s' has '%.*s', which stands for a missing value; set data.missing "
                   "to drop, which leaves such rows out%s",
                   c->name, (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text, mean);
}

/* Looks at the wanted cells. *drops_p: the row is left out, since a value is missing. */
static ls_status find_missing(const reading *r, const ls_csv_cell *cells, bool *missing,
                              bool *drops_p, ls_error *e) {
    *drops_p = false;
    for (int k = 0; k < r->w->n; k++) {
        const ls_csv_column *c = &r->w->columns[k];
        missing[k] = false;
        if ((c->may_lack && cells[k].nbytes == 0) || !is_missing(r, k, &cells[k])) continue;
        bool fills = c->kind == LS_CSV_FILLED && r->of[k].missing == LS_MISSING_MEAN;
        if (!fills && r->of[k].missing != LS_MISSING_DROP) return fail_missing(r, k, &cells[k], e);
        missing[k] = fills;
        *drops_p = *drops_p || !fills;
    }
    return LS_OK;
}

static void leave_out(const reading *r) {
    if (r->w->gaps) ls_gaps_add(r->w->gaps, r->nrows);
}

static ls_status read_row(reading *r, ls_source *s, ls_error *e) {
    ls_csv_cell wanted[LS_CSV_COLUMNS];
    bool missing[LS_CSV_COLUMNS], drops = false;
    int n = 0;
    LS_TRY(split(r, &n, e));
    if (n != r->ncells)
        return ls_fail(e, LS_EINVAL, "has %d columns, the first line %d", n, r->ncells);
    for (int k = 0; k < r->w->n; k++)
        wanted[k] = r->at[k] >= 0 && r->at[k] < n ? r->cells[r->at[k]] : (ls_csv_cell){.text = ""};
    LS_TRY(find_missing(r, wanted, missing, &drops, e));
    if (drops) {
        s->nmissing++;
        leave_out(r);
        return LS_OK;
    }
    LS_TRY(r->w->row(r->w->arg, &(ls_csv_row){wanted, missing, &r->csv.form}, e));
    r->nrows++;
    return LS_OK;
}

static ls_status read_file(reading *r, const ls_source_options *o, ls_source *s, ls_error *e) {
    const char *text = (const char *)r->file->data;
    LS_TRY(ls_utf8_check_beginning(text, r->file->nbytes, r->file->path, e));
    ls_csv_form form = ls_csv_form_of(text, r->file->nbytes, &r->rules.form);
    form.na = r->rules.na;
    r->csv = ls_csv_begin(text, r->file->nbytes, form);
    LS_TRY(read_header(r, e));
    while (ls_csv_find_row(&r->csv)) {
        size_t at = r->csv.at;
        uint64_t line = r->csv.line;
        ls_error why = {0}, whole = {0};
        if (read_row(r, s, &why) == LS_OK) continue;
        ls_fail(&whole, why.code, "%s:%llu: %s", r->file->path, (unsigned long long)line, why.msg);
        LS_TRY(ls_source_leave_out(s, o, &whole, e));
        leave_out(r);
        ls_csv_skip_row(&r->csv, at, line);
    }
    return LS_OK;
}

/* ---- all files ---- */

static bool is_wanted(const ls_csv_wanted *w, const char *name) {
    bool wanted = false;
    for (int k = 0; k < w->n; k++) wanted = wanted || strcmp(w->columns[k].name, name) == 0;
    return wanted;
}

/* What data.csv and the other keys ask that can't be, and the rules of the columns. */
static ls_status apply_rules(reading *r, const ls_source_options *o, ls_error *e) {
    const ls_csv_wanted *w = r->w;
    if (r->rules.columns)
        return ls_fail(e, LS_EINVAL, "data.columns: %s names the columns that are read; remove it",
                       w->key);
    if (r->rules.texts)
        return ls_fail(e, LS_EINVAL,
                       "data.csv: texts: %s says which columns are numbers; remove it", w->key);
    for (size_t i = 0; i < r->rules.nrules; i++) {
        const char *name = r->rules.rules[i].column;
        if (strcmp(name, "*") != 0 && !is_wanted(w, name))
            return ls_fail(e, LS_EINVAL, "data.missing: '%.80s' is no column that %s names", name,
                           w->key);
    }
    for (int k = 0; k < w->n; k++)
        r->of[k].missing =
            ls_csv_rules_missing(&r->rules, w->columns[k].name, o->missing, &r->of[k].own);
    return LS_OK;
}

static void describe(const reading *r, const char *what, ls_source *s) {
    ls_csv_form_describe(r->csv.form, r->header, s->form);
    if (s->nmissing)
        ls_note("%s: %llu row%s without a value left out", what, (unsigned long long)s->nmissing,
                ls_plural((int64_t)s->nmissing));
}

ls_status ls_csv_columns_read(const ls_files *files, const ls_source_options *o,
                              const ls_csv_wanted *w, ls_source *s, ls_error *e) {
    ls_plain *list = NULL;
    reading r = {.w = w};
    r.rules = ls_csv_rules_copy(o->csv);
    ls_status status = apply_rules(&r, o, e);
    if (status == LS_OK) status = ls_plain_open_all(files, o, LS_HOLES_REFUSED, &list, e);
    r.cells = LS_NEW_ARRAY(ls_csv_cell, MOST_CELLS);
    for (size_t i = 0; status == LS_OK && i < files->n; i++) {
        r.file = &list[i];
        status = read_file(&r, o, s, e);
    }
    if (status == LS_OK) describe(&r, files->paths[0], s);
    ls_csv_rules_free(&r.rules);
    if (list) ls_plain_describe(list, files->n, s);
    ls_plain_close_all(list, files->n);
    free(r.cells);
    return status;
}

ls_status ls_csv_number(const ls_csv_row *row, int i, const char *name, double *x_p, ls_error *e) {
    const ls_csv_cell *cell = &row->cells[i];
    ls_cell_value v = ls_csv_value(cell, row->form);
    *x_p = v.number;
    if (v.kind == LS_CELL_NUMBER && ls_number_is_f32(v.number)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "column '%.60s' has '%.*s', which %s", name,
                   (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text,
                   v.kind == LS_CELL_NUMBER  ? "no f32 can hold"
                   : v.kind == LS_CELL_COMMA ? "is no number; set data.csv: {decimal: \",\"} if "
                                               "commas are decimal signs"
                                             : "is no number");
}
