/* price.c - see price.h. */
#include "perf/price.h"

#include <math.h>

#include "model/mixed.h"
#include "model/mixed_device.h"
#include "model/row_ops.h"
#include "optim/apply.h"
#include "perf/device_price.h"
#include "share/codes.h"
#include "tensor/dtype.h"

/* The speeds of 16 bits that the plan needs. */
static ls_status check_speeds(const ls_share *c, const ls_machine *m, ls_error *e) {
    bool half = ls_dtype_is_half(c->compute);
    if (half) LS_TRY(ls_machine_has(m, LS_WORK_WIDEN, e));
    if (half || ls_dtype_is_half(c->reduce)) LS_TRY(ls_machine_has(m, LS_WORK_NARROW, e));
    for (int k = LS_WORK_PRODUCT_BF16; c->compute == LS_BF16 && k < LS_NPRODUCTS; k++)
        LS_TRY(ls_machine_has(m, (ls_work_kind)k, e));
    return c->compute == LS_BF16 && c->on_device ? ls_machine_device_has_bf16(m, e) : LS_OK;
}

ls_status ls_pricer_open(const ls_plan *p, const ls_site *s, ls_pricer *p_p, ls_error *e) {
    const ls_share *sh = &p->share;
    int copies = s->copies ? s->copies : 1, n = sh->nworkers * copies;
    int host = s->host_workers ? s->host_workers : n;
    if (n % host)
        return ls_fail(e, LS_EINVAL,
                       "%d workers don't fill a whole number of hosts with %d workers each", n,
                       host);
    LS_TRY(check_speeds(sh, s->machine, e));
    ls_pricer r = {.plan = p, .site = s, .busy = host * s->threads, .copies = copies};
    r.fabric = (ls_fabric){.nworkers = n,
                           .host_workers = host,
                           .cores = s->machine->cores,
                           .link = s->machine->link,
                           .latency_s = s->latency_s,
                           .byte_s = s->byte_s,
                           .algorithm = s->algorithm};
    *p_p = r;
    return LS_OK;
}

/* ---- computing ---- */

/* What the action runs on, if that is a device whose speed the machine's file has; else NULL:
 * cores. */
static const ls_machine_device *device_of(const ls_pricer *p, const ls_action *a) {
    const ls_machine_device *d = &p->site->machine->device;
    return d->product > 0 && ls_action_on_device(&p->plan->share, a) ? d : NULL;
}

static ls_work_kind kind_of(const ls_pricer *p, const ls_work *w) {
    bool bf16 = p->plan->share.compute == LS_BF16 && w->kind < LS_NPRODUCTS && !w->in_f32;
    return bf16 ? ls_work_in_bf16(w->kind) : w->kind;
}

/* Threads split the longer side of the result. */
static double product_s(const ls_pricer *p, const ls_work *w, double rows) {
    const ls_machine *m = p->site->machine;
    double threads = p->site->threads;
    double M = w->M ? (double)w->M : rows, N = (double)w->N, K = w->K ? (double)w->K : rows;
    if (N >= M)
        N = ceil(N / threads);
    else
        M = ceil(M / threads);
    return ls_machine_product_s(m, kind_of(p, w), M, N, K, p->busy);
}

/* The time for n samples of T rows. Work that is done several times per sample is divided among
 * threads. */
static double work_s(const ls_pricer *p, const ls_work *w, double T, double n) {
    const ls_machine *m = p->site->machine;
    double threads = p->site->threads;
    double rows = n * T, times = w->times * n / threads;
    if (w->kind < LS_NPRODUCTS && w->times == 0) return product_s(p, w, rows);
    if (w->kind < LS_NPRODUCTS)
        return times * ls_machine_product_s(m, kind_of(p, w), (double)w->M, (double)w->N,
                                            (double)w->K, p->busy);
    if (w->times == 0) return ls_machine_pass_s(m, w->kind, w->elements * n / threads, p->busy);
    return times * ls_machine_pass_s(m, w->kind, w->elements, p->busy);
}

/* Conversions of `floats` floats from cache to cache, some at a time. */
static double parts_s(const ls_pricer *p, ls_work_kind k, size_t floats) {
    if (!floats) return 0;
    double part = ls_machine_pass_s(p->site->machine, k, LS_PART, p->busy) / LS_PART;
    return part * (double)floats / p->site->threads;
}

/* A pass over `floats` floats, on cores. */
static double pass_s(const ls_pricer *p, ls_work_kind k, size_t floats) {
    return floats
               ? ls_machine_pass_s(p->site->machine, k, (double)floats / p->site->threads, p->busy)
               : 0;
}

/* The same where the action runs. */
static double pass_of(const ls_pricer *p, const ls_action *a, ls_work_kind k, size_t floats) {
    const ls_machine_device *d = device_of(p, a);
    return d ? ls_device_pass_s(d, k, (double)floats) : pass_s(p, k, floats);
}

/* Operands in 16 bits (model/mixed.h). */
static double convert_s(const ls_pricer *p, const ls_layer *l, const ls_action *a, int64_t n) {
    const ls_share *c = &p->plan->share;
    bool dx = ls_model_has_dx(c->model, l);
    ls_mixed_floats f = a->kind == LS_BACKWARD
                            ? ls_mixed_backward_floats(l, n, c->compute, c->reduce, dx, a->last)
                            : ls_mixed_forward_floats(l, n, c->compute);
    return pass_s(p, LS_WORK_WIDEN, f.widened) + pass_s(p, LS_WORK_NARROW, f.narrowed) +
           parts_s(p, LS_WORK_WIDEN, f.widened_parts) +
           parts_s(p, LS_WORK_NARROW, f.narrowed_parts);
}

/* What a device rounds in place of that. */
static double round_s(const ls_pricer *p, const ls_machine_device *d, const ls_layer *l,
                      const ls_action *a, int64_t n) {
    const ls_share *c = &p->plan->share;
    bool dx = ls_model_has_dx(c->model, l);
    ls_device_rounds r =
        a->kind == LS_BACKWARD
            ? ls_mixed_device_backward_rounds(l, n, c->compute, c->reduce, dx, a->last)
            : ls_mixed_device_forward_rounds(l, n, c->compute);
    return ls_device_round_s(d, (double)r.floats, r.kernels);
}

/* Does the work compute gradients that are not wanted? */
static bool is_left_out(const ls_layer *l, const ls_works *w, int i, bool dx) {
    unsigned grads = 0, trained = 0;
    for (int k = 0; k < l->nparams; k++) {
        grads |= w->grads[i] & 1u << k;
        if (!l->link.frozen[k]) trained |= 1u << k;
    }
    return (grads && !(grads & trained)) || (w->list[i].kind == LS_WORK_PRODUCT_DX && !dx);
}

/* Does the part of a Backward leave the work out? That for parameters computes the gradient of the
 * layer's first product's input no more. */
static bool is_other_part(const ls_works *w, int i, ls_back back) {
    bool dx = w->list[i].kind == LS_WORK_PRODUCT_DX || w->list[i].kind == LS_WORK_NORM_DX;
    for (int k = 0; k < i && dx; k++) dx = w->list[k].kind != w->list[i].kind;
    return (back == LS_BACK_INPUTS && w->grads[i]) || (back == LS_BACK_PARAMS && dx);
}

static double layer_s(const ls_pricer *p, const ls_action *a) {
    const ls_plan *plan = p->plan;
    const ls_machine_device *d = device_of(p, a);
    const ls_layer *l = &plan->share.model->layers[a->layer];
    const ls_works *works = a->kind == LS_BACKWARD ? &l->cost.backward : &l->cost.forward;
    int64_t n = ls_share_samples(&plan->share, a->micro);
    double sum = 0;
    bool dx = ls_model_has_dx(plan->share.model, l), bf16 = plan->share.compute == LS_BF16;
    for (int i = 0; i < works->n; i++) {
        if (is_left_out(l, works, i, dx) || is_other_part(works, i, a->back)) continue;
        sum += d ? ls_device_work_s(d, &works->list[i], (double)l->T, (double)n, bf16)
                 : work_s(p, &works->list[i], (double)l->T, (double)n) + p->site->machine->call_s;
    }
    return sum + (d ? round_s(p, d, l, a, n) : convert_s(p, l, a, n));
}

double ls_price_rows(const ls_pricer *p) {
    enum { EXCHANGES = 5 }; /* counts, numbers of rows, rows, to windows, to tables */
    const ls_site *site = p->site;
    ls_rows_moved x = ls_share_rows_moved(&p->plan->share, site->host_workers);
    double nbytes = (x.read + x.updated + x.written) * site->host_workers;
    return nbytes > 0 ? EXCHANGES * site->latency_s + nbytes * site->byte_s : 0;
}

double ls_price_losses(const ls_pricer *p) {
    double sum = 0;
    for (int i = 0; i < p->plan->share.model->nlayers; i++)
        sum += layer_s(p, &(ls_action){.kind = LS_FORWARD, .layer = i});
    int together = p->plan->share.model->together;
    return sum / (double)(ls_share_samples(&p->plan->share, 0) * (together > 1 ? together : 1));
}

/* The machine's price of an update is that of AdamW. Another optimizer's is taken for as much less
 * as it moves fewer bytes: it reads the gradient, and reads and writes parameters and states. */
static double update_share(const ls_plan *plan) {
    return (3.0 + 2 * ls_optim_nstates(&plan->share.optim)) / 7.0;
}

/* The products, in f32, of optimizers of matrices. */
static double update_products_s(const ls_pricer *p, ls_range own) {
    double sum = 0;
    const ls_model *m = p->plan->share.model;
    for (int i = 0; i < m->nparams; i++) {
        ls_whole_product list[LS_WHOLE_PRODUCTS];
        if (m->params[i].offset < own.first || m->params[i].offset >= own.end) continue;
        ls_whole_products(&p->plan->share.optim, &m->params[i], list);
        for (int k = 0; k < LS_WHOLE_PRODUCTS; k++)
            if (list[k].times > 0)
                sum += list[k].times * ls_machine_product_s(p->site->machine, LS_WORK_PRODUCT,
                                                            ceil(list[k].M / p->site->threads),
                                                            list[k].N, list[k].K, p->busy);
    }
    return sum;
}

/* It rounds the weights that layers read. A device copies them before. */
static double update_s(const ls_pricer *p, const ls_action *a, ls_range own) {
    const ls_machine_device *d = device_of(p, a);
    bool half = ls_dtype_is_half(p->plan->share.compute);
    size_t floats = own.end - own.first;
    if (p->plan->share.shards_moments) floats /= (size_t)p->copies;
    double rounds = !half ? 0
                    : d   ? ls_device_round_s(d, 2.0 * (double)floats, 2)
                          : pass_s(p, LS_WORK_NARROW, floats);
    return update_share(p->plan) * pass_of(p, a, LS_WORK_UPDATE, floats) +
           update_products_s(p, own) + rounds;
}

/* Codes as passes of additions: adding the errors, decoding, keeping what is left; and encoding, by
 * the speeds of `lockstep bench kernels`. */
static double encode_s(const ls_pricer *p, size_t floats) {
    static const double passes[LS_NCOMPRESSIONS] = {
        [LS_COMPRESS_TOPK] = 5, [LS_COMPRESS_ONEBIT] = 4,   [LS_COMPRESS_INT8] = 4,
        [LS_COMPRESS_INT4] = 4, [LS_COMPRESS_POWERSGD] = 8, [LS_COMPRESS_BF16] = 4};
    double all = passes[p->plan->share.compress.how.kind] * pass_s(p, LS_WORK_ADD, floats);
    return all / p->plan->share.encodings;
}

/* Decode reads the codes of all virtual workers; factors it multiplies once, and corrects the
 * errors of the worker's own. */
static int codes_of(const ls_pricer *p, int worker) {
    const ls_plan *plan = p->plan;
    return plan->share.has_factors ? 1 + plan->share.workers[worker].nvws
                                   : ls_share_coded_before(&plan->share, plan->share.V);
}

static double norm_s(const ls_pricer *p, const ls_action *a, int worker) {
    size_t floats = 0;
    for (int k = 0; k < p->plan->share.nbuckets; k++) {
        ls_range s = ls_share_normed(&p->plan->share, k, worker);
        floats += s.end - s.first;
    }
    return pass_of(p, a, LS_WORK_SQUARES, floats / (size_t)p->copies);
}

/* Memory that is returned to the system is faulted in at its next use: both are priced here. */
static double free_s(const ls_pricer *p, const ls_action *a, int worker) {
    ls_buffer b = ls_plan_buffer_of(p->plan, a->buffer);
    if (ls_buffer_in_arena(b.kind) || (b.kind == LS_BUF_PARAM && p->site->one)) return 0;
    size_t nbytes = ls_plan_buffer_nbytes(p->plan, a->buffer, worker);
    return ls_machine_pass_s(p->site->machine, LS_WORK_PAGES, (double)nbytes / sizeof(float),
                             p->busy);
}

/* ---- communication ---- */

/* The collective that the executor calls for the action. Replicas are those of the plan; all other
 * groups grow with the copies. */
static ls_fabric_call call_of(const ls_pricer *p, const ls_action *a) {
    const ls_comm *c = &a->comm;
    int copies = c->axis == LS_AXIS_REPLICAS ? 1 : p->copies;
    bool gathers = a->kind == LS_ALL_GATHER || a->kind == LS_EXCHANGE;
    return (ls_fabric_call){.what = gathers                        ? LS_FABRIC_GATHER
                                    : a->kind == LS_REDUCE_SCATTER ? LS_FABRIC_SUM
                                                                   : LS_FABRIC_SUM_TO_ALL,
                            .dtype = c->dtype,
                            .count = c->count,
                            .V = c->V * copies,
                            .nleaves = c->sums * copies};
}

/* The workers that communicate with each other, which are on one host if they fit. A host's other
 * workers are of other groups, which communicate at the same time and share the host's card. */
static ls_fabric fabric_of(const ls_pricer *p, const ls_action *a) {
    ls_fabric f = p->fabric;
    const ls_comm *c = &a->comm;
    const ls_share *sh = &p->plan->share;
    int host = f.host_workers, members = c->members;
    if (p->site->apart && a->kind == LS_DECIDE && sh->islands) /* an island decides alone */
        members = sh->nworkers > sh->islands ? sh->nworkers / sh->islands : 1;
    f.nworkers = c->axis == LS_AXIS_REPLICAS ? members : members * p->copies;
    if (c->axis == LS_AXIS_REPLICAS) f.host_workers /= sh->nshards * p->copies;
    if (c->axis == LS_AXIS_STAGE) f.host_workers /= c->of.step;
    if (f.host_workers > f.nworkers) f.host_workers = f.nworkers;
    if (f.host_workers < 1 || f.nworkers % f.host_workers) f.host_workers = 1;
    f.byte_s *= (double)host / f.host_workers;
    return f;
}

/* Each worker adds its part of all partial sums; in an all-reduce it also writes it to all. */
static ls_price shared_price(const ls_pricer *p, const ls_fabric_call *c, int workers) {
    const ls_machine *m = p->site->machine;
    double n = workers, nbytes = (double)(c->count * ls_dtype_size(c->dtype));
    double part = nbytes / n, sum = m->shared_start_s * log2(n);
    if (c->what != LS_FABRIC_GATHER && c->nleaves > 1)
        sum += part * c->nleaves * m->shared_sum_byte_s;
    if (c->what == LS_FABRIC_SUM_TO_ALL || (c->what == LS_FABRIC_GATHER && !p->site->one))
        sum += part * (n - 1) * m->shared_copy_byte_s;
    if (p->fabric.host_workers > m->cores) sum *= (double)p->fabric.host_workers / m->cores;
    return (ls_price){.cpu_s = sum};
}

static bool is_shared(const ls_pricer *p) {
    return p->fabric.nworkers == 1 ||
           (p->site->shared && p->fabric.host_workers == p->fabric.nworkers);
}

/* Additions on a device; sums in 16 bits are rounded. */
static double adds_s(const ls_machine_device *d, ls_dtype type, double floats) {
    double rounds = ls_dtype_is_half(type) && floats > 0 ? ls_device_round_s(d, floats, 1) : 0;
    return ls_device_pass_s(d, LS_WORK_ADD, floats) + rounds;
}

/* Devices read each other's memory, which has all numbers in f32, as fast as the host's: links
 * between them are not measured. */
static ls_price device_price(const ls_pricer *p, const ls_machine_device *d,
                             const ls_fabric_call *c, int workers) {
    const ls_machine *m = p->site->machine;
    double part = (double)(c->count * sizeof(float)) / workers, foreign = workers - 1;
    double sum = m->shared_start_s * log2(workers);
    if (c->what != LS_FABRIC_GATHER && c->nleaves > 1)
        sum += adds_s(d, c->dtype, part / sizeof(float) * (c->nleaves - 1)) +
               ls_device_to_s(d, part * c->nleaves * foreign / workers);
    if (c->what != LS_FABRIC_SUM) sum += ls_device_to_s(d, part * foreign);
    return (ls_price){.cpu_s = sum};
}

static ls_price comm_price(const ls_pricer *p, const ls_action *a) {
    ls_fabric_call c = call_of(p, a);
    ls_fabric f = fabric_of(p, a);
    const ls_machine_device *d = device_of(p, a);
    if (d && is_shared(p)) return device_price(p, d, &c, f.nworkers);
    if (is_shared(p) || f.nworkers == 1) return shared_price(p, &c, f.nworkers);
    ls_fabric_price x = ls_fabric_price_of(&f, &c);
    return (ls_price){x.cpu_s, x.wire_s};
}

const char *ls_price_algorithm(const ls_pricer *p, const ls_action *a) {
    ls_fabric_call c = call_of(p, a);
    ls_fabric f = fabric_of(p, a);
    return is_shared(p) ? "shared" : ls_fabric_price_of(&f, &c).algorithm;
}

/* The host of a worker. */
static int host_of(const ls_pricer *p, int worker) {
    const ls_plan *plan = p->plan;
    int rank = plan->share.workers[worker].cell, beside = plan->share.beside;
    int place = rank / beside * plan->share.data * p->copies + plan->share.workers[worker].place;
    return (place * beside + rank % beside) / p->fabric.host_workers;
}

/* A message from one worker to another. Between hosts, those of one host share its card: pipelines
 * send at the same time, but for parameters, which one worker sends. What one stage reads of
 * another goes from one worker to one, however many divide its slices. */
static ls_price send_price(const ls_pricer *p, const ls_action *a) {
    const ls_machine *m = p->site->machine;
    int host = p->fabric.host_workers / p->plan->share.beside;
    int data = p->plan->share.data * p->copies;
    bool near = host_of(p, a->worker) == host_of(p, a->peer);
    double nbytes = ls_plan_sent_nbytes(p->plan, a);
    bool params = p->plan->share.task == LS_TASK_TRAIN &&
                  ls_plan_buffer_of(p->plan, a->buffer).kind == LS_BUF_PARAM;
    bool passed = params && p->plan->share.workers[a->worker].holder ==
                                p->plan->share.workers[a->peer].holder;
    if (passed && p->site->one) return (ls_price){0}; /* they have one copy */
    if (near && p->site->shared)
        return (ls_price){.cpu_s = m->shared_start_s + nbytes * m->shared_copy_byte_s};
    if (near) return (ls_price){.wire_s = m->link.latency_s + nbytes * m->link.byte_s};
    bool alone = p->plan->share.ncells == 1 || params;
    int share = alone || host < 1 ? 1 : host < data ? host : data;
    return (ls_price){.wire_s = p->fabric.latency_s + nbytes * p->fabric.byte_s * share};
}

static double add_s(const ls_pricer *p, const ls_action *a, size_t floats) {
    const ls_machine_device *d = device_of(p, a);
    return d ? adds_s(d, p->plan->share.reduce, (double)floats) : pass_s(p, LS_WORK_ADD, floats);
}

/* The part of a bucket that another rank has sent. */
static size_t taken_floats(const ls_action *a) { return a->part.end - a->part.first; }

/* What is copied to a device, or from there. */
typedef struct copied {
    size_t n;
    ls_dtype type; /* in which the host has them */
} copied;

/* Samples, losses and norms are few. */
static copied copied_of(const ls_pricer *p, const ls_action *a, int worker) {
    const ls_share *sh = &p->plan->share;
    ls_buffer b = ls_plan_buffer_of(p->plan, a->buffer);
    bool params = b.kind == LS_BUF_PARAM || b.kind == LS_BUF_SHARD;
    bool part = b.kind == LS_BUF_SHARD || (b.kind == LS_BUF_SUM && sh->shards_moments);
    if (ls_buffer_in_arena(b.kind))
        return (copied){ls_plan_buffer_nbytes(p->plan, a->buffer, a->worker) /
                            ls_dtype_size(sh->compute),
                        sh->compute};
    if (!params && b.kind != LS_BUF_GRAD && b.kind != LS_BUF_SUM) return (copied){0};
    ls_range r = part ? ls_share_shard(sh, b.index, worker) : ls_share_range(sh, b.index);
    return (copied){r.end - r.first, params ? sh->compute : sh->reduce};
}

/* A device converts what goes in 16 bits. */
static double copy_s(const ls_pricer *p, const ls_action *a, int worker) {
    const ls_machine_device *d = &p->site->machine->device;
    copied c = copied_of(p, a, worker);
    double nbytes = (double)(c.n * ls_dtype_size(c.type));
    bool to = a->kind == LS_TO_DEVICE, half = ls_dtype_is_half(c.type);
    if (d->product <= 0) return pass_s(p, LS_WORK_ADD, c.n);
    double converts = half ? ls_device_pass_s(d, LS_WORK_NARROW, (double)c.n) : 0;
    return converts + (to ? ls_device_to_s(d, nbytes) : ls_device_from_s(d, nbytes));
}

/* A new kind of action without a case here does not compile. */
static ls_price price_of(const ls_pricer *p, const ls_action *a, int worker) {
    const ls_plan *plan = p->plan;
    ls_range b = {0};
    switch (a->kind) {
    case LS_LOAD: return (ls_price){0}; /* the loader's thread has prepared it */
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD: return (ls_price){.cpu_s = layer_s(p, a)};
    case LS_SQUARES:
        b = ls_share_range(&plan->share, a->bucket);
        return (ls_price){
            .cpu_s = pass_s(p, LS_WORK_SQUARES,
                            (b.end - b.first) / ls_noise_turns(plan->share.floats / LS_BLOCK))};
    case LS_ENCODE:
        b = ls_share_range(&plan->share, a->bucket);
        return (ls_price){.cpu_s = encode_s(p, b.end - b.first)};
    case LS_DECODE:
        b = ls_share_owned(&plan->share, a->bucket, worker);
        return (ls_price){.cpu_s =
                              2 * codes_of(p, worker) * pass_s(p, LS_WORK_ADD, b.end - b.first)};
    case LS_ADD:
        b = a->summed ? ls_share_shard(&plan->share, a->bucket, worker)
                      : ls_share_range(&plan->share, a->bucket);
        return (ls_price){.cpu_s = add_s(p, a, b.end - b.first)};
    case LS_DELTA:
    case LS_COPY:
        b = ls_share_range(&plan->share, a->bucket);
        return (ls_price){.cpu_s = pass_s(p, LS_WORK_ADD, b.end - b.first)};
    case LS_MIX:
        b = ls_share_owned(&plan->share, a->bucket, worker);
        return (ls_price){.cpu_s = pass_s(p, LS_WORK_ADD, b.end - b.first)};
    case LS_NORM: return (ls_price){.cpu_s = norm_s(p, a, worker)};
    case LS_UPDATE:
        b = ls_share_owned(&plan->share, a->bucket, worker);
        return (ls_price){.cpu_s = update_s(p, a, b)};
    case LS_FREE: return (ls_price){.cpu_s = free_s(p, a, worker)};
    case LS_SEND: return send_price(p, a);
    case LS_TO_DEVICE:
    case LS_FROM_DEVICE: return (ls_price){.cpu_s = copy_s(p, a, worker)};
    case LS_TAKE: return (ls_price){.cpu_s = pass_s(p, LS_WORK_ADD, taken_floats(a))};
    case LS_EXCHANGE:
    case LS_SUM_FACTORS:
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE:
    case LS_REPLICA_NORM:
    case LS_DECIDE:
    case LS_ALL_GATHER: return comm_price(p, a);
    case LS_NACTION_KINDS: break;
    }
    return (ls_price){0};
}

ls_price ls_price_action(const ls_pricer *p, const ls_action *a, int worker) {
    if (a->phase == LS_PHASE_VALUES) return (ls_price){0}; /* only in the warm-up */
    ls_price x = price_of(p, a, worker);
    if (a->kind != LS_FREE) x.cpu_s += p->site->machine->action_s;
    return x;
}
