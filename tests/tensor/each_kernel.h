/* each_kernel.h - a check with every variant of the kernels that this machine runs, and with
 * several numbers of threads. */
#ifndef LS_TEST_EACH_KERNEL_H
#define LS_TEST_EACH_KERNEL_H

#include "tensor/compute.h"
#include "test.h"

static inline void check_kernel(const ls_kernels *k, int threads, void (*fn)(const ls_compute *)) {
    ls_compute c;
    ls_error e;
    assert_ls_ok(ls_compute_init(&c, threads, 0, &e), e);
    ls_pool_share_cores(c.pool);
    if (k) c.k = k;
    fn(&c);
    ls_compute_close(&c);
}

/* With 1 to `most` threads. The thread sanitizer sees the fastest variant with the most threads:
 * threads meet in the same way in every variant. In make check so does the address sanitizer:
 * variants have one source. */
static inline void each_kernel(void (*fn)(const ls_compute *), int most) {
    const ls_kernels *k = NULL;
    if (ONLY_THREADS || (SANITIZED && !all_cases())) {
        check_kernel(NULL, most, fn);
        return;
    }
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        for (int threads = 1; threads <= most; threads++) check_kernel(k, threads, fn);
}

#endif
