/* noise_line.c - see noise_line.h. */
#include "report/noise_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* To 9 digits, as in metrics.jsonl. */
static void round_one(double *v) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", *v);
    *v = strtod(text, NULL);
}

void ls_noise_round(ls_noise_mean *m) {
    round_one(&m->trace);
    round_one(&m->square);
    round_one(&m->samples);
    for (int j = 0; j < LS_NOISE_LEVELS; j++) round_one(&m->norms[j]);
}

ls_json *ls_noise_write(const ls_noise_mean *m, int V) {
    ls_json *o = ls_json_new_object(), *norms = ls_json_new_array();
    for (int j = 0; j < ls_noise_nlevels(V); j++)
        ls_json_push(norms, ls_json_new_number(m->norms[j]));
    ls_json_set_number(o, "trace", m->trace);
    ls_json_set_number(o, "square", m->square);
    ls_json_set_number(o, "samples", m->samples);
    ls_json_set(o, "norms", norms);
    ls_json_set_integer(o, "steps", m->steps);
    return o;
}

void ls_noise_read(const ls_json *o, ls_noise_mean *m_p) {
    ls_noise_mean m = {0};
    const ls_json *norms = ls_json_get(o, "norms");
    bool all = ls_json_number(ls_json_get(o, "trace"), &m.trace) &&
               ls_json_number(ls_json_get(o, "square"), &m.square) &&
               ls_json_number(ls_json_get(o, "samples"), &m.samples) &&
               ls_json_integer(ls_json_get(o, "steps"), &m.steps) && m.steps >= 0 &&
               m.steps < INT64_MAX / 2;
    size_t n = norms ? ls_json_count(norms) : 0;
    for (size_t j = 0; j < n && j < LS_NOISE_LEVELS; j++)
        all = all && ls_json_number(ls_json_at(norms, j), &m.norms[j]);
    if (all) *m_p = m;
}
