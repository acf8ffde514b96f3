/* space.c - see space.h: values of trials. space_read.c reads the file. */
#include "search/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/random.h"
#include "config/needs.h"
#include "config/relations.h"
#include "optim/learning_rate.h"

/* Places of a trial's stream of random numbers. Each exchange of pbt has a part of its own, and in
 * it each key has some places, after one that picks the trial that is copied. */
enum { FIRST_EXCHANGE = 1 << 16, EXCHANGE = 1 << 8, OF_KEY = 4 };

typedef struct draws {
    uint64_t seed, trial, at;
} draws;

static double draw(const draws *d, int i) {
    return ls_random_uniform(d->seed, LS_STREAM_TRIALS, d->trial, d->at + (uint64_t)i);
}

/* One of n, each as probable. */
static int draw_one(const draws *d, int i, int n) {
    int k = (int)(draw(d, i) * n);
    return k < n ? k : n - 1;
}

static draws draws_of(const ls_space *s, int trial, uint64_t at) {
    return (draws){(uint64_t)s->rules.seed, (uint64_t)trial, at};
}

static uint64_t place_of(int exchange) { return FIRST_EXCHANGE + EXCHANGE * (uint64_t)exchange; }

/* ---- points ---- */

void ls_space_point_copy(const ls_space_point *p, ls_space_point *p_p) {
    ls_space_point to = {0};
    for (int i = 0; i < LS_SPACE_KEYS; i++)
        if (p->values[i]) to.values[i] = ls_strdup(p->values[i]);
    *p_p = to;
}

void ls_space_point_free(ls_space_point *p) {
    for (int i = 0; i < LS_SPACE_KEYS; i++) free(p->values[i]);
    *p = (ls_space_point){0};
}

char *ls_space_point_text(const ls_space *s, const ls_space_point *p) {
    ls_buf b = {0};
    ls_buf_append(&b, "", 0);
    for (int i = 0; i < s->nkeys; i++)
        if (p->values[i])
            ls_buf_printf(&b, "%s%s=%s", b.len ? " " : "", s->keys[i].name, p->values[i]);
    return b.data ? b.data : ls_strdup("");
}

/* Are a and b the same text, or the same number? */
static bool is_same(const char *a, const char *b) {
    char *end_a = NULL, *end_b = NULL;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return strcmp(a, b) == 0 || (*a && *b && !*end_a && !*end_b && x == y);
}

static bool holds(const ls_space_condition *c, const ls_space_point *p) {
    for (int i = 0; p->values[c->key] && i < c->n; i++)
        if (is_same(p->values[c->key], c->values[i])) return true;
    return false;
}

const ls_space_range *ls_space_range_of(const ls_space *s, int key, const ls_space_point *p) {
    const ls_space_key *k = &s->keys[key];
    for (int i = 0; i < k->nranges; i++) {
        bool all = true;
        for (int j = 0; j < k->ranges[i].nconditions; j++)
            all = all && holds(&k->ranges[i].conditions[j], p);
        if (all) return &k->ranges[i];
    }
    return NULL;
}

/* A value that is drawn from a range. */
static char *draw_value(const ls_space_range *a, const draws *d, int i) {
    double u = draw(d, i), x = 0;
    switch (a->kind) {
    case LS_RANGE_CHOICE: return ls_strdup(a->choices[draw_one(d, i, a->nchoices)]);
    case LS_RANGE_INT: x = fmin(a->low + floor(u * (a->high - a->low + 1)), a->high); break;
    case LS_RANGE_UNIFORM: x = a->low + u * (a->high - a->low); break;
    case LS_RANGE_LOG_UNIFORM:
        x = ls_math_exp(ls_math_log(a->low) + u * (ls_math_log(a->high) - ls_math_log(a->low)));
    }
    return a->kind == LS_RANGE_INT ? ls_format("%.0f", x) : ls_format("%.6g", x);
}

void ls_space_point_of(const ls_space *s, int trial, ls_space_point *p_p) {
    ls_space_point p = {0};
    const draws d = draws_of(s, trial, 0);
    if (s->grid) {
        ls_space_point_copy(&s->grid[trial], p_p);
        return;
    }
    for (int i = 0; i < s->nkeys; i++) {
        const ls_space_range *a = ls_space_range_of(s, i, &p);
        if (a) p.values[i] = draw_value(a, &d, i);
    }
    *p_p = p;
}

/* ---- pbt ---- */

int ls_space_pick(const ls_space *s, int trial, int exchange, int n) {
    const draws d = draws_of(s, trial, place_of(exchange));
    return draw_one(&d, 0, n);
}

static char *change_choice(const ls_space_range *a, const char *from, double u) {
    int i = 0;
    while (i < a->nchoices - 1 && strcmp(a->choices[i], from) != 0) i++;
    i += u < 0.5 ? -1 : 1;
    if (i < 0) i = 0;
    return ls_strdup(a->choices[i < a->nchoices ? i : a->nchoices - 1]);
}

static char *change_number(const ls_space_range *a, const char *from, double u) {
    double x = strtod(from, NULL) * (u < 0.5 ? 1.2 : 0.8);
    return a->kind == LS_RANGE_INT ? ls_format("%.0f", rint(x)) : ls_format("%.6g", x);
}

static bool is_possible(const ls_space *s, const ls_config *base, const ls_space_point *p) {
    ls_config c;
    return ls_space_config(s, base, p, &c, NULL) == LS_OK;
}

void ls_space_explore(const ls_space *s, const ls_space_explorer *x, const ls_space_point *from,
                      ls_space_point *p_p) {
    ls_space_point p;
    const draws d = draws_of(s, x->trial, place_of(x->exchange) + 1);
    ls_space_point_copy(from, &p);
    for (int i = 0; i < s->nkeys; i++) {
        const ls_space_range *a = &s->keys[i].ranges[0];
        char *was = p.values[i];
        int at = OF_KEY * i;
        if (draw(&d, at) < s->rules.resample)
            p.values[i] = draw_value(a, &d, at + 1);
        else if (a->kind == LS_RANGE_CHOICE)
            p.values[i] = change_choice(a, was, draw(&d, at + 2));
        else
            p.values[i] = change_number(a, was, draw(&d, at + 2));
        bool possible = is_possible(s, x->base, &p);
        free(possible ? was : p.values[i]);
        if (!possible) p.values[i] = was;
    }
    *p_p = p;
}

/* ---- configs ---- */

static ls_status set_all(const ls_space *s, const ls_space_point *p, ls_config *c, ls_error *e) {
    for (int i = 0; i < s->nkeys; i++) {
        if (!p->values[i]) continue;
        char *assignment = ls_format("%s=%s", s->keys[i].name, p->values[i]);
        ls_status got = ls_config_set(c, assignment, e);
        free(assignment);
        LS_TRY(got);
    }
    ls_config_drop_idle(c, NULL);
    ls_config_fit_defaults(c);
    LS_TRY(ls_config_check(c, s->path, e));
    return ls_schedule_check(c, 0, e);
}

ls_status ls_space_config(const ls_space *s, const ls_config *base, const ls_space_point *p,
                          ls_config *c_p, ls_error *e) {
    ls_config c = *base;
    ls_error why = {0};
    ls_config_settle(&c);
    c.train.steps = s->rules.steps;
    ls_status got = set_all(s, p, &c, &why);
    if (got == LS_OK) {
        *c_p = c;
        return LS_OK;
    }
    char *values = ls_space_point_text(s, p);
    size_t n = strlen(s->path);
    bool has_path = strncmp(why.msg, s->path, n) == 0 && strncmp(why.msg + n, ": ", 2) == 0;
    ls_fail(e, got, "%s: %.160s: %s", s->path, values, has_path ? why.msg + n + 2 : why.msg);
    free(values);
    return got;
}
