/* split.c - see split.h. */
#include "data/split.h"

#include "base/math.h"
#include "base/random.h"

enum { SEED = 1 };

static uint64_t random_of(uint64_t group) {
    uint32_t w[4];
    ls_random_words(SEED, LS_STREAM_SPLIT, 0, group, w);
    return (uint64_t)w[1] << 32 | w[0];
}

typedef struct group {
    uint64_t begin, size;
    uint64_t hole; /* the place of the validation sample; size: it has none (the last of folds) */
} group;

static group group_at(const ls_split *s, uint64_t i) {
    group g = {.begin = i * s->size + (i < s->nlonger ? i : s->nlonger),
               .size = s->size + (i < s->nlonger)};
    if (g.begin + g.size > s->n) g.size = s->n - g.begin;
    if (s->folds)
        g.hole = (random_of(i) % s->folds + s->fold) % s->folds;
    else
        g.hole = random_of(i) % g.size;
    if (g.hole > g.size) g.hole = g.size;
    return g;
}

ls_status ls_split_by_fraction(uint64_t n, double fraction, const char *what, ls_split *s_p,
                               ls_error *e) {
    if (n < 2)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %llu sample%s; training and validation need at least one each",
                       what, (unsigned long long)n, n == 1 ? "" : "s");
    ls_split s = {.n = n, .nval = (uint64_t)ls_math_times(fraction, (double)n)};
    if (s.nval < 1) s.nval = 1;
    if (s.nval > n / 2) s.nval = n / 2;
    s.ntrain = n - s.nval;
    s.ngroups = s.nval;
    s.size = n / s.ngroups;
    s.nlonger = n % s.ngroups;
    *s_p = s;
    return LS_OK;
}

ls_status ls_split_by_folds(uint64_t n, uint64_t folds, uint64_t fold, const char *what,
                            ls_split *s_p, ls_error *e) {
    if (n < folds)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %llu sample%s, fewer than data.folds %llu; use fewer folds", what,
                       (unsigned long long)n, n == 1 ? "" : "s", (unsigned long long)folds);
    ls_split s = {.n = n, .folds = folds, .fold = fold, .size = folds};
    s.ngroups = (n + folds - 1) / folds;
    group last = group_at(&s, s.ngroups - 1);
    s.nval = s.ngroups - (last.hole == last.size);
    s.ntrain = n - s.nval;
    *s_p = s;
    return LS_OK;
}

ls_split ls_split_nothing(uint64_t n) { return (ls_split){.n = n, .ntrain = n}; }

/* The group of training sample i, and the sample's number among those that the group trains on. */
static uint64_t find_group(const ls_split *s, uint64_t i, uint64_t *in_group_p) {
    uint64_t longer = s->nlonger * s->size; /* training samples of longer groups */
    if (i < longer) {
        *in_group_p = i % s->size;
        return i / s->size;
    }
    i -= longer;
    uint64_t each = s->size - 1, g = s->nlonger + i / each;
    *in_group_p = i % each;
    if (g < s->ngroups) return g;
    *in_group_p += each; /* the last of folds may hold out nothing, so that it trains on one more */
    return g - 1;
}

uint64_t ls_split_train(const ls_split *s, uint64_t i) {
    uint64_t k = 0;
    if (s->nval == 0) return i;
    group g = group_at(s, find_group(s, i, &k));
    return g.begin + k + (k >= g.hole);
}

uint64_t ls_split_val(const ls_split *s, uint64_t i) {
    group g = group_at(s, i);
    return g.begin + g.hole;
}
