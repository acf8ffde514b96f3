/* tune_metric.c - see tune_metric.h. */
#include "cli/tune_metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "report/history.h"

typedef struct reading {
    const char *metric;
    int64_t step;
    double value;
    bool found;
    ls_buf others; /* names of the step's numbers */
} reading;

static void list_numbers(reading *r, const ls_json *line) {
    const char *key = NULL;
    const ls_json *value = NULL;
    double x = 0;
    for (void *it = NULL; (it = ls_json_next(line, it, &key, &value));)
        if (strncmp(key, "val_", 4) == 0 && ls_json_number(value, &x))
            ls_buf_printf(&r->others, "%s%s", r->others.len ? ", " : "", key);
}

static void add_line(void *arg, int64_t step, const ls_json *line) {
    reading *r = arg;
    if (step != r->step) return;
    const ls_json *value = ls_json_get(line, r->metric);
    list_numbers(r, line);
    if (ls_json_is_null(value)) r->value = NAN;
    if (ls_json_is_null(value) || ls_json_number(value, &r->value)) r->found = true;
}

ls_status cli_tune_metric(const char *run, const char *metric, int64_t step, double *value_p,
                          ls_error *e) {
    reading r = {.metric = metric, .step = step};
    ls_status s = ls_history_scan(run, add_line, &r, e);
    if (s == LS_OK && !r.found)
        s = ls_fail(
            e, LS_EINVAL, "metric %s: is in no line of step %lld of %s/metrics.jsonl, which has %s",
            metric, (long long)step, run, r.others.len ? r.others.data : "no evaluation there");
    if (s == LS_OK) *value_p = r.value;
    ls_buf_free(&r.others);
    return s;
}

char *cli_tune_last_line(const char *output) {
    ls_lines *lines = NULL;
    ls_line line;
    bool there = false;
    char *text = NULL;
    if (ls_lines_open(output, true, &lines, NULL) != LS_OK) return ls_strdup("");
    while (!text && ls_lines_next(lines, &line, &there, NULL) == LS_OK && there)
        if (line.nbytes > 0 && !line.too_long)
            text = ls_format("%.*s", (int)line.nbytes, line.text);
    ls_lines_close(lines);
    return text ? text : ls_strdup("");
}
