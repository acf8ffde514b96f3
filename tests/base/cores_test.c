/* cores_test.c - which cores workers and their threads have, on machines that are described to
 * hwloc, in containers, and where a launcher has bound them. Each case runs in a process of its
 * own, since a process looks once.
 */
#include "base/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core_parts.h"
#include "folder.h"
#include "test.h"

enum { MOST = 1024 };

/* ---- the rule ---- */

/* `wanted`: a letter for each core, that of its worker, or '.'. The sizes of nodes end with 0. */
static void assert_parts(const int *sizes, int workers, int threads, const char *wanted) {
    int node[MOST], worker[MOST], n = 0;
    char got[MOST + 1] = "";
    for (int k = 0; sizes[k]; k++)
        for (int i = 0; i < sizes[k]; i++) node[n++] = k;
    ls_core_parts(node, n, workers, threads, worker);
    for (int i = 0; i < n; i++) got[i] = worker[i] < 0 ? '.' : (char)('a' + worker[i]);
    assert_string_equal(got, wanted);
}

#define PARTS(workers, threads, wanted, ...)                                                       \
    assert_parts((const int[]){__VA_ARGS__, 0}, workers, threads, wanted)

static void test_parts(void **state) {
    (void)state;
    PARTS(1, 1, "a", 1);
    PARTS(2, 1, "ab", 2);
    PARTS(2, 2, "aabb", 4);
    PARTS(3, 1, "aabbc", 5); /* a core more than the threads of each */
    PARTS(2, 4, "aaaabbbb", 4, 4);
    PARTS(3, 2, "aabbcccc", 4, 4); /* none straddles */
    PARTS(4, 1, "aabbccdd", 4, 4);
    PARTS(1, 8, "aaaaaaaa", 4, 4); /* it has to */
    PARTS(1, 4, "aaaa....", 4, 4);
    PARTS(4, 2, "aabbccdd", 6, 2); /* three where there are three times the cores */
    PARTS(5, 1, "aabccde.", 7, 1); /* more for each than on the core apart */
    PARTS(3, 2, "aacbbc", 3, 3);   /* the third has what remains of both */
    PARTS(2, 3, "bbaaab", 2, 3, 1);
    PARTS(8, 1, "abcdefgh", 1, 1, 1, 1, 1, 1, 1, 1);
}

/* ---- machines ---- */

/* Runs a case in a child that sees this machine (NULL: the real one). */
static void on_machine(const char *machine, void (*check)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (machine) {
            setenv("HWLOC_SYNTHETIC", machine, 1);
            setenv("HWLOC_THISSYSTEM", "0", 1);
        }
        check();
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (how != 0) fail_msg("the case on '%s' failed", machine ? machine : "this machine");
}

/* In a child cmocka's assertions do not end the process. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Each of n workers has the cores [i * each, (i + 1) * each), one for each of its threads. */
static bool has_blocks(int n, int threads, int each) {
    int worker[MOST];
    if (!ls_cores_divide(n, threads, worker)) return false;
    for (int k = 0; k < ls_cores(); k++)
        if (worker[k] != k / each) return false;
    return true;
}

static void two_by_32(void) {
    int worker[MOST];
    CHECK(ls_cores() == 64);
    CHECK(ls_cores_nodes() == 2);
    CHECK(ls_cores_are_described());
    CHECK(has_blocks(8, 8, 8));
    CHECK(has_blocks(2, 32, 32));
    CHECK(has_blocks(64, 1, 1));
    CHECK(ls_cores_divide(3, 21, worker)); /* two on the first package, one on the second */
    CHECK(worker[15] == 0 && worker[16] == 0 && worker[31] == 2);
}

static void one_by_128(void) {
    int worker[MOST];
    CHECK(ls_cores() == 128);
    CHECK(has_blocks(8, 16, 16));
    CHECK(has_blocks(1, 128, 128));
    CHECK(ls_cores_nodes() == 1);
    CHECK(!ls_cores_divide(129, 1, worker));
}

static void eight_nodes(void) {
    CHECK(ls_cores() == 64);
    CHECK(ls_cores_nodes() == 8);
    CHECK(has_blocks(8, 8, 8));
    CHECK(has_blocks(16, 4, 4));
}

static void six_and_a_half(void) {
    int worker[MOST];
    ls_cores_seen seen;
    CHECK(ls_cores() == 7);
    CHECK(ls_cores_among(2) == 7);
    CHECK(!ls_cores_divide(1, 7, worker)); /* on whichever of the 64 are free */
    ls_cores_see(&seen);
    CHECK(seen.n == 7 && seen.limit != 0);
}

static void two_by_4(void) {
    CHECK(ls_cores_bind(0, 3) == 2 && ls_cores_bind(1, 3) == 2); /* on one package */
    CHECK(ls_cores_bind(2, 3) == 4);
    CHECK(ls_cores_bind(4, 5) == 2 && ls_cores_bind(0, 9) == 1 && ls_cores_bind(8, 9) == 0);
}

static void told(void) {
    int worker[MOST];
    CHECK(ls_cores() == 5 && ls_cores_unbound() == 5 && ls_cores_among(2) == 5);
    CHECK(!ls_cores_divide(1, 5, worker));
}

static void all_of_64(void) { CHECK(ls_cores() == 64); }

/* A number that is none, or more than there are, limits nothing. */
static void test_told(void **state) {
    (void)state;
    setenv("LOCKSTEP_CORES", "5", 1);
    on_machine("package:2 numa:1 core:32 pu:2", told);
    setenv("LOCKSTEP_CORES", "500", 1);
    on_machine("package:2 numa:1 core:32 pu:2", all_of_64);
    setenv("LOCKSTEP_CORES", "-1", 1);
    on_machine("package:2 numa:1 core:32 pu:2", all_of_64);
    unsetenv("LOCKSTEP_CORES");
}

static void test_machines(void **state) {
    (void)state;
    on_machine("package:2 numa:1 core:32 pu:2", two_by_32);
    on_machine("package:1 numa:1 core:128 pu:2", one_by_128);
    on_machine("package:2 numa:4 core:8 pu:2", eight_nodes);
    on_machine("package:2 numa:1 core:4 pu:2", two_by_4);
}

/* A container with 6.5 cores' worth of time on a machine of 64. */
static void test_container(void **state) {
    (void)state;
    ls_error e;
    char *limit = ls_format("%s/cpu.max", folder), *self = ls_format("%s/self", folder);
    assert_ls_ok(ls_file_replace(limit, "650000 100000\n", 14, &e), e);
    assert_ls_ok(ls_file_replace(self, "0::/\n", 5, &e), e);
    ls_cores_set_groups(folder, self);
    on_machine("package:2 numa:1 core:32 pu:2", six_and_a_half);
    ls_cores_set_groups("/nowhere", "/nowhere/self");
    free(limit), free(self);
}

/* On this machine: each of two workers is bound to cores that the other has not, and threads to one
 * core of their worker's. */
static cpu_set_t mask_of_thread(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) _exit(1);
    return set;
}

static void bind_all(void) {
    int n = ls_cores() / 2;
    CHECK(!ls_cores_are_described());
    cpu_set_t all = mask_of_thread(), both, common, masks[2], thread;
    for (int i = 0; i < 2; i++) {
        ls_cores_bind_worker(i, 2, n);
        masks[i] = mask_of_thread();
        CHECK(CPU_COUNT(&masks[i]) >= n);
        ls_cores_bind_thread(i, 2, n, n - 1);
        thread = mask_of_thread();
        CPU_AND(&common, &thread, &masks[i]);
        CHECK(CPU_EQUAL(&common, &thread) && CPU_COUNT(&thread) > 0);
        CHECK(n == 1 || CPU_COUNT(&thread) < CPU_COUNT(&masks[i]));
    }
    CPU_AND(&common, &masks[0], &masks[1]);
    CHECK(CPU_COUNT(&common) == 0);
    CPU_OR(&both, &masks[0], &masks[1]);
    ls_cores_unbind();
    thread = mask_of_thread();
    CHECK(CPU_EQUAL(&thread, &all));
    CPU_AND(&common, &both, &all);
    CHECK(CPU_EQUAL(&common, &both));
}

static void test_binding(void **state) {
    (void)state;
    int worker[MOST];
    if (ls_cores() < 2 || ls_cores() > MOST || !ls_cores_divide(2, 1, worker))
        skip_because("this process has fewer than two cores, or limited time");
    on_machine(NULL, bind_all);
}

/* The policy of the mapping that begins at p, as the kernel reports it. */
static void policy_of(const void *p, char *policy, size_t nbytes) {
    char line[512];
    FILE *f = fopen("/proc/self/numa_maps", "r");
    policy[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        char *rest = NULL;
        if (strtoull(line, &rest, 16) != (uintptr_t)p) continue;
        snprintf(policy, nbytes, "%.*s", (int)strcspn(rest + 1, " :\n"), rest + 1);
    }
    if (f) fclose(f);
}

static void test_memory(void **state) {
    (void)state;
    enum { NBYTES = 1 << 20 };
    ls_error e;
    void *memory = NULL;
    char policy[64];
    assert_ls_ok(ls_map_shared(NBYTES, "a test", &memory, &e), e);
    policy_of(memory, policy, sizeof policy);
    bool allowed = *policy && ls_cores_interleave(memory, NBYTES);
    if (allowed) {
        policy_of(memory, policy, sizeof policy);
        assert_string_equal(policy, "interleave");
        assert_true(ls_cores_keep_near(memory, NBYTES));
        policy_of(memory, policy, sizeof policy);
        assert_int_equal(strncmp(policy, "prefer", 6), 0);
    }
    memset(memory, 1, NBYTES);
    ls_unmap(memory, NBYTES);
    if (!allowed) skip_because("the system has no policies for memory of nodes, or refuses them");
}

/* ---- among other workers ---- */

static ls_cores_seen seen(uint64_t machine, int first, int end) {
    ls_cores_seen s = {.machine = machine, .n = (uint64_t)(end - first)};
    for (int i = first; i < end; i++) s.cores[i / 64] |= (uint64_t)1 << i % 64;
    return s;
}

static void assert_seat(const ls_cores_seen *w, int n, int worker, ls_cores_seat s) {
    ls_cores_seat got = ls_cores_seat_of(w, n, worker);
    assert_int_equal(got.near, s.near);
    assert_int_equal(got.all, s.all);
    assert_int_equal(got.sharing, s.sharing);
    assert_int_equal(got.index, s.index);
    assert_int_equal(got.cores, s.cores);
    assert_int_equal(got.equal, s.equal);
}

static void test_seats(void **state) {
    (void)state;
    const ls_cores_seen free_ones[] = {seen(1, 0, 64), seen(2, 0, 32), seen(1, 0, 64)};
    assert_seat(free_ones, 3, 0, (ls_cores_seat){2, 64, 2, 0, 64, true});
    assert_seat(free_ones, 3, 1, (ls_cores_seat){1, 32, 1, 0, 32, true});
    assert_seat(free_ones, 3, 2, (ls_cores_seat){2, 64, 2, 1, 64, true});
    /* a launcher has bound two to each package */
    const ls_cores_seen bound[] = {seen(1, 0, 32), seen(1, 0, 32), seen(1, 32, 64),
                                   seen(1, 32, 64)};
    assert_seat(bound, 4, 1, (ls_cores_seat){4, 64, 2, 1, 32, true});
    assert_seat(bound, 4, 2, (ls_cores_seat){4, 64, 2, 0, 32, true});
    const ls_cores_seen apart[] = {seen(1, 0, 2), seen(1, 2, 4), seen(1, 1, 4)};
    assert_seat(apart, 2, 1, (ls_cores_seat){2, 4, 1, 0, 2, true});
    assert_seat(apart, 3, 1, (ls_cores_seat){3, 4, 2, 0, 2, false});
    /* two containers of 7 cores' worth of time, one with two workers */
    ls_cores_seen contained[] = {{1, 5, 7, {0}}, {1, 9, 7, {0}}, {1, 5, 7, {0}}};
    assert_seat(contained, 3, 2, (ls_cores_seat){3, 14, 2, 1, 7, true});
    assert_seat(contained, 3, 1, (ls_cores_seat){3, 14, 1, 0, 7, true});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_machines),
        cmocka_unit_test(test_container), cmocka_unit_test(test_told),
        cmocka_unit_test(test_seats),     cmocka_unit_test(test_binding),
        cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
