/* read_csv.c - CSV files: a row is a sample, a column a field (features.h).
 *
 * All rows are read when the source is opened, so that each is known to be readable, by all cores
 * where no cell is quoted; afterwards a row is found by its offset. All rows together decide
 * whether the first line is a header, and what a column has (csv_table.h): numbers, texts, or
 * numbers in brackets, as in "[3, 17]", which are a list (source.h) if they are whole and rows have
 * different numbers of them. If a cell is not like its column, the rows are read again: then it is
 * damage, or a missing value.
 *
 * If the first of several files has a header, the others begin with the same one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "source/format.h"
#include "source/index.h"
#include "source/note.h"
#include "source/number.h"
#include "source/places.h"
#include "source/tables/column_rules.h"
#include "source/tables/csv_rules.h"
#include "source/tables/csv_table.h"
#include "tensor/pool.h"

enum { MOST_COLUMNS = 1 << 20 };

typedef struct csv_source {
    ls_records r;
    ls_csv_form *forms; /* [places.nfiles] */
    ls_csv_table table;
    bool header;
    bool names_rows; /* the header has no cell for the first column */
    bool alone;      /* no other row of the first file has as many cells as its first line */
    bool skips_damaged, follows;
    ls_missing missing;
    ls_csv_rules rules;
    ls_column_rule *of;        /* [columns.n] NULL: columns are not known */
    const ls_numbering *known; /* rows with other texts are damaged; NULL: texts are as they are */
} csv_source;

/* One row while files are indexed. */
typedef struct row {
    ls_csv_cell *cells;    /* [n] */
    ls_cell_value *values; /* [n] */
    size_t n, room;
    size_t at;     /* offset of the row */
    uint64_t line; /* where it begins */
} row;

static ls_csv begin_file(const csv_source *s, const ls_plain *file) {
    return ls_csv_begin((const char *)file->data, file->nbytes, s->forms[file - s->r.places.files]);
}

/* Splits the next row into cells. */
static ls_status split(ls_csv *c, const char *path, row *r, ls_error *e) {
    ls_csv_cell cell = {0};
    r->n = 0;
    r->at = c->at;
    r->line = c->line;
    while (!cell.last) {
        const char *wrong = ls_csv_next(c, &cell);
        if (wrong)
            return ls_fail(e, LS_EINVAL, "%s:%llu: column %zu %s", path,
                           (unsigned long long)c->line, r->n + 1, wrong);
        if (r->n == MOST_COLUMNS)
            return ls_fail(e, LS_EINVAL, "%s:%llu: has over %d columns", path,
                           (unsigned long long)r->line, MOST_COLUMNS);
        if (r->n == r->room) {
            r->room = r->room ? 2 * r->room : 16;
            r->cells = ls_realloc(r->cells, r->room * sizeof *r->cells);
        }
        r->cells[r->n++] = cell;
    }
    return LS_OK;
}

/* Splits the next row, which has as many cells as the first one. */
static ls_status split_alike(const csv_source *s, ls_csv *c, const char *path, row *r,
                             ls_error *e) {
    LS_TRY(split(c, path, r, e));
    if (r->n == s->table.columns.n) return LS_OK;
    if (s->alone)
        return ls_fail(
            e, LS_EINVAL,
            "%s:%llu: has %zu column%s, the first line %zu, and so has no other line; if "
            "it is no part of the table, set data.csv: {skip: 1}",
            path, (unsigned long long)r->line, r->n, ls_plural((int64_t)r->n), s->table.columns.n);
    return ls_fail(e, LS_EINVAL, "%s:%llu: has %zu column%s, the first line %zu", path,
                   (unsigned long long)r->line, r->n, ls_plural((int64_t)r->n), s->table.columns.n);
}

/* ---- what all rows show ---- */

/* Rows of a file, which one thread looks at. */
typedef struct part {
    ls_csv c;
    ls_csv_table *table; /* the source's own, of the first part */
    uint64_t *at;        /* [n] where its rows begin */
    uint64_t n;
    bool whole; /* no row is damaged */
} part;

typedef struct seeing {
    const csv_source *s;
    const char *path;
    part *parts; /* [nparts] */
    int nparts;
} seeing;

/* Shows a part's rows to its table, except those that are damaged. */
static void see_part(const csv_source *s, const char *path, part *p) {
    row r = {0};
    p->whole = true;
    while (ls_csv_find_row(&p->c)) {
        size_t at = p->c.at;
        uint64_t line = p->c.line;
        if (split_alike(s, &p->c, path, &r, NULL) == LS_OK) {
            ls_csv_table_see(p->table, r.cells, &p->c.form);
            p->at = ls_grow(p->at, p->n, sizeof *p->at);
            p->at[p->n++] = r.at;
            continue;
        }
        p->whole = false;
        ls_csv_skip_row(&p->c, at, line);
    }
    free(r.cells);
}

static void see_parts(void *arg, int thread, int nthreads) {
    const seeing *w = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(w->nparts, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) see_part(w->s, w->path, &w->parts[i]);
}

/* How many parts the rows from here on have: one for each core, if they are large and each line is
 * a row, since nothing is quoted. */
static int count_parts(const csv_source *s, const ls_csv *c) {
    enum { FEWEST = 1 << 20, ROWS = 1000 }; /* bytes of a part, at least */
    size_t n = c->nbytes - c->at, least = ROWS * s->table.columns.n;
    size_t most = n / (least > FEWEST ? least : FEWEST);
    bool quotes = c->form.quote && n && memchr(c->text + c->at, c->form.quote, n);
    if (quotes || most < 2 || c->form.ends == LS_CSV_CR) return 1;
    return most < (size_t)ls_cores() ? (int)most : ls_cores();
}

/* Cuts the rows from here on into parts, behind line breaks. */
static void cut_rows(csv_source *s, const ls_csv *c, part *parts, int n) {
    size_t at = c->at, each = (c->nbytes - c->at) / (size_t)n;
    for (int i = 0; i < n; i++) {
        size_t goal = c->at + each * (size_t)(i + 1);
        if (goal < at) goal = at;
        const char *end = i + 1 < n ? memchr(c->text + goal, '\n', c->nbytes - goal) : NULL;
        parts[i] = (part){.c = *c, .table = i ? LS_NEW(ls_csv_table) : &s->table};
        if (i) ls_csv_table_begin(parts[i].table, s->table.columns.n);
        parts[i].c.at = at;
        at = parts[i].c.nbytes = end ? (size_t)(end - c->text) + 1 : c->nbytes;
    }
}

static void take_part(csv_source *s, part *p) {
    for (uint64_t i = 0; i < p->n; i++) ls_places_add(&s->r.places, p->at[i]);
    free(p->at);
    if (p->table == &s->table) return;
    ls_csv_table_join(&s->table, p->table);
    free(p->table);
}

/* Shows the rows from here on, except those that are damaged; false if there is one. What is seen
 * does not depend on the number of parts. */
static bool see_rows(csv_source *s, const ls_csv *c, const char *path) {
    ls_pool *pool = NULL;
    bool whole = true;
    int n = count_parts(s, c);
    if (n > 1 && ls_pool_create(n, &pool, NULL) != LS_OK) n = 1;
    part *parts = LS_NEW_ARRAY(part, (size_t)n);
    seeing w = {s, path, parts, n};
    cut_rows(s, c, parts, n);
    if (pool)
        ls_pool_run(pool, see_parts, &w);
    else
        see_parts(&w, 0, 1);
    ls_pool_free(pool);
    for (int i = 0; i < n; i++) {
        whole = whole && parts[i].whole;
        take_part(s, &parts[i]);
    }
    free(parts);
    return whole;
}

/* Has the next row one cell more? */
static bool is_wider(const csv_source *s, ls_csv c, const char *path, row *r) {
    return ls_csv_find_row(&c) && split(&c, path, r, NULL) == LS_OK &&
           r->n == s->table.columns.n + 1;
}

/* No row has as many cells as the first line. It is a header without a name for the first column,
 * as R's write.table() and pandas' to_string() write it, if the others have one cell more. */
static void see_wider(csv_source *s, ls_csv c, const char *path, row *r, row *first) {
    s->alone = c.at < c.nbytes;
    if (s->rules.header == LS_HEADER_NO || !is_wider(s, c, path, r)) return;
    first->cells = ls_realloc(first->cells, (first->n + 1) * sizeof *first->cells);
    memmove(&first->cells[1], first->cells, first->n * sizeof *first->cells);
    first->cells[0] = (ls_csv_cell){.text = first->cells[0].text};
    first->n++;
    ls_csv_table_free(&s->table);
    ls_csv_table_begin(&s->table, first->n);
    ls_places_forget(&s->r.places);
    ls_places_begin(&s->r.places, 0);
    s->alone = false;
}

/* The first file's first line is looked at last: the others show whether it is a header. */
static ls_status see_first_file(csv_source *s, row *r, bool *whole, ls_error *e) {
    const ls_plain *file = &s->r.places.files[0];
    ls_csv c = begin_file(s, file);
    if (!ls_csv_find_row(&c)) return LS_OK;
    LS_TRY(split(&c, file->path, r, e));
    row first = *r;
    *r = (row){0};
    ls_csv behind = c;
    ls_csv_table_begin(&s->table, first.n);
    bool all = see_rows(s, &c, file->path);
    if (!all && s->r.places.n == 0) {
        size_t n = first.n;
        see_wider(s, behind, file->path, r, &first);
        s->names_rows = first.n > n;
        if (s->names_rows) all = see_rows(s, &behind, file->path);
    }
    *whole = all && *whole;
    s->header = s->names_rows || s->rules.header == LS_HEADER_YES ||
                (s->rules.header == LS_HEADER_FOUND &&
                 ls_csv_table_is_header(&s->table, first.cells, &c.form));
    if (s->header) {
        ls_csv_table_name(&s->table, first.cells);
    } else {
        ls_csv_table_see(&s->table, first.cells, &c.form);
        ls_places_insert(&s->r.places, first.at);
    }
    free(first.cells);
    return LS_OK;
}

/* Compares the header with that of the first file. */
static ls_status pass_header(const csv_source *s, ls_csv *c, const ls_plain *file, row *r,
                             ls_error *e) {
    if (!s->header || !ls_csv_find_row(c)) return LS_OK;
    LS_TRY(split(c, file->path, r, e));
    size_t first = s->names_rows;
    bool same = r->n + first == s->table.columns.n;
    for (size_t i = 0; same && i < r->n; i++) {
        char *name = ls_csv_name(&r->cells[i], i + first);
        same = strcmp(name, s->table.columns.list[i + first].name) == 0;
        free(name);
    }
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s:%llu: has no header line with the columns of %s", file->path,
                   (unsigned long long)r->line, s->r.places.files[0].path);
}

static ls_status see_file(csv_source *s, row *r, bool *whole, ls_error *e) {
    const ls_plain *file = &s->r.places.files[s->r.places.nfiles - 1];
    if (!s->table.seen) return see_first_file(s, r, whole, e);
    ls_csv c = begin_file(s, file);
    LS_TRY(pass_header(s, &c, file, r, e));
    *whole = see_rows(s, &c, file->path) && *whole;
    return LS_OK;
}

/* ---- cells that are not like their column ---- */

/* The beginning of a message about a cell: "t.csv:3: column 2, 'age', has 'x'". */
static char *place_of(const csv_source *s, const char *path, const row *r, size_t i) {
    const ls_csv_cell *cell = &r->cells[i];
    const ls_feature *f = &s->table.columns.list[i];
    bool is_text = r->values[i].kind == LS_CELL_TEXT && f->ndims == 0;
    return ls_format("%s:%llu: column %zu, '%s', has %s'%.*s'", path, (unsigned long long)r->line,
                     i + 1, f->name, is_text ? "the text " : "",
                     (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text);
}

static ls_status fail_missing(const csv_source *s, const char *path, const row *r, size_t i,
                              ls_error *e) {
    const ls_feature *f = &s->table.columns.list[i];
    bool is_label = f == ls_features_label(&s->table.columns);
    const char *can = s->of[i].missing == LS_MISSING_REFUSE && !f->ndims && !f->text && !is_label
                          ? "drop, which leaves such rows out, or mean"
                          : "drop, which leaves such rows out";
    const ls_csv_cell *cell = &r->cells[i];
    if (cell->nbytes == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s:%llu: column %zu, '%s', is empty, but has %s elsewhere; write one, or "
                       "set data.missing (--missing) to %s",
                       path, (unsigned long long)r->line, i + 1, f->name,
                       f->ndims  ? "lists"
                       : f->text ? "texts"
                                 : "numbers",
                       can);
    return ls_fail(e, LS_EINVAL,
                   "%s:%llu: column %zu, '%s', has the text '%.*s', which stands for a missing "
                   "value; write one, or set data.missing (--missing) to %s",
                   path, (unsigned long long)r->line, i + 1, f->name, (int)cell->nbytes, cell->text,
                   can);
}

static ls_status not_a_number(const csv_source *s, const char *path, const row *r, size_t i,
                              ls_error *e) {
    char *place = place_of(s, path, r, i);
    ls_status status =
        r->values[i].kind == LS_CELL_NUMBER
            ? ls_fail(e, LS_EINVAL, "%s, which no f32 can hold", place)
        : r->values[i].kind == LS_CELL_COMMA
            ? ls_fail(e, LS_EINVAL,
                      "%s; write decimal points in place of commas, or set data.csv: "
                      "{decimal: \",\"}",
                      place)
            : ls_fail(e, LS_EINVAL, "%s, but numbers elsewhere; write a number, or remove the line",
                      place);
    free(place);
    return status;
}

static ls_status not_a_list(const csv_source *s, const char *path, const row *r, size_t i,
                            ls_error *e) {
    const ls_feature *f = &s->table.columns.list[i];
    char *place = place_of(s, path, r, i);
    ls_status status =
        r->values[i].kind == LS_CELL_REALS || !f->integers
            ? ls_fail(e, LS_EINVAL,
                      "%s, but lists of another length elsewhere; only those of whole numbers "
                      "within an i32 may differ in length",
                      place)
            : ls_fail(e, LS_EINVAL,
                      "%s, but lists of whole numbers elsewhere; write one, such as [] or [3, 17], "
                      "or remove the line",
                      place);
    free(place);
    return status;
}

static bool is_list_of(const ls_feature *f, ls_cell_value v) {
    if (f->integers) return v.kind == LS_CELL_INTEGERS && (f->is_list || v.length == f->count);
    return (v.kind == LS_CELL_INTEGERS || v.kind == LS_CELL_REALS) && v.length == f->count;
}

/* With `known`: refuses a text that the training data do not have. */
static ls_status check_text(const csv_source *s, const char *path, const row *r, size_t i,
                            ls_error *e) {
    char text[LS_CLASS_NBYTES];
    size_t n = s->known ? ls_csv_unquote(&r->cells[i], text, sizeof text) : 0;
    if (!s->known || ls_features_knows(&s->table.columns, s->known, i, text, n)) return LS_OK;
    char *place = place_of(s, path, r, i);
    ls_status status = ls_fail(e, LS_EINVAL, "%s, which the training data do not have", place);
    free(place);
    return status;
}

/* Compares the row with the columns. *missing_p: it is left out, since a value is missing. */
static ls_status check_row(const csv_source *s, const char *path, const row *r, bool *missing_p,
                           ls_error *e) {
    const ls_feature *label = ls_features_label(&s->table.columns);
    *missing_p = false;
    for (size_t i = 0; i < r->n; i++) {
        const ls_feature *f = &s->table.columns.list[i];
        ls_cell_value v = r->values[i];
        ls_column_rule rule = s->of[i];
        if (f->left_out || f->unchosen) continue;
        if (v.kind == LS_CELL_MISSING && (!f->text || rule.own)) {
            bool fills = rule.missing == LS_MISSING_MEAN && !f->ndims && !f->text && f != label;
            if (rule.missing != LS_MISSING_DROP && !fills) return fail_missing(s, path, r, i, e);
            *missing_p = *missing_p || !fills;
        } else if (f->text) {
            LS_TRY(check_text(s, path, r, i, e));
        } else if (f->ndims) {
            if (!is_list_of(f, v)) return not_a_list(s, path, r, i, e);
        } else if (v.kind != LS_CELL_NUMBER || !ls_number_is_f32(v.number)) {
            return not_a_number(s, path, r, i, e);
        }
    }
    return LS_OK;
}

static void add_row(csv_source *s, const row *r) {
    for (size_t i = 0; i < r->n; i++) {
        ls_feature *f = &s->table.columns.list[i];
        if (f->unchosen) continue;
        if (f->text) {
            char text[LS_CLASS_NBYTES + 1];
            ls_classes_add(&f->classes, text, ls_csv_unquote(&r->cells[i], text, sizeof text));
        } else if (r->values[i].kind == LS_CELL_MISSING) {
            f->nmissing += !f->left_out;
        } else if (f->ndims == 0) {
            f->whole = f->whole && ls_number_is_i32(r->values[i].number);
            f->mean += r->values[i].number; /* a sum so far */
            f->nvalues++;
        }
    }
    ls_places_add(&s->r.places, r->at);
}

static ls_status take_row(csv_source *s, ls_csv *c, const char *path, row *r, ls_error *e) {
    bool missing = false;
    LS_TRY(split_alike(s, c, path, r, e));
    if (!r->values) r->values = LS_NEW_ARRAY(ls_cell_value, r->n);
    for (size_t i = 0; i < r->n; i++) r->values[i] = ls_csv_value(&r->cells[i], &c->form);
    LS_TRY(check_row(s, path, r, &missing, e));
    s->r.base.nmissing += missing;
    if (missing)
        ls_places_leave_out(&s->r.places);
    else
        add_row(s, r);
    return LS_OK;
}

static ls_status take_file(csv_source *s, const ls_plain *file, row *r, ls_error *e) {
    ls_source_options o = {.skip_damaged = s->skips_damaged};
    ls_csv c = begin_file(s, file);
    LS_TRY(pass_header(s, &c, file, r, e));
    while (ls_csv_find_row(&c)) {
        ls_error why = {0};
        size_t at = c.at;
        uint64_t line = c.line;
        if (take_row(s, &c, file->path, r, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->r.places, &s->r.base, &o, &why, e));
        ls_csv_skip_row(&c, at, line);
    }
    return LS_OK;
}

static void forget_rows(csv_source *s) {
    ls_places_forget(&s->r.places);
    s->r.base.damage = (ls_damage){0};
    s->r.base.nmissing = 0;
    for (size_t i = 0; i < s->table.columns.n; i++) {
        ls_feature *f = &s->table.columns.list[i];
        ls_classes_free(&f->classes);
        f->nmissing = f->nvalues = 0;
        f->mean = 0;
        if (f->ndims == 0) f->whole = true;
    }
}

/* Reads all rows again, now that it is decided what the columns have. */
static ls_status take_rows(csv_source *s, ls_error *e) {
    row r = {0};
    ls_status status = LS_OK;
    forget_rows(s);
    for (size_t i = 0; status == LS_OK && i < s->r.places.nfiles; i++) {
        ls_places_begin(&s->r.places, i);
        status = take_file(s, &s->r.places.files[i], &r, e);
    }
    for (size_t i = 0; i < s->table.columns.n; i++) {
        ls_feature *f = &s->table.columns.list[i];
        if (s->of[i].missing != LS_MISSING_MEAN) f->nvalues = 0;
        /* as a sample has it, and as nine digits in data.json say it exactly */
        f->mean = f->nvalues ? (float)(f->mean / (double)f->nvalues) : 0;
    }
    free(r.cells);
    free(r.values);
    return status;
}

/* ---- samples ---- */

static bool store_list(const ls_feature *f, const ls_csv_cell *cell, void *sample) {
    ls_cell_kind kind = LS_CELL_INTEGERS;
    double number = 0;
    size_t n = 0, at = 0;
    if (cell->nbytes == 0 || cell->text[0] != '[') return false;
    while (ls_csv_next_in_list(cell, &at, &number, &kind)) {
        if (n == f->count) return false;
        ls_feature_store(f, sample, n++, number);
    }
    if (!is_list_of(f, (ls_cell_value){.kind = kind, .length = n})) return false;
    if (f->is_list) ls_feature_end(f, sample, n);
    return true;
}

/* Stores the cell of a row that was indexed. False: it has changed since then. */
static bool store_cell(const ls_feature *f, const ls_csv_cell *cell, const ls_csv_form *form,
                       void *sample) {
    double value = 0;
    if (f->left_out) return true;
    if (f->ndims) return store_list(f, cell, sample);
    if (f->text) {
        char text[LS_CLASS_NBYTES];
        size_t n = ls_csv_unquote(cell, text, sizeof text);
        int code = n > sizeof text ? -1 : ls_classes_find(&f->classes, text, n);
        if (code < 0) return false;
        value = code;
    } else {
        ls_cell_value v = ls_csv_value(cell, form);
        bool missing = v.kind == LS_CELL_MISSING && f->nmissing > 0;
        if (v.kind != LS_CELL_NUMBER && !missing) return false;
        value = missing ? f->mean : v.number;
    }
    ls_feature_store(f, sample, 0, value);
    return true;
}

static ls_status read_row(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const csv_source *s = (const csv_source *)source;
    ls_sample_place place = ls_places_find(&s->r.places, i);
    ls_csv c = begin_file(s, place.file);
    c.at = place.at;
    ls_csv_cell cell = {0};
    bool good = true;
    for (size_t k = 0; good && k < s->table.columns.n; k++)
        good = !cell.last && !ls_csv_next(&c, &cell) &&
               store_cell(&s->table.columns.list[k], &cell, &c.form, sample);
    if (good) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the row at byte %llu has changed since the file was opened",
                   place.file->path, (unsigned long long)place.at);
}

static void close_csv(ls_source *source) {
    csv_source *s = (csv_source *)source;
    ls_places_close(&s->r.places);
    ls_csv_table_free(&s->table);
    ls_csv_rules_free(&s->rules);
    free(s->of);
    free(s->forms);
    free(s);
}

/* ---- opening ---- */

/* What an index knows of the columns, instead of reading the rows. */
static ls_status take_index(csv_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->r.places, &s->r.base, in);
    ls_features_take(&s->table.columns, in);
    uint64_t header = ls_bytes_take_u64(in, 2);
    s->header = header > 0;
    s->names_rows = header > 1;
    s->r.base.nmissing = ls_bytes_take_u64(in, UINT64_MAX);
    for (size_t i = 0; i < s->table.columns.n; i++) {
        const ls_feature *c = &s->table.columns.list[i];
        if (c->ndims > 1 || c->text == c->spelled || (c->ndims && !c->spelled)) in->bad = true;
    }
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static void put_index(const csv_source *s, ls_buf *out) {
    ls_places_put(&s->r.places, &s->r.base, out);
    ls_features_put(&s->table.columns, out);
    ls_bytes_put_u64(out, (uint64_t)s->header + s->names_rows);
    ls_bytes_put_u64(out, s->r.base.nmissing);
}

static ls_status add_form(csv_source *s, ls_error *e) {
    const ls_plain *file = &s->r.places.files[s->r.places.nfiles - 1];
    LS_TRY(ls_utf8_check_beginning((const char *)file->data, file->nbytes, file->path, e));
    s->forms = ls_grow(s->forms, s->r.places.nfiles - 1, sizeof *s->forms);
    ls_csv_form *form = &s->forms[s->r.places.nfiles - 1];
    *form = ls_csv_form_of((const char *)file->data, file->nbytes, &s->rules.form);
    form->na = s->rules.na;
    return LS_OK;
}

/* Now that the columns have their names: which are read, and their rules. Each name that a rule has
 * must be there. */
static ls_status apply_rules(csv_source *s, const char *unread, const char *what, ls_error *e) {
    ls_features *columns = &s->table.columns;
    const char *twice = ls_csv_table_repeated(&s->table, s->rules.columns);
    if (twice)
        return ls_fail(e, LS_EINVAL, "%s: two columns are named '%.80s'; rename one", what, twice);
    LS_TRY(ls_features_choose(columns, s->rules.columns, s->follows, what, e));
    ls_features_pass_over(columns, unread);
    return ls_column_rules_find(
        columns, &(ls_column_rules){&s->rules, s->missing, s->follows, what}, &s->of, e);
}

static ls_status see_files(csv_source *s, const ls_files *files, const ls_source_options *o,
                           ls_error *e) {
    row r = {0};
    bool known = ls_index_is_known(o->index), whole = true;
    ls_status status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < files->n; i++) {
        status = ls_places_open(&s->r.places, files->paths[i], o, e);
        if (status == LS_OK) status = add_form(s, e);
        if (status == LS_OK && !known) status = see_file(s, &r, &whole, e);
    }
    free(r.cells);
    LS_TRY(status);
    if (known) LS_TRY(take_index(s, ls_index_in(o->index), e));
    LS_TRY(apply_rules(s, o->unread, files->paths[0], e));
    if (known) return LS_OK;
    bool alike = ls_csv_table_decide(&s->table, s->rules.texts, files->paths[0]);
    bool again = !whole || !alike || s->missing == LS_MISSING_MEAN || s->rules.nrules;
    return again ? take_rows(s, e) : LS_OK;
}

/* Has the column, or a text of it, bytes that are no UTF-8? */
static bool is_foreign(const ls_feature *f) {
    bool foreign = !ls_utf8_is_valid(f->name, strlen(f->name));
    for (int i = 0; f->text && i < f->classes.n; i++)
        foreign = foreign || !ls_utf8_is_valid(f->classes.names[i], strlen(f->classes.names[i]));
    return foreign && !f->unchosen;
}

/* Texts of other encodings could not be compared with those of other files. */
static ls_status check_texts(const csv_source *s, ls_error *e) {
    bool foreign = false;
    for (size_t i = 0; i < s->table.columns.n; i++)
        foreign = foreign || is_foreign(&s->table.columns.list[i]);
    for (size_t i = 0; foreign && i < s->r.places.nfiles; i++) {
        const ls_plain *file = &s->r.places.files[i];
        LS_TRY(ls_utf8_check((const char *)file->data, file->nbytes, file->path, e));
    }
    return LS_OK;
}

static ls_status index_files(csv_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    LS_TRY(see_files(s, files, o, e));
    LS_TRY(check_texts(s, e));
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no rows", files->paths[0]);
    if (s->r.base.nmissing)
        ls_note("%s: %llu row%s without a value left out", files->paths[0],
                (unsigned long long)s->r.base.nmissing, ls_plural((int64_t)s->r.base.nmissing));
    if (!ls_index_is_known(o->index) && ls_index_out(o->index))
        put_index(s, ls_index_out(o->index));
    s->table.columns.follows = s->follows;
    return ls_features_finish(&s->table.columns, o->named, &s->r.base, files->paths[0], e);
}

/* A column of numbers, or without values, has texts if it has texts in the training data; without
 * values it has numbers if it has numbers there. True: the rows must be read again. */
static bool change_column(ls_feature *f, const ls_numbered *c) {
    bool is_empty = !f->text && f->left_out;
    if (f->unchosen || !c || f->ndims || f->text || (!c->text && !is_empty)) return false;
    f->text = c->text;
    f->spelled = !c->text;
    f->left_out = NULL;
    return true;
}

static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    csv_source *s = (csv_source *)source;
    ls_features *columns = &s->table.columns;
    bool again = false;
    for (size_t i = 0; i < columns->n; i++)
        again =
            change_column(&columns->list[i], ls_features_numbered(columns, numbering, i)) || again;
    if (s->skips_damaged && ls_features_have_unknown(columns, numbering)) s->known = numbering;
    ls_status status = again || s->known ? take_rows(s, e) : LS_OK;
    s->known = NULL;
    LS_TRY(status);
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no rows", what);
    source->count = s->r.places.n;
    return ls_features_follow(columns, numbering, source, what, e);
}

static ls_status open_csv(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                          ls_error *e) {
    csv_source *s = LS_NEW(csv_source);
    ls_records_begin(
        &s->r,
        (ls_source){.format = "csv", .read = read_row, .follow = follow, .close = close_csv});
    s->r.places.holes = LS_HOLES_REFUSED;
    s->skips_damaged = o->skip_damaged;
    s->follows = o->follows;
    s->missing = o->missing;
    s->rules = ls_csv_rules_copy(o->csv);
    ls_status status = index_files(s, files, o, e);
    if (status == LS_OK) ls_csv_form_describe(s->forms[0], s->header, s->r.base.form);
    return ls_records_end(&s->r, status, s_p);
}

const ls_data_format ls_format_csv = {
    .name = "csv",
    .in_records = true,
    .is_table = true,
    .suffixes = {".csv", ".tsv"},
    .open = open_csv,
};
