/* result.c - the result of a step (exec_state.h): norms and losses, their sums over workers, and
 * what an update needs of them. */
#include <math.h>
#include <string.h>

#include "exec/exec_state.h"
#include "optim/gradient_norm.h"
#include "share/codes.h"
#include "state/apart.h"
#include "state/round.h"

/* The samples of an island, as places in the batch. */
static void island_samples(const ls_exec *x, int island, uint64_t *first_p, uint64_t *end_p) {
    const ls_share *sh = &x->c.plan->share;
    int vws = sh->island_vws, at = island > 0 ? (island - 1) * vws : 0;
    ls_batch_share(x->batch.count, sh->V, at, at + vws, first_p, end_p);
}

uint64_t ls_exec_island_count(const ls_exec *x, int island) {
    uint64_t first = 0, end = 0;
    island_samples(x, island, &first, &end);
    return end - first;
}

/* A code can't hold what is not finite: the norm shows it, in the part of block 0, also where
 * another worker has that block. Workers that divide the layers all have the weights of their
 * samples, which count once. */
ls_status ls_exec_norm(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    double *weights = ls_share_scalars(sh, x->c.world->parts).weights;
    if (weights && sh->workers[x->c.worker].cell > 0)
        memset(weights, 0, (size_t)sh->batch * sizeof *weights);
    bool there = sh->state_on_device;
    double *norms = there ? (double *)(void *)x->on.norms : x->c.world->parts;
    x->c.world->parts[0] = 0; /* of an earlier step that overflowed */
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range s = ls_share_normed(sh, k, x->c.worker);
        size_t base = ls_share_base(sh, k);
        int slot = ls_exec_sum_slot(x, k);
        const ls_norm_input sum = {sh->model, there ? LS_F32 : sh->reduce,
                                   there ? ls_exec_sum_there(x, slot, base)
                                         : ls_exec_sum_at(x, slot, base)};
        ls_norm_blocks(there ? &x->on.compute : &x->compute, &sum, s.first - base, s.end - base,
                       norms + base / LS_BLOCK);
    }
    if (atomic_load(&x->not_finite)) x->c.world->parts[0] = NAN;
    return LS_OK;
}

/* ---- sums over workers ---- */

/* The outer optimizer takes the mean of the replicas' Deltas. */
static void finish_sync(ls_exec *x) {
    x->out = *x->in->trained;
    x->update = (ls_optim_step){.updates = x->in->updates,
                                .lr = x->in->lr,
                                .grad_scale = 1.0 / x->c.plan->share.islands,
                                .samples = 1};
}

static ls_store_note decision_of(const ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    const ls_step_in *training = sh->task == LS_TASK_TRAIN ? x->in : x->in->training;
    ls_store_note n = {.steps = ls_exec_changes(x),
                       .task = sh->task,
                       .part_first = sh->sync.part_first,
                       .part_end = sh->sync.part_end,
                       .averages = sh->sync.averages,
                       .apart = x->in->apart,
                       .lr = training->lr,
                       .updates = training->updates,
                       .update = x->update,
                       .out = x->out,
                       .loss_scale = training->loss_scale};
    memcpy(n.islands, x->islands, sizeof n.islands);
    return n;
}

static ls_status meet(ls_exec *x, ls_error *e) {
    finish_sync(x);
    const ls_store_note n = decision_of(x);
    return ls_round_meet(x->c.world, &x->c.plan->share, x->c.worker, &n, x->tokens, e);
}

static bool is_round_apart(const ls_exec *x) {
    return x->c.plan->share.task == LS_TASK_MIX && x->in->apart && x->c.world->store;
}

/* An island's norm: the squares of its blocks. */
ls_status ls_exec_start_norm(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_world *w = x->c.world;
    size_t first = (size_t)a->island * a->comm.count;
    return ls_all_reduce_start(w->island, w->parts + first, w->sums + first, a->comm.count, LS_F64,
                               LS_SUM, r_p, e);
}

/* Norms, losses, and whether a worker gives the step up: the last doubles. In a step apart, the
 * workers of an island sum them alone, in a round after those that they mix with are ready. */
ls_status ls_exec_start_decision(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_world *w = x->c.world;
    size_t n = x->c.plan->share.nscalars, first = n - a->comm.count;
    w->parts[n - 1] = atomic_load(&x->gives_up);
    if (is_round_apart(x)) LS_TRY(meet(x, e));
    return ls_all_reduce_start(x->in->apart ? w->island : w->group, w->parts + first,
                               w->sums + first, a->comm.count, LS_F64, LS_SUM, r_p, e);
}

/* ---- a training step ---- */

/* The sums over the batch of the samples' losses, each times its weight, and of the weights. */
typedef struct batch_sums {
    double loss, weight;
} batch_sums;

static batch_sums sums_of(const ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    const double *losses = ls_share_scalars(sh, x->c.world->sums).losses;
    const double *weights = ls_share_scalars(sh, x->c.world->sums).weights;
    batch_sums s = {0, weights ? 0 : (double)x->batch.count};
    for (uint64_t i = 0; i < x->batch.count; i++) {
        double loss = losses[i];
        for (int k = 1; k < sh->model->nlosses - sh->model->nauxiliary; k++)
            loss += losses[(uint64_t)k * (uint64_t)sh->batch + i];
        if (weights) s.weight += weights[i];
        s.loss += weights ? loss * weights[i] : loss;
    }
    return s;
}

/* The mean over the batch, by weights, of number k that the loss notes of each sample. */
static double note_of(const ls_exec *x, int k) {
    const ls_share *sh = &x->c.plan->share;
    const double *notes = ls_share_scalars(sh, x->c.world->sums).notes + k * sh->batch;
    const double *weights = ls_share_scalars(sh, x->c.world->sums).weights;
    double sum = 0, weight = 0;
    for (uint64_t i = 0; i < x->batch.count; i++) {
        sum += weights ? notes[i] * weights[i] : notes[i];
        weight += weights ? weights[i] : 1;
    }
    return weight > 0 ? sum / weight : 0;
}

/* The first worker of an island has the square of its norm for all. */
void ls_exec_finish_norm(ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    size_t blocks = sh->segment_floats / LS_BLOCK;
    double norm = ls_norm_total(x->c.world->sums + (size_t)a->island * blocks, blocks);
    ls_share_scalars(sh, x->c.world->parts).squares[a->island - 1] =
        x->c.worker == a->comm.of.from ? norm * norm : 0;
}

/* Samples that an island's loss counts, all or by their weights, for each sample that it has. */
static double mean_of_island(const ls_exec *x, int island) {
    const ls_plan *p = x->c.plan;
    const double *weights = ls_share_scalars(&p->share, x->c.world->sums).weights;
    uint64_t first = 0, end = 0;
    double weight = 0;
    island_samples(x, island, &first, &end);
    if (!weights) return 1;
    for (uint64_t i = first; i < end; i++) weight += weights[i];
    return weight > 0 ? (double)(end - first) / weight : 0;
}

/* Each replica is clipped by the norm of its own gradient. The norm that is reported is the root of
 * the mean of their squares. */
static double scale_islands(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    const double *squares = ls_share_scalars(sh, x->c.world->sums).squares;
    double sum = 0;
    for (int i = 0; i < sh->islands; i++) {
        double mean = mean_of_island(x, i + 1);
        double norm = sqrt(squares[i]) / x->in->loss_scale * mean;
        x->islands[i] = (ls_island_scale){.grad_scale = ls_clip_factor(norm, x->in->clip) /
                                                        x->in->loss_scale * mean,
                                          .samples = (double)ls_exec_island_count(x, i + 1),
                                          .lr_scale = x->in->lr_scales ? x->in->lr_scales[i] : 1};
        sum += norm * norm;
    }
    return sqrt(sum / sh->islands);
}

/* Each worker adds up the norms, losses and weights itself, in the same order. Gradients are so far
 * those of the sum over the batch, divided by its number of samples. */
static void finish_training(ls_exec *x) {
    const ls_share *sh = &x->c.plan->share;
    batch_sums s = sums_of(x);
    double mean = s.weight > 0 ? (double)x->batch.count / s.weight : 0; /* 1 without weights */
    x->out.batch = x->batch;
    if (sh->islands) {
        x->out.grad_norm = scale_islands(x);
    } else {
        double norm = ls_norm_total(x->c.world->sums, sh->model->nfloats / LS_BLOCK);
        x->out.grad_norm = norm / x->in->loss_scale * mean;
    }
    x->out.skipped = x->in->skips && !isfinite(x->out.grad_norm);
    x->out.loss = s.weight > 0 ? s.loss / (s.weight * (double)sh->model->targets) : 0;
    for (int k = 0; k < sh->model->nnotes; k++) x->out.notes[k] = note_of(x, k);
    if (sh->noise)
        ls_squares_finish(&x->squares,
                          &(ls_squares_sums){.share = sh,
                                             .sums = x->c.world->sums,
                                             .step = x->in->step,
                                             .scale = mean / x->in->loss_scale,
                                             .samples = x->batch.count},
                          &x->out.noise);
    bool momentum = ls_share_sums_momentum(sh, x->in->step);
    double clip = momentum ? 1 : ls_clip_factor(x->out.grad_norm, x->in->clip);
    x->update = (ls_optim_step){.updates = x->in->updates,
                                .lr = x->in->lr,
                                .grad_scale = clip / x->in->loss_scale * mean,
                                .samples = (double)x->batch.count};
}

static void decide(const ls_exec *x) {
    const ls_store_note n = decision_of(x);
    x->c.decided(x->c.decided_arg, &n);
}

/* Notes a step that islands decide alone. */
static bool note_apart(const ls_exec *x) {
    const ls_apart_step s = {x->c.worker, x->in->step, ls_exec_changes(x), x->batch.count};
    return ls_apart_note(x->c.world, &x->c.plan->share, &s);
}

void ls_exec_finish_decision(ls_exec *x) {
    x->knows_norm = true;
    x->gave_up = x->c.world->sums[x->c.plan->share.nscalars - 1] > 0;
    if (x->gave_up) return;
    if (x->c.plan->share.task == LS_TASK_TRAIN)
        finish_training(x);
    else
        finish_sync(x);
    bool trains = x->c.plan->share.task == LS_TASK_TRAIN;
    if (x->in->apart && trains && !note_apart(x)) return;
    if (x->c.decided) decide(x);
}

void ls_exec_joined(ls_exec *x, const ls_step_in *in, const double *row, ls_step_out *out) {
    const ls_share *sh = &x->c.plan->share;
    x->in = in;
    x->batch = out->batch;
    memcpy(ls_share_scalars(sh, x->c.world->sums).squares, row, ls_apart_row(sh) * sizeof *row);
    finish_training(x);
    *out = x->out;
}

void ls_exec_measure(ls_exec *x, const ls_step_in *in, ls_step_out *out_p,
                     ls_optim_step *update_p) {
    x->in = in;
    ls_exec_norm(x);
    finish_training(x);
    *out_p = x->out;
    *update_p = x->update;
}
