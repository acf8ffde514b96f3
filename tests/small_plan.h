/* small_plan.h - a small model, and plans of it with several buckets. */
#ifndef LS_TEST_SMALL_PLAN_H
#define LS_TEST_SMALL_PLAN_H

#include "networks/gpt2.h"
#include "plan/plan.h"
#include "share/config.h"
#include "test.h"

enum { SMALL_PLAN_V = 8 };

static inline void small_model(ls_model *m_p) {
    ls_error e = {0};
    ls_gpt_config c = {2, 32, 4, 16, 300};
    assert_ls_ok(ls_gpt_create(&c, m_p, &e), e);
}

/* zero, shards: as in ls_share_config. The model outlives the plan. */
static inline ls_plan small_plan(const ls_model *model, int nworkers, int zero, int shards) {
    ls_error e = {0};
    ls_plan p;
    ls_share_config c = {.model = model,
                         .nworkers = nworkers,
                         .V = SMALL_PLAN_V,
                         .batch = SMALL_PLAN_V,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 16384,
                         .zero = zero,
                         .shards = shards,
                         .compute = LS_F32,
                         .reduce = LS_F32};
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    return p;
}

#endif
