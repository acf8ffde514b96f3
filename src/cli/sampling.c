/* sampling.c - see sampling.h. */
#include "cli/sampling.h"

#include "base/log.h"

bool cli_sampling_read(const ls_command *c, const ls_args *a, int first, ls_writing *w) {
    int64_t seed = 1;
    ls_sampler_rule *r = &w->rule;
    *r = LS_RULE_UNKNOWN;
    w->stops = a->options[first + CLI_STOP].values;
    w->nstops = a->options[first + CLI_STOP].n;
    bool good = cli_integer(c, a, first + CLI_SEED, 0, INT64_MAX, &seed) &&
                cli_integer(c, a, first + CLI_TOP_K, 0, INT64_MAX, &r->top_k) &&
                cli_real(c, a, first + CLI_TOP_P, 0, 1, &r->top_p) &&
                cli_real(c, a, first + CLI_MIN_P, 0, 1, &r->min_p) &&
                cli_real(c, a, first + CLI_PENALTY, 0.01, 100, &r->penalty) &&
                cli_real(c, a, first + CLI_TEMPERATURE, 0, 1000, &r->temperature);
    w->seed = (uint64_t)seed;
    for (int i = 0; good && i < w->nstops; i++)
        if (!*w->stops[i]) {
            ls_log("--stop: the text is empty");
            return false;
        }
    return good;
}

ls_status cli_form_read(const ls_args *a, int first, ls_text_form *f_p, ls_error *e) {
    const ls_text_form_options o = {.schema_file = cli_value(a, first + CLI_SCHEMA),
                                    .regex = cli_value(a, first + CLI_REGEX),
                                    .object = cli_given(a, first + CLI_OBJECT)};
    return ls_text_form_read(&o, f_p, e);
}
