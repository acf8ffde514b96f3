/* rules.h - what each worker does in a step, by the definitions.
 *
 * Written from docs/design/plan.md and from the comments of plan.h, without the functions of
 * src/plan: a reference for them (rules_check_answers()), and the rules that the oracle checks.
 */
#ifndef LS_TEST_RULES_H
#define LS_TEST_RULES_H

#include "plan/plan.h"
#include "share/config.h"

enum { RULES_MAX_COVER = 64, RULES_MAX_WORKERS = 64 };

typedef struct rules {
    const ls_plan *p;
    const ls_share_config *c;
    const ls_model *m;
    int n, S, R; /* workers, those of a sharding group, groups */
    int M;       /* micro-batches of a virtual worker */
} rules;

rules rules_of(const ls_plan *);

/* Worker w of n has the range [wV/n, (w+1)V/n), unless the config gives ranges. */
void rules_range_of(const rules *, int w, int *first_p, int *end_p);
/* Does worker w run virtual worker vw? It runs those of its range; where rounds are reduced, each
 * n-th. */
bool rules_runs(const rules *, int w, int vw);

/* A node [lo, hi) of the tree is split at lo + the largest power of two below hi - lo. */
int rules_middle_of(int lo, int hi);

typedef struct span {
    int lo, hi;
} span;

/* The largest whole subtrees of [lo, hi) inside [a, b), from left to right; returns how many. */
int rules_cover_of(int lo, int hi, int a, int b, span *list);

/* A bucket's blocks are dealt out evenly among the workers of a group, in order. */
ls_range rules_shard_of(const rules *, int bucket, int w);
/* Are the parameters of a bucket sharded? With zero 3, except in buckets up to a limit. */
bool rules_params_sharded(const rules *, int bucket);
/* Is a gradient freed when it is summed? Yes, unless all of it is in use before the first sum: with
 * several micro-batches, or several virtual workers before a reduction. */
bool rules_grads_are_freed(const rules *);

/* Layers between embedding and head form segments of at least `recompute`, the first
 * recompute_layers of them; a segment begins and ends where later layers read only one value of
 * earlier ones. Is this one in a segment, and (*ends_p) its last? */
bool rules_in_segment(const rules *, int layer, bool *ends_p);

/* Are gradients sent as two factors, which are summed one after the other? */
bool rules_has_factors(const rules *);
/* Are codes sent instead of gradients? Not with estimates, nor where rounds are reduced; factors
 * always. */
bool rules_sends_codes(const rules *);

bool rules_has_param(const ls_layer *, int param);
bool rules_touches(const rules *, int layer, int bucket);
bool rules_reads_params(const rules *, const ls_action *);

/* Compares the functions by which others read a plan (ls_share_shard(), ls_share_vw() and the like)
 * with the rules. Returns the name of a wrong one; NULL: none is wrong. */
const char *rules_check_answers(const ls_plan *);

#endif
