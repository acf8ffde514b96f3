/* finite.c - see finite.h. */
#include "source/finite.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "source/real.h"

/* The number of the first value that is not finite; n: there is none. */
static size_t find(const ls_field *f, const char *at, size_t n, double *x_p) {
    const ls_dtype type = f->type;
    const size_t size = ls_dtype_size(type);
    for (size_t i = 0; i < n; i++) {
        const double x = ls_real_at(type, at + i * size);
        if (isfinite(x)) continue;
        *x_p = x;
        return i;
    }
    return n;
}

/* "column 3 of 'x'", counted from 0; "'x' [2, 5]"; "'x'" of one number. */
static void put_column(const ls_field *f, size_t i, ls_buf *b) {
    if (f->ndims == 1) ls_buf_printf(b, "column %zu of ", i);
    ls_buf_printf(b, "'%s'", f->name);
    size_t below = f->nbytes / ls_dtype_size(f->type);
    for (int d = 0; f->ndims > 1 && d < f->ndims; d++) {
        below /= (size_t)f->dims[d];
        ls_buf_printf(b, "%s%zu", d ? ", " : " [", i / below);
        i %= below;
    }
    if (f->ndims > 1) ls_buf_printf(b, "]");
}

static ls_status fail(const ls_source *s, uint64_t i, const char *column, double x, ls_error *e) {
    const char *file = ls_source_file(s, i), *is = isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
    unsigned long long row = ls_source_record(s, i).in_file;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s %llu: %s is %s, and a model can't learn from it; write a number, or "
                   "leave the sample out",
                   file ? file : "the data", file ? "row" : "sample", row, column, is);
}

ls_status ls_finite_check(const ls_source *s, uint64_t i, const ls_field *fields, int nfields,
                          const void *sample, ls_error *e) {
    for (int k = 0; k < nfields; k++) {
        const ls_field *f = &fields[k];
        double x = 0;
        if (!ls_is_real(f->type)) continue;
        size_t n = f->nbytes / ls_dtype_size(f->type);
        size_t bad = find(f, (const char *)sample + f->offset, n, &x);
        if (bad == n) continue;
        ls_buf column = {0};
        put_column(f, bad, &column);
        ls_status status = fail(s, i, column.data, x, e);
        ls_buf_free(&column);
        return status;
    }
    return LS_OK;
}
