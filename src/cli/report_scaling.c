/* report_scaling.c - see report_scaling.h. */
#include "cli/report_scaling.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/cores.h"
#include "base/json.h"
#include "base/output.h"
#include "base/print.h"
#include "base/wrap.h"
#include "perf/scaling.h"
#include "report/curves.h"

enum { WEAK, STRONG, NWAYS };
enum { COLUMNS = 80, MOST_COLUMNS = 120, ROWS = 16 };

/* ---- table ---- */

/* A number, or "-" where it is not known. */
static void put(ls_buf *out, int width, int decimals, double x) {
    if (x > 0)
        ls_buf_printf(out, " %*.*f", width, decimals, x);
    else
        ls_buf_printf(out, " %*s", width, "-");
}

static void put_serial(const ls_scaling *s, ls_buf *out) {
    double real = ls_scaling_serial(s, LS_SCALING_MEASURED);
    double simulated = ls_scaling_serial(s, LS_SCALING_SIMULATED);
    ls_buf_printf(out,
                  "serial share, fitted (%s): ", s->strong ? "Amdahl's law" : "Gustafson's law");
    if (real >= 0) ls_buf_printf(out, "%.2f%% measured, ", 100 * real);
    if (simulated >= 0)
        ls_buf_printf(out, "%.2f%% simulated\n", 100 * simulated);
    else
        ls_buf_printf(out, "not known from one number of workers\n");
}

static void put_table(const ls_scaling *s, ls_buf *out) {
    ls_buf_printf(out,
                  "%s scaling: %s\n                    ----------- measured ------------  "
                  "----------- simulated -----------\n"
                  "workers      batch    step s speedup  effic.  comm.     step s speedup  effic.  "
                  "comm.\n",
                  s->strong ? "strong" : "weak",
                  s->strong ? "the batch is that of the config"
                            : "batch and virtual workers grow with the workers");
    for (int i = 0; i < s->n; i++) {
        const ls_scaling_point *p = &s->points[i];
        ls_buf_printf(out, "%7d ", p->nworkers);
        if (p->why[0]) {
            ls_buf_printf(out, "not possible: ");
            ls_buf_wrap(out, p->why, 22, 8);
            continue;
        }
        ls_buf_printf(out, "%10lld", (long long)p->batch);
        for (int which = 0; which < LS_NSCALING; which++) {
            const ls_scaling_time *t = &p->times[which];
            if (which) ls_buf_printf(out, " ");
            put(out, 9, 5, t->step_s);
            put(out, 7, 2, ls_scaling_speedup(s, i, which));
            put(out, 6, 1, 100 * ls_scaling_efficiency(s, i, which));
            ls_buf_printf(out, "%c", t->step_s > 0 ? '%' : ' ');
            put(out, 5, 1, t->step_s > 0 ? 100 * t->comm + 1e-9 : 0);
            ls_buf_printf(out, "%c", t->step_s > 0 ? '%' : ' ');
        }
        ls_buf_printf(out, "\n");
    }
    put_serial(s, out);
    ls_buf_printf(out, "\n");
}

/* ---- picture ---- */

enum { NLINES = NWAYS * LS_NSCALING };

typedef struct lines {
    double x[NLINES][LS_SCALING_MOST], y[NLINES][LS_SCALING_MOST];
    ls_curve_line line[NLINES];
} lines;

/* Efficiencies in percent over the number of workers. */
static ls_curves curves_of(const ls_scaling all[NWAYS], lines *l) {
    static const char *const labels[NLINES] = {"weak, measured", "weak, simulated",
                                               "strong, measured", "strong, simulated"};
    int nlines = 0; /* that have a point */
    for (int k = 0; k < NLINES; k++) {
        const ls_scaling *s = &all[k / LS_NSCALING];
        int which = k % LS_NSCALING;
        size_t n = 0;
        for (int i = 0; i < s->n; i++) {
            double y = ls_scaling_efficiency(s, i, which);
            if (y <= 0) continue;
            l->x[k][n] = s->points[i].nworkers;
            l->y[k][n++] = 100 * y;
        }
        if (n)
            l->line[nlines++] = (ls_curve_line){
                labels[k], {l->x[k], l->y[k], n}, which == LS_SCALING_SIMULATED, true};
    }
    return (ls_curves){"efficiency of scaling, %", "workers", l->line, nlines, true, 0, 100};
}

/* ---- output ---- */

static ls_json *time_json(const ls_scaling *s, int i, int which) {
    const ls_scaling_time *t = &s->points[i].times[which];
    if (t->step_s <= 0) return ls_json_new_null();
    ls_json *o = ls_json_new_object();
    ls_json_set_number(o, "step_s", t->step_s);
    ls_json_set_number(o, "speedup", ls_scaling_speedup(s, i, which));
    ls_json_set_number(o, "efficiency", ls_scaling_efficiency(s, i, which));
    ls_json_set_number(o, "communication", t->comm);
    return o;
}

static void print_json(const ls_scaling *s) {
    static const char *const names[] = {"measured", "simulated"};
    ls_json *o = ls_json_new_object(), *points = ls_json_new_array(),
            *serial = ls_json_new_object();
    ls_json_set_text(o, "scaling", s->strong ? "strong" : "weak");
    for (int i = 0; i < s->n; i++) {
        ls_json *p = ls_json_new_object();
        ls_json_set_integer(p, "workers", s->points[i].nworkers);
        if (s->points[i].batch)
            ls_json_set_integer(p, "batch", s->points[i].batch);
        else
            ls_json_set(p, "batch", ls_json_new_null());
        for (int k = 0; k < LS_NSCALING; k++) ls_json_set(p, names[k], time_json(s, i, k));
        if (s->points[i].why[0]) ls_json_set_text(p, "reason", s->points[i].why);
        ls_json_push(points, p);
    }
    for (int k = 0; k < LS_NSCALING; k++) {
        double x = ls_scaling_serial(s, k);
        ls_json_set(serial, names[k], x < 0 ? ls_json_new_null() : ls_json_new_number(x));
    }
    ls_json_set(o, "points", points);
    ls_json_set(o, "serial", serial);
    ls_print_json(o);
}

static void print(const cli_scaling *o, const ls_scaling all[NWAYS], const ls_curves *c,
                  const ls_machine *m) {
    ls_buf out = {0};
    int columns = ls_columns_of(STDOUT_FILENO, COLUMNS);
    ls_curves_print(c, columns < MOST_COLUMNS ? columns : MOST_COLUMNS, ROWS, &out);
    ls_buf_printf(&out, "\n");
    put_table(&all[WEAK], &out);
    put_table(&all[STRONG], &out);
    ls_print_text(out.data, out.len);
    ls_buf_free(&out);
    ls_print_wrapped("comm.: the part of the step in which a worker communicates, or waits to. "
                     "Measured on the %d cores of this machine, with %lld steps for each number of "
                     "workers.",
                     ls_cores(), (long long)o->steps);
    if (!o->world->link && o->counts[o->n - 1] > m->cores)
        ls_print_wrapped("Simulated on one host, whose %d cores more workers share; --link and "
                         "--host-workers simulate several hosts.",
                         m->cores);
}

/* A way of scaling that is not possible at all is reported beside the other. */
static ls_status run_ways(const ls_scaling_request *q, ls_scaling all[NWAYS], ls_error *e) {
    ls_status s[NWAYS];
    for (int k = 0; k < NWAYS; k++) {
        s[k] = ls_scaling_run(q, k == STRONG, &all[k], e);
        if (s[k] != LS_OK && s[k] != LS_EINVAL) return s[k];
    }
    return s[WEAK] == LS_OK ? LS_OK : s[STRONG];
}

ls_status cli_scaling_run(const cli_scaling *o, const ls_config *c, ls_error *e) {
    ls_scaling all[NWAYS];
    lines *l = LS_NEW(lines);
    ls_machine m = {0};
    ls_forecast_world w;
    ls_status s = o->svg ? ls_output_check(o->svg, e) : LS_OK;
    if (s == LS_OK) s = ls_forecast_world_open(o->world, &m, &w, e);
    for (int i = 0; i < o->n && s == LS_OK; i++) s = ls_forecast_world_check(&w, o->counts[i], e);
    const ls_scaling_request q = {c, &w, o->counts, o->n, o->steps};
    if (s == LS_OK) s = run_ways(&q, all, e);
    if (s == LS_OK) {
        const ls_curves curves = curves_of(all, l);
        if (o->svg) s = ls_curves_svg_write(o->svg, &curves, e);
        if (s == LS_OK && o->json)
            for (int k = 0; k < NWAYS; k++) print_json(&all[k]);
        else if (s == LS_OK)
            print(o, all, &curves, &m);
    }
    ls_machine_free(&m);
    free(l);
    return s;
}
