/* plan_phases.c - see plan_phases.h. */
#include "cli/plan_phases.h"

#include "optim/schedule.h"

/* Steps of phase i in the run; 0: the run ends before it. */
static int64_t steps_of(const ls_config *c, int i) {
    int64_t end = c->train.steps, first = c->train.phases[i].step;
    if (i + 1 < c->train.nphases && c->train.phases[i + 1].step < end)
        end = c->train.phases[i + 1].step;
    return end > first ? end - first : 0;
}

/* The rate at the phase's first step. */
static double rate_of(const ls_config *c, int i) {
    const ls_schedule s = ls_schedule_of(c, 0);
    return ls_schedule_rate(&s, c->train.phases[i].step);
}

static double seconds_of(const ls_config *c, const double *step_s) {
    double sum = 0;
    for (int i = 0; i < c->train.nphases; i++) sum += step_s[i] * (double)steps_of(c, i);
    return sum;
}

void cli_phases_print(const ls_config *c, const double *step_s, ls_buf *out) {
    if (!c->train.nphases) return;
    ls_buf_printf(out,
                  "\n  train.batch: one plan, for the largest batch, serves all\n"
                  "  from step    batch     steps      samples   first lr%s\n",
                  step_s ? "   predicted step s" : "");
    for (int i = 0; i < c->train.nphases; i++) {
        const ls_config_phase *p = &c->train.phases[i];
        int64_t steps = steps_of(c, i);
        ls_buf_printf(out, "  %9lld %8lld %9lld %12lld", (long long)p->step, (long long)p->batch,
                      (long long)steps, (long long)(steps * p->batch));
        if (steps == 0)
            ls_buf_printf(out, "   after the last step");
        else
            ls_buf_printf(out, " %10.4g", rate_of(c, i));
        if (steps && step_s) ls_buf_printf(out, " %18.6f", step_s[i]);
        ls_buf_printf(out, "\n");
    }
    if (step_s)
        ls_buf_printf(out, "  predicted for all %lld steps: %.1f s\n", (long long)c->train.steps,
                      seconds_of(c, step_s));
}

ls_json *cli_phases_json(const ls_config *c, const double *step_s) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < c->train.nphases; i++) {
        const ls_config_phase *p = &c->train.phases[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "step", p->step);
        ls_json_set_integer(o, "batch", p->batch);
        ls_json_set_integer(o, "steps", steps_of(c, i));
        ls_json_set_integer(o, "samples", steps_of(c, i) * p->batch);
        ls_json_set_number(o, "first_lr", steps_of(c, i) ? rate_of(c, i) : 0);
        if (step_s) ls_json_set_number(o, "step_s", step_s[i]);
        ls_json_push(list, o);
    }
    return list;
}
