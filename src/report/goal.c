/* goal.c - see goal.h. */
#include "report/goal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ls_status ls_goal_read(const char *text, ls_goal *g_p, ls_error *e) {
    size_t n = strcspn(text, "<>");
    char *end = NULL;
    bool sign = text[n] && text[n + 1] == '=';
    double value = sign ? strtod(text + n + 2, &end) : 0;
    if (n == 0 || n >= LS_GOAL_METRIC || !sign || !text[n + 2] || *end || !isfinite(value))
        return ls_fail(e, LS_EINVAL,
                       "--target: '%.60s' is not a metric with its limit, such as "
                       "'val_loss<=2.5' or 'val_accuracy>=0.93'",
                       text);
    *g_p = (ls_goal){.rises = text[n] == '>', .value = value};
    memcpy(g_p->metric, text, n);
    return LS_OK;
}

void ls_goal_write(const ls_goal *g, char text[LS_GOAL_TEXT]) {
    snprintf(text, LS_GOAL_TEXT, "%s%s%.15g", g->metric, g->rises ? ">=" : "<=", g->value);
}

bool ls_goal_is_better(const ls_goal *g, double a, double b) { return g->rises ? a >= b : a <= b; }

bool ls_goal_is_reached(const ls_goal *g, double value) {
    return ls_goal_is_better(g, value, g->value);
}

bool ls_goal_value(const ls_goal *g, const ls_evaluation *v, double *value_p) {
    static const char prefix[] = "val_";
    const size_t n = sizeof prefix - 1;
    const char *name = g->metric + n;
    if (strncmp(g->metric, prefix, n) != 0) return false;
    const double *found = NULL;
    if (strcmp(name, "loss") == 0) found = &v->loss;
    if (strcmp(name, "bits_per_byte") == 0 && v->bits_per_byte > 0) found = &v->bits_per_byte;
    for (int i = 0; !found && i < v->nmetrics; i++)
        if (strcmp(v->metrics[i].name, name) == 0) found = &v->metrics[i].value;
    if (found) *value_p = *found;
    return found != NULL;
}
