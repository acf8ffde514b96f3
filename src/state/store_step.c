/* store_step.c - see store_step.h. */
#include "state/store_step.h"

#include "state/store_inside.h"

static atomic_uint *made_of(const ls_store *s, int worker) {
    return s->made + (size_t)worker * (size_t)s->nbuckets * 2;
}

static unsigned mark_of(int64_t step) { return 2 * ((unsigned)step + 1); }

void ls_store_set_computed(ls_store *s, int worker, int64_t step) {
    atomic_store(&s->workers[worker].computed, step + 1);
}

bool ls_store_has_computed(const ls_store *s, int worker, int64_t step) {
    return atomic_load(&s->workers[worker].computed) == step + 1;
}

ls_call_mark ls_store_sum_mark(ls_store *s, int worker, int bucket, bool replicas, int64_t step) {
    return (ls_call_mark){made_of(s, worker) + 2 * bucket + replicas, mark_of(step)};
}

void ls_store_check_sums(const ls_store *s, int worker, int64_t step, bool *some_p, bool *half_p) {
    *some_p = false;
    *half_p = atomic_load(&s->workers[worker].given_up) == step + 1;
    for (int i = 0; i < 2 * s->nbuckets; i++) {
        unsigned mark = atomic_load(&made_of(s, worker)[i]);
        *half_p = *half_p || mark == mark_of(step);
        *some_p = *some_p || mark == mark_of(step) + 1;
    }
}

void ls_store_give_up_step(ls_store *s, int worker, int64_t step) {
    atomic_store(&s->workers[worker].given_up, step + 1);
}

void ls_store_forget_step(ls_store *s, int worker) {
    atomic_store(&s->workers[worker].computed, 0);
    for (int i = 0; i < 2 * s->nbuckets; i++) atomic_store(&made_of(s, worker)[i], 0);
    atomic_store(&s->workers[worker].given_up, 0);
}
