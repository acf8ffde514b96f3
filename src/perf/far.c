/* far.c - see far.h. */
#include "perf/far.h"

#include <stdlib.h>

#include "base/cores.h"
#include "model/print_model.h"
#include "tensor/dtype.h"
#include "train/layout.h"

/* A Backward reads them for the gradient of its input, which the first layer's does not compute. */
static bool reads_params(const ls_model *m, const ls_action *a) {
    bool back = a->kind == LS_BACKWARD && a->back != LS_BACK_PARAMS &&
                ls_model_has_dx(m, &m->layers[a->layer]);
    return a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || back;
}

/* The floats of parameters that a Forward, Recompute or Backward reads. One without operations,
 * such as an embedding's, reads rows: as many floats as it writes. */
static double floats_read(const ls_share *sh, const ls_action *a) {
    const ls_layer *l = &sh->model->layers[a->layer];
    double all = (double)ls_layer_count(l);
    double out = (double)l->y_floats * (double)ls_share_samples(sh, a->micro);
    return l->cost.flops > 0 || out > all ? all : out;
}

/* The share of pairs of different workers that are on different nodes. */
static double far_pairs(const int *node, int n) {
    int far = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) far += node[i] != node[k];
    return n > 1 ? (double)far / ((double)n * (n - 1)) : 0;
}

static ls_far count(const ls_plan *p, const int *node, int nodes, bool one) {
    const ls_share *sh = &p->share;
    ls_far f = {.nodes = nodes};
    double pairs = far_pairs(node, sh->nworkers), spread = one ? 1 - 1.0 / nodes : 0;
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (reads_params(sh->model, a))
            f.parameters += spread * floats_read(sh, a) * (double)ls_dtype_size(sh->compute);
        else if (a->worker == LS_ALL_WORKERS)
            f.moved += pairs * (double)a->comm.nbytes * sh->nworkers;
        else if (a->kind == LS_SEND && node[a->worker] != node[a->peer])
            f.moved += (double)a->comm.nbytes;
    }
    return f;
}

ls_far ls_far_of(const ls_config *c, const ls_plan *p) {
    int n = p->share.nworkers, cores = ls_cores(), threads = ls_config_threads(c, n, cores);
    int nodes = ls_cores_nodes(), *node = LS_NEW_ARRAY(int, (size_t)n);
    ls_far f = {.nodes = 1};
    bool one = ls_layout_memory_config(c, n, n).one;
    bool here = !ls_config_has_crew(c) && ls_layout_shares_memory(c, n, n);
    if (here && nodes > 1 && ls_config_binds(c, n, threads, cores, nodes) &&
        ls_cores_nodes_of(n, threads, node))
        f = count(p, node, nodes, one);
    free(node);
    return f;
}
