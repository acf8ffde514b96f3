/* read_csv.c - CSV files: a row is a sample, a column a field (features.h).
 *
 * The first line is a header if none of its cells is a number; further files then begin with the
 * same header. The first row decides what a column has: numbers, texts, or whole numbers in
 * brackets, as in "[3, 17]", which are a list (source.h) if rows have different numbers of them.
 * All rows are read when the source is opened, so that each is known to be readable; afterwards a
 * row is found by its offset.
 */
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "source/csv.h"
#include "source/features.h"
#include "source/format.h"
#include "source/index.h"
#include "source/number.h"
#include "source/places.h"

enum { MOST_COLUMNS = 1 << 20 };

typedef struct csv_source {
    ls_source base;
    ls_places places;
    ls_features columns;
    bool header;
} csv_source;

/* One row while files are indexed. */
typedef struct row {
    ls_csv_cell *cells; /* [n] */
    double *values;     /* [n] of cells that are numbers */
    size_t *lengths;    /* [n] of those that are lists */
    size_t n;
    size_t at;     /* offset of the row */
    uint64_t line; /* where it begins */
} row;

static ls_csv begin_file(const ls_plain *file) {
    ls_csv c = {.text = (const char *)file->data, .nbytes = file->nbytes, .line = 1};
    if (c.nbytes >= 3 && memcmp(c.text, "\xef\xbb\xbf", 3) == 0) c.at = 3;
    return c;
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
        r->cells = ls_grow(r->cells, r->n, sizeof *r->cells);
        r->cells[r->n++] = cell;
    }
    return LS_OK;
}

static bool parse_cell(const ls_csv_cell *cell, double *value_p) {
    return ls_number_parse(cell->text, cell->nbytes, value_p);
}

static bool is_header(const row *r) {
    double value = 0;
    for (size_t i = 0; i < r->n; i++)
        if (parse_cell(&r->cells[i], &value)) return false;
    return true;
}

/* The name in a cell of the header, without blanks around it; "column3" where it is empty. */
static char *name_of(const ls_csv_cell *cell, size_t column) {
    char *name = ls_alloc(cell->nbytes + 1), *from = name;
    size_t n = ls_csv_unquote(cell, name, cell->nbytes);
    while (n && strchr(" \t\r\n", name[n - 1])) n--;
    while (n && strchr(" \t\r\n", *from)) from++, n--;
    char *trimmed = n ? ls_format("%.*s", (int)n, from) : ls_format("column%zu", column + 1);
    free(name);
    return trimmed;
}

/* Reads the header, if the file has one, or compares it with that of the first file. */
static ls_status read_header(csv_source *s, ls_csv *c, const ls_plain *file, row *r, ls_error *e) {
    bool first = s->places.nfiles == 1;
    if (!first && !s->header) return LS_OK;
    size_t at = c->at;
    if (!ls_csv_find_row(c)) return LS_OK;
    LS_TRY(split(c, file->path, r, e));
    if (first) s->header = is_header(r);
    if (first && !s->header) {
        *c = begin_file(file);
        c->at = at;
        return LS_OK;
    }
    bool same = first || r->n == s->columns.n;
    for (size_t i = 0; same && i < r->n; i++) {
        char *name = name_of(&r->cells[i], i);
        if (first)
            ls_features_add(&s->columns, name, strlen(name));
        else
            same = strcmp(name, s->columns.list[i].name) == 0;
        free(name);
    }
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s:%llu: has no header line with the columns of %s", file->path,
                   (unsigned long long)r->line, s->places.files[0].path);
}

/* Reads the next number of a list in brackets: `at` begins behind "[" or a number before, and *at_p
 * is behind the number. False: there is none, or (bad) the text is no list. */
static bool next_in_list(const ls_csv_cell *cell, size_t at, double *value_p, size_t *at_p,
                         bool *bad) {
    static const char between[] = " ,\t\r\n";
    const char *text = cell->text;
    while (at < cell->nbytes && strchr(between, text[at]) && text[at]) at++;
    size_t end = at;
    while (end < cell->nbytes && !strchr(between, text[end]) && text[end] != ']') end++;
    *bad = end == cell->nbytes; /* the bracket is not closed */
    if (*bad || end == at) {
        *bad = *bad || end + 1 != cell->nbytes;
        return false;
    }
    *bad = !ls_number_parse(text + at, end - at, value_p) || !ls_number_is_i32(*value_p) ||
           *value_p <= INT32_MIN;
    *at_p = end;
    return !*bad;
}

/* Reads a list in brackets; stores its numbers if there is a sample. False: it is none. */
static bool parse_list(const ls_csv_cell *cell, const ls_feature *column, void *sample,
                       size_t *n_p) {
    bool bad = cell->nbytes == 0 || cell->text[0] != '[';
    size_t n = 0, at = 1;
    double value = 0;
    while (!bad && next_in_list(cell, at, &value, &at, &bad)) {
        if (sample && n == column->count) return false;
        if (sample) ls_feature_store(column, sample, n, value);
        n++;
    }
    *n_p = n;
    return !bad;
}

/* The first row decides how many columns there are, and what they have. */
static void add_columns(csv_source *s, const row *r) {
    for (size_t i = s->columns.n; i < r->n; i++) {
        char *name = ls_format("column%zu", i + 1);
        ls_features_add(&s->columns, name, strlen(name));
        free(name);
    }
    double value = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        ls_feature *column = &s->columns.list[i];
        bool is_list = parse_list(&r->cells[i], column, NULL, &n);
        column->text = !is_list && !parse_cell(&r->cells[i], &value);
        column->spelled = !column->text;
        column->integers = is_list;
        column->ndims = is_list;
        if (is_list) column->dims[0] = (int64_t)(column->count = n);
    }
}

static ls_status not_a_number(const csv_source *s, const char *path, const row *r, size_t i,
                              ls_error *e) {
    const ls_csv_cell *cell = &r->cells[i];
    const char *name = s->columns.list[i].name;
    if (cell->nbytes == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s:%llu: column %zu, '%s', is empty, but has numbers elsewhere; write a "
                       "number, or remove the line",
                       path, (unsigned long long)r->line, i + 1, name);
    return ls_fail(e, LS_EINVAL,
                   "%s:%llu: column %zu, '%s', has the text '%.*s', but numbers elsewhere; write a "
                   "number, or remove the line",
                   path, (unsigned long long)r->line, i + 1, name,
                   (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text);
}

static ls_status not_a_list(const csv_source *s, const char *path, const row *r, size_t i,
                            ls_error *e) {
    const ls_csv_cell *cell = &r->cells[i];
    return ls_fail(e, LS_EINVAL,
                   "%s:%llu: column %zu, '%s', has '%.*s', but lists of whole numbers elsewhere; "
                   "write one, such as [] or [3, 17], or remove the line",
                   path, (unsigned long long)r->line, i + 1, s->columns.list[i].name,
                   (int)(cell->nbytes < 40 ? cell->nbytes : 40), cell->text);
}

/* Compares the row with the columns; on LS_OK r->values and r->lengths are set. */
static ls_status check_row(csv_source *s, const char *path, row *r, ls_error *e) {
    if (r->n != s->columns.n)
        return ls_fail(e, LS_EINVAL, "%s:%llu: has %zu column%s, the first line %zu", path,
                       (unsigned long long)r->line, r->n, ls_plural((int64_t)r->n), s->columns.n);
    if (!r->values) r->values = LS_NEW_ARRAY(double, r->n);
    if (!r->lengths) r->lengths = LS_NEW_ARRAY(size_t, r->n);
    for (size_t i = 0; i < r->n; i++) {
        const ls_feature *column = &s->columns.list[i];
        if (column->text) continue;
        if (column->ndims) {
            if (!parse_list(&r->cells[i], column, NULL, &r->lengths[i]))
                return not_a_list(s, path, r, i, e);
            continue;
        }
        if (!parse_cell(&r->cells[i], &r->values[i])) return not_a_number(s, path, r, i, e);
        if (!ls_number_is_f32(r->values[i]))
            return ls_fail(e, LS_EINVAL, "%s:%llu: column %zu, '%s', has %g, which no f32 can hold",
                           path, (unsigned long long)r->line, i + 1, s->columns.list[i].name,
                           r->values[i]);
    }
    return LS_OK;
}

static void add_row(csv_source *s, const row *r) {
    for (size_t i = 0; i < r->n; i++) {
        ls_feature *column = &s->columns.list[i];
        if (column->ndims) {
            bool varies = column->is_list || r->lengths[i] != column->count;
            if (varies) ls_feature_grow(column, r->lengths[i]); /* a cell has at most a megabyte */
            continue;
        }
        if (!column->text) {
            column->whole = column->whole && ls_number_is_i32(r->values[i]);
            continue;
        }
        char text[LS_CLASS_NBYTES + 1];
        size_t n = ls_csv_unquote(&r->cells[i], text, sizeof text);
        ls_classes_add(&column->classes, text, n);
    }
    ls_places_add(&s->places, r->at);
}

static ls_status index_row(csv_source *s, ls_csv *c, const char *path, row *r, ls_error *e) {
    r->at = c->at;
    r->line = c->line;
    LS_TRY(split(c, path, r, e));
    if (s->places.n == 0 && (s->columns.n == 0 || s->columns.n == r->n)) add_columns(s, r);
    LS_TRY(check_row(s, path, r, e));
    add_row(s, r);
    return LS_OK;
}

static ls_status index_file(csv_source *s, const ls_source_options *o, row *r, ls_error *e) {
    const ls_plain *file = &s->places.files[s->places.nfiles - 1];
    ls_csv c = begin_file(file);
    LS_TRY(read_header(s, &c, file, r, e));
    while (ls_csv_find_row(&c)) {
        ls_error why = {0};
        if (index_row(s, &c, file->path, r, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->places, &s->base, o, &why, e));
        ls_csv_skip_row(&c, r->at, r->line);
    }
    return LS_OK;
}

/* Finds the cell of a row that was indexed. */
static ls_status store_cell(const ls_feature *column, const ls_csv_cell *cell, void *sample) {
    double value = 0;
    if (column->left_out) return LS_OK;
    if (column->text) {
        char text[LS_CLASS_NBYTES];
        size_t n = ls_csv_unquote(cell, text, sizeof text);
        int code = n > sizeof text ? -1 : ls_classes_find(&column->classes, text, n);
        if (code < 0) return LS_EINVAL;
        value = code;
    } else if (column->ndims) {
        size_t length = 0;
        if (!parse_list(cell, column, sample, &length)) return LS_EINVAL;
        if (!column->is_list && length != column->count) return LS_EINVAL;
        ls_feature_end(column, sample, length);
        return LS_OK;
    } else if (!parse_cell(cell, &value)) {
        return LS_EINVAL;
    }
    ls_feature_store(column, sample, 0, value);
    return LS_OK;
}

static ls_status read_row(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const csv_source *s = (const csv_source *)source;
    ls_sample_place place = ls_places_find(&s->places, i);
    ls_csv c = begin_file(place.file);
    c.at = place.at;
    ls_csv_cell cell = {0};
    bool good = true;
    for (size_t k = 0; good && k < s->columns.n; k++)
        good = !cell.last && !ls_csv_next(&c, &cell) &&
               store_cell(&s->columns.list[k], &cell, sample) == LS_OK;
    if (good) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the row at byte %llu has changed since the file was opened",
                   place.file->path, (unsigned long long)place.at);
}

static void close_csv(ls_source *source) {
    csv_source *s = (csv_source *)source;
    ls_places_close(&s->places);
    ls_features_free(&s->columns);
    free(s);
}

/* What an index knows of the columns, instead of reading the rows. */
static ls_status take_index(csv_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->places, &s->base, in);
    ls_features_take(&s->columns, in);
    for (size_t i = 0; i < s->columns.n; i++) {
        const ls_feature *c = &s->columns.list[i];
        bool can_be_list = c->spelled && c->integers && c->whole && c->ndims == 1;
        if ((c->ndims && !can_be_list) || !(c->text || c->spelled)) in->bad = true;
    }
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static ls_status index_files(csv_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    row r = {0};
    bool known = ls_index_is_known(o->index);
    ls_status status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < files->n; i++) {
        status = ls_places_open(&s->places, files->paths[i], o, e);
        if (status == LS_OK && !known) status = index_file(s, o, &r, e);
    }
    free(r.cells);
    free(r.values);
    free(r.lengths);
    if (status == LS_OK && known) return take_index(s, ls_index_in(o->index), e);
    if (status == LS_OK && s->places.n == 0)
        return ls_fail(e, LS_EINVAL, "%s: has no rows", files->paths[0]);
    ls_buf *out = ls_index_out(o->index);
    if (status != LS_OK || !out) return status;
    ls_places_put(&s->places, &s->base, out);
    ls_features_put(&s->columns, out);
    return LS_OK;
}

static ls_status open_csv(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                          ls_error *e) {
    csv_source *s = LS_NEW(csv_source);
    s->base = (ls_source){.format = "csv", .read = read_row, .close = close_csv};
    ls_status status = index_files(s, files, o, e);
    if (status == LS_OK) status = ls_features_finish(&s->columns, &s->base, files->paths[0], e);
    if (status != LS_OK) {
        close_csv(&s->base);
        return status;
    }
    s->base.count = s->places.n;
    s->base.hash = ls_places_hash(&s->places);
    *s_p = &s->base;
    return LS_OK;
}

const ls_data_format ls_format_csv = {
    .name = "csv",
    .in_records = true,
    .suffixes = {".csv"},
    .open = open_csv,
};
