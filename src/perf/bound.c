/* bound.c - see bound.h. */
#include "perf/bound.h"

#include <math.h>
#include <stdlib.h>

#include "coll/algo/tree.h"
#include "model/types.h"
#include "share/stages.h"
#include "tensor/dtype.h"
#include "train/layout.h"

enum { MOST_SIZES = 64 };

/* The prices of layers for one size of micro-batches. */
typedef struct prices {
    int64_t samples;
    double *forward, *backward; /* [nlayers] seconds */
} prices;

struct ls_bounds {
    const ls_config *c;
    const ls_model *m;
    const ls_forecast_world *w;
    int nworkers;
    int host_workers;
    prices sizes[MOST_SIZES];
    int nsizes;
    int **cuts;     /* [nlayers + 1] by the number of stages: the stage of each layer; NULL: not cut
                     * yet */
    bool *retained; /* [nlayers] a backward pass reads the output */
    ls_optim optim;
};

/* Does a backward pass read the layer's output? Then it is in memory until then. */
static bool is_retained(const ls_model *m, int layer) {
    for (int l = layer + 1; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].ninputs; k++)
            if (m->layers[l].inputs[k] == layer && !m->layers[l].unread[k]) return true;
    return false;
}

ls_status ls_bounds_open(const ls_config *c, ls_model *m, int n, const ls_forecast_world *w,
                         ls_bounds **b_p, ls_error *e) {
    ls_bounds *b = ls_alloc(sizeof *b);
    *b = (ls_bounds){.c = c, .m = m, .w = w, .nworkers = n};
    b->host_workers = w->host_workers && w->host_workers < n ? w->host_workers : n;
    b->cuts = LS_NEW_ARRAY(int *, (size_t)m->nlayers + 1);
    b->retained = LS_NEW_ARRAY(bool, (size_t)m->nlayers);
    for (int l = 0; l < m->nlayers; l++) b->retained[l] = is_retained(m, l);
    ls_status s = ls_optim_of(c, m, &b->optim, e);
    if (s == LS_OK)
        *b_p = b;
    else
        ls_bounds_free(b);
    return s;
}

void ls_bounds_free(ls_bounds *b) {
    for (int i = 0; i < b->nsizes; i++) {
        free(b->sizes[i].forward);
        free(b->sizes[i].backward);
    }
    for (int i = 0; i <= b->m->nlayers; i++) free(b->cuts[i]);
    free(b->cuts);
    free(b->retained);
    free(b);
}

/* ---- prices ---- */

/* A plan of one worker and one micro-batch, without actions: enough to price its layers. */
static ls_status price_layers(ls_bounds *b, prices *x, ls_error *e) {
    ls_plan plan = {.share = {.model = b->m,
                              .nworkers = 1,
                              .V = 1,
                              .batch = x->samples,
                              .micro_batch = x->samples,
                              .compute = ls_config_compute(b->c),
                              .reduce = ls_config_reduce(b->c)}};
    ls_site site = {.machine = b->w->machine,
                    .threads = ls_forecast_threads(b->c, b->host_workers, b->w->machine)};
    ls_pricer pricer;
    LS_TRY(ls_pricer_open(&plan, &site, &pricer, e));
    pricer.busy = b->host_workers * site.threads;
    for (int l = 0; l < b->m->nlayers; l++) {
        const ls_layer *layer = &b->m->layers[l];
        ls_action a = {.kind = LS_FORWARD, .layer = l, .last = true};
        if (!layer->traits.loss) x->forward[l] = ls_price_action(&pricer, &a, 0).cpu_s;
        a.kind = LS_BACKWARD;
        if (!layer->link.is_constant) x->backward[l] = ls_price_action(&pricer, &a, 0).cpu_s;
    }
    return LS_OK;
}

static ls_status prices_of(ls_bounds *b, int64_t samples, const prices **x_p, ls_error *e) {
    size_t n = (size_t)b->m->nlayers;
    for (int i = 0; i < b->nsizes; i++) {
        *x_p = &b->sizes[i];
        if (b->sizes[i].samples == samples) return LS_OK;
    }
    if (b->nsizes == MOST_SIZES) return ls_fail(e, LS_EINVAL, "mesh: too many sizes");
    prices *x = &b->sizes[b->nsizes++];
    *x = (prices){samples, LS_NEW_ARRAY(double, n), LS_NEW_ARRAY(double, n)};
    *x_p = x;
    return price_layers(b, x, e);
}

static const int *cut_of(ls_bounds *b, int nstages) {
    if (nstages > b->m->nlayers) return NULL;
    if (!b->cuts[nstages]) {
        int *cut = LS_NEW_ARRAY(int, (size_t)b->m->nlayers);
        bool can = nstages == 1 || ls_stages_cut(b->m, nstages, cut);
        cut[0] = can ? 0 : -1;
        b->cuts[nstages] = cut;
    }
    return b->cuts[nstages][0] < 0 ? NULL : b->cuts[nstages];
}

/* Seconds of a gradient's sum and its parameters' gather among workers that share the batch. */
static double exchange_s(const ls_bounds *b, const ls_mesh *m, size_t floats) {
    const ls_machine *machine = b->w->machine;
    double d = (double)m->data, nbytes = (double)(floats * ls_dtype_size(ls_config_reduce(b->c)));
    int host = b->host_workers, beside = (int)ls_mesh_beside(m);
    int each = host > beside ? host / beside : 1, near = each < m->data ? each : (int)m->data;
    bool shared = ls_layout_shares_memory(b->c, b->nworkers, host);
    if (m->data == 1) return 0;
    if (shared) {
        double slow = host > machine->cores ? (double)host / machine->cores : 1;
        bool one = m->zero > 0;
        return slow * nbytes *
               (machine->shared_sum_byte_s + (one ? 0 : (d - 1) / d * machine->shared_copy_byte_s));
    }
    double byte_s = near == m->data ? machine->link.byte_s : b->w->byte_s * host / each * near;
    double latency_s = near == m->data ? machine->link.latency_s : b->w->latency_s;
    double times = m->zero == 3 ? 3 : 2; /* parameters are gathered forward and backward */
    return times * (nbytes * (d - 1) / d * byte_s + latency_s * log2(d));
}

/* ---- a mesh ---- */

/* What one rank has. */
typedef struct part {
    double pass_s; /* both passes of a micro-batch */
    size_t params; /* elements */
    size_t saved;  /* bytes that a sample's activations take */
} part;

/* The worker that has slice or chunk i of n, among the workers that divide them. */
static int part_of(int64_t i, int64_t workers, int n) {
    return (int)(i * workers / (n > 1 ? n : 1));
}

/* The worker of the mesh that has a layer, by its stage, slice and chunk. */
static int rank_of(const ls_bounds *b, const ls_mesh *m, const ls_pipe_schedule *s, int layer) {
    const int *cut = b->cuts[m->pipe * m->stages_each];
    const ls_layer *l = &b->m->layers[layer];
    int worker = 0, nth = 0, of_chunks = part_of(l->chunk, m->context * m->expert, b->m->nchunks);
    ls_pipe_place(s, cut[layer], &worker, &nth);
    return worker * (int)ls_mesh_beside(m) + of_chunks * (int)m->tensor +
           part_of(l->slice, m->tensor, b->m->nslices);
}

/* Do layers of an earlier chunk of the same worker have the same parameters? */
static bool repeats(const ls_bounds *b, const ls_mesh *m, const ls_layer *l) {
    int64_t workers = m->context * m->expert;
    int n = b->m->nchunks;
    return l->chunk > 0 && part_of(l->chunk - 1, workers, n) == part_of(l->chunk, workers, n);
}

/* parts: [pipe * workers beside each other], zero before. */
static void fill_parts(const ls_bounds *b, const prices *x, const ls_mesh *m,
                       const ls_pipe_schedule *schedule, part *parts) {
    size_t element = ls_dtype_size(ls_config_compute(b->c));
    for (int l = 0; l < b->m->nlayers; l++) {
        const ls_layer *layer = &b->m->layers[l];
        part *s = &parts[rank_of(b, m, schedule, l)];
        s->pass_s += x->forward[l] * (m->recompute ? 2 : 1) + x->backward[l];
        for (int k = 0; k < layer->nparams; k++)
            s->params += layer->link.frozen[k] || repeats(b, m, layer) ? 0 : layer->counts[k];
        if (m->recompute) continue;
        s->saved += (layer->memory.saved + (b->retained[l] ? layer->y_floats : 0)) * element;
    }
}

/* Seconds of a message between two workers that divide a layer's slices. */
static double message_s(const ls_bounds *b, const ls_mesh *m, size_t floats) {
    const ls_machine *machine = b->w->machine;
    double nbytes =
        (double)(floats * (size_t)m->micro_batch * ls_dtype_size(ls_config_compute(b->c)));
    if (ls_layout_shares_memory(b->c, b->nworkers, b->host_workers))
        return machine->shared_start_s + nbytes * machine->shared_copy_byte_s;
    if (ls_mesh_beside(m) <= b->host_workers)
        return machine->link.latency_s + nbytes * machine->link.byte_s;
    return b->w->latency_s + nbytes * b->w->byte_s;
}

/* Adds to what a stage's first worker takes for a micro-batch the messages between its workers, and
 * back: t - 1 for each value that all slices read, or each sum of slices. They go along a binary
 * tree, so that log2(t) of them are one after the other. */
static void add_messages(const ls_bounds *b, const ls_mesh *m, const ls_pipe_schedule *schedule,
                         part *parts) {
    int64_t beside = ls_mesh_beside(m);
    if (beside == 1) return;
    bool *sent = LS_NEW_ARRAY(bool, (size_t)b->m->nlayers);
    double t = (double)beside, serial = ceil(log2(t)) / (t - 1);
    for (int l = 0; l < b->m->nlayers; l++) {
        const ls_layer *layer = &b->m->layers[l];
        int reader = rank_of(b, m, schedule, l);
        for (int k = 0; k < layer->ninputs; k++) {
            int v = layer->inputs[k], from = rank_of(b, m, schedule, v);
            int first = from - from % (int)beside;
            if (sent[v] || from == reader || first != reader - reader % (int)beside) continue;
            sent[v] = true;
            parts[first].pass_s += 2 * serial * message_s(b, m, b->m->layers[v].y_floats);
        }
    }
    free(sent);
}

static size_t memory_of(const ls_bounds *b, const ls_mesh *m, const part *s, int64_t in_flight) {
    bool shared = ls_layout_shares_memory(b->c, b->nworkers, b->host_workers);
    size_t own = s->params / (size_t)(m->data * m->context * m->expert);
    size_t param = ls_dtype_size(ls_config_compute(b->c)),
           grad = ls_dtype_size(ls_config_reduce(b->c));
    size_t states = (size_t)ls_optim_nflats(&b->optim) - (param == sizeof(float));
    bool in_file = b->c->parallel.optimizer_state == LS_STATE_FILE;
    bool one = m->zero == 3 || (m->zero > 0 && shared);
    size_t V = (size_t)b->c->train.virtual_workers,
           vws = (V + (size_t)m->data - 1) / (size_t)m->data;
    bool tree = b->c->parallel.reduce == LS_REDUCE_TREE;
    size_t sums = tree ? (size_t)ls_tree_slots((int)V, 0, (int)vws) : 1;
    size_t grads = m->zero >= 2 && m->pipe == 1 && vws == 1 ? own : sums * s->params;
    return (one ? own : s->params) * param + grads * grad +
           (in_file   ? 0
            : m->zero ? own
                      : s->params) *
               states * sizeof(float) +
           s->saved * (size_t)m->micro_batch * (size_t)in_flight;
}

/* Micro-batches that a worker runs in a step. */
static int64_t micros_of(const ls_config *c, const ls_mesh *m) {
    int64_t V = c->train.virtual_workers, samples = c->train.batch / V;
    return (V + m->data - 1) / m->data * ((samples + m->micro_batch - 1) / m->micro_batch);
}

ls_status ls_bounds_of(ls_bounds *b, ls_mesh *m, bool *can_p, ls_error *e) {
    const int *cut = cut_of(b, (int)(m->pipe * m->stages_each));
    const prices *x = NULL;
    int64_t micros = micros_of(b->c, m);
    ls_pipe_schedule s = {.kind = m->schedule,
                          .workers = (int)m->pipe,
                          .chunks = (int)m->stages_each,
                          .micros = (int)micros};
    int64_t beside = ls_mesh_beside(m);
    int ranks = (int)(m->pipe * beside);
    double slowest = 0;
    size_t most = 0;
    *can_p = cut != NULL;
    if (!cut) return LS_OK;
    LS_TRY(prices_of(b, m->micro_batch, &x, e));
    part *parts = LS_NEW_ARRAY(part, (size_t)ranks);
    fill_parts(b, x, m, &s, parts);
    add_messages(b, m, &s, parts);
    m->least_nbytes = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const part *own = &parts[rank];
        int64_t ahead = m->pipe - rank / beside;
        size_t nbytes = memory_of(b, m, own, m->pipe == 1 ? 1 : ahead < micros ? ahead : micros);
        if (own->pass_s > slowest) slowest = own->pass_s;
        if (own->params > most) most = own->params;
        if (nbytes > m->least_nbytes) m->least_nbytes = nbytes;
    }
    free(parts);
    m->bubble = ls_pipe_bubble(&s);
    m->least_s = slowest * (double)micros / (1 - m->bubble) + exchange_s(b, m, most);
    return LS_OK;
}
