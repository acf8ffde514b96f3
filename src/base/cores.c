/* cores.c - see cores.h. The only file that knows hwloc. */
#include "base/cores.h"

#include <hwloc.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/cgroup.h"

static hwloc_topology_t topology;
static hwloc_cpuset_t allowed;
static int ncores = 1, nall = 1; /* that this process may use; of the machine or its container */
static bool limited;             /* a control group limits processor time, not the set of cores */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look(void) {
    allowed = hwloc_bitmap_alloc();
    if (hwloc_topology_init(&topology) != 0) return;
    if (hwloc_topology_load(topology) != 0 || hwloc_get_cpubind(topology, allowed, 0) != 0) return;
    int n = hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE);
    int threads = hwloc_bitmap_weight(allowed);
    if (n < 1) n = threads; /* half a core each, or hwloc reports no cores */
    if (n > 0) ncores = n;
    double time = ls_cgroup_cores(LS_CGROUP_ROOT, LS_CGROUP_SELF);
    limited = time > 0 && ceil(time) < ncores;
    if (limited) ncores = (int)ceil(time);
    nall = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    if (nall < ncores) nall = ncores;
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

void ls_cores_bind(int i, int n) {
    if (ls_cores() < n || limited) return;
    hwloc_cpuset_t mine = hwloc_bitmap_alloc();
    for (int k = i * ncores / n; k < (i + 1) * ncores / n; k++) {
        hwloc_obj_t core =
            hwloc_get_obj_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE, (unsigned)k);
        if (core) hwloc_bitmap_or(mine, mine, core->cpuset);
    }
    hwloc_bitmap_and(mine, mine, allowed);
    if (!hwloc_bitmap_iszero(mine)) hwloc_set_cpubind(topology, mine, 0);
    hwloc_bitmap_free(mine);
}
