/* model_step.c - see model_step.h. */
#include "storage/model_step.h"

#include "base/log.h"

void ls_model_step_log(const ls_config *c, int64_t steps, const char *what) {
    static const char why[] = "replicas that gossip have a mean where train.eval_every or "
                              "checkpoint.every asks for one, and at the end";
    int64_t of = ls_config_model_step(c, steps);
    if (of == steps) return;
    if (of > 0)
        ls_log("%s: its model is that of step %lld: %s", what, (long long)of, why);
    else
        ls_log("%s: its model is the initial one: %s", what, why);
}
