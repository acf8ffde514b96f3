/* weight.c - see weight.h. */
#include "model/weight.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static double field_of(const ls_weighing *w, const char *sample) {
    float real = 0;
    int32_t integer = 0;
    if (w->type == LS_I32)
        memcpy(&integer, sample + w->field_at, sizeof integer);
    else
        memcpy(&real, sample + w->field_at, sizeof real);
    return w->type == LS_I32 ? (double)integer : (double)real;
}

static double counted_part(const ls_weighing *w, const char *sample) {
    int64_t n = 0;
    for (int64_t i = 0; i < w->ntargets; i++) {
        int32_t label = 0;
        memcpy(&label, sample + w->labels_at + (size_t)i * sizeof label, sizeof label);
        n += ls_label_counts(label, w->ignored);
    }
    return (double)n / (double)w->ntargets;
}

ls_status ls_weigh(const ls_weighing *w, const void *sample, double *weight_p, ls_error *e) {
    double weight = w->has_field ? field_of(w, sample) : 1;
    if (!isfinite(weight) || weight < 0)
        return ls_fail(e, LS_EINVAL, "a sample has the weight %g; a weight is at least 0", weight);
    *weight_p = w->ntargets ? weight * counted_part(w, sample) : weight;
    return LS_OK;
}
