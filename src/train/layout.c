/* layout.c - see layout.h. */
#include "train/layout.h"

#include "model/shape.h"

ls_status ls_run_plan(const ls_config *c, int nworkers, ls_model *m_p, ls_plan *p_p, ls_error *e) {
    return ls_run_plan_shares(c, nworkers, NULL, m_p, p_p, e);
}

ls_status ls_run_plan_shares(const ls_config *c, int nworkers, const int *first, ls_model *m_p,
                             ls_plan *p_p, ls_error *e) {
    ls_gpt_config shape = ls_config_shape(c);
    LS_TRY(ls_gpt_create(&shape, m_p, e));
    ls_plan_config plan = {.model = m_p,
                           .nworkers = nworkers,
                           .first = first,
                           .V = (int)c->train.virtual_workers,
                           .batch = c->train.batch,
                           .micro_batch = c->train.micro_batch,
                           .tree = c->parallel.reduce == LS_REDUCE_TREE,
                           .bucket_nbytes = (size_t)(c->parallel.bucket_mb * 1e6),
                           .zero = (int)c->parallel.zero,
                           .recompute = (int)c->parallel.recompute,
                           .recompute_layers = (int)c->parallel.recompute_layers,
                           .whole_nbytes = (size_t)(c->parallel.whole_kb * 1e3),
                           .early = c->parallel.accumulate == LS_ACCUMULATE_EARLY,
                           .prefetch = (int)c->parallel.prefetch,
                           .shards = (int)c->parallel.shard_group,
                           .compute = ls_config_compute(c),
                           .reduce = ls_config_reduce(c)};
    ls_status s = ls_plan_make(&plan, p_p, e);
    if (s != LS_OK) ls_model_free(m_p);
    return s;
}

/* The largest groups of at most `most` workers that each have all of the state. */
static bool plan_groups(ls_config c, int n, int most, ls_model *m_p, ls_plan *p_p) {
    for (int group = most < n ? most : n; group >= 1; group--) {
        c.parallel.shard_group = group;
        if (n % group == 0 && ls_run_plan(&c, n, m_p, p_p, NULL) == LS_OK) return true;
    }
    return false;
}

ls_status ls_run_plan_any(const ls_config *c, int nworkers, int group, const int *first,
                          ls_model *m_p, ls_plan *p_p, ls_error *e) {
    ls_config with = *c;
    if (c->parallel.zero > 0 && group > 0 && plan_groups(with, nworkers, group, m_p, p_p))
        return LS_OK;
    if (c->parallel.zero > 0) with.parallel.shard_group = 0;
    ls_status s = ls_run_plan_shares(&with, nworkers, first, m_p, p_p, e);
    if (s == LS_OK || c->parallel.accumulate != LS_ACCUMULATE_EARLY) return s;
    with.parallel.accumulate = LS_ACCUMULATE_LATE;
    return ls_run_plan_any(&with, nworkers, group, first, m_p, p_p, e);
}
