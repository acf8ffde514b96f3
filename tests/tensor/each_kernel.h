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

/* With 1 to `most` threads. The thread sanitizer sees one variant with the most threads: threads
 * meet in the same way in every variant. In make check the address sanitizer sees every variant with
 * the most threads alone. */
static inline void each_kernel(void (*fn)(const ls_compute *), int most) {
#if defined(__SANITIZE_THREAD__)
    check_kernel(NULL, most, fn);
#else
    const ls_kernels *k = NULL;
    int least = 1;
#ifdef __SANITIZE_ADDRESS__
    if (!all_cases()) least = most;
#endif
    for (int i = 0; (k = ls_kernels_at(i)); i++)
        for (int threads = least; threads <= most; threads++) check_kernel(k, threads, fn);
#endif
}

#endif
