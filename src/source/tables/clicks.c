/* clicks.c - see clicks.h. */
#include "source/tables/clicks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/yaml.h"
#include "source/format.h"
#include "source/ids.h"
#include "source/note.h"
#include "source/tables/csv_rules.h"

/* ---- data.clicks ---- */

static ls_status fail_at(const ls_yaml_node *n, const char *file, const char *what, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s:%d: data.clicks: %s %s", file, n->line, n->key, what);
}

static ls_status set_text(const ls_yaml_node *n, const char *file, char *to, ls_error *e) {
    bool good = n->kind == LS_YAML_TEXT && *n->text && strlen(n->text) < LS_CLICKS_NAME;
    if (good) snprintf(to, LS_CLICKS_NAME, "%s", n->text);
    return good ? LS_OK : fail_at(n, file, "is a text of 1 to 63 characters", e);
}

/* The columns of a list, as names[from] and so on. */
static ls_status set_columns(const ls_yaml_node *n, const char *file, ls_clicks_wanted *w, int from,
                             ls_error *e) {
    bool good = n->kind == LS_YAML_LIST && from + n->nitems <= LS_CSV_COLUMNS;
    for (int i = 0; good && i < n->nitems; i++) {
        const ls_yaml_node *item = n->items[i];
        good = item->kind == LS_YAML_TEXT && *item->text && strlen(item->text) < LS_CLICKS_NAME;
        if (good) snprintf(w->names[from + i], LS_CLICKS_NAME, "%s", item->text);
    }
    return good ? LS_OK
                : fail_at(n, file,
                          "is a list of columns, of at most 63 characters each and at most 127 in "
                          "all",
                          e);
}

static ls_status set_scale(const ls_yaml_node *n, const char *file, ls_clicks_scale *s,
                           ls_error *e) {
    static const char *const words[] = {"none", "log", "standard"};
    for (int i = 0; n->kind == LS_YAML_TEXT && i < 3; i++)
        if (strcmp(n->text, words[i]) == 0) {
            *s = (ls_clicks_scale)i;
            return LS_OK;
        }
    return fail_at(n, file, "is none, log or standard", e);
}

static ls_status set_hash(const ls_yaml_node *n, const char *file, int64_t *to, ls_error *e) {
    const char *text = n->kind == LS_YAML_TEXT ? n->text : "";
    size_t digits = strspn(text, "0123456789");
    *to = digits > 0 && digits < 11 && !text[digits] ? strtoll(text, NULL, 10) : 0;
    if (*to >= 1 && *to <= INT32_MAX) return LS_OK;
    return fail_at(n, file, "is a number of rows for each column of ids, 1 to 2147483647", e);
}

static ls_status check_keys(const ls_yaml_node *root, const char *file, ls_error *e) {
    static const char *const keys[] = {"clicked", "positive", "ids", "numbers", "scale", "hash"};
    for (int i = 0; i < root->nitems; i++) {
        bool known = false;
        for (int k = 0; k < 6; k++) known = known || strcmp(root->items[i]->key, keys[k]) == 0;
        if (!known)
            return fail_at(root->items[i], file,
                           "is not a key; choose among clicked, positive, ids, numbers, scale, "
                           "hash",
                           e);
    }
    return LS_OK;
}

static ls_status read_tree(const ls_yaml_node *root, const char *file, ls_clicks_wanted *w,
                           ls_error *e) {
    LS_TRY(check_keys(root, file, e));
    const ls_yaml_node *clicked = ls_yaml_node_find(root, "clicked"),
                       *ids = ls_yaml_node_find(root, "ids"),
                       *numbers = ls_yaml_node_find(root, "numbers"),
                       *positive = ls_yaml_node_find(root, "positive"),
                       *scale = ls_yaml_node_find(root, "scale"),
                       *hash = ls_yaml_node_find(root, "hash");
    if (!clicked || !ids)
        return ls_fail(e, LS_EINVAL, "%s:%d: data.clicks: %s is missing", file, root->line,
                       clicked ? "ids" : "clicked");
    LS_TRY(set_text(clicked, file, w->names[0], e));
    LS_TRY(set_columns(ids, file, w, 1, e));
    w->nids = ids->nitems;
    if (w->nids == 0) return fail_at(ids, file, "is empty; name at least one column", e);
    if (numbers) LS_TRY(set_columns(numbers, file, w, 1 + w->nids, e));
    if (numbers) w->nnumbers = numbers->nitems;
    if (hash) LS_TRY(set_hash(hash, file, &w->hash, e));
    if (positive) LS_TRY(set_text(positive, file, w->positive, e));
    return scale ? set_scale(scale, file, &w->scale, e) : LS_OK;
}

ls_status ls_clicks_read(const char *text, const char *file, int line, ls_clicks_wanted *w_p,
                         ls_error *e) {
    ls_yaml_node *root = NULL;
    LS_TRY(ls_yaml_parse_tree(text, file, line, &root, e));
    *w_p = (ls_clicks_wanted){.scale = LS_CLICKS_AS_IS};
    ls_status s = LS_OK;
    if (root->kind != LS_YAML_MAP)
        s = ls_fail(e, LS_EINVAL,
                    "%s:%d: data.clicks is a map, e.g. {clicked: bought, ids: [shop]}", file, line);
    else
        s = read_tree(root, file, w_p, e);
    ls_yaml_node_free(root);
    return s;
}

/* ---- rows ---- */

typedef struct clicks {
    ls_source base;
    ls_clicks_wanted wanted;
    int32_t *ids;               /* [count][nids] */
    float *numbers;             /* [count][nnumbers] */
    unsigned char *clicked;     /* [count] */
    bool fills;                 /* missing numbers may be means, which the ids then have */
    uint64_t room;              /* rows that the arrays have room for */
    ls_ids ids_of;              /* its own ids and scales */
    const ls_ids *given;        /* those of another source; NULL: there is none */
    uint64_t *unknown;          /* [nids] ids that are not among those */
    uint64_t *nmissing;         /* [nnumbers] values that are to be the mean: NaN so far */
    ls_gaps gaps;               /* rows that are left out */
    uint64_t nlacking;          /* rows without an outcome, which only other files may have */
    char *trouble;              /* of the field `clicked` */
    char other[LS_CLICKS_NAME]; /* the first outcome that is not `positive`; "": there is none */
} clicks;

static void make_room(clicks *s) {
    const ls_clicks_wanted *w = &s->wanted;
    if (s->base.count < s->room) return;
    s->room = s->room ? 2 * s->room : 1024;
    s->ids = ls_realloc(s->ids, s->room * (size_t)w->nids * sizeof *s->ids);
    s->numbers = ls_realloc(s->numbers, s->room * (size_t)w->nnumbers * sizeof *s->numbers + 1);
    s->clicked = ls_realloc(s->clicked, s->room);
}

static ls_status read_clicked(clicks *s, const ls_csv_row *row, unsigned char *to, ls_error *e) {
    const ls_clicks_wanted *w = &s->wanted;
    const ls_csv_cell *cell = &row->cells[0];
    double x = 0;
    if (*w->positive) {
        char text[LS_CLICKS_NAME];
        size_t n = ls_csv_unquote(cell, text, sizeof text);
        *to = n == strlen(w->positive) && memcmp(text, w->positive, n) == 0;
        if (!*to && !*s->other)
            snprintf(s->other, sizeof s->other, "%.*s", n < 40 ? (int)n : 40, text);
        return LS_OK;
    }
    bool is_number = ls_csv_number(row, 0, w->names[0], &x, NULL) == LS_OK;
    *to = x > 0;
    if (is_number && (x == 0 || x == 1)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "column '%s' has '%.*s'; it has 1 and 0, or name the text that stands "
                   "for 1 (positive in data.clicks)",
                   w->names[0], cell->nbytes < 40 ? (int)cell->nbytes : 40, cell->text);
}

/* The id in a cell of column k, within the column; -1: it is none that the model knows. */
static ls_status read_id(clicks *s, int k, const ls_csv_cell *cell, int32_t *id_p, ls_error *e) {
    const ls_clicks_wanted *w = &s->wanted;
    const char *name = w->names[1 + k];
    if (w->hash) return ls_id_hash_of_cell(w->hash, cell, name, id_p, e);
    if (!s->given) return ls_id_of_cell(&s->ids_of.columns[k].ids, cell, name, id_p, e);
    LS_TRY(ls_id_find_cell(&s->given->columns[k].ids, cell, name, id_p, e));
    s->unknown[k] += *id_p < 0;
    return LS_OK;
}

static ls_status add_row(void *arg, const ls_csv_row *row, ls_error *e) {
    clicks *s = arg;
    const ls_clicks_wanted *w = &s->wanted;
    make_room(s);
    uint64_t at = s->base.count;
    s->clicked[at] = 0;
    bool lacks = s->given && !row->cells[0].nbytes;
    if (!lacks) LS_TRY(read_clicked(s, row, &s->clicked[at], e));
    for (int k = 0; k < w->nnumbers; k++) {
        int column = 1 + w->nids + k;
        double x = 0;
        if (row->missing[column])
            x = NAN;
        else
            LS_TRY(ls_csv_number(row, column, w->names[column], &x, e));
        if (w->scale == LS_CLICKS_LOG && !isnan(x)) x = x > 0 ? ls_math_log(1 + x) : 0;
        s->numbers[at * (uint64_t)w->nnumbers + (uint64_t)k] = (float)x;
    }
    for (int k = 0; k < w->nids; k++) {
        int32_t *id = &s->ids[at * (uint64_t)w->nids + (uint64_t)k];
        LS_TRY(read_id(s, k, &row->cells[1 + k], id, e));
    }
    for (int k = 0; k < w->nnumbers; k++) s->nmissing[k] += row->missing[1 + w->nids + k];
    s->nlacking += lacks;
    s->base.count++;
    return LS_OK;
}

/* Puts the mean of column k, which is the training data's, in the place of missing values. */
static ls_status fill(clicks *s, uint64_t k, const char *what, ls_error *e) {
    uint64_t n = s->base.count, width = (uint64_t)s->wanted.nnumbers;
    const char *name = s->wanted.names[1 + s->wanted.nids + (int)k];
    double sum = 0;
    if (n && s->nmissing[k] == n && !s->given)
        return ls_fail(e, LS_EINVAL,
                       "%s: column '%.60s' has no values; remove it from numbers in data.clicks",
                       what, name);
    for (uint64_t i = 0; i < n && !s->given; i++)
        if (!isnan(s->numbers[i * width + k])) sum += (double)s->numbers[i * width + k];
    double mean = s->given ? s->given->numbers[k].mean : n ? sum / (double)(n - s->nmissing[k]) : 0;
    for (uint64_t i = 0; i < n; i++)
        if (isnan(s->numbers[i * width + k])) s->numbers[i * width + k] = (float)mean;
    if (s->wanted.scale != LS_CLICKS_STANDARD) ls_ids_add_number(&s->ids_of, name, mean, 1);
    return LS_OK;
}

/* The mean of column k, and what makes its deviation 1: sums over the rows in their order, in
 * double precision. */
static void measure(const clicks *s, uint64_t k, double *mean_p, double *times_p) {
    uint64_t n = s->base.count, width = (uint64_t)s->wanted.nnumbers;
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; i++) sum += (double)s->numbers[i * width + k];
    for (uint64_t i = 0; i < n; i++) {
        double d = (double)s->numbers[i * width + k] - sum / (double)n;
        squares += d * d;
    }
    *mean_p = sum / (double)n;
    *times_p = squares > 0 ? sqrt((double)n / squares) : 0;
}

static void standardize(clicks *s) {
    uint64_t n = s->base.count, width = (uint64_t)s->wanted.nnumbers;
    for (uint64_t k = 0; k < width; k++) {
        double mean = 0, times = 0;
        if (s->given)
            mean = s->given->numbers[k].mean, times = s->given->numbers[k].times;
        else
            measure(s, k, &mean, &times);
        for (uint64_t i = 0; i < n; i++) {
            float *x = &s->numbers[i * width + k];
            *x = (float)(((double)*x - mean) * times);
        }
        ls_ids_add_number(&s->ids_of, s->wanted.names[1 + s->wanted.nids + (int)k], mean, times);
    }
}

static const ls_ids *known_ids(const clicks *s) { return s->given ? s->given : &s->ids_of; }

/* The ids of a column follow those of the column before. Returns the number of all, which may be
 * too many. */
static int64_t place_ids(clicks *s) {
    int64_t first = 0;
    for (int k = 0; k < s->wanted.nids; k++) {
        int64_t n = s->wanted.hash ? s->wanted.hash : known_ids(s)->columns[k].ids.n;
        for (uint64_t i = 0; first + n <= INT32_MAX && i < s->base.count; i++) {
            int32_t *id = &s->ids[i * (uint64_t)s->wanted.nids + (uint64_t)k];
            if (*id >= 0) *id += (int32_t)first;
        }
        first += n;
    }
    return first;
}

/* ---- the source ---- */

static ls_status read_sample(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const clicks *s = (const clicks *)source;
    uint64_t nids = (uint64_t)s->wanted.nids, nnumbers = (uint64_t)s->wanted.nnumbers;
    const ls_field *f = source->fields;
    float clicked = s->clicked[i];
    char *to = sample;
    (void)e;
    memcpy(to + (f++)->offset, s->ids + i * nids, nids * sizeof *s->ids);
    if (nnumbers)
        memcpy(to + (f++)->offset, s->numbers + i * nnumbers, nnumbers * sizeof *s->numbers);
    memcpy(to + f->offset, &clicked, sizeof clicked);
    return LS_OK;
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    uint64_t number = ls_gaps_record(&((const clicks *)s)->gaps, i);
    return (ls_record_at){number, number};
}

static void close_clicks(ls_source *source) {
    clicks *s = (clicks *)source;
    ls_ids_free(&s->ids_of);
    ls_gaps_free(&s->gaps);
    free(s->trouble);
    free(s->unknown);
    free(s->nmissing);
    free(s->ids);
    free(s->numbers);
    free(s->clicked);
    free(s);
}

/* A text that no row has, such as a mistyped one, would make all outcomes 0. */
static ls_status check_positive(const clicks *s, const char *what, ls_error *e) {
    const ls_clicks_wanted *w = &s->wanted;
    if (!*w->positive || s->given || !s->base.count) return LS_OK;
    for (uint64_t i = 0; i < s->base.count; i++)
        if (s->clicked[i]) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: no row has '%s' in the column '%s' (positive in data.clicks); there is '%s'", what,
        w->positive, w->names[0], s->other);
}

/* The outcomes of rows that lack them are zeros, which nobody may read. */
static ls_status add_clicked(clicks *s, const char *what, ls_error *e) {
    ls_field f = {.name = "clicked", .type = LS_F32};
    if (s->nlacking && s->nlacking == s->base.count) return LS_OK;
    if (s->nlacking)
        f.trouble = s->trouble =
            ls_format("%s: %llu of %llu rows have no '%s'", what, (unsigned long long)s->nlacking,
                      (unsigned long long)s->base.count, s->wanted.names[0]);
    return ls_source_add_field(&s->base, what, &f, e);
}

static ls_status finish(clicks *s, const char *what, ls_error *e) {
    const ls_clicks_wanted *w = &s->wanted;
    int64_t nids = place_ids(s);
    LS_TRY(check_positive(s, what, e));
    for (int k = 0; k < w->nids; k++)
        if (s->unknown[k])
            ls_note("%s: %llu of %llu rows have an id in '%s' that the training data do not have: "
                    "it counts as none",
                    what, (unsigned long long)s->unknown[k], (unsigned long long)s->base.count,
                    w->names[1 + k]);
    for (int k = 0; s->fills && k < w->nnumbers; k++) LS_TRY(fill(s, (uint64_t)k, what, e));
    if (w->scale == LS_CLICKS_STANDARD) standardize(s);
    if (nids > INT32_MAX)
        return ls_fail(e, LS_EINVAL, "%s: the columns have %lld ids; at most %d are possible", what,
                       (long long)nids, INT32_MAX);
    ls_field ids = {.name = "ids", .type = LS_I32, .ndims = 1, .dims = {w->nids}, .ids = nids};
    ls_field x = {.name = "x", .type = LS_F32, .ndims = 1, .dims = {w->nnumbers}};
    LS_TRY(ls_source_add_field(&s->base, what, &ids, e));
    if (w->nnumbers) LS_TRY(ls_source_add_field(&s->base, what, &x, e));
    return add_clicked(s, what, e);
}

/* Does the given record have the columns that are wanted? */
static ls_status check_given(clicks *s, ls_error *e) {
    const ls_clicks_wanted *w = &s->wanted;
    bool scales = w->scale == LS_CLICKS_STANDARD || s->fills;
    bool good = (w->hash || s->given->n == (size_t)w->nids) &&
                (!scales || s->given->nnumbers == (size_t)w->nnumbers);
    for (int k = 0; good && !w->hash && k < w->nids; k++)
        good = strcmp(s->given->columns[k].name, w->names[1 + k]) == 0;
    if (good) return LS_OK;
    close_clicks(&s->base);
    return ls_fail(e, LS_EINVAL,
                   LS_IDS_FILE ": does not have the columns of data.clicks; resuming the run "
                               "(--resume) restores it");
}

static clicks *new_clicks(const ls_source_options *o) {
    clicks *s = LS_NEW(clicks);
    bool own = false;
    s->wanted = *o->clicks;
    const ls_clicks_wanted *w = &s->wanted;
    s->base = (ls_source){
        .format = "clicks", .read = read_sample, .record = record_of, .close = close_clicks};
    s->unknown = LS_NEW_ARRAY(uint64_t, (size_t)w->nids);
    s->nmissing = LS_NEW_ARRAY(uint64_t, (size_t)w->nnumbers + 1);
    s->given = o->ids;
    s->fills = w->nnumbers && o->missing == LS_MISSING_MEAN;
    for (int k = 1 + w->nids; o->csv && k < 1 + w->nids + w->nnumbers; k++)
        s->fills = s->fills ||
                   ls_csv_rules_missing(o->csv, w->names[k], o->missing, &own) == LS_MISSING_MEAN;
    return s;
}

static ls_csv_column column_of(const clicks *s, int k) {
    const ls_clicks_wanted *w = &s->wanted;
    return (ls_csv_column){.name = w->names[k],
                           .kind = k > w->nids    ? LS_CSV_FILLED
                                   : k > 0        ? LS_CSV_ID
                                   : *w->positive ? LS_CSV_TEXT
                                                  : LS_CSV_NUMBER,
                           .may_lack = k == 0 && s->given};
}

static ls_status open_clicks(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                             ls_error *e) {
    clicks *s = new_clicks(o);
    ls_csv_column columns[LS_CSV_COLUMNS];
    if (s->given) LS_TRY(check_given(s, e));
    for (int k = 0; k < s->wanted.nids; k++) ls_ids_add_column(&s->ids_of, s->wanted.names[1 + k]);
    ls_csv_wanted wanted = {.columns = columns,
                            .n = 1 + s->wanted.nids + s->wanted.nnumbers,
                            .key = "data.clicks",
                            .row = add_row,
                            .arg = s,
                            .gaps = &s->gaps};
    for (int i = 0; i < wanted.n; i++) columns[i] = column_of(s, i);
    ls_status status = ls_csv_columns_read(files, o, &wanted, &s->base, e);
    if (status == LS_OK) status = finish(s, files->paths[0], e);
    s->base.ids = known_ids(s);
    if (status == LS_OK)
        *s_p = &s->base;
    else
        close_clicks(&s->base);
    return status;
}

const ls_data_format ls_format_clicks = {.name = "clicks", .is_table = true, .open = open_clicks};
