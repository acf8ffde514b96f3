/* check_group.h - calls a group of kernels (groups.h) for every variant and size, and compares its
 * results with numbers. */
#ifndef LS_TEST_CHECK_GROUP_H
#define LS_TEST_CHECK_GROUP_H

#include "tensor/groups.h"
#include "test.h"

static const int64_t sizes[] = {0, 1, 7, 15, 16, 17, 33, 100};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static inline void assert_untouched(const values *v, int i, int64_t from) {
    for (int64_t j = from; j < CELLS; j++) assert_true(v->out[i][j] == UNTOUCHED);
}

/* Checks |got - want| <= tolerance, and prints the place if not. */
static inline void assert_close(float got, double want, double tolerance, const char *what,
                                int64_t n, int64_t i) {
    if (fabs((double)got - want) <= tolerance) return;
    print_error("%s, size %lld, element %lld: %.9g, not %.9g within %g\n", what, (long long)n,
                (long long)i, (double)got, want, tolerance);
    fail();
}

/* Calls fn for every variant and size, with the results of the group's kernels on ordinary
 * numbers. */
static inline void each(group_fn *group, void (*check)(int64_t n, const values *)) {
    static values v;
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        for (int s = 0; s < NSIZES; s++) {
            fill(&v, false);
            group(k, sizes[s], &v);
            check(sizes[s], &v);
        }
}

#endif
