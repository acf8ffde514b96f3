/* filled.c - see filled.h.
 *
 * Each number of a field is a column, which has a mean of its own: 'x[3]' in the numbering, so that
 * other files of a run get the same means.
 */
#include "source/formats/filled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "source/finite.h"
#include "source/note.h"
#include "source/numbering.h"
#include "source/real.h"
#include "source/tables/csv_rules.h"

enum { MOST_COLUMNS = 1 << 20 };

typedef struct filled {
    ls_source_over over;
    ls_missing rules[LS_SOURCE_FIELDS];
    size_t first[LS_SOURCE_FIELDS]; /* the first column of a field whose rule is the mean */
    size_t ncolumns;
    double *means;     /* [ncolumns] */
    uint64_t *nvalues; /* [ncolumns] that the means are of */
    uint64_t *at;      /* [count] the samples that are left */
    ls_numbering numbering;
} filled;

static bool is_real(const ls_field *f) { return ls_is_real(f->type); }

static size_t count_of(const ls_field *f) { return f->nbytes / ls_dtype_size(f->type); }

/* The columns of a field whose missing values become their means. */
static size_t columns_of(const filled *s, int k) {
    const ls_field *f = &s->over.source.fields[k];
    return is_real(f) && s->rules[k] == LS_MISSING_MEAN ? count_of(f) : 0;
}

static double real_at(const ls_field *f, const char *sample, size_t i) {
    return ls_real_at(f->type, sample + f->offset + i * ls_dtype_size(f->type));
}

static void set_real(const ls_field *f, char *sample, size_t i, double x) {
    ls_real_set(f->type, x, sample + f->offset + i * ls_dtype_size(f->type));
}

static bool has_nan(const ls_field *f, const char *sample) {
    size_t n = is_real(f) ? count_of(f) : 0;
    for (size_t i = 0; i < n; i++)
        if (isnan(real_at(f, sample, i))) return true;
    return false;
}

/* ---- all samples ---- */

static ls_status refuse(const filled *s, uint64_t i, const ls_field *f, const char *sample,
                        ls_error *e) {
    ls_error why = {0};
    ls_finite_check(s->over.from, i, f, 1, sample, &why);
    return ls_fail(e, LS_EINVAL, "%s; data.missing has no rule for '%s'", why.msg, f->name);
}

static void add_means(filled *s, const char *sample) {
    for (int k = 0; k < s->over.source.nfields; k++) {
        const ls_field *f = &s->over.source.fields[k];
        size_t n = columns_of(s, k);
        for (size_t i = 0; i < n; i++) {
            double x = real_at(f, sample, i);
            if (isnan(x)) continue;
            s->means[s->first[k] + i] += x; /* sums so far */
            s->nvalues[s->first[k] + i]++;
        }
    }
}

static ls_status see_sample(filled *s, uint64_t i, char *sample, ls_error *e) {
    ls_source *source = &s->over.source;
    bool missing = false;
    LS_TRY(s->over.from->read(s->over.from, i, sample, e));
    for (int k = 0; k < source->nfields; k++) {
        const ls_field *f = &source->fields[k];
        if (s->rules[k] == LS_MISSING_MEAN || !has_nan(f, sample)) continue;
        if (s->rules[k] == LS_MISSING_REFUSE) return refuse(s, i, f, sample, e);
        missing = true;
    }
    source->nmissing += missing;
    if (missing) return LS_OK;
    s->at[source->count++] = i;
    add_means(s, sample);
    return LS_OK;
}

static void put_column(const ls_field *f, size_t i, ls_buf *name) {
    name->len = 0;
    ls_buf_printf(name, "%s", f->name);
    if (f->ndims) ls_buf_printf(name, "[%zu]", i);
}

static void number_columns(filled *s) {
    ls_buf name = {0};
    for (int k = 0; k < s->over.source.nfields; k++) {
        const ls_field *f = &s->over.source.fields[k];
        size_t n = columns_of(s, k);
        for (size_t i = 0; i < n; i++) {
            put_column(f, i, &name);
            ls_numbered *c = ls_numbering_add(&s->numbering, name.data, f->name);
            c->joined = f->ndims > 0;
            c->fills = true;
            c->nvalues = s->nvalues[s->first[k] + i];
            c->mean = s->means[s->first[k] + i];
        }
    }
    ls_buf_free(&name);
    if (s->numbering.n) s->over.source.numbering = &s->numbering;
}

static ls_status see_samples(filled *s, const char *what, ls_error *e) {
    ls_source *source = &s->over.source;
    uint64_t n = s->over.from->count;
    char *sample = ls_alloc(source->nbytes);
    ls_status status = LS_OK;
    s->at = LS_NEW_ARRAY(uint64_t, n);
    source->count = 0;
    for (uint64_t i = 0; status == LS_OK && i < n; i++) status = see_sample(s, i, sample, e);
    free(sample);
    LS_TRY(status);
    if (source->count == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: each sample lacks a number (nan), and data.missing leaves such samples "
                       "out",
                       what);
    if (source->nmissing)
        ls_note("%s: %llu sample%s without a value left out", what,
                (unsigned long long)source->nmissing, ls_plural((int64_t)source->nmissing));
    /* as a sample has it, and as nine digits in data.json say it exactly */
    for (size_t i = 0; i < s->ncolumns; i++)
        s->means[i] = s->nvalues[i] ? (float)(s->means[i] / (double)s->nvalues[i]) : 0;
    number_columns(s);
    return LS_OK;
}

/* ---- the source ---- */

static ls_status change(const ls_source *source, uint64_t i, const ls_draw *d, void *sample,
                        ls_error *e) {
    const filled *s = (const filled *)source;
    LS_TRY(ls_source_over_read(&s->over, s->at[i], d, sample, e));
    for (int k = 0; k < source->nfields; k++) {
        const ls_field *f = &source->fields[k];
        size_t n = columns_of(s, k);
        for (size_t j = 0; j < n; j++)
            if (isnan(real_at(f, sample, j))) set_real(f, sample, j, s->means[s->first[k] + j]);
    }
    return LS_OK;
}

static const char *file_of(const ls_source *s, uint64_t i) {
    const filled *f = (const filled *)s;
    return ls_source_file(f->over.from, f->at[i]);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    const filled *f = (const filled *)s;
    return ls_source_record(f->over.from, f->at[i]);
}

/* Takes the means of another source. */
static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    filled *s = (filled *)source;
    for (size_t i = 0; i < s->numbering.n; i++) {
        const char *name = s->numbering.list[i].name;
        const ls_numbered *c = ls_numbering_find(numbering, name, i);
        bool fills = c && c->fills;
        if (!fills && s->nvalues[i] < source->count)
            return ls_fail(e, LS_EINVAL,
                           "%s: '%s' lacks values, and the run has no mean for it (data.missing); "
                           "set drop, which leaves such samples out",
                           what, name);
        if (fills) s->numbering.list[i].mean = s->means[i] = c->mean;
    }
    return LS_OK;
}

static void close_filled(ls_source *source) {
    filled *s = (filled *)source;
    ls_source_close(s->over.from);
    ls_numbering_free(&s->numbering);
    free(s->means);
    free(s->nvalues);
    free(s->at);
    free(s);
}

static ls_status find_rules(filled *s, const ls_source_options *o, const char *what, ls_error *e) {
    static const ls_csv_rules none;
    const ls_csv_rules *rules = o->csv ? o->csv : &none;
    ls_source *source = &s->over.source;
    for (size_t i = 0; i < rules->nrules && !o->follows; i++) {
        const char *name = rules->rules[i].column;
        if (strcmp(name, "*") != 0 && !ls_source_field(source, name))
            return ls_fail(e, LS_EINVAL, "%s: data.missing: there is no field '%.80s'", what, name);
    }
    for (int k = 0; k < source->nfields; k++) {
        const ls_field *f = &source->fields[k];
        bool own = false;
        s->rules[k] = ls_csv_rules_missing(rules, f->name, o->missing, &own);
        s->first[k] = s->ncolumns;
        s->ncolumns += columns_of(s, k);
    }
    if (s->ncolumns > MOST_COLUMNS)
        return ls_fail(e, LS_EINVAL,
                       "%s: a sample has %zu numbers, and data.missing: mean is for at most %d",
                       what, s->ncolumns, MOST_COLUMNS);
    return LS_OK;
}

ls_status ls_filled_open(ls_source *from, const ls_source_options *o, const char *what,
                         ls_source **s_p, ls_error *e) {
    *s_p = from;
    if (!o->missing && !(o->csv && o->csv->nrules)) return LS_OK;
    filled *s = LS_NEW(filled);
    ls_source_over_open(&s->over, from, change);
    s->over.source.close = close_filled;
    s->over.source.file = file_of;
    s->over.source.record = record_of;
    s->over.source.follow = follow;
    ls_status status = LS_OK;
    for (int k = 0; status == LS_OK && k < from->nfields; k++)
        status = ls_source_add_field(&s->over.source, what, &from->fields[k], e);
    if (status == LS_OK) status = find_rules(s, o, what, e);
    s->means = LS_NEW_ARRAY(double, s->ncolumns);
    s->nvalues = LS_NEW_ARRAY(uint64_t, s->ncolumns);
    if (status == LS_OK) status = see_samples(s, what, e);
    if (status == LS_OK)
        *s_p = &s->over.source;
    else
        ls_source_close(&s->over.source);
    return status;
}
