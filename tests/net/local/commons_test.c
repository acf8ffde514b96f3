/* commons_test.c - shared memory: its layout, each worker's arena beside a simple model, and the
 * views of threads and of processes. */
#include "net/local/commons.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/local/ring.h"
#include "test.h"

enum { PAGE = 4096, ALIGN = 128, GAP = 17 * PAGE };

static const int SIZES[] = {1, 2, 3, 64};
enum { NSIZES = 4 };

/* Replaces that of the C library: with this errno it fails, as where a filter forbids it. */
static int forbidden;

int memfd_create(const char *name, unsigned flags) {
    errno = forbidden;
    return forbidden ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

static size_t pages(size_t nbytes) { return (nbytes + PAGE - 1) / PAGE * PAGE; }

static ls_commons new_commons(int size, size_t arena, bool threads) {
    ls_commons c;
    ls_error e = {0};
    assert_ls_ok(ls_commons_create(size, arena, threads, &c, &e), e);
    return c;
}

/* ---- layout ---- */

static void check_layout(const ls_commons *c, size_t arena) {
    const ls_commons_head *h = c->head;
    size_t n = (size_t)c->size;
    assert_int_equal(h->size, c->size);
    assert_int_equal(h->arena_nbytes, arena);
    assert_true(h->workers_at >= sizeof *h);
    assert_true(h->rings_at >= h->workers_at + n * sizeof(ls_commons_worker));
    assert_true(h->calls_at >= h->rings_at + n * n * sizeof(ls_ring));
    assert_true(h->arenas_at >= h->calls_at + n * LS_COMMONS_GROUPS * LS_COMMONS_CALLS_NBYTES);
    assert_true(h->nbytes >= h->arenas_at + n * arena);
    assert_int_equal((h->workers_at | h->rings_at | h->calls_at | h->arenas_at) % PAGE, 0);
    for (int i = 0; i < c->size; i++) {
        assert_int_equal((uintptr_t)ls_commons_worker_of(c, i) % 64, 0);
        assert_int_equal((uintptr_t)ls_commons_calls(c, 0, i) % 64, 0);
        unsigned char *first = ls_commons_calls(c, 0, i);
        unsigned char *last = ls_commons_calls(c, LS_COMMONS_GROUPS - 1, i);
        assert_true(first >= c->base + h->calls_at);
        assert_true(last + LS_COMMONS_CALLS_NBYTES <= c->base + h->arenas_at);
        assert_true(ls_commons_calls(c, 1, i) > ls_commons_calls(c, 0, c->size - 1));
    }
}

static void test_layout(void **state) {
    (void)state;
    static const size_t arenas[] = {PAGE, PAGE + 1, 1 << 20, (size_t)64 << 20};
    for (int s = 0; s < NSIZES; s++)
        for (int a = 0; a < 4; a++)
            for (int threads = 0; threads < 2; threads++) {
                ls_commons c = new_commons(SIZES[s], arenas[a], threads);
                check_layout(&c, arenas[a]);
                assert_int_equal(atomic_load(&ls_commons_worker_of(&c, 0)->pid),
                                 threads ? getpid() : 0);
                ls_commons_close(&c);
                assert_null(c.head);
                ls_commons_close(&c); /* a second close does nothing */
            }
}

/* The arenas of all workers don't overlap, are in order, and have the distance that suits
 * caches. */
static void test_arenas(void **state) {
    (void)state;
    static const size_t arenas[] = {1, PAGE, 3 * PAGE - 1, 1 << 20};
    for (int s = 0; s < NSIZES; s++)
        for (int a = 0; a < 4; a++) {
            ls_commons views[64], *first = &views[0];
            *first = new_commons(SIZES[s], arenas[a], true);
            unsigned char *before = NULL;
            for (int i = 0; i < SIZES[s]; i++) {
                if (i) ls_commons_share(first, i, &views[i]);
                assert_int_equal(views[i].rank, i);
                unsigned char *p = ls_commons_alloc(&views[i], arenas[a]);
                assert_non_null(p);
                assert_int_equal((uintptr_t)p % PAGE, 0);
                if (before) assert_int_equal(p - before, pages(arenas[a]) + GAP);
                assert_true(p >= first->base + first->head->arenas_at);
                assert_true(p + arenas[a] <= first->base + first->head->nbytes);
                memset(p, i + 1, arenas[a]);
                before = p;
            }
            check_layout(first, arenas[a]); /* the head was not overwritten */
            for (int i = SIZES[s] - 1; i >= 0; i--) ls_commons_close(&views[i]);
        }
}

static void test_bad_sizes(void **state) {
    (void)state;
    ls_commons c;
    ls_error e;
    assert_ls_fails(ls_commons_create(0, PAGE, true, &c, &e), LS_EINVAL, "0 workers", e);
    assert_ls_fails(ls_commons_create(LS_COMMONS_MAX + 1, PAGE, false, &c, &e), LS_EINVAL, "4097",
                    e);
    assert_ls_fails(ls_commons_create(2, SIZE_MAX, true, &c, &e), LS_ENOMEM, "MB", e);
    assert_ls_fails(ls_commons_create(2, SIZE_MAX / 2, false, &c, &e), LS_ENOMEM, "MB", e);
}

/* ---- the arena ---- */

enum { ARENA = 64 * 1024, UNITS = ARENA / ALIGN, TAKEN = 200 };

/* The model: the owner of each unit of 128 bytes; 0: none. */
typedef struct model {
    ls_commons c;
    unsigned char *arena;
    int owner[UNITS];
    unsigned char *p[TAKEN + 1]; /* by owner, from 1 */
    size_t nbytes[TAKEN + 1];
} model;

static uint64_t next_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t x = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static size_t units(size_t nbytes) { return nbytes ? (nbytes + ALIGN - 1) / ALIGN : 1; }

/* The first free run of n units, or UNITS. */
static size_t first_fit(const model *m, size_t n) {
    for (size_t at = 0, run = 0; at < UNITS; at++) {
        run = m->owner[at] ? 0 : run + 1;
        if (run == n) return at + 1 - n;
    }
    return UNITS;
}

static void take(model *m, int owner_id, size_t nbytes) {
    size_t n = units(nbytes), at = first_fit(m, n);
    unsigned char *p = ls_commons_alloc(&m->c, nbytes);
    if (at == UNITS) {
        assert_null(p);
        return;
    }
    assert_ptr_equal(p, m->arena + at * ALIGN);
    for (size_t i = 0; i < nbytes; i++) assert_int_equal(p[i], 0);
    memset(p, owner_id % 255 + 1, nbytes);
    for (size_t i = 0; i < n; i++) m->owner[at + i] = owner_id;
    m->p[owner_id] = p;
    m->nbytes[owner_id] = nbytes;
}

static void give(model *m, int owner_id) {
    unsigned char *p = m->p[owner_id];
    for (size_t i = 0; i < m->nbytes[owner_id]; i++) assert_int_equal(p[i], owner_id % 255 + 1);
    assert_true(ls_commons_free(&m->c, p));
    assert_false(ls_commons_free(&m->c, p)); /* twice */
    for (size_t i = 0; i < UNITS; i++)
        if (m->owner[i] == owner_id) m->owner[i] = 0;
    m->p[owner_id] = NULL;
}

static size_t random_nbytes(uint64_t *seed) {
    static const size_t edges[] = {0, 1, 127, 128, 129, 4096, ARENA / 2, ARENA};
    uint64_t kind = next_random(seed) % 16;
    if (kind == 0) return edges[next_random(seed) % 8];
    return next_random(seed) % (kind < 12 ? 700 : 9000);
}

static void test_random(void **state) {
    (void)state;
    static model m;
    uint64_t seed = 1;
    for (int threads = 0; threads < 2; threads++) {
        memset(&m, 0, sizeof m);
        m.c = new_commons(2, ARENA, threads);
        m.arena = m.c.base + m.c.head->arenas_at;
        for (int step = 0; step < 20000; step++) {
            int owner_id = (int)(next_random(&seed) % TAKEN) + 1;
            if (m.p[owner_id])
                give(&m, owner_id);
            else
                take(&m, owner_id, random_nbytes(&seed));
        }
        for (int owner_id = 1; owner_id <= TAKEN; owner_id++)
            if (m.p[owner_id]) give(&m, owner_id);
        take(&m, 1, ARENA); /* all blocks have been merged again */
        assert_non_null(m.p[1]);
        ls_commons_close(&m.c);
    }
}

/* Blocks are freed from the left, from the right, and the odd ones before the even ones. */
static void test_merging(void **state) {
    (void)state;
    enum { N = 8 };
    static const int orders[][N] = {
        {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 3, 5, 7, 0, 2, 4, 6}};
    ls_commons c = new_commons(1, ARENA, true);
    for (int o = 0; o < 3; o++) {
        void *p[N];
        for (int i = 0; i < N; i++) assert_non_null(p[i] = ls_commons_alloc(&c, ARENA / N));
        assert_null(ls_commons_alloc(&c, 0));
        for (int i = 0; i < N; i++) assert_true(ls_commons_free(&c, p[orders[o][i]]));
        void *all = ls_commons_alloc(&c, ARENA);
        assert_non_null(all);
        assert_true(ls_commons_free(&c, all));
    }
    ls_commons_close(&c);
}

static void test_odd_requests(void **state) {
    (void)state;
    ls_commons c = new_commons(2, ARENA, true), other;
    ls_commons_share(&c, 1, &other);
    int here = 0;
    void *a = ls_commons_alloc(&c, 0), *b = ls_commons_alloc(&c, 0);
    assert_true(a && b && a != b);
    assert_null(ls_commons_alloc(&c, ARENA + 1));
    assert_null(ls_commons_alloc(&c, SIZE_MAX));
    assert_null(ls_commons_alloc(&c, ARENA)); /* a and b are in the way */
    assert_false(ls_commons_free(&c, NULL));
    assert_false(ls_commons_free(&c, &here));
    assert_false(ls_commons_free(&c, (char *)b + 1));
    assert_false(ls_commons_free(&other, a)); /* another worker's */
    void *theirs = ls_commons_alloc(&other, 100);
    assert_false(ls_commons_free(&c, theirs));
    assert_true(ls_commons_free(&other, theirs));
    assert_true(ls_commons_free(&c, a));
    assert_true(ls_commons_free(&c, b));
    ls_commons_close(&other);
    ls_commons_close(&c);
}

/* ---- what other workers can read ---- */

static void test_readable(void **state) {
    (void)state;
    int here = 0;
    ls_commons c = new_commons(3, ARENA, true);
    assert_true(ls_commons_readable(&c, &here, sizeof here)); /* threads read anything */
    ls_commons_close(&c);
    c = new_commons(3, ARENA, false);
    unsigned char *end = c.base + c.head->nbytes, *p = ls_commons_alloc(&c, 100);
    assert_true(ls_commons_readable(&c, p, 100));
    assert_true(ls_commons_readable(&c, c.base, c.head->nbytes));
    assert_true(ls_commons_readable(&c, end - 1, 1));
    assert_true(ls_commons_readable(&c, end, 0));
    assert_false(ls_commons_readable(&c, end - 1, 2));
    assert_false(ls_commons_readable(&c, c.base, c.head->nbytes + 1));
    assert_false(ls_commons_readable(&c, p, SIZE_MAX));
    assert_false(ls_commons_readable(&c, c.base - 1, 2));
    assert_false(ls_commons_readable(&c, &here, sizeof here));
    assert_false(ls_commons_readable(&c, NULL, 1));
    assert_ptr_equal(ls_commons_at(&c, ls_commons_offset(&c, p)), p);
    ls_commons_close(&c);
}

/* ---- joining ---- */

static int temporary(const void *data, size_t nbytes) {
    char name[] = "/tmp/lockstep-commons-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, data, nbytes), nbytes);
    return fd;
}

static void refused(int fd, int rank, const char *says) {
    ls_commons c = {0};
    ls_error e;
    assert_ls_fails(ls_commons_join(fd, rank, &c, &e), LS_EINVAL, says, e);
    assert_null(c.head);
}

static void test_refused(void **state) {
    (void)state;
    static char zeros[3 * PAGE];
    int ends[2];
    refused(-1, 0, "descriptor -1");
    refused(999, 0, "descriptor 999");
    assert_int_equal(pipe(ends), 0);
    refused(ends[0], 0, "is not");
    close(ends[0]);
    close(ends[1]);
    int empty = temporary(zeros, 0), few = temporary("lockstep", 8);
    int other = temporary(zeros, sizeof zeros);
    refused(empty, 0, "is not the shared memory");
    refused(few, 0, "is not the shared memory");
    refused(other, 0, "is not the shared memory");
    close(empty);
    close(few);
    close(other);
    ls_commons c = new_commons(3, ARENA, false);
    refused(c.fd, -1, "is not the shared memory of this group");
    refused(c.fd, 3, "is not the shared memory of this group");
    int cut = temporary(c.base, 2 * PAGE); /* the head is right, the rest is missing */
    refused(cut, 0, "is not the shared memory");
    close(cut);
    c.head->size = 64;
    refused(c.fd, 63, "is not the shared memory");
    c.head->size = 3;
    ls_commons_close(&c);
}

/* A worker joins once: a second view, in its process or in one that it started, is refused, and
 * leaves the first one and the descriptor as they were. */
static void test_twice(void **state) {
    (void)state;
    ls_commons c = new_commons(2, ARENA, false), first;
    int fd = dup(c.fd), how = 0;
    ls_error e = {0};
    assert_ls_ok(ls_commons_join(fd, 1, &first, &e), e);
    refused(fd, 1, "worker 1 has opened its group already, as process");
    pid_t pid = fork();
    if (pid == 0) {
        ls_commons own;
        _exit(ls_commons_join(fd, 1, &own, NULL) == LS_EINVAL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_int_equal(atomic_load(&ls_commons_worker_of(&c, 1)->pid), getpid());
    assert_true(fcntl(fd, F_GETFD) >= 0);
    ls_commons_close(&first);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    ls_commons_close(&c);
}

/* Worker `rank` allocates memory, fills it, and publishes its place on its page of calls; then it
 * reads that of all others. */
static int member(int fd, int rank, int size, const unsigned char *not_here) {
    ls_commons c;
    if (ls_commons_join(dup(fd), rank, &c, NULL) != LS_OK) return 1;
    if (c.base == not_here || c.rank != rank || c.size != size) return 2;
    for (int i = 0; i < rank; i++) ls_commons_alloc(&c, 1000); /* other places for each */
    unsigned char *mine = ls_commons_alloc(&c, 5000);
    if (!mine) return 3;
    memset(mine, rank + 1, 5000);
    _Atomic int64_t *shown = ls_commons_calls(&c, 5, rank);
    atomic_store(shown, ls_commons_offset(&c, mine));
    for (int i = 0; i < size; i++) {
        _Atomic int64_t *theirs = ls_commons_calls(&c, 5, i);
        while (!atomic_load(theirs)) usleep(100);
        const unsigned char *p = ls_commons_at(&c, atomic_load(theirs));
        if (!ls_commons_readable(&c, p, 5000)) return 4;
        for (int k = 0; k < 5000; k++)
            if (p[k] != i + 1) return 5;
    }
    ls_commons_close(&c);
    return 0;
}

static void test_processes(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) {
        ls_commons c = new_commons(SIZES[s], 1 << 20, false);
        for (int i = 0; i < SIZES[s]; i++) {
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                if (i % 2)
                    mmap(NULL, (size_t)i << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                _exit(member(c.fd, i, SIZES[s], c.base)); /* the parent's view is mapped, too */
            }
        }
        for (int i = 0, how = 0; i < SIZES[s]; i++) {
            assert_true(wait(&how) > 0);
            assert_int_equal(how, 0);
        }
        for (int i = 0; i < SIZES[s]; i++)
            assert_true(atomic_load(&ls_commons_worker_of(&c, i)->pid) > 0);
        ls_commons_close(&c);
    }
}

static void test_forbidden(void **state) {
    (void)state;
    static const int errors[] = {ENOSYS, EPERM};
    ls_commons c;
    ls_error e = {0};
    for (int i = 0; i < 2; i++) {
        forbidden = errors[i];
        assert_ls_fails(ls_commons_create(2, 4096, false, &c, &e), LS_ENOMEM,
                        "forbids memfd_create(): allow it, or set parallel.transport=thread", e);
        c = new_commons(2, 4096, true); /* threads need none */
        ls_commons_close(&c);
    }
    forbidden = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),    cmocka_unit_test(test_arenas),
        cmocka_unit_test(test_bad_sizes), cmocka_unit_test(test_random),
        cmocka_unit_test(test_merging),   cmocka_unit_test(test_odd_requests),
        cmocka_unit_test(test_readable),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_twice),     cmocka_unit_test(test_processes),
        cmocka_unit_test(test_forbidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
