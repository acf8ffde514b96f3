/* allocation_test.c - a step allocates nothing, in any thread of a worker.
 *
 * The program's own malloc() and mmap() replace the system's and count calls: those of a worker
 * inside ls_member_step(), and those of its helpers (communication, loader, pool, heartbeat) from
 * the second step on. The first step makes objects that later ones reuse: programs of collectives,
 * connections, chunks of slabs.
 *
 * Two allocations can't be avoided (docs/design/kernels.md). OpenSSL allocates for each record that
 * it writes: that these blocks are small, and freed before the step ends, is checked here. A worker
 * that has waited 0.25 s over TCP asks the others where they are (health.h), which takes memory:
 * the test's workers may wait that long on a busy machine, so what is allocated there is not
 * counted.
 */
/* ctest: own-copy */
#include <errno.h>
#include <execinfo.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf/bench_train.h"
#include "test.h"
#include "train/member.h"

enum { STEPS = 12, SHOWN = 3, DEPTH = 24, RECORD_NBYTES = 64 /* of OpenSSL's at most */ };

/* Shared with the workers that are processes. */
typedef struct counts {
    atomic_llong steps, allocations;
    atomic_llong tls, tls_unfreed; /* by OpenSSL; and not freed at the end of a step */
    atomic_int reported;
} counts;

static counts *shared;
static bool with_processes, over_tcp;
static int nworkers;

/* State of this process: */
static atomic_int nready;    /* workers that have done a step */
static atomic_bool measures; /* all workers have, and none has begun the last */

static _Thread_local bool is_worker, in_step, is_exempt;
static _Thread_local long long tls_live;

static void report(const char *what, size_t nbytes) {
    void *frames[DEPTH];
    char text[96];
    if (atomic_fetch_add(&shared->reported, 1) >= SHOWN) return;
    is_exempt = true;
    int n = snprintf(text, sizeof text, "%s of %zu bytes in a step:\n", what, nbytes);
    if (write(STDERR_FILENO, text, (size_t)n) == n)
        backtrace_symbols_fd(frames, backtrace(frames, DEPTH), STDERR_FILENO);
    is_exempt = false;
}

static void count(const char *what, size_t nbytes) {
    if (!atomic_load(&measures) || is_exempt) return;
    bool helper = !is_worker && syscall(SYS_gettid) != getpid();
    if (!in_step && !helper) return;
    atomic_fetch_add(&shared->allocations, 1);
    report(what, nbytes);
}

/* ---- in front of the C library's ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t nbytes) {
    count("malloc", nbytes);
    return __libc_malloc(nbytes);
}

void *calloc(size_t n, size_t size) {
    count("calloc", n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t nbytes) {
    count("realloc", nbytes);
    return __libc_realloc(p, nbytes);
}

void *aligned_alloc(size_t align, size_t nbytes) {
    count("aligned_alloc", nbytes);
    return __libc_memalign(align, nbytes);
}

int posix_memalign(void **p_p, size_t align, size_t nbytes) {
    count("posix_memalign", nbytes);
    void *p = __libc_memalign(align, nbytes);
    if (p) *p_p = p;
    return p ? 0 : ENOMEM;
}

void *mmap(void *at, size_t nbytes, int prot, int flags, int fd, off_t offset) {
    count("mmap", nbytes);
    return (void *)syscall(SYS_mmap, at, nbytes, prot, flags, fd, offset); // NOLINT
}

/* ---- OpenSSL's (CRYPTO_set_mem_functions) ---- */

static void *tls_realloc(void *p, size_t nbytes, const char *file, int line) {
    (void)file;
    (void)line;
    if (in_step && nbytes <= RECORD_NBYTES) {
        atomic_fetch_add(&shared->tls, 1);
        tls_live += !p;
        return __libc_realloc(p, nbytes);
    }
    return realloc(p, nbytes);
}

static void *tls_malloc(size_t nbytes, const char *file, int line) {
    return tls_realloc(NULL, nbytes, file, line);
}

static void tls_free(void *p, const char *file, int line) {
    (void)file;
    (void)line;
    if (in_step) tls_live -= p != NULL;
    free(p);
}

/* ---- a gradient that is computed for another worker (train/backup.h) ---- */

static bool backs_up;
static ls_plan backup_plan;
static ls_solo solo;
static float *grads[2];
static double *parts;

static void open_solo(ls_solo *x, const ls_member *m, const ls_solo_task *t) {
    ls_error e;
    const ls_solo_config how = ls_member_solo(m, &backup_plan);
    assert_ls_ok(ls_solo_open(x, &how, t, &e), e);
}

/* Computes the gradient of one virtual worker after the other with one executor, and that of the
 * last one also with a fresh executor. */
static void back_up(const ls_member *m, const ls_step_in *in) {
    const ls_model *model = &m->layout->model;
    ls_solo fresh;
    ls_error e;
    int at = 0;
    if (in->step == 1) {
        assert_ls_ok(ls_plan_solo(&m->layout->plan, &backup_plan, &e), e);
        for (int i = 0; i < 2; i++) grads[i] = calloc(model->nfloats, sizeof(float));
        parts = calloc(backup_plan.share.nscalars, sizeof *parts);
    }
    int vw = (int)(3 * in->step % backup_plan.share.V);
    ls_solo_task t = {vw, in->step, grads[0], parts};
    if (in->step == 1) {
        open_solo(&solo, m, &t);
        return;
    }
    in_step = in->step < STEPS - 1;
    ls_solo_move(&solo, &t);
    if (in->step % 2) assert_ls_ok(ls_exec_gradient_next(solo.exec, in, &at, &e), e); /* given up */
    if (in->step % 2) ls_solo_move(&solo, &t);
    assert_ls_ok(ls_exec_gradient(solo.exec, in, &e), e);
    in_step = false;
    if (in->step < STEPS - 1) return;
    t.grads = grads[1];
    open_solo(&fresh, m, &t);
    assert_ls_ok(ls_exec_gradient(fresh.exec, in, &e), e);
    assert_memory_equal(grads[0], grads[1], model->nfloats * sizeof(float));
    ls_solo_close(&fresh);
    ls_solo_close(&solo);
    ls_plan_free(&backup_plan);
    for (int i = 0; i < 2; i++) free(grads[i]);
    free(parts);
}

/* ---- in front of ours (the linker's --wrap) ---- */

void __real_ls_health_check(ls_group *, ls_request *);
void __wrap_ls_health_check(ls_group *, ls_request *);

void __wrap_ls_health_check(ls_group *g, ls_request *r) {
    is_exempt = over_tcp;
    __real_ls_health_check(g, r);
    is_exempt = false;
}

ls_status __real_ls_member_step(ls_member *, const ls_step_in *, ls_step_out *, ls_error *);
ls_status __wrap_ls_member_step(ls_member *, const ls_step_in *, ls_step_out *, ls_error *);

ls_status __wrap_ls_member_step(ls_member *m, const ls_step_in *in, ls_step_out *out_p,
                                ls_error *e) {
    bool last = in->step >= STEPS - 1, more = in->step >= STEPS; /* bench train counts threads */
    is_worker = true;
    if (last) atomic_store(&measures, false);
    in_step = in->step > 0 && !last;
    tls_live = 0;
    ls_status s = __real_ls_member_step(m, in, out_p, e);
    if (in_step) atomic_fetch_add(&shared->tls_unfreed, tls_live);
    in_step = false;
    if (backs_up && m->worker == 0 && in->step > 0 && !more) back_up(m, in);
    if (in->step > 0 && !last) atomic_fetch_add(&shared->steps, 1);
    if (in->step == 0 && atomic_fetch_add(&nready, 1) + 1 == (with_processes ? 1 : nworkers))
        atomic_store(&measures, true);
    return s;
}

/* ---- runs ---- */

static void ignore(const ls_config *c, const ls_bench_train *b) {
    (void)c;
    (void)b;
}

typedef struct layout {
    int n;
    bool processes, tcp, sequential, backs_up;
    const char *sets[4];
} layout;

static void run(const layout *l) {
    ls_config c;
    ls_error e = {0};
    void *frames[2];
    backtrace(frames, 2); /* the first call loads libgcc */
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    with_processes = l->processes || l->tcp;
    over_tcp = l->tcp;
    backs_up = l->backs_up;
    nworkers = l->sequential ? 1 : l->n;
    atomic_store(&nready, 0);
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    for (int i = 0; i < 4 && l->sets[i]; i++) assert_ls_ok(ls_config_set(&c, l->sets[i], &e), e);
    const ls_bench_request q = {.nworkers = l->n, .warmup = 1, .steps = STEPS - 1};
    assert_ls_ok(ls_bench_train_run(&c, &q, ignore, &e), e);
    assert_int_equal(atomic_load(&shared->steps), nworkers * (STEPS - 2));
    assert_int_equal(atomic_load(&shared->tls) > 0, l->tcp);
    assert_int_equal(atomic_load(&shared->tls_unfreed), 0);
    if (atomic_load(&shared->allocations))
        fail_msg("%d workers, %s %s: %lld allocations", l->n, l->sets[0], l->sets[1],
                 (long long)atomic_load(&shared->allocations));
    munmap(shared, sizeof *shared);
}

static void test_threads(void **state) {
    (void)state;
    run(&(layout){3, .sets = {"parallel.transport=thread", "parallel.zero=0"}});
    run(&(layout){3, .sets = {"parallel.transport=thread", "parallel.zero=3"}});
    run(&(layout){2, .sets = {"parallel.transport=thread", "parallel.zero=2", "parallel.overlap=on",
                              "parallel.threads=2"}});
}

static void test_sequential(void **state) {
    (void)state;
    run(&(layout){
        3, .sequential = true,
        .sets = {"parallel.transport=thread", "parallel.zero=0", "parallel.executor=sequential"}});
    run(&(layout){
        3, .sequential = true,
        .sets = {"parallel.transport=thread", "parallel.zero=3", "parallel.executor=sequential"}});
}

static void test_processes(void **state) {
    (void)state;
    run(&(layout){3, .processes = true, .sets = {"parallel.transport=shm", "parallel.zero=0"}});
    run(&(layout){3, .processes = true, .sets = {"parallel.transport=shm", "parallel.zero=3"}});
}

static void test_tcp(void **state) {
    (void)state;
    run(&(layout){3, .tcp = true, .sets = {"parallel.transport=tcp", "parallel.zero=0"}});
    run(&(layout){3, .tcp = true, .sets = {"parallel.transport=tcp", "parallel.zero=3"}});
    run(&(layout){
        2, .tcp = true,
        .sets = {"parallel.transport=tcp", "parallel.zero=3", "parallel.bucket_mb=0.02"}});
}

static void test_backup(void **state) {
    (void)state;
    run(&(layout){2, .backs_up = true,
                  .sets = {"parallel.transport=thread", "parallel.zero=0", "parallel.threads=2"}});
}

/* Shows that the counter detects an allocation. */
static void test_counter(void **state) {
    (void)state;
    counts own = {0};
    shared = &own;
    atomic_store(&own.reported, SHOWN);
    atomic_store(&measures, true);
    in_step = true;
    void *(*volatile allocate)(size_t) = malloc; /* else the compiler may remove the call */
    void *p = allocate(100);
    in_step = false;
    atomic_store(&measures, false);
    free(p);
    assert_int_equal(atomic_load(&own.allocations), 1);
}

int main(void) {
    if (!CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_sequential), cmocka_unit_test(test_processes),
        cmocka_unit_test(test_tcp),        cmocka_unit_test(test_backup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
