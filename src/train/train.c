/* train.c - see train.h: decisions made before workers start. */
#include "train/train.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/transcript.h"
#include "base/waiting.h"
#include "config/needs.h"
#include "config/relations.h"
#include "net/launch/stop.h"
#include "storage/epochs.h"
#include "storage/folder.h"
#include "storage/origin.h"
#include "train/async_host.h"
#include "train/device_room.h"
#include "train/fit.h"
#include "train/host_memory.h"
#include "train/utilization.h"
#include "train/worker.h"
#include "train/worker_device.h"

/* What the run has decided, which this host joins or continues. */
static ls_status take_choice(const char *path, ls_config *c, ls_error *e) {
    ls_config run;
    LS_TRY(ls_config_load_saved(path, NULL, 0, &run, e));
    ls_config_settle(c);
    c->compress.kind = run.compress.kind;
    ls_config_drop_idle(c, NULL); /* keys that this kind does not need */
    return LS_OK;
}

/* The choice is that for two hosts: how many there will be is not known on all of them. Workers of
 * a launcher count as hosts. */
static ls_status choose_code(const ls_train_options *o, ls_run *r, ls_error *e) {
    ls_config *c = &r->config;
    if (c->compress.kind != LS_COMPRESS_AUTO || !o->choose) return LS_OK;
    char *path = ls_format("%s/config.yaml", o->run);
    bool recorded = (o->join || o->resume) && ls_file_exists(path);
    ls_status s = recorded ? take_choice(path, c, e) : LS_OK;
    free(path);
    if (recorded) return s;
    if (r->started) return o->choose(c, 1, r->nworkers, e);
    return o->choose(c, r->nworkers, o->listen || o->join ? 2 : 1, e);
}

/* Workers of a launcher may be on any hosts. */
static ls_status choose_mesh(const ls_train_options *o, ls_run *r, ls_error *e) {
    ls_config *c = &r->config;
    int64_t t = c->parallel.transport;
    bool distributed = r->started || t == LS_TRANSPORT_TCP || t == LS_TRANSPORT_MPI;
    if (c->parallel.mesh != LS_MESH_AUTO) return LS_OK;
    if (o->listen || o->join || !o->choose_mesh)
        return ls_fail(e, LS_EINVAL,
                       "parallel.mesh auto: how many workers other hosts will bring is not known "
                       "here; `lockstep plan --mesh auto -n N` prints the meshes of N workers: set "
                       "the keys of one, e.g. parallel.mesh.pipe");
    int64_t threads = c->parallel.threads;
    if (r->started && threads == LS_AUTO) c->parallel.threads = 1; /* on all, to choose the same */
    if (!r->started) ls_waiting_begin(LS_WAITING_NS, "choosing a mesh for %d workers", r->nworkers);
    ls_status s = o->choose_mesh(c, r->nworkers, distributed, e);
    c->parallel.threads = threads;
    if (!r->started) ls_waiting_end();
    return s;
}

/* A run that continues with its own config has keys that the user has not given now. */
static ls_status load_config(const ls_train_options *o, ls_config *c, ls_error *e) {
    char *own = ls_format("%s/config.yaml", o->run);
    bool saved = o->resume && strcmp(o->config, own) == 0;
    free(own);
    if (saved) return ls_config_load_saved(o->config, o->sets, o->nsets, c, e);
    return ls_config_load(o->config, o->sets, o->nsets, c, e);
}

static ls_status read_config(const ls_train_options *o, ls_run *r, ls_error *e) {
    if (o->trace) LS_TRY(ls_timeline_check_path(o->trace, e));
    LS_TRY(load_config(o, &r->config, e));
    LS_TRY(ls_origin_resolve(&r->config, o->resume ? o->run : NULL, e));
    LS_TRY(ls_origin_complete(&r->config, o->resume ? o->run : NULL, e));
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e)); /* reports a bad LOCKSTEP_CPU before workers start */
    bool bf16 = r->config.train.compute == LS_COMPUTE_BF16 && !ls_config_has_device(&r->config);
    const char *unused = bf16 ? ls_kernels_unused() : NULL;
    if (unused) ls_log("products in bf16 are slower: %s", unused);
    if (!ls_config_has_crew(&r->config))
        LS_TRY(ls_run_workers(&r->config, o->nworkers, &r->nworkers, &r->started, e));
    if (!ls_config_has_crew(&r->config)) {
        LS_TRY(choose_code(o, r, e));
        return choose_mesh(o, r, e);
    }
    if (o->trace && r->config.sync.mode == LS_SYNC_ASYNC)
        return ls_fail(e, LS_EINVAL,
                       "--trace: sync.mode async has no common steps to draw; leave it out");
    return ls_run_workers_async(r, o->nworkers, e);
}

/* As far as it is known: a launcher's may be on any hosts, and each of them measures a core. */
static int workers_here(const ls_run *r) {
    return r->started ? 1 : r->nasync ? r->nasync : r->nworkers;
}

/* Planning may take long, so it is announced, but not by each worker of a launcher. */
static ls_status make_plan(ls_run *r, ls_host *h, ls_error *e) {
    const ls_config asked = r->config;
    ls_worker_device_resolve(&r->config);
    if (!r->started) LS_TRY(ls_device_room_try(&r->config, r->nworkers, &r->devices, e));
    if (!r->started) ls_waiting_begin(LS_WAITING_NS, LS_LAYOUT_PLANNING, r->nworkers);
    ls_status s = LS_OK;
    if (!r->started) s = ls_host_memory_for_model(&r->config, e); /* it may have no plan */
    if (s == LS_OK && ls_run_has_others(r))
        s = ls_fit_limit_hosts(&r->config, r->nasync ? r->nasync : r->nworkers,
                               r->started ? r->nworkers : 0, e);
    else if (s == LS_OK)
        s = ls_fit_limit(&r->config, r->nworkers, e);
    if (s == LS_OK) s = ls_host_open(h, r, e);
    ls_run_write_config(r, &asked);
    if (!r->started) ls_waiting_end();
    return s;
}

/* For workers that are threads or forked processes. */
static ls_status share_flag(atomic_int **flag_p, ls_error *e) {
    void *p =
        mmap(NULL, sizeof **flag_p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return ls_fail(e, LS_ENOMEM, "no shared memory: %s", strerror(errno));
    *flag_p = p;
    return LS_OK;
}

/* Does this process open the directory, for the workers that it starts? Else worker 0 does. */
static bool opens_folder(const ls_run *r) {
    return r->dir && !r->started && (!r->listen || r->nasync) && !r->join &&
           !*r->config.survival.membership;
}

/* Before workers start: they find the directory locked, without files of another run. */
static ls_status open_folder(ls_host *h, ls_error *e) {
    ls_folder_run own = ls_host_folder_run(h);
    ls_stop_record();
    if (!opens_folder(h->run)) return h->run->started ? LS_OK : ls_folder_check(&own, e);
    LS_TRY(ls_folder_open(&own, false, &h->folder, e));
    return ls_folder_fill(h->folder, e);
}

/* With sync.mode async and ssp: computes for the first host; if that is lost, takes its place. Of
 * several hosts that can, the one that gets the lock does; the others join it. */
static ls_status join(const ls_train_options *o, ls_run *r, ls_train_job *job, ls_error *e) {
    const char *first = r->join;
    bool lost = false;
    for (;;) {
        ls_stop_end(); /* a host that computes for another has nothing to save */
        LS_TRY(ls_async_host_run(&job->host, &lost, e));
        if (!lost) return LS_OK;
        ls_stop_begin();
        ls_stop_record();
        r->join = NULL;
        r->again = o->again_first;
        r->resumes = true;
        ls_status s = open_folder(&job->host, e);
        if (s == LS_OK) break;
        ls_log("%s", e->msg);
        r->join = first;
        r->again = o->again;
    }
    ls_log("the first host is lost: this one takes its place, at %s", r->listen);
    return ls_host_launch(&job->host, ls_train_worker, job, e);
}

/* Workers of a launcher stop together, after a step: none of them ends before it has met the
 * others. */
static void begin_stops(void) {
    bool started = false;
    int n = 0;
    ls_stop_begin();
    if (ls_workers_started(&started, &n, NULL) == LS_OK && started) ls_stop_record();
}

ls_status ls_train(const ls_train_options *o, bool *unfinished_p, ls_error *e) {
    ls_run run = {.dir = o->run,
                  .sets = o->sets,
                  .nsets = o->nsets,
                  .command = o->command,
                  .again = o->again,
                  .resumes = o->resume,
                  .overwrites = o->overwrite,
                  .listen = o->listen,
                  .join = o->join,
                  .hosts = o->hosts,
                  .until = o->until,
                  .began_ns = o->began_ns ? o->began_ns : ls_clock_ns()};
    ls_train_job job = {.trace = {o->trace, o->trace_steps}, .mllog = o->mllog};
    ls_host *h = &job.host;
    ls_corpus made = {0};
    LS_TRY(share_flag(&job.unfinished, e));
    ls_transcript_begin();
    begin_stops();
    ls_status s = read_config(o, &run, e);
    const char *begun = o->resume || o->join ? o->run : NULL;
    if (s == LS_OK) s = ls_epochs_resolve(&run.config, begun, &made, e);
    if (s == LS_OK) run.core_flops = ls_utilization_core(&run.config, workers_here(&run));
    if (s == LS_OK) s = make_plan(&run, h, e);
    if (s == LS_OK) h->made = &made;
    bool joins = s == LS_OK && run.nasync && run.join;
    if (s == LS_OK && !run.nasync) s = ls_host_supervise(h, e);
    if (s == LS_OK && !joins) s = open_folder(h, e);
    if (s == LS_OK && joins)
        s = join(o, &run, &job, e);
    else if (s == LS_OK)
        s = ls_host_launch(h, ls_train_worker, &job, e);
    if (s == LS_OK) s = h->runtime->finish(h, atomic_load(job.unfinished) != 0, unfinished_p, e);
    ls_folder *folder = h->folder;
    if (h->run) ls_host_close(h); /* the control socket goes before the directory */
    ls_folder_close(folder, s != LS_OK);
    if (s == LS_EABORT && h->survival.unbegun) { /* nothing is left of it, and nothing is lost */
        ls_log("%s", e->msg);
        *unfinished_p = true;
        s = LS_OK;
    }
    ls_host_free(h);
    ls_run_free(&run);
    ls_corpus_free(&made);
    munmap(job.unfinished, sizeof *job.unfinished);
    return s;
}
