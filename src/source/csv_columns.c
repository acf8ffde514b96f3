/* csv_columns.c - see csv_columns.h. */
#include "source/csv_columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "source/damage.h"
#include "source/number.h"
#include "source/plain.h"

enum { MOST_CELLS = 4096, MOST_NAME = 256 };

typedef struct reading {
    const ls_csv_wanted *w;
    const ls_plain *file;
    ls_csv csv;
    ls_csv_cell *cells;     /* [MOST_CELLS] of the present row */
    int ncells;             /* of each row; 0: not known yet */
    int at[LS_CSV_COLUMNS]; /* the cell of each wanted column */
    ls_damage damage;
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

/* The column of this name in a header; -1: there is none. */
static int find_in_header(const reading *r, int n, const char *name) {
    char text[MOST_NAME];
    for (int i = 0; i < n; i++) {
        size_t length = ls_csv_unquote(&r->cells[i], text, sizeof text);
        if (length == strlen(name) && memcmp(text, name, length) == 0) return i;
    }
    return -1;
}

/* The number in "column3", less 1; -1: the name is another one. */
static int number_in(const char *name) {
    int number = 0, end = 0;
    if (sscanf(name, "column%d%n", &number, &end) != 1 || name[end]) return -1;
    return number >= 1 && number <= MOST_CELLS ? number - 1 : -1;
}

static ls_status fail_header(const reading *r, int n, const char *name, ls_error *e) {
    ls_buf all = {0};
    char text[MOST_NAME];
    for (int i = 0; i < n && all.len < 300; i++) {
        size_t length = ls_csv_unquote(&r->cells[i], text, sizeof text);
        if (length <= sizeof text) ls_buf_printf(&all, "%s%.*s", i ? ", " : "", (int)length, text);
    }
    ls_status s = ls_fail(e, LS_EINVAL,
                          "%s: has no column '%.60s'; its first line is %.300s: name columns of a "
                          "header, or without one column1, column2, ...",
                          r->file->path, name, all.data ? all.data : "empty");
    ls_buf_free(&all);
    return s;
}

/* Finds the columns in the first line, and passes over it if it is a header. */
static ls_status read_header(reading *r, ls_error *e) {
    ls_csv begin = r->csv;
    ls_error why = {0};
    int n = 0, nnamed = 0;
    if (!ls_csv_find_row(&r->csv)) return LS_OK;
    if (split(r, &n, &why) != LS_OK) return ls_fail(e, LS_EINVAL, "%s: %s", r->file->path, why.msg);
    for (int k = 0; k < r->w->n; k++)
        nnamed += (r->at[k] = find_in_header(r, n, r->w->names[k])) >= 0;
    for (int k = 0; k < r->w->n && nnamed == 0; k++) r->at[k] = number_in(r->w->names[k]);
    for (int k = 0; k < r->w->n; k++)
        if ((r->at[k] < 0 || r->at[k] >= n) && !(k == 0 && r->w->first_may_lack))
            return fail_header(r, n, r->w->names[k], e);
    r->ncells = n;
    if (nnamed == 0) r->csv = begin;
    return LS_OK;
}

static ls_status read_row(reading *r, ls_error *e) {
    ls_csv_cell wanted[LS_CSV_COLUMNS];
    int n = 0;
    LS_TRY(split(r, &n, e));
    if (n != r->ncells)
        return ls_fail(e, LS_EINVAL, "has %d columns, the first line %d", n, r->ncells);
    for (int k = 0; k < r->w->n; k++)
        wanted[k] = r->at[k] >= 0 && r->at[k] < n ? r->cells[r->at[k]] : (ls_csv_cell){.text = ""};
    return r->w->row(r->w->arg, wanted, e);
}

static ls_status read_file(reading *r, const ls_source_options *o, ls_source *s, ls_error *e) {
    const char *text = (const char *)r->file->data;
    const ls_csv_asked asked = {0};
    LS_TRY(ls_utf8_check_beginning(text, r->file->nbytes, r->file->path, e));
    r->csv = ls_csv_begin(text, r->file->nbytes, ls_csv_form_of(text, r->file->nbytes, &asked));
    LS_TRY(read_header(r, e));
    while (ls_csv_find_row(&r->csv)) {
        size_t at = r->csv.at;
        uint64_t line = r->csv.line;
        ls_error why = {0}, whole = {0};
        if (read_row(r, &why) == LS_OK) continue;
        ls_fail(&whole, why.code, "%s:%llu: %s", r->file->path, (unsigned long long)line, why.msg);
        if (why.code != LS_EINVAL || !o->skip_damaged) return ls_source_refuse(&whole, e);
        s->ndamaged++;
        ls_damage_add(&r->damage, whole.msg);
        ls_csv_skip_row(&r->csv, at, line);
    }
    return LS_OK;
}

ls_status ls_csv_columns_read(const ls_files *files, const ls_source_options *o,
                              const ls_csv_wanted *w, ls_source *s, ls_error *e) {
    ls_plain *list = NULL;
    LS_TRY(ls_plain_open_all(files, o, &list, e));
    reading r = {.w = w, .cells = LS_NEW_ARRAY(ls_csv_cell, MOST_CELLS)};
    ls_status status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < files->n; i++) {
        r.file = &list[i];
        status = read_file(&r, o, s, e);
    }
    if (status == LS_OK) ls_damage_note(&r.damage, files->paths[0]);
    ls_damage_free(&r.damage);
    ls_plain_describe(list, files->n, s);
    ls_plain_close_all(list, files->n);
    free(r.cells);
    return status;
}

ls_status ls_csv_number(const ls_csv_cell *cell, const char *name, double *x_p, ls_error *e) {
    if (ls_number_parse(cell->text, cell->nbytes, x_p)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "column '%.60s' has '%.*s', which is no number", name,
                   (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text);
}
