/* cores.c - see cores.h. The only file that knows hwloc. */
#include "base/cores.h"

#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/core_parts.h"
#include "base/hash.h"
#include "base/mem.h"

static const char *group_root = LS_CGROUP_ROOT, *group_self = LS_CGROUP_SELF;
static hwloc_topology_t topology;
static hwloc_cpuset_t allowed;
static int ncores = 1, nall = 1; /* that this process may use; of the machine or its container */
static bool limited; /* a control group, or LOCKSTEP_CORES, limits processor time, not the set of
                        cores */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Does the system say how its processors are made? If not (gVisor, a bare chroot), hwloc complains
 * on standard error and knows no more than their number. */
static bool is_described(size_t processor) {
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology", processor);
    return access(path, F_OK) == 0 || getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_XMLFILE") ||
           getenv("HWLOC_FSROOT");
}

/* hwloc asks which processors this process may use until it gets an answer: for ever, where a
 * filter of system calls forbids the question. */
static bool may_ask(void) {
    cpu_set_t set;
    size_t first = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return errno != ENOSYS && errno != EPERM;
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &set)) first++;
    return is_described(first);
}

static int processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void ask(void) {
    if (hwloc_topology_init(&topology) != 0) return;
    if (hwloc_topology_load(topology) != 0 || hwloc_get_cpubind(topology, allowed, 0) != 0) return;
    int n = hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE);
    int threads = hwloc_bitmap_weight(allowed);
    if (n < 1) n = threads; /* half a core each, or hwloc reports no cores */
    if (n > 0) ncores = n;
    nall = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
}

/* The number in LOCKSTEP_CORES; 0: it is not set, or has none. */
static int most_cores(void) {
    const char *text = getenv("LOCKSTEP_CORES");
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : 0;
    return n > 0 && n < INT_MAX && !*end ? (int)n : 0;
}

ls_status ls_cores_check(ls_error *e) {
    const char *text = getenv("LOCKSTEP_CORES");
    if (!text || !*text || most_cores()) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "LOCKSTEP_CORES: '%.40s' is no number of cores; use a whole number of 1 or "
                   "more, or unset it",
                   text);
}

static void look(void) {
    allowed = hwloc_bitmap_alloc();
    if (may_ask())
        ask();
    else if (processors() > 0)
        ncores = processors();
    double time = ls_cgroup_cores(group_root, group_self), most = most_cores();
    if (most > 0 && (time <= 0 || most < time)) time = most;
    limited = time > 0 && ceil(time) < ncores;
    if (limited) ncores = (int)ceil(time);
    if (nall < ncores) nall = ncores;
}

void ls_cores_set_groups(const char *root, const char *self) {
    group_root = root;
    group_self = self;
}

int ls_cores(void) {
    pthread_once(&once, look);
    return ncores;
}

int ls_cores_among(int workers) {
    int mine = ls_cores();
    bool disjoint = !limited && mine < workers && (long long)mine * workers <= nall;
    return disjoint ? mine * workers : mine;
}

bool ls_cores_are_described(void) {
    return ls_cores() && topology && !hwloc_topology_is_thissystem(topology);
}

int ls_cores_unbound(void) { return ls_cores() && limited ? ncores : nall; }

/* ---- which cores other workers have ---- */

static uint64_t hash_of_file(const char *path) {
    char text[4096];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    return ls_hash_bytes(text, n).lo;
}

/* Two containers may use the same name for their groups: their namespaces differ. */
static uint64_t limit_number(void) {
    struct stat namespace = {0};
    (void)stat("/proc/self/ns/cgroup", &namespace);
    return (hash_of_file(group_self) ^ (uint64_t) namespace.st_ino) | 1;
}

static hwloc_obj_t core_at(int k) {
    return hwloc_get_obj_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE, (unsigned)k);
}

void ls_cores_see(ls_cores_seen *s) {
    *s = (ls_cores_seen){.n = (uint64_t)ls_cores()};
    s->machine = hash_of_file("/proc/sys/kernel/random/boot_id");
    if (limited) s->limit = limit_number();
    for (int k = 0; !limited && k < ncores; k++) {
        hwloc_obj_t core = topology ? core_at(k) : NULL;
        unsigned bit = core ? (unsigned)hwloc_bitmap_first(core->cpuset) : (unsigned)k;
        bit %= 64 * LS_CORES_WORDS;
        s->cores[bit / 64] |= (uint64_t)1 << bit % 64;
    }
}

static bool meet(const ls_cores_seen *a, const ls_cores_seen *b) {
    if (a->machine != b->machine || a->limit != b->limit) return false;
    for (int i = 0; i < LS_CORES_WORDS; i++)
        if (a->cores[i] & b->cores[i]) return true;
    return a->limit != 0;
}

ls_cores_seat ls_cores_seat_of(const ls_cores_seen *w, int n, int worker) {
    const ls_cores_seen *me = &w[worker];
    ls_cores_seat s = {.cores = (int)me->n, .equal = true};
    uint64_t seen[LS_CORES_WORDS] = {0};
    for (int i = 0; i < n; i++) {
        bool counted = false; /* its processor time, with another worker's */
        if (w[i].machine != me->machine) continue;
        for (int k = 0; k < i && w[i].limit && !counted; k++) counted = meet(&w[i], &w[k]);
        s.near++;
        if (w[i].limit && !counted) s.all += (int)w[i].n;
        for (int k = 0; k < LS_CORES_WORDS; k++) seen[k] |= w[i].cores[k];
        if (!meet(me, &w[i])) continue;
        if (i < worker) s.index++;
        s.sharing++;
        s.equal &= memcmp(me->cores, w[i].cores, sizeof me->cores) == 0;
    }
    for (int k = 0; k < LS_CORES_WORDS; k++) s.all += __builtin_popcountll(seen[k]);
    return s;
}

/* ---- binding ---- */

/* The NUMA node of each core, within its package, by numbers that do not descend. */
static void find_nodes(int *node) {
    hwloc_obj_t was = NULL;
    for (int k = 0; k < ncores; k++) {
        hwloc_obj_t core = core_at(k), package = NULL;
        if (core) package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
        hwloc_obj_t before =
            was ? hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, was) : NULL;
        bool same = !was || !core ||
                    (package == before && hwloc_bitmap_isequal(core->nodeset, was->nodeset));
        node[k] = k == 0 ? 0 : node[k - 1] + !same;
        was = core;
    }
}

int ls_cores_nodes(void) {
    if (ls_cores() < 2 || limited || !topology || !core_at(ncores - 1)) return 1;
    int *node = LS_NEW_ARRAY(int, (size_t)ncores);
    find_nodes(node);
    int n = node[ncores - 1] + 1;
    free(node);
    return n;
}

bool ls_cores_divide(int n, int threads, int *worker_p) {
    if (n * threads > ls_cores() || limited || !topology || !core_at(ncores - 1)) return false;
    int *node = LS_NEW_ARRAY(int, (size_t)ncores);
    find_nodes(node);
    ls_core_parts(node, ncores, n, threads, worker_p);
    free(node);
    return true;
}

bool ls_cores_nodes_of(int n, int threads, int *node_p) {
    size_t ncores_here = (size_t)ls_cores();
    int *worker = LS_NEW_ARRAY(int, ncores_here), *node = LS_NEW_ARRAY(int, ncores_here);
    bool possible = ls_cores_divide(n, threads, worker);
    if (possible) find_nodes(node);
    for (int k = ncores - 1; possible && k >= 0; k--)
        if (worker[k] >= 0) node_p[worker[k]] = node[k];
    free(worker), free(node);
    return possible;
}

enum { WHOLE = -1 };

/* Binds to the worker's cores, or to the t-th of these. */
static void bind_to(const int *worker, int i, int t, int flags) {
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (int k = 0, place = 0; k < ncores; k++) {
        if (worker[k] != i) continue;
        if (t == WHOLE || t == place) hwloc_bitmap_or(set, set, core_at(k)->cpuset);
        place++;
    }
    hwloc_bitmap_and(set, set, allowed);
    if (!hwloc_bitmap_iszero(set)) hwloc_set_cpubind(topology, set, flags);
    hwloc_bitmap_free(set);
}

static void bind_thread(int i, int n, int threads, int t) {
    int *worker = LS_NEW_ARRAY(int, (size_t)ls_cores());
    if (ls_cores_divide(n, threads, worker)) bind_to(worker, i, t, HWLOC_CPUBIND_THREAD);
    free(worker);
}

void ls_cores_unbind(void) {
    (void)ls_cores();
    if (topology && !hwloc_bitmap_iszero(allowed))
        hwloc_set_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD);
}

void ls_cores_bind_worker(int i, int n, int threads) { bind_thread(i, n, threads, WHOLE); }

void ls_cores_bind_thread(int i, int n, int threads, int t) { bind_thread(i, n, threads, t); }

static bool place(void *memory, size_t nbytes, hwloc_const_cpuset_t cores, int policy, int flags) {
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    hwloc_cpuset_to_nodeset(topology, cores, nodes);
    int failed =
        hwloc_set_area_membind(topology, memory, nbytes, nodes, (hwloc_membind_policy_t)policy,
                               HWLOC_MEMBIND_BYNODESET | flags);
    hwloc_bitmap_free(nodes);
    return !failed;
}

bool ls_cores_interleave(void *memory, size_t nbytes) {
    return ls_cores() > 0 && topology &&
           place(memory, nbytes, allowed, HWLOC_MEMBIND_INTERLEAVE, 0);
}

bool ls_cores_keep_near(void *memory, size_t nbytes) {
    if (ls_cores() < 1 || !topology) return false;
    hwloc_cpuset_t own = hwloc_bitmap_alloc();
    bool known = hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_THREAD) == 0;
    known = known && place(memory, nbytes, own, HWLOC_MEMBIND_BIND, 0);
    hwloc_bitmap_free(own);
    return known;
}

/* The hardware threads of the node's t-th core, or of all its cores; free it. *n_p: its cores. */
static hwloc_cpuset_t cores_of_node(int wanted, int t, int *n_p) {
    int *node = LS_NEW_ARRAY(int, (size_t)ls_cores());
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    *n_p = 0;
    if (ls_cores_nodes() > 1) find_nodes(node);
    for (int k = 0; topology && k < ncores; k++) {
        hwloc_obj_t core = core_at(k);
        if (!core || node[k] != wanted) continue;
        if (t == WHOLE || t == *n_p) hwloc_bitmap_or(set, set, core->cpuset);
        ++*n_p;
    }
    hwloc_bitmap_and(set, set, allowed);
    free(node);
    return set;
}

int ls_cores_of_node(int node) {
    int n = 0;
    hwloc_bitmap_free(cores_of_node(node, WHOLE, &n));
    return n;
}

void ls_cores_bind_node(int node, int t) {
    int n = 0;
    hwloc_cpuset_t set = cores_of_node(node, t, &n);
    if (!hwloc_bitmap_iszero(set)) hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(set);
}

bool ls_cores_place_on(void *memory, size_t nbytes, int node) {
    int n = 0;
    hwloc_cpuset_t set = cores_of_node(node, WHOLE, &n);
    bool placed = n > 0 && place(memory, nbytes, set, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_STRICT);
    hwloc_bitmap_free(set);
    return placed;
}

int ls_cores_bind(int i, int n) {
    int *worker = LS_NEW_ARRAY(int, (size_t)ls_cores()), own = ncores / n + (i < ncores % n);
    if (n <= ncores && ls_cores_divide(n, ncores / n, worker)) {
        bind_to(worker, i, WHOLE, 0);
        own = 0;
        for (int k = 0; k < ncores; k++) own += worker[k] == i;
    }
    free(worker);
    return own;
}
