/* survey.c - see survey.h. */
#include "source/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "source/finite.h"

enum { COUNTED = 100000, LINES = 20, MOST_LABELS = 1 << 24 };

const ls_field *ls_survey_label(const ls_source *s) {
    for (int i = 0; i < s->nfields; i++) {
        const ls_field *f = &s->fields[i];
        if (strcmp(f->name, "label") == 0 && f->type == LS_I32 && f->ndims == 0) return f;
    }
    return NULL;
}

static void free_labels(ls_survey *c) {
    for (int32_t i = 0; i < c->nlabels; i++) free(c->labels[i].picks);
    free(c->labels);
    c->labels = NULL;
    c->nlabels = 0;
}

/* The group of a sample's label; NULL: there is none. */
static ls_survey_group *group_of(ls_survey *c, const uint8_t *sample) {
    int32_t v;
    if (!c->label) return NULL;
    memcpy(&v, sample + c->label->offset, sizeof v);
    if (v < 0 || v >= MOST_LABELS) { /* no classes */
        c->label = NULL;
        free_labels(c);
        return NULL;
    }
    while (c->nlabels <= v) {
        c->labels = ls_grow(c->labels, (size_t)c->nlabels, sizeof *c->labels);
        c->labels[c->nlabels++] = (ls_survey_group){0};
    }
    return &c->labels[v];
}

static void add_pick(ls_survey_group *g, uint64_t sample, size_t npicks) {
    g->n++;
    if (g->npicks == npicks) return;
    g->picks = ls_grow(g->picks, g->npicks, sizeof *g->picks);
    g->picks[g->npicks++] = sample;
}

static void add_pixels(const ls_field *f, const uint8_t *pixels, ls_survey_group *to) {
    size_t channels = (size_t)f->dims[2];
    for (size_t i = 0; i < f->nbytes; i += channels)
        for (size_t c = 0; c < channels; c++) {
            to->x[c] += pixels[i + c];
            to->xx[c] += (uint64_t)pixels[i + c] * pixels[i + c];
        }
}

/* Adds what one sample has to the group's sums. */
static void add_sums(ls_survey_group *to, const ls_survey_group *one) {
    for (int c = 0; c < 3; c++) {
        to->x[c] += one->x[c];
        to->xx[c] += one->xx[c];
    }
}

static void add_sample(ls_survey *c, uint64_t i, const uint8_t *sample, size_t npicks) {
    ls_survey_group *g = group_of(c, sample), one = {0};
    if (c->image) add_pixels(c->image, sample + c->image->offset, &one);
    add_pick(&c->all, i, npicks);
    add_sums(&c->all, &one);
    if (!g) return;
    add_pick(g, i, npicks);
    add_sums(g, &one);
}

ls_survey ls_survey_read(const ls_source *s, bool all, size_t npicks) {
    ls_survey c = {.source = s, .label = ls_survey_label(s), .image = ls_source_image(s)};
    uint64_t n = all || s->count < COUNTED ? s->count : COUNTED;
    uint8_t *sample = ls_alloc(s->nbytes);
    for (; c.nread < n; c.nread++) {
        ls_error e = {0};
        /* spread over all; the product is below 2^64, since a sample has a byte and more on disk */
        uint64_t at = n == s->count ? c.nread : c.nread * (s->count / n);
        ls_status status = s->read(s, at, sample, &e);
        if (status == LS_OK) status = ls_finite_check(s, at, s->fields, s->nfields, sample, &e);
        if (status == LS_OK) {
            add_sample(&c, at, sample, npicks);
            continue;
        }
        if (c.ndamaged++ < LINES) ls_log("%s", e.msg);
    }
    if (c.ndamaged > LINES)
        ls_log("and %llu more damaged samples", (unsigned long long)(c.ndamaged - LINES));
    free(sample);
    return c;
}

void ls_survey_free(ls_survey *c) {
    free_labels(c);
    free(c->all.picks);
}

uint64_t *ls_survey_pick(const ls_survey *c, size_t n, size_t *npicked_p) {
    const ls_survey_group *groups = c->nlabels ? c->labels : &c->all;
    size_t ngroups = c->nlabels ? (size_t)c->nlabels : 1, npicked = 0;
    uint64_t *picked = LS_NEW_ARRAY(uint64_t, n + 1);
    bool more = true;
    for (size_t round = 0; more && npicked < n; round++) {
        more = false;
        for (size_t k = 0; k < ngroups && npicked < n; k++) {
            if (groups[k].npicks <= round) continue;
            picked[npicked++] = groups[k].picks[round];
            more = true;
        }
    }
    *npicked_p = npicked;
    return picked;
}

static double count_of(const ls_survey *c, const ls_survey_group *g) {
    return (double)g->n * (double)(c->image->dims[0] * c->image->dims[1]);
}

double ls_survey_mean(const ls_survey *c, const ls_survey_group *g, int channel) {
    return (double)g->x[channel] / count_of(c, g) / 255;
}

double ls_survey_deviation(const ls_survey *c, const ls_survey_group *g, int channel) {
    double n = count_of(c, g), mean = (double)g->x[channel] / n;
    double square = (double)g->xx[channel] / n - mean * mean;
    return square > 0 ? sqrt(square) / 255 : 0;
}
