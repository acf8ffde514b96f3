/* supervise.c - see host.h: the functions that a host's supervisor calls (cluster/supervisor.h).
 *
 * They run in the process that starts the workers, between two checks of them, or in a process that
 * it forks.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "report/metrics.h"
#include "share/config.h"
#include "state/store_repair.h"
#include "storage/best.h"
#include "storage/identity.h"
#include "table/row_tables.h"
#include "train/host.h"
#include "train/replica_sync.h"
#include "train/rescale.h"

static bool get_state(const void *arg, ls_host_state *k) {
    const ls_host *h = arg;
    const ls_view *v = &h->survival.view;
    *k = (ls_host_state){.steps = ls_store_steps(h->store), .scaler = ls_store_scaler(h->store)};
    ls_store_find_decided(h->store, &h->layout.plan.share, v->first, v->n, &k->decided);
    k->whole = ls_store_get_finding(h->store) == LS_STORE_WHOLE;
    return ls_store_get_finding(h->store) != LS_STORE_LOST;
}

/* Another host may have decided a step while a writer of this host still copies the state before
 * it. The writer ends by itself, or the process that started it marks the copy as done. */
static ls_status repair(const void *arg, const ls_store_decided *d, ls_error *e) {
    const ls_host *h = arg;
    const ls_view *v = &h->survival.view;
    while (!ls_snapshot_is_copied(&h->notes->snapshot)) usleep(1000);
    return ls_store_repair(h->store, &h->layout.plan.share, v->first, v->n, d, e);
}

/* ---- the plan of a view ---- */

/* If the state is sharded over hosts, groups are small enough for survival.copies copies of it: the
 * workers that have the same shard are on different hosts. */
static int most_of_group(const ls_config *c, const ls_view *v) {
    int wanted = (int)c->parallel.shard_group, copies = (int)c->survival.copies;
    if (wanted > 0 || v->nhosts < 2 || copies < 2) return wanted;
    return v->size / (copies < v->nhosts ? copies : v->nhosts);
}

/* Logs the settings of the config that are not possible in this view. */
static void log_plan(const ls_host *h, const ls_view *v) {
    const ls_config *c = &h->run->config;
    const ls_plan *p = &h->layout.plan;
    int wanted = (int)c->parallel.shard_group, shards = p->share.nshards;
    if (c->parallel.zero > 0 && wanted > 0 && shards != wanted)
        ls_log("view %lld: parallel.shard_group %d is not possible with %d worker%s; using %d",
               (long long)v->id.number, wanted, v->size, ls_plural(v->size), shards);
    int64_t degree = c->parallel.mesh_expert * c->parallel.mesh_context;
    if (p->share.context != degree)
        ls_log("view %lld: parallel.mesh %s %lld is not possible with %d worker%s; using %d",
               (long long)v->id.number, ls_share_context_title(p->share.model), (long long)degree,
               v->size, ls_plural(v->size), p->share.context);
    if (p->share.pipe != c->parallel.mesh_pipe || p->share.tensor != c->parallel.mesh_tensor)
        ls_log("view %lld: parallel.mesh pipe %lld, tensor %lld is not possible with %d worker%s; "
               "using pipe %d, tensor %d",
               (long long)v->id.number, (long long)c->parallel.mesh_pipe,
               (long long)c->parallel.mesh_tensor, v->size, ls_plural(v->size), p->share.pipe,
               p->share.tensor);
    if (c->parallel.accumulate == LS_ACCUMULATE_EARLY && !p->share.by_rounds)
        ls_log("view %lld: parallel.accumulate early is not possible with %d worker%s; using late",
               (long long)v->id.number, v->size, ls_plural(v->size));
}

/* Are the copies of each shard on different hosts, as far as this one knows? */
static bool has_copies(const ls_host *h, const ls_view *v) {
    int copies = (int)h->run->config.survival.copies, shards = h->layout.plan.share.nshards;
    int twice = (v->n - 1) / shards; /* copies beyond the first that this host has of some shard */
    if (copies > v->nhosts) copies = v->nhosts;
    if (h->layout.plan.share.divides) return copies < 2 || v->nhosts < 2;
    return !h->layout.plan.share.shards_moments || h->layout.plan.share.nreplicas - twice >= copies;
}

static void log_copies(const ls_host *h, const ls_view *v) {
    if (has_copies(h, v)) return;
    ls_log(
        "view %lld: %d worker%s can't keep survival.copies %lld of the state on different hosts: "
        "if one is lost, the run may have to continue from its newest checkpoint",
        (long long)v->id.number, v->size, ls_plural(v->size),
        (long long)h->run->config.survival.copies);
}

/* An earlier view has begun the run directory, maybe on another host; if there is state, the
 * directory is complete. */
static void note_folder(const ls_host *h, const ls_view *v) {
    if (v->id.number == 1 || !h->run->dir) return;
    ls_folder_state *folder = &h->notes->folder;
    ls_folder_set_begun(folder);
    if (v->steps >= 0 || ls_folder_has_data(h->run->dir, &h->run->config, &h->layout.model))
        ls_folder_set_made(folder);
}

static int fit(const void *arg, int n) {
    const ls_host *h = arg;
    return n == h->layout.plan.share.nworkers ? n : ls_layout_fit(&h->run->config, n);
}

/* The proposed ranges hold only for the number of workers for which they were found. */
static ls_status resize(void *arg, const ls_view *v, bool unchanged, ls_error *e) {
    ls_host *h = arg;
    int n = v->size, hosts = h->survival.view.nhosts;
    bool same_hosts = v->nhosts == hosts || (v->nhosts == 1 && hosts == 0);
    ls_snapshot_run own = ls_host_snapshot_run(h);
    ls_run_notes *notes = h->notes;
    bool again = !unchanged && v->steps < 0 && ls_store_steps(h->store) >= 0;
    if (ls_snapshot_end_view(&h->snapshot, &own, v->steps < 0)) atomic_store(&notes->saved, -1);
    if (again) { /* steps are repeated, from an older checkpoint */
        atomic_store(&notes->evaluated, -1);
        atomic_store(&notes->saved, -1);
    }
    if (!unchanged) ls_store_restart(h->store, v->steps, &v->scaler);
    if (v->last.steps > 0 && v->last.steps == v->steps)
        ls_store_decide(h->store, v->first, &v->last);
    note_folder(h, v);
    ls_store_set_finding(h->store, LS_STORE_UNKNOWN);
    bool same = n == h->layout.plan.share.nworkers;
    if (same && same_hosts && !h->survival.reshape) {
        if (v->id.number == 1) log_plan(h, v);
        return LS_OK;
    }
    ls_layout_free(&h->layout);
    ls_ranges_begin(&h->ranges, same);
    ls_config c = h->run->config;
    if (v->nhosts > 1) ls_layout_config_distributed(&c);
    LS_TRY(ls_layout_make_nearest(&c, n, most_of_group(&h->run->config, v), h->ranges.now,
                                  &h->layout, e));
    log_plan(h, v);
    log_copies(h, v);
    return LS_OK;
}

static ls_status write_line(const ls_host *h, ls_error *e) {
    ls_metrics *m = NULL;
    ls_logged logged;
    ls_store_note last;
    LS_TRY(ls_metrics_cut(h->run->dir, INT64_MAX, &logged, e));
    LS_TRY(ls_metrics_open(h->run->dir, &h->run->config, &h->layout.model, logged, &m, e));
    ls_metrics_set_view(m, h->survival.view.id.number, h->layout.plan.share.nworkers);
    bool known = ls_store_last_note(h->store, &last) && ls_sync_whole(&h->layout.plan, &last);
    ls_status s = known ? ls_metrics_missing(m, &last, e) : LS_OK;
    ls_status closed = ls_metrics_close(m, s == LS_OK ? e : NULL);
    return s == LS_OK ? closed : s;
}

/* Writes the line of the last step, which a lost host may not have written. A host that is only out
 * of reach holds the lock of the directory, and writes the line itself. */
static void end_metrics(const ls_host *h) {
    ls_folder *f = NULL;
    ls_error e = {0};
    ls_folder_run own = ls_host_folder_run(h);
    if (ls_folder_hold(&own, &f, &e) != LS_OK) return;
    if (write_line(h, &e) != LS_OK) ls_log("%s", e.msg);
    ls_folder_close(f, false);
}

/* No host leads any more: the state of this host becomes a checkpoint. */
static ls_status save(void *arg, int64_t *steps_p, ls_error *e) {
    ls_host *h = arg;
    ls_host_state k;
    ls_snapshot_run own = ls_host_snapshot_run(h);
    ls_snapshot_close(&h->snapshot, &own);
    get_state(arg, &k);
    LS_TRY(repair(arg, &k.decided, e));
    end_metrics(h);
    if (ls_store_steps(h->store) % h->layout.plan.share.changes)
        return ls_fail(e, LS_EPEER,
                       "step %lld is complete, but not its synchronization of replicas; continue "
                       "from the newest checkpoint",
                       (long long)ls_store_trained(h->store) + 1);
    return ls_snapshot_now(&h->snapshot, &own, ls_store_trained(h->store), steps_p, e);
}

static void check_ranges(ls_host *h) {
    if (h->survival.view.nhosts != 1) return;
    ls_ranges_view v = {.plan = &h->layout.plan,
                        .board = h->survival.board,
                        .number = h->survival.view.id.number,
                        .steps = ls_store_trained(h->store)};
    if (ls_ranges_look(&h->ranges, &h->run->config, &v)) h->survival.reshape = true;
}

static void attend(void *arg) {
    ls_host *h = arg;
    if (h->survival.leads) ls_scale_answer(h);
    check_ranges(h);
    const ls_worker_states_view v = {.dir = h->run->dir,
                                     .config = &h->run->config,
                                     .layout = &h->layout,
                                     .board = h->survival.board,
                                     .number = h->survival.view.id.number,
                                     .first = h->survival.view.first,
                                     .n = h->survival.view.n};
    ls_worker_states_look(&h->states, &v);
    ls_snapshot_run own = ls_host_snapshot_run(h);
    ls_snapshot_prepare(&h->snapshot, &own);
    ls_snapshot_attend(&h->snapshot, &own);
}

/* What other hosts compare with theirs (net/tcp/admission.h). A host that joins has read all of the
 * data that its workers will read. */
static ls_status identity(void *arg, bool joins, ls_buf *out, ls_error *e) {
    const ls_host *h = arg;
    const ls_config *c = &h->run->config;
    return joins ? ls_identity_check(h->run->dir, c, &h->layout.model, out, e)
                 : ls_identity_write(h->run->dir, c, out, e);
}

/* ---- the settings of the supervisor ---- */

static int most_workers(const ls_host *h) {
    int64_t most = h->run->config.survival.max_workers, V = ls_config_most_workers(&h->run->config);
    if (most == 0) most = V < LS_SCALE_MOST ? V : LS_SCALE_MOST;
    if (most > V) most = V;
    return most > h->run->nworkers ? (int)most : h->run->nworkers;
}

static const char *or_null(const char *text) { return *text ? text : NULL; }

/* With etcd, the hosts elect their leader. */
static ls_status set_membership(ls_host *h, ls_error *e) {
    const ls_config *c = &h->run->config;
    const char *name = h->run->dir ? ls_file_name(h->run->dir) : NULL;
    if (!*c->survival.membership) return LS_OK;
    if (!h->run->listen || h->run->listen[0] == ':' || h->run->join)
        return ls_fail(e, LS_EINVAL,
                       "survival.membership: every host needs --listen HOST:PORT, with an address "
                       "that the others can reach, and no host --join");
    h->survival.etcd =
        (ls_membership_etcd_options){.endpoints = c->survival.membership,
                                     .ca = or_null(c->survival.etcd_ca),
                                     .cert = or_null(c->survival.etcd_cert),
                                     .key = or_null(c->survival.etcd_key),
                                     .user = or_null(c->survival.etcd_user),
                                     .password = getenv("LOCKSTEP_ETCD_PASSWORD"),
                                     .run = *c->survival.etcd_run ? c->survival.etcd_run : name,
                                     .address = h->run->listen,
                                     .lease_s = 3 * c->survival.heartbeat_s};
    return LS_OK;
}

static ls_status check_hosts(const ls_host *h, ls_error *e) {
    if (h->run->listen && h->run->join)
        return ls_fail(e, LS_EINVAL,
                       "--listen and --join: the first host has --listen, the others have --join");
    if (h->run->join && strchr(h->run->join, ','))
        return ls_fail(
            e, LS_EINVAL,
            "--join: a list of hosts is for sync.mode async and ssp; here, hosts that may "
            "replace the first one have survival.membership");
    if (h->run->hosts && !h->run->listen)
        return ls_fail(e, LS_EINVAL,
                       "--hosts %d is for a host with --listen, which waits for the others",
                       h->run->hosts);
    return LS_OK;
}

/* Do the workers of one host share memory? */
static bool shares_memory(const ls_config *c) {
    const char *name = getenv("LOCKSTEP_TRANSPORT");
    if (c->parallel.transport == LS_TRANSPORT_AUTO) return !name || strcmp(name, "tcp") != 0;
    return c->parallel.transport == LS_TRANSPORT_SHM;
}

/* Allocates room for the state of the most workers that there may be. If that fails: of those that
 * begin, but several hosts must have room for the same number. */
static ls_status make_store(ls_host *h, int *most_p, ls_error *e) {
    const ls_config *config = &h->run->config;
    int n = h->run->nworkers;
    ls_store_config c = {.most = most_workers(h),
                         .threads = h->threads,
                         .carried_nbytes =
                             LS_RUN_NOTES_NBYTES + ls_row_tables_nbytes(&h->layout.plan),
                         .pipes = ls_config_ranks(config) > 1};
    *most_p = c.most;
    ls_status s = ls_store_make(&h->layout.plan.share, &c, &h->store, e);
    if (s == LS_OK || *most_p == n || ls_run_has_others(h->run)) return s;
    *most_p = c.most = n;
    return ls_store_make(&h->layout.plan.share, &c, &h->store, e);
}

/* Is there nothing left to train? Other hosts may have ended long ago and never come. */
static bool is_complete(const ls_run *r) {
    char *path = NULL;
    int64_t step = 0;
    bool found = r->dir && ls_checkpoint_newest(r->dir, &path, &step, NULL) == LS_OK && path;
    free(path);
    return found && ls_best_is_over(r->dir, &r->config, step);
}

static bool complete(const void *arg) {
    const ls_run *r = ((const ls_host *)arg)->run;
    bool is = !r->overwrites && is_complete(r);
    if (is) ls_log("%s: is complete, and nobody leads it", r->dir);
    return is;
}

ls_status ls_host_supervise(ls_host *h, ls_error *e) {
    const ls_run *r = h->run;
    const ls_config *c = &r->config;
    int most = 0;
    if (!*c->survival.membership) LS_TRY(check_hosts(h, e));
    if (r->started || !ls_run_can_survive(c)) {
        if (!r->listen && !r->join && !*c->survival.membership) return LS_OK;
        return ls_fail(
            e, LS_EINVAL,
            "--listen, --join and survival.membership are for workers that are "
            "processes of hosts, with "
            "their state in memory: not with a launcher, parallel.transport thread or "
            "mpi, parallel.executor sequential, or parallel.optimizer_state file or device");
    }
    LS_TRY(make_store(h, &most, e));
    int64_t least = c->survival.min_workers;
    ls_config must_match = *c;
    must_match.survival.max_workers = most; /* boards and stores have room for this many */
    ls_run_must_match(&must_match, &h->must_match);
    h->notes = ls_store_carried(h->store);
    ls_run_notes_begin(h->notes);
    h->survival = (ls_supervisor){.heartbeat_s = c->survival.heartbeat_s,
                                  .stop_s = c->survival.stop_s,
                                  .least = least < most ? (int)least : most,
                                  .most = most,
                                  .listen = r->listen,
                                  .join = r->join,
                                  .admission = {h->must_match.data, identity, h},
                                  .hosts = r->resumes && is_complete(r) ? 1 : r->hosts,
                                  .steps = c->train.steps,
                                  .changes = h->layout.plan.share.changes,
                                  .rejoin_s = c->survival.rejoin_s,
                                  .stays = shares_memory(c),
                                  .begun = !r->resumes && r->dir && ls_file_exists(r->dir),
                                  .state = get_state,
                                  .repair = repair,
                                  .fit = fit,
                                  .resize = resize,
                                  .save = save,
                                  .complete = complete,
                                  .attend = attend,
                                  .arg = h};
    h->runtime = &ls_runtime_supervised;
    return set_membership(h, e);
}
