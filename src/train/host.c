/* host.c - see host.h. How it supervises workers is in supervise.c. */
#include "train/host.h"

#include <stdio.h>

#include "base/cores.h"
#include "base/log.h"
#include "table/row_tables.h"
#include "train/device_room.h"
#include "train/fit.h"
#include "train/host_memory.h"

/* The other hosts' workers are not known yet: the first view makes another layout. */
static ls_status make_own(ls_host *h, ls_error *e) {
    const ls_config *c = &h->run->config;
    int n = ls_layout_fit(c, h->run->nworkers);
    return ls_layout_make_nearest(c, n, (int)c->parallel.shard_group, NULL, &h->layout, e);
}

/* *of_device_p: it is a device's memory that has too little. */
static ls_status open_host(ls_host *h, const ls_run *r, bool *of_device_p, ls_error *e) {
    *h = (ls_host){.run = r, .runtime = &ls_runtime_plain, .notes = &h->own_notes};
    ls_run_notes_begin(h->notes);
    int each = r->started ? 1 : r->nasync ? r->nasync : r->nworkers; /* a launcher's: not known */
    h->threads = ls_config_threads(&r->config, each, ls_cores());
    ls_config distributed = r->config;
    ls_layout_config_distributed(&distributed); /* a launcher's workers run on any hosts */
    if (!r->started) LS_TRY(ls_host_memory_for_model(&r->config, e));
    if (r->listen || r->join)
        LS_TRY(make_own(h, e));
    else
        LS_TRY(ls_layout_make(r->started ? &distributed : &r->config, r->nworkers, NULL, &h->layout,
                              e));
    bool copy = !r->started && r->dir && ls_run_can_survive(&r->config);
    int workers = r->started ? 1 : r->nasync ? r->nasync + 1 : r->nworkers;
    int hosts = r->hosts ? r->hosts : r->join ? 2 : 1; /* one that joins does not know more */
    LS_TRY(ls_host_memory_for_plan(&r->config, &h->layout.plan, workers, hosts, copy, e));
    ls_status s = ls_device_room_fits(&r->config, &h->layout.plan, &r->devices, e);
    *of_device_p = s != LS_OK;
    LS_TRY(s);
    const ls_store_config one = {.most = 1, .threads = h->threads};
    return r->nasync ? ls_store_make(&h->layout.plan.share, &one, &h->store, e) : LS_OK;
}

/* Several hosts must have equal plans, so none of them lowers its own. */
ls_status ls_host_open(ls_host *h, ls_run *r, ls_error *e) {
    bool alone = !ls_run_has_others(r);
    int64_t asked = r->config.train.micro_batch, *micro = &r->config.train.micro_batch;
    bool of_device = false;
    ls_status s = open_host(h, r, &of_device, e);
    bool is_devices = of_device;
    while (s == LS_ENOMEM && alone && ls_fit_lower_micro(&r->config)) {
        ls_host_free(h);
        s = open_host(h, r, &of_device, e);
        is_devices |= of_device;
    }
    if (s == LS_OK && *micro < asked)
        ls_log("to fit into the memory of %s%s: train.micro_batch=%lld, in place of %lld",
               is_devices ? "device " : "this machine", is_devices ? r->devices.device : "",
               (long long)*micro, (long long)asked);
    return s;
}

void ls_host_close(ls_host *h) {
    ls_snapshot_run own = ls_host_snapshot_run(h);
    if (h->runtime->survives) ls_snapshot_close(&h->snapshot, &own);
    ls_worker_states_end(&h->states, h->run->dir);
    ls_control_close(h->control);
    ls_store_free(h->store);
    ls_ranges_free(&h->ranges);
    h->control = NULL;
    h->store = NULL;
    h->notes = &h->own_notes;
    h->runtime = &ls_runtime_plain;
}

void ls_host_free(ls_host *h) {
    if (!h->run) return;
    ls_host_close(h);
    ls_layout_free(&h->layout);
    ls_buf_free(&h->must_match);
    *h = (ls_host){0};
}

/* Describes what a killed worker was doing, for the message about it. */
static void where(const ls_board_slot *slot, const void *arg, char *text, size_t nbytes) {
    const ls_host *h = arg;
    const char *after = h->runtime->when_lost;
    int action = atomic_load(&slot->action);
    char doing[128];
    ls_worker_states_doing(&h->layout, action, doing, sizeof doing);
    if (action < 0 || action >= h->layout.plan.nactions)
        snprintf(text, nbytes, " %s%s", doing, after);
    else
        snprintf(text, nbytes, " in step %lld, action %d (%s)%s",
                 (long long)atomic_load(&slot->step) + 1, action, doing, after);
}

static ls_status check_transport(const ls_run *r, ls_error *e) {
    if (r->config.parallel.transport == LS_TRANSPORT_MPI && !r->started)
        return ls_fail(e, LS_EINVAL,
                       "parallel.transport mpi: start it with mpirun, e.g. mpirun -n %d lockstep "
                       "train ..., or without MPI by --set parallel.transport=auto",
                       r->nworkers);
    if (r->config.parallel.transport == LS_TRANSPORT_THREAD && r->started)
        return ls_fail(e, LS_EINVAL,
                       "parallel.transport thread: the workers are processes that a launcher has "
                       "started; leave it out");
    return LS_OK;
}

ls_status ls_host_launch(ls_host *h, ls_worker_main *worker_main, void *arg, ls_error *e) {
    static const char *const names[] = {[LS_TRANSPORT_AUTO] = NULL,
                                        [LS_TRANSPORT_SHM] = "shm",
                                        [LS_TRANSPORT_THREAD] = "thread",
                                        [LS_TRANSPORT_TCP] = "tcp",
                                        [LS_TRANSPORT_MPI] = "mpi"};
    const ls_run *r = h->run;
    bool alone = ls_run_is_sequential(r) || r->nasync;
    ls_workers w = {.n = alone ? 1 : r->nworkers,
                    .transport = alone ? "thread" : names[r->config.parallel.transport],
                    .arena_nbytes = ls_share_group_nbytes(&h->layout.plan.share),
                    .timeout_s = r->config.parallel.timeout_s,
                    .where = where,
                    .survival = h->runtime->survives ? &h->survival : NULL};
    LS_TRY(check_transport(r, e));
    h->binds = !alone;
    return ls_workers_run(&w, worker_main, arg, e);
}

void *ls_host_tables(const ls_host *h) {
    return h->store ? (char *)ls_store_carried(h->store) + LS_RUN_NOTES_NBYTES : NULL;
}

bool ls_host_has_state(const ls_host *h) {
    return h->runtime->survives && ls_store_steps(h->store) >= 0;
}

ls_folder_run ls_host_folder_run(const ls_host *h) {
    return (ls_folder_run){.dir = h->run->dir,
                           .config = &h->run->config,
                           .config_text = &h->run->config_text,
                           .model = &h->layout.model,
                           .plan = &h->layout.plan,
                           .store = h->store,
                           .state = &h->notes->folder,
                           .made = h->made,
                           .resumes = h->run->resumes,
                           .overwrites = h->run->overwrites};
}

ls_snapshot_run ls_host_snapshot_run(const ls_host *h) {
    bool has_tables = h->store && h->layout.model.table_floats > 0;
    ls_row_tables tables = {0};
    if (has_tables) tables = ls_row_tables_in(ls_host_tables(h), &h->layout.plan);
    return (ls_snapshot_run){.tables = tables.values,
                             .tables_here = tables.here,
                             .tables_steps = has_tables ? &tables.marks->steps : NULL,
                             .dir = h->run->dir,
                             .config = &h->run->config,
                             .config_text = &h->run->config_text,
                             .plan = &h->layout.plan,
                             .store = h->store,
                             .state = &h->notes->snapshot,
                             .best = &h->notes->best,
                             .on_disk = &h->notes->best_on_disk,
                             .frozen = &h->notes->frozen,
                             .first = h->survival.view.first,
                             .n = h->survival.view.n};
}
