/* host.c - what a run keeps beside its workers, and does for them: of run.h.
 *
 * All here runs in the process that starts the workers, or in one that it forks, between its looks
 * at them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "cluster/control.h"
#include "config/relations.h"
#include "exec/store_repair.h"
#include "report/metrics.h"
#include "storage/folder.h"
#include "storage/snapshot.h"
#include "train/run.h"

static bool kept(const void *arg, ls_kept *k) {
    const ls_run *r = arg;
    *k = (ls_kept){.steps = ls_store_steps(r->store), .scaler = ls_store_scaler(r->store)};
    ls_store_newest(r->store, &k->note);
    k->whole = ls_store_get_finding(r->store) == LS_STORE_WHOLE;
    return ls_store_get_finding(r->store) != LS_STORE_LOST;
}

/* A step that another host has decided may be finished here while a writer still copies what was
 * before it: that process ends by itself, or who started it says that it is done. */
static ls_status mend(const void *arg, const ls_store_note *note, ls_error *e) {
    const ls_run *r = arg;
    const ls_view *v = &r->survival.view;
    while (!ls_snapshot_is_copied(&ls_run_notes_of(r)->snapshot)) usleep(1000);
    return ls_store_mend(r->store, &r->layout.plan, v->first, v->n, note, e);
}

/* ---- the plan of a view ---- */

/* Where state is sharded over hosts, so many copies of it are kept as are wanted: the workers that
 * have the same shard are on different hosts. */
static int most_of_group(const ls_config *c, const ls_view *v) {
    int wanted = (int)c->parallel.shard_group, copies = (int)c->survival.copies;
    if (wanted > 0 || v->nhosts < 2 || copies < 2) return wanted;
    return v->size / (copies < v->nhosts ? copies : v->nhosts);
}

/* What of the config is otherwise here. */
static void tell_plan(const ls_run *r, const ls_view *v) {
    const ls_config *c = &r->config;
    const ls_plan *p = &r->layout.plan;
    int wanted = (int)c->parallel.shard_group, shards = ls_plan_shards(p);
    if (c->parallel.zero > 0 && wanted > 0 && shards != wanted)
        ls_log("view %lld: parallel.shard_group %d is not possible with %d worker%s; using %d",
               (long long)v->id.number, wanted, v->size, ls_plural(v->size), shards);
    if (c->parallel.accumulate == LS_ACCUMULATE_EARLY && !ls_plan_reduces_rounds(p))
        ls_log("view %lld: parallel.accumulate early is not possible with %d worker%s; using late",
               (long long)v->id.number, v->size, ls_plural(v->size));
}

/* Does each shard have its copies on different hosts, as far as this one can tell? */
static bool has_copies(const ls_run *r, const ls_view *v) {
    int copies = (int)r->config.survival.copies, shards = ls_plan_shards(&r->layout.plan);
    int twice = (v->n - 1) / shards; /* of some shard, so many more than one are here */
    if (copies > v->nhosts) copies = v->nhosts;
    return !ls_plan_shards_moments(&r->layout.plan) ||
           ls_plan_replicas(&r->layout.plan) - twice >= copies;
}

static void tell_copies(const ls_run *r, const ls_view *v) {
    if (has_copies(r, v)) return;
    ls_log(
        "view %lld: %d worker%s can't keep survival.copies %lld of the state on different hosts: "
        "if one is lost, it may be that the run goes on from its newest checkpoint",
        (long long)v->id.number, v->size, ls_plural(v->size), (long long)r->config.survival.copies);
}

/* A view before this one has begun the run's folder, be it on another host; and made it, if there
 * is state. */
static void note_folder(const ls_run *r, const ls_view *v) {
    if (v->id.number == 1 || !r->dir) return;
    ls_folder_state *folder = &ls_run_notes_of(r)->folder;
    ls_folder_set_begun(folder);
    if (v->steps >= 0 || ls_corpus_is_saved(r->dir)) ls_folder_set_made(folder);
}

/* Shares are those of so many workers as there were when they were found. */
static ls_status resize(void *arg, const ls_view *v, bool alike, ls_error *e) {
    ls_run *r = arg;
    int n = v->size, hosts = r->survival.view.nhosts;
    bool same_hosts = v->nhosts == hosts || (v->nhosts == 1 && hosts == 0);
    ls_snapshot_run own = ls_run_snapshot(r);
    ls_run_notes *notes = ls_run_notes_of(r);
    bool again = !alike && v->steps < 0 && ls_store_steps(r->store) >= 0;
    if (ls_snapshot_end_view(&r->snapshot, &own, v->steps < 0)) atomic_store(&notes->saved, 0);
    if (again) { /* what was done will be done again, from an older checkpoint */
        atomic_store(&notes->evaluated, 0);
        atomic_store(&notes->saved, 0);
    }
    if (!alike) ls_store_restart(r->store, v->steps, &v->scaler);
    if (v->last.steps > 0 && v->last.steps == v->steps)
        ls_store_decide(r->store, v->first, &v->last);
    note_folder(r, v);
    ls_store_set_finding(r->store, LS_STORE_UNKNOWN);
    if (n == r->nworkers && same_hosts && !r->survival.reshape) {
        if (v->id.number == 1) tell_plan(r, v);
        return LS_OK;
    }
    ls_layout_free(&r->layout);
    free(r->shares);
    r->shares = n == r->nworkers ? r->better_shares : NULL;
    if (!r->shares) free(r->better_shares);
    r->better_shares = NULL;
    r->nworkers = n;
    LS_TRY(ls_layout_make_nearest(&r->config, n, most_of_group(&r->config, v), r->shares,
                                  &r->layout, e));
    tell_plan(r, v);
    tell_copies(r, v);
    return LS_OK;
}

static ls_status write_line(const ls_run *r, ls_error *e) {
    ls_metrics *m = NULL;
    ls_logged logged;
    ls_store_note last;
    LS_TRY(ls_metrics_cut(r->dir, INT64_MAX, &logged, e));
    LS_TRY(ls_metrics_open(r->dir, &r->config, logged, &m, e));
    ls_metrics_set_view(m, r->survival.view.id.number, r->nworkers);
    ls_status s = ls_store_latest(r->store, &last) ? ls_metrics_missing(m, &last, e) : LS_OK;
    ls_status closed = ls_metrics_close(m, s == LS_OK ? e : NULL);
    return s == LS_OK ? closed : s;
}

/* The line of the last step, which a lost host may not have written. A host that is only out of
 * reach has the folder, and writes it. */
static void end_metrics(const ls_run *r) {
    ls_folder *f = NULL;
    ls_error e = {0};
    ls_folder_run own = ls_run_folder(r);
    if (ls_folder_hold(&own, &f, &e) != LS_OK) return;
    if (write_line(r, &e) != LS_OK) ls_log("%s", e.msg);
    ls_folder_close(f, false);
}

/* Where nobody leads any more. */
static ls_status save(void *arg, int64_t *steps_p, ls_error *e) {
    ls_run *r = arg;
    ls_store_note note;
    ls_snapshot_run own = ls_run_snapshot(r);
    ls_snapshot_close(&r->snapshot, &own);
    bool decided = ls_store_newest(r->store, &note);
    LS_TRY(mend(arg, decided ? &note : NULL, e));
    end_metrics(r);
    return ls_snapshot_now(&r->snapshot, &own, ls_store_steps(r->store), steps_p, e);
}

/* ---- slow workers ---- */

static bool can_balance(const ls_run *r) {
    const ls_plan *p = &r->layout.plan;
    return r->config.survival.balance == LS_BALANCE_AUTO && r->survival.view.nhosts == 1 &&
           p->c.tree && !ls_plan_reduces_rounds(p) && ls_plan_replicas(p) == 1;
}

static void take_times(ls_run *r) {
    const ls_board *board = r->survival.board;
    if (r->balanced_view != r->survival.view.id.number)
        ls_balance_begin(&r->balance, r->nworkers, r->layout.plan.c.V, r->shares,
                         ls_store_steps(r->store));
    r->balanced_view = r->survival.view.id.number;
    for (int w = 0; w < r->nworkers; w++) {
        int64_t steps = atomic_load(&board->slots[w].measured);
        double ns = (double)atomic_load(&board->slots[w].compute_ns);
        bool whole = atomic_load(&board->slots[w].measured) == steps;
        if (steps > 0 && whole) ls_balance_note(&r->balance, w, steps, ns / 1e9);
    }
}

static void tell_shares(const ls_run *r) {
    ls_buf text = {0};
    for (int w = 0; w < r->nworkers; w++)
        ls_buf_printf(&text, " %d", r->better_shares[w + 1] - r->better_shares[w]);
    ls_log("virtual workers are shared out anew, to workers 0 to %d:%s", r->nworkers - 1,
           text.data);
    ls_buf_free(&text);
}

/* Other shares, where they pay, begin with a new view. */
static void balance(ls_run *r) {
    double factor = 0;
    if (!can_balance(r) || r->better_shares) return;
    take_times(r);
    int slow = ls_balance_slow(&r->balance, &factor);
    double limit = r->config.survival.slow_limit;
    bool replaced = slow >= 0 && limit > 0 && factor >= limit;
    if (slow >= 0)
        ls_log("worker %d is slow: a virtual worker takes it %.1f times as long as the others%s",
               slow, factor, replaced ? "; it is replaced" : "");
    if (replaced) r->survival.reshape = true;
    if (!r->proposal) r->proposal = LS_NEW_ARRAY(int, (size_t)r->layout.plan.c.V + 1);
    if (!ls_balance_propose(&r->balance, r->proposal)) return;
    r->better_shares = r->proposal;
    r->proposal = NULL;
    r->survival.reshape = true;
    tell_shares(r);
}

/* ---- what others ask ---- */

/* More than this can't be told apart from a mistake, and takes time to plan for. */
enum { MOST_WORKERS = 256 };

/* What limits the number of workers, and since when. */
static void explain_limit(const ls_run *r, bool too_few, char *text, size_t nbytes) {
    const ls_config *c = &r->config;
    int64_t V = c->train.virtual_workers, limit = c->survival.max_workers;
    int most = r->survival.most;
    if (too_few)
        snprintf(text, nbytes, "survival.min_workers is %lld; --resume can begin with another",
                 (long long)c->survival.min_workers);
    else if (most == V)
        snprintf(text, nbytes, "train.virtual_workers is %lld, fixed when the run began",
                 (long long)V);
    else if (most == limit || (limit == 0 && most == MOST_WORKERS))
        snprintf(text, nbytes,
                 "survival.max_workers is %lld%s; --resume can begin with another, up to "
                 "train.virtual_workers %lld",
                 (long long)limit, limit ? "" : " (at most 256)", (long long)V);
    else
        snprintf(text, nbytes, "there was no memory for the state of more when it started");
}

/* "scale N". Is there a plan for N workers? */
static void scale(ls_run *r, const char *words, char answer[LS_CONTROL_LINE]) {
    ls_survival *s = &r->survival;
    ls_layout layout;
    ls_error e = {0};
    char *end = NULL;
    long n = strtol(words, &end, 10);
    if (!*words || *end) {
        snprintf(answer, LS_CONTROL_LINE, "error '%.40s' is not a number of workers", words);
        return;
    }
    if (n < s->least || n > s->most) {
        char why[128] = "";
        if (n >= 1) explain_limit(r, n < s->least, why, sizeof why);
        snprintf(answer, LS_CONTROL_LINE, "error %.40s workers: this run can have %d to %d%s%s",
                 words, s->least, s->most, *why ? ": " : "", why);
        return;
    }
    int most = (int)r->config.parallel.shard_group;
    if (ls_layout_make_nearest(&r->config, (int)n, most, NULL, &layout, &e) != LS_OK) {
        snprintf(answer, LS_CONTROL_LINE, "error %.200s", e.msg);
        return;
    }
    ls_layout_free(&layout);
    snprintf(answer, LS_CONTROL_LINE, "ok from %d to %ld worker%s, after the step in flight",
             r->nworkers, n, ls_plural(n));
    s->wanted = (int)n;
}

static void answer_requests(ls_run *r) {
    char line[LS_CONTROL_LINE], answer[LS_CONTROL_LINE] = "error what is asked is not known";
    ls_error e = {0};
    if (!r->dir || ls_folder_phase_of(&ls_run_notes_of(r)->folder) != LS_FOLDER_MADE) return;
    if (!r->control && ls_control_open(r->dir, &r->control, &e) != LS_OK) return;
    if (!ls_control_next(r->control, line)) return;
    if (strncmp(line, "scale ", 6) == 0) scale(r, line + 6, answer);
    ls_control_answer(r->control, answer);
}

static void attend(void *arg) {
    ls_run *r = arg;
    if (r->survival.leads) answer_requests(r);
    balance(r);
    ls_snapshot_run own = ls_run_snapshot(r);
    ls_snapshot_prepare(&r->snapshot, &own);
    ls_snapshot_attend(&r->snapshot, &own);
}

static int most_workers(const ls_run *r) {
    int64_t most = r->config.survival.max_workers, V = r->config.train.virtual_workers;
    if (most == 0) most = V < MOST_WORKERS ? V : MOST_WORKERS;
    if (most > V) most = V;
    return most > r->nworkers ? (int)most : r->nworkers;
}

/* A run can't keep more workers than it can have. */
static ls_status check_least(const ls_config *c, ls_error *e) {
    int64_t least = c->survival.min_workers, most = c->survival.max_workers;
    if (least > c->train.virtual_workers)
        return ls_fail(e, LS_EINVAL,
                       "survival.min_workers %lld is more than train.virtual_workers %lld, which "
                       "is the most workers that a run can have",
                       (long long)least, (long long)c->train.virtual_workers);
    if (most && least > most)
        return ls_fail(e, LS_EINVAL,
                       "survival.min_workers %lld is more than survival.max_workers %lld",
                       (long long)least, (long long)most);
    return LS_OK;
}

static const char *or_null(const char *text) { return *text ? text : NULL; }

/* Who leads is found with etcd. */
static ls_status set_membership(ls_run *r, ls_error *e) {
    const ls_config *c = &r->config;
    const char *slash = r->dir ? strrchr(r->dir, '/') : NULL;
    if (!*c->survival.membership) return LS_OK;
    if (!r->listen || r->listen[0] == ':' || r->join)
        return ls_fail(e, LS_EINVAL,
                       "survival.membership: every host needs --listen HOST:PORT, with an address "
                       "that the others can reach, and none --join");
    r->survival.etcd =
        (ls_membership_etcd_options){.endpoints = c->survival.membership,
                                     .ca = or_null(c->survival.etcd_ca),
                                     .cert = or_null(c->survival.etcd_cert),
                                     .key = or_null(c->survival.etcd_key),
                                     .user = or_null(c->survival.etcd_user),
                                     .password = getenv("LOCKSTEP_ETCD_PASSWORD"),
                                     .run = *c->survival.etcd_run ? c->survival.etcd_run
                                            : slash               ? slash + 1
                                                                  : r->dir,
                                     .address = r->listen,
                                     .lease_s = 3 * c->survival.heartbeat_s};
    return LS_OK;
}

static ls_status check_hosts(const ls_run *r, ls_error *e) {
    if (r->listen && r->join)
        return ls_fail(e, LS_EINVAL,
                       "--listen and --join: the first host has one, the others the other");
    if (r->hosts && !r->listen)
        return ls_fail(e, LS_EINVAL,
                       "--hosts %d: it is for a host with --listen, which waits for the others",
                       r->hosts);
    return LS_OK;
}

/* Do the workers of one host? */
static bool shares_memory(const ls_config *c) {
    const char *name = getenv("LOCKSTEP_TRANSPORT");
    if (c->parallel.transport == LS_TRANSPORT_AUTO) return !name || strcmp(name, "tcp") != 0;
    return c->parallel.transport == LS_TRANSPORT_SHM;
}

bool ls_run_can_survive(const ls_config *c) {
    return c->parallel.executor != LS_EXECUTOR_SEQUENTIAL &&
           c->parallel.transport != LS_TRANSPORT_THREAD &&
           c->parallel.transport != LS_TRANSPORT_MPI &&
           c->parallel.optimizer_state != LS_STATE_FILE;
}

ls_status ls_run_keep(ls_run *r, ls_error *e) {
    const ls_config *c = &r->config;
    if (!*c->survival.membership) LS_TRY(check_hosts(r, e));
    LS_TRY(check_least(c, e));
    int threads = (int)c->parallel.threads, most = most_workers(r);
    if (r->started || !ls_run_can_survive(c)) {
        if (!r->listen && !r->join && !*c->survival.membership) return LS_OK;
        return ls_fail(e, LS_EINVAL,
                       "--listen, --join and survival.membership are for workers that are "
                       "processes of hosts, with "
                       "their state in memory: not with a launcher, parallel.transport thread or "
                       "mpi, parallel.executor sequential, or parallel.optimizer_state file");
    }
    ls_status s = ls_store_make(&r->layout.plan, most, threads, sizeof(ls_run_notes), &r->store, e);
    if (s != LS_OK && most > r->nworkers)
        s = ls_store_make(&r->layout.plan, most = r->nworkers, threads, sizeof(ls_run_notes),
                          &r->store, e);
    int64_t least = c->survival.min_workers;
    ls_config alike = *c;
    alike.survival.max_workers = most; /* boards and stores have room for so many */
    ls_config_must_match(&alike, &r->alike);
    r->survival = (ls_survival){.heartbeat_s = c->survival.heartbeat_s,
                                .stop_s = c->survival.stop_s,
                                .least = least < most ? (int)least : most,
                                .most = most,
                                .listen = r->listen,
                                .join = r->join,
                                .alike = r->alike.data,
                                .hosts = r->hosts,
                                .steps = c->train.steps,
                                .rejoin_s = c->survival.rejoin_s,
                                .stays = shares_memory(c),
                                .begun = !r->resumes && r->dir && ls_file_exists(r->dir),
                                .kept = kept,
                                .mend = mend,
                                .resize = resize,
                                .save = save,
                                .attend = attend,
                                .arg = r};
    return s == LS_OK ? set_membership(r, e) : s;
}

void ls_run_drop(ls_run *r) {
    ls_snapshot_run own = ls_run_snapshot(r);
    ls_snapshot_close(&r->snapshot, &own);
    ls_control_close(r->control);
    ls_store_free(r->store);
    ls_balance_free(&r->balance);
    free(r->shares);
    free(r->better_shares);
    free(r->proposal);
    r->shares = r->better_shares = r->proposal = NULL;
    r->control = NULL;
    r->store = NULL;
}
