/* calls.h - calls of devices that tests share. */
#ifndef LS_TEST_DEVICE_CALLS_H
#define LS_TEST_DEVICE_CALLS_H

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* y = x + x is copied to the device on one stream, computed on the other, and copied back; without
 * the event that is asked for, the copy and the sum may change places. Returns whether y is
 * right. */
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
    ls_device_record(d, LS_DEVICE_COPY, 2);
    assert_ls_ok(ls_device_await(d, 2, &e), e);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    for (int i = 0; i < N; i++) right &= y[i] == 2 * (float)i;
    ls_device_free(d, dx);
    ls_device_free(d, dy);
    return right;
}

/* A child process has numbers on a device, and this process adds them to its own, on another. */
static inline void read_of_child(const char *name, const char *other) {
    enum { N = 3000 };
    ls_device_handle h;
    ls_error e = {0};
    float x[N], y[N] = {0};
    void *there = NULL;
    int out[2], in[2], status = 0;
    assert_int_equal(pipe(out) | pipe(in), 0);
    for (int i = 0; i < N; i++) x[i] = (float)i;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ls_device *d = opened(name);
        float *p = memory(d, N);
        ls_device_copy_to(d, LS_DEVICE_COMPUTE, p, x, sizeof x);
        bool ok = ls_device_finish(d, LS_DEVICE_COMPUTE, NULL) == LS_OK &&
                  ls_device_share(d, p, &h, NULL) == LS_OK &&
                  write(out[1], &h, sizeof h) == (ssize_t)sizeof h;
        close(in[1]);
        _exit(!ok || read(in[0], y, 1) != 0); /* until the other end is closed */
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &h, sizeof h), sizeof h);
    ls_device *d = opened(other);
    float *p = memory(d, N), *q = memory(d, N);
    assert_ls_ok(ls_device_open_shared(d, &h, &there, &e), e);
    ls_device_copy(d, LS_DEVICE_COMPUTE, q, there, sizeof x);
    add(d, LS_DEVICE_COMPUTE, N, q, there, p);
    ls_device_copy_from(d, LS_DEVICE_COMPUTE, y, p, sizeof y);
    assert_ls_ok(ls_device_finish(d, LS_DEVICE_COMPUTE, &e), e);
    for (int i = 0; i < N; i++) assert_true(y[i] == 2 * (float)i);
    ls_device_close_shared(d, there);
    close(in[1]);
    close(out[0]);
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_int_not_equal(ls_device_open_shared(d, &h, &there, &e), LS_OK); /* it is gone */
    ls_device_free(d, p);
    ls_device_free(d, q);
    ls_device_close(d);
}

/* A process that opens this one's memory p, and closes it when it is asked to, late, after a word
 * of it. */
typedef struct reader {
    pid_t pid;
    int to, from;
} reader;

static inline void be_reader(const char *name, int in, int out) {
    enum { LATE_US = 100 * 1000 };
    ls_device_handle h;
    char word = 0;
    void *there = NULL;
    bool ok = read(in, &h, sizeof h) == (ssize_t)sizeof h;
    ls_device *d = opened(name);
    ok = ok && ls_device_open_shared(d, &h, &there, NULL) == LS_OK && write(out, &word, 1) == 1 &&
         read(in, &word, 1) == 1;
    usleep(LATE_US);
    ok = ok && write(out, &word, 1) == 1;
    ls_device_close_shared(d, there);
    ls_device_close(d);
    _exit(!ok);
}

/* Before this process has opened a device. */
static inline reader reader_of(const char *name) {
    int to[2], from[2];
    assert_int_equal(pipe(to) | pipe(from), 0);
    reader r = {.pid = fork(), .to = to[1], .from = from[0]};
    assert_true(r.pid >= 0);
    if (r.pid == 0) be_reader(name, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    return r;
}

static inline void reader_opens(const reader *r, ls_device *d, void *p) {
    ls_device_handle h;
    ls_error e = {0};
    char word = 0;
    assert_ls_ok(ls_device_share(d, p, &h, &e), e);
    assert_int_equal(write(r->to, &h, sizeof h), sizeof h);
    assert_int_equal(read(r->from, &word, 1), 1);
}

static inline int reader_end(const reader *r) {
    int status = 0;
    close(r->to);
    close(r->from);
    assert_true(waitpid(r->pid, &status, 0) == r->pid);
    return status;
}

/* Memory is freed when its reader has closed it, or is dead; of one that does neither it is
 * left. */
static inline void free_of_read(const char *name) {
    enum { CLOSES, DIES, STAYS, NCASES };
    for (int i = 0; i < NCASES; i++) {
        reader r = reader_of(name);
        ls_device *d = opened(name);
        float *p = memory(d, 3000);
        struct pollfd has = {.fd = r.from, .events = POLLIN};
        reader_opens(&r, d, p);
        if (i == CLOSES) assert_int_equal(write(r.to, "", 1), 1);
        if (i == DIES) kill(r.pid, SIGKILL);
        if (i == STAYS) d->patience_ns = 1000 * 1000;
        ls_device_free(d, p);
        assert_int_equal(poll(&has, 1, 0), i != STAYS); /* its word, or its end */
        if (i == STAYS) kill(r.pid, SIGKILL);
        assert_int_equal(reader_end(&r), i == CLOSES ? 0 : SIGKILL);
        if (i == STAYS) ls_device_free(d, p); /* now it can be */
        ls_device_close(d);
    }
}

#endif
