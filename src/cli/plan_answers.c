/* plan_answers.c - see plan_print.h. */
#include "cli/plan_print.h"

#include <stdio.h>

#include "base/cores.h"
#include "base/plural.h"
#include "base/print.h"
#include "base/wrap.h"
#include "train/host_memory.h"
#include "train/run.h"

enum { INDENT = 7 };

/* "0.13 s", "12 min", "3.4 h", "2.1 days". */
static const char *duration(double s, char text[32]) {
    if (s < 120)
        snprintf(text, 32, "%.3g s", s);
    else if (s < 7200)
        snprintf(text, 32, "%.0f min", s / 60);
    else if (s < 48 * 3600)
        snprintf(text, 32, "%.1f h", s / 3600);
    else
        snprintf(text, 32, "%.1f days", s / 86400);
    return text;
}

static void put(const char *question, const char *answer) {
    ls_buf out = {0};
    ls_buf_printf(&out, "%-*s", INDENT, question);
    ls_buf_wrap(&out, answer, INDENT, INDENT);
    ls_print_text(out.data, out.len);
    ls_buf_free(&out);
}

/* workers: those of the run. A plan of sync.mode ssp or async is that of one process. */
static void print_memory(const cli_forecast *o, const ls_config *c, const ls_plan *p, int workers) {
    int near = o->world.host_workers ? o->world.host_workers : o->world.link ? 1 : workers;
    if (near > workers) near = workers;
    char each[32], all[32], has[32], line[240];
    ls_host_need x = ls_host_memory_need(c, p, near, workers / near, ls_run_can_survive(c));
    bool fits = x.all <= x.has;
    int n = snprintf(line, sizeof line, "%s: %s a worker; %d need%s %s, %s %s", fits ? "yes" : "no",
                     ls_host_memory_text((double)x.most.peak, each), near, near == 1 ? "s" : "",
                     ls_host_memory_text(x.all, all), x.where, ls_host_memory_text(x.has, has));
    if (!fits) snprintf(line + n, sizeof line - (size_t)n, "; --fit SIZE lists what needs less");
    put("fits", line);
}

static void print_time(const cli_forecast *o, const ls_config *c, const ls_prospect *x) {
    bool estimated = !cli_forecast_predicts(o);
    const char *about = estimated ? "about " : "";
    char text[32], line[240];
    snprintf(line, sizeof line, "%s%s, %.*f %s/s", about, duration(x->step_s, text),
             x->units_per_s < 100 ? 1 : 0, x->units_per_s, ls_config_unit(c));
    put("step", line);
    snprintf(line, sizeof line, "%s%s for %lld step%s, without evaluations", about,
             duration(x->run_s, text), (long long)c->train.steps, ls_plural(c->train.steps));
    put("run", line);
    if (estimated)
        put("", "estimated from two kernels that ran here for some milliseconds; a prediction: "
                "`lockstep bench machine --save FILE`, then --machine FILE");
    if (estimated && x->step_s < 1e-3)
        put("", "of products and memory alone: so short a step takes some tenths of a millisecond "
                "longer, in which its actions begin and workers wait for each other");
    if (estimated && ls_cores_are_described())
        put("",
            "the cores are those that HWLOC_SYNTHETIC describes; each is taken to be as fast as "
            "one here");
}

void cli_answers_print(const cli_forecast *o, const ls_config *c, const ls_plan *p,
                       const ls_prospect *x, const ls_error *why) {
    char line[sizeof why->msg + 20];
    print_memory(o, c, p, x->nworkers);
    if (!why) {
        print_time(o, c, x);
    } else {
        snprintf(line, sizeof line, "not predicted: %s", why->msg);
        put("step", line);
    }
    ls_print("\n");
}
