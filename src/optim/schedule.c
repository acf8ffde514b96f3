/* schedule.c - see schedule.h. */
#include "optim/schedule.h"

#include "base/math.h"

double ls_schedule_rate(const ls_schedule *s, int64_t step) {
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    if (step >= s->steps) return s->min_lr;
    double done = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->min_lr + (s->lr - s->min_lr) * 0.5 * (1.0 + ls_math_cospi(done));
}
