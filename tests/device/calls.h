/* calls.h - calls of devices that tests share. */
#ifndef LS_TEST_DEVICE_CALLS_H
#define LS_TEST_DEVICE_CALLS_H

#include "device/device.h"
#include "test.h"

static inline ls_device *opened(const char *name) {
    ls_error e = {0};
    ls_device *d = NULL;
    assert_ls_ok(ls_device_open(name, &d, &e), e);
    return d;
}

static inline float *memory(ls_device *d, int64_t n) {
    ls_error e = {0};
    void *p = NULL;
    assert_ls_ok(ls_device_alloc(d, (size_t)n * sizeof(float), "numbers", &p, &e), e);
    return p;
}

static inline void add(ls_device *d, ls_device_stream s, int64_t n, const float *a, const float *b,
                       float *out) {
    ls_device_launch(d, s,
                     &(ls_device_call){.kernel = LS_KERNEL_add,
                                       .groups_x = (n + 255) / 256,
                                       .groups_y = 1,
                                       .args = {{.l = n}, {.from = a}, {.from = b}, {.p = out}}});
}

/* y = x + x is copied to the device on one stream, computed on the other, and copied back; without the
 * event that is asked for, the copy and the sum may change places. Returns whether y is right. */
static inline bool doubles(ls_device *d, bool events) {
    enum { N = 1000 };
    ls_error e = {0};
    float x[N], y[N] = {0}, *dx = memory(d, N), *dy = memory(d, N);
    bool right = true;
    for (int i = 0; i < N; i++) x[i] = (float)i;
    ls_device_copy_to(d, LS_DEVICE_COPY, dx, x, sizeof x);
    if (events) ls_device_record(d, LS_DEVICE_COPY, 0);
    if (events) ls_device_wait(d, LS_DEVICE_COMPUTE, 0);
    add(d, LS_DEVICE_COMPUTE, N, dx, dx, dy);
    if (events) ls_device_record(d, LS_DEVICE_COMPUTE, 1);
    if (events) ls_device_wait(d, LS_DEVICE_COPY, 1);
    ls_device_copy_from(d, LS_DEVICE_COPY, y, dy, sizeof y);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COPY, &e), e);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    for (int i = 0; i < N; i++) right &= y[i] == 2 * (float)i;
    ls_device_free(d, dx);
    ls_device_free(d, dy);
    return right;
}

#endif
