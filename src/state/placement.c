/* placement.c - see placement.h. */
#include "state/placement.h"

#include "base/cores.h"

static void place_states(const ls_world *w, const ls_share *sh) {
    int rank = ls_group_rank(w->group);
    for (int i = sh->has_masters ? 0 : 1; i < w->flat.n; i++)
        for (int k = 0; k < sh->nbuckets; k++) {
            ls_range own = ls_share_owned(sh, k, rank);
            if (own.end > own.first)
                ls_cores_keep_near(w->flat.of[i] + own.first,
                                   (own.end - own.first) * sizeof(float));
        }
}

void ls_place_world(const ls_world *w, const ls_share *sh) {
    if (w->shares_params && ls_group_rank(w->shards) == 0)
        ls_cores_interleave(w->params, sh->nbytes.params);
    if (w->shares_state) place_states(w, sh);
}
