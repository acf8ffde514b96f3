/* on_device.h - operands of layers' steps on a device, and their results. */
#ifndef LS_TEST_ON_DEVICE_H
#define LS_TEST_ON_DEVICE_H

#include "base/random.h"
#include "device/drivers.h"
#include "tensor/compute.h"

/* Two computes: of the host, and of a device. */
typedef struct sides {
    ls_compute host, device;
    uint64_t seed, drawn;
} sides;

static inline void sides_open(sides *s, uint64_t seed, size_t scratch_floats) {
    char name[32];
    ls_error e = {0};
    *s = (sides){.seed = seed};
    assert_ls_ok(ls_compute_init(&s->host, 1, scratch_floats, &e), e);
    if (strncmp(device_name, "c:", 2) == 0)
        snprintf(name, sizeof name, "c:%d", (int)seed); /* in another order */
    else
        snprintf(name, sizeof name, "%s", device_name);
    s->device = s->host;
    assert_ls_ok(ls_device_open(name, &s->device.device, &e), e);
}

static inline void sides_close(sides *s) {
    ls_device_close(s->device.device);
    ls_compute_close(&s->host);
}

/* Memory of both sides with the same contents. Freed by pair_free(). */
typedef struct pair {
    void *host, *device;
    size_t nbytes;
} pair;

static inline pair pair_of(const sides *s, size_t nbytes) {
    ls_error e = {0};
    pair p = {.nbytes = nbytes};
    p.host = malloc(nbytes ? nbytes : 1);
    assert_non_null(p.host);
    assert_ls_ok(ls_device_alloc(s->device.device, nbytes ? nbytes : 1, "a test", &p.device, &e),
                 e);
    return p;
}

static inline void pair_send(const sides *s, const pair *p) {
    ls_error e = {0};
    ls_device_copy_to(s->device.device, LS_DEVICE_COMPUTE, p->device, p->host, p->nbytes);
    assert_ls_ok(ls_device_finish(s->device.device, LS_DEVICE_COMPUTE, &e), e);
}

/* n random numbers between -1 and 1, times `size`. */
static inline pair pair_numbers(sides *s, int64_t n, float size) {
    pair p = pair_of(s, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        ls_random_words(s->seed, LS_STREAM_FAKE, 1, s->drawn++, words);
        ((float *)p.host)[i] = (float)(int32_t)words[0] * 0x1p-31f * size;
    }
    pair_send(s, &p);
    return p;
}

/* n integers in [0, below) */
static inline pair pair_integers(sides *s, int64_t n, uint32_t below) {
    pair p = pair_of(s, (size_t)n * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        ls_random_words(s->seed, LS_STREAM_FAKE, 1, s->drawn++, words);
        ((uint32_t *)p.host)[i] = words[0] % below;
    }
    pair_send(s, &p);
    return p;
}

/* nbytes of NaNs */
static inline pair pair_empty(sides *s, size_t nbytes) {
    pair p = pair_of(s, nbytes);
    memset(p.host, 0xff, nbytes);
    pair_send(s, &p);
    return p;
}

/* The same bits on both sides? Else says how many numbers differ, and which is the first. */
static inline bool pair_same(const sides *s, const pair *p, const char *what) {
    ls_error e = {0};
    size_t n = p->nbytes / sizeof(float), differ = 0, first = 0;
    float *got = malloc(p->nbytes), a = 0, b = 0;
    uint32_t bits[2] = {0};
    assert_non_null(got);
    ls_device_copy_from(s->device.device, LS_DEVICE_COMPUTE, got, p->device, p->nbytes);
    assert_ls_ok(ls_device_finish(s->device.device, LS_DEVICE_COMPUTE, &e), e);
    bool same = memcmp(p->host, got, p->nbytes) == 0;
    for (size_t i = 0; i < n && !same; i++)
        if (memcmp((float *)p->host + i, got + i, sizeof a) && differ++ == 0) first = i;
    if (!same) {
        memcpy(&a, (float *)p->host + first, sizeof a);
        memcpy(&b, got + first, sizeof b);
        memcpy(&bits[0], &a, sizeof a);
        memcpy(&bits[1], &b, sizeof b);
        print_error("%s differs in %zu of %zu numbers, first %zu: %a (%08x), on %s %a (%08x)\n",
                    what, differ, n, first, (double)a, bits[0], s->device.device->name, (double)b,
                    bits[1]);
    }
    free(got);
    return same;
}

/* Comparisons that found other bits: a test says which, goes on to its other cases, and fails at
 * its end. */
static int nwrong;

static inline void expect_same(const sides *s, const pair *p, const char *what) {
    if (pair_same(s, p, what)) return;
    nwrong++;
    pair_send(s, p); /* what is computed from it is compared by itself */
}
static inline void assert_none_wrong(void) {
    int n = nwrong;
    nwrong = 0;
    assert_int_equal(n, 0);
}

static inline void pair_free(const sides *s, pair *p) {
    ls_device_free(s->device.device, p->device);
    free(p->host);
    *p = (pair){0};
}

#endif
