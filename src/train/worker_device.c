/* worker_device.c - see worker_device.h.
 *
 * A launcher may show each process other devices under the same numbers, so workers compare what
 * identifies a device, not its number.
 */
#include "train/worker_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/mem.h"
#include "coll/virtual.h"
#include "device/auto.h"
#include "net/launch/environment.h"

void ls_worker_device_resolve(ls_config *c) {
    ls_device_auto found;
    ls_environment env;
    if (!ls_config_device_is_auto(c)) return;
    ls_device_auto_find(&found);
    c->parallel.device = ls_intern(found.name);
    if (ls_environment_read(&env, NULL) == LS_OK && env.rank > 0) return;
    if (*found.name)
        ls_log("device auto: %s runs the layers (%s)", found.name, found.text);
    else
        ls_log("device auto: the cores run the layers: %s", found.text);
}

int ls_worker_device_count(const ls_config *c) {
    static char asked[64];
    static int n;
    const char *name = c->parallel.device;
    ls_device_auto found = {0};
    if (!*name) return 0;
    if (strcmp(asked, name) == 0) return n;
    snprintf(asked, sizeof asked, "%s", name);
    if (ls_config_device_is_auto(c)) ls_device_auto_find(&found);
    if (*found.name) name = found.name;
    return n = ls_config_device_is_auto(c) && !*found.name ? 0 : ls_device_auto_count(name);
}

/* ---- all workers' claims ---- */

static bool is_taken(const ls_device_claim *all, int n, uint64_t machine, uint64_t id) {
    for (int i = 0; i < n; i++)
        if (all[i].machine == machine && all[i].taken == id) return true;
    return false;
}

static ls_status too_few(const ls_device_claim *all, int n, int worker, const char *name,
                         ls_error *e) {
    int near = 0;
    for (int i = 0; i < n; i++) near += all[i].machine == all[worker].machine;
    return ls_fail(e, LS_EINVAL,
                   "device %s: %d workers are on the host of worker %d, which sees %lld: start no "
                   "more workers there than it has devices, or let them share one by its number, "
                   "as in %s:0",
                   name, near, worker, (long long)all[worker].n, name);
}

ls_status ls_device_claims_settle(ls_device_claim *all, int n, const char *name, ls_error *e) {
    for (int w = 0; w < n; w++) {
        ls_device_claim *c = &all[w];
        if (c->taken || c->n == 0 || c->ids[0] == 0) continue;
        for (int64_t k = 0; k < c->n && !c->taken; k++)
            if (!is_taken(all, n, c->machine, c->ids[k])) c->taken = c->ids[k];
        if (!c->taken) return too_few(all, n, w, name, e);
    }
    return LS_OK;
}

/* ---- a worker's own ---- */

/* Of a name without devices, opening it says what is wrong. */
static ls_status make_claim(const char *name, const ls_worker_device *d, ls_device_seen *list,
                            ls_device_claim *c, ls_error *e) {
    ls_cores_seen cores;
    int n = 0;
    LS_TRY(ls_device_list(name, list, &n, e));
    ls_cores_see(&cores);
    *c = (ls_device_claim){.machine = cores.machine, .taken = d->id, .n = n};
    for (int i = 0; i < n; i++) c->ids[i] = list[i].id;
    if (n && ls_device_is_numbered(name)) c->taken = list[0].id;
    return LS_OK;
}

static void take(const char *name, const ls_device_seen *list, const ls_device_claim *own,
                 ls_worker_device *d) {
    d->id = own->taken;
    snprintf(d->name, sizeof d->name, "%s", name);
    for (int64_t i = 0; i < own->n && own->taken && !ls_device_is_numbered(name); i++)
        if (list[i].id == own->taken)
            snprintf(d->name, sizeof d->name, "%s:%d", name, list[i].number);
}

ls_status ls_worker_device_choose(ls_group *g, const char *name, ls_worker_device *d, ls_error *e) {
    int n = ls_group_size(g);
    ls_device_seen list[LS_DEVICE_LIST];
    ls_device_claim own = {0};
    LS_TRY(ls_agree(g, make_claim(name, d, list, &own, e), e));
    ls_device_claim *all = LS_NEW_ARRAY(ls_device_claim, (size_t)n);
    ls_status s = ls_all_gather(g, &own, all, sizeof own, LS_U8, e);
    if (s == LS_OK) s = ls_device_claims_settle(all, n, name, e);
    if (s == LS_OK) take(name, list, &all[ls_group_rank(g)], d);
    d->sharing = 0;
    for (int i = 0; s == LS_OK && i < n; i++)
        d->sharing += d->id && all[i].machine == own.machine && all[i].taken == d->id;
    free(all);
    return s;
}
