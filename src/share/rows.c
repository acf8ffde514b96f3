/* rows.c - what a step moves of tables that hosts divide (ls_param.rows): see
 * ls_share_rows_moved(). */
#include "share/share.h"

#include <math.h>

/* The most virtual workers that a worker runs. */
static int most_vws(const ls_share *sh) {
    int most = 0;
    for (int w = 0; w < sh->nworkers; w++)
        if (sh->workers[w].nvws > most) most = sh->workers[w].nvws;
    return most;
}

ls_rows_moved ls_share_rows_moved(const ls_share *sh, int near) {
    const ls_optim *o = &sh->optim;
    const ls_model *m = sh->model;
    ls_rows_moved x = {0};
    int n = sh->nworkers;
    if (near <= 0 || near >= n) return x;
    double elsewhere = (double)(n - near) / n;
    double owners = sh->shards_moments ? sh->nshards : 1;
    double samples = (double)m->sparse_batch * most_vws(sh) / sh->V + 1;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        double floats = 0, rows = elsewhere * (double)q->dims[0];
        if (!q->window.rows) continue;
        for (int k = 0; k < ls_optim_nflats(o); k++) floats += (double)ls_optim_row_floats(o, q, k);
        double read = elsewhere * fmin(samples * (double)q->window.nids, (double)q->dims[0]);
        double row = (double)ls_optim_row_floats(o, q, 0) + ls_optim_sees(o);
        x.read += read * (sizeof(int64_t) + row * sizeof(float));
        x.updated += rows / owners * floats * sizeof(float);
        x.written += rows / n * floats * sizeof(float);
    }
    return x;
}
