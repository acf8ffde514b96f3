/* snapshot.c - see snapshot.h. */
#include "storage/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/round_up.h"
#include "base/thread.h"
#include "dataset/data_files.h"
#include "net/launch/child.h"
#include "net/launch/launch.h"
#include "state/store_blocks.h"
#include "storage/best.h"
#include "storage/checkpoint.h"
#include "storage/part.h"
#include "tensor/sum_order.h"

enum { NICE = 10, MOST_TRIES = 20 };
static const int64_t LOOK_NS = (int64_t)3 * 1000000000;

_Static_assert(sizeof(ls_snapshot_mark) == 8, "one word, which processes change without a lock");

/* ---- the mark ---- */

static void set_mark(ls_snapshot_state *s, int64_t steps, ls_snapshot_phase phase) {
    atomic_store(&s->mark, ((ls_snapshot_mark){(uint32_t)phase, (uint32_t)steps}));
}

static bool is_pending(const ls_snapshot_mark *m) {
    return m->phase == LS_SNAPSHOT_WANTED || m->phase == LS_SNAPSHOT_COPIED;
}

bool ls_snapshot_is_pending(const ls_snapshot_state *s) {
    ls_snapshot_mark m = atomic_load(&s->mark);
    return is_pending(&m);
}

/* The first value that the peers set counts. */
static void set_peers(ls_snapshot_state *s, ls_snapshot_peers peers) {
    int silent = LS_PEERS_SILENT;
    atomic_compare_exchange_strong(&s->peers, &silent, (int)peers);
}

/* The number of workers that write: the first of those that hold a block writes it, and each the
 * compression errors of its virtual workers, and its blocks of tables. */
static int nwriters(const ls_plan *p) {
    bool all = p->share.has_errors || p->share.model->table_floats > 0;
    return all ? p->share.nworkers : ls_part_nholders(p);
}

bool ls_snapshot_is_shared(const ls_plan *p, int n) { return nwriters(p) > n; }

/* ---- the writer ---- */

typedef struct writing {
    const ls_snapshot_run *run;
    ls_train_state state;
    int first, end; /* workers whose blocks are copied; end 0: all */
    ls_best best;   /* as of the state's step */
} writing;

/* The copy has parameters and states, then the errors of all virtual workers. */
static float *errors_in(const ls_plan *p, float *flat) {
    return flat + (size_t)ls_optim_nflats(&p->share.optim) * p->share.model->nfloats;
}

/* Copies the errors of the virtual workers that the wanted workers run, or of all. */
static ls_status copy_errors(const writing *w, float *errors, ls_error *e) {
    const ls_plan *p = w->run->plan;
    for (int v = 0; p->share.has_errors && v < p->share.V; v++) {
        bool wanted = !w->end;
        for (int i = w->first; i < w->end; i++)
            wanted = wanted || ls_share_runs_vw(&p->share, i, v);
        float *to = errors + (size_t)v * p->share.error_floats;
        if (wanted) LS_TRY(ls_store_copy_errors(w->run->store, &p->share, w->state.step, v, to, e));
    }
    return LS_OK;
}

/* The tables follow the errors. */
static float *tables_in(const ls_plan *p, float *flat) {
    size_t errors = p->share.has_errors ? (size_t)p->share.V * p->share.error_floats : 0;
    return errors_in(p, flat) + errors;
}

/* A step's rows are in the tables once all workers have completed it. */
static ls_status copy_tables(const writing *w, float *tables, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    if (atomic_load(r->tables_steps) != w->state.step)
        return ls_fail(e, LS_EPEER,
                       "the workers ended before their tables had the rows of step %lld",
                       (long long)w->state.step);
    const ls_model *m = r->plan->share.model;
    const ls_optim *o = &r->plan->share.optim;
    ls_table_block b = LS_TABLE_BLOCKS;
    while (ls_table_block_next(m, &b)) {
        int worker = (int)(b.number % r->plan->share.nworkers);
        if (w->end && (worker < w->first || worker >= w->end)) continue;
        if (!r->tables_here[b.number])
            return ls_fail(e, LS_EPEER, "this host does not have all rows of %s",
                           m->params[b.param].name);
        for (int k = 0; k < ls_optim_table_buffers(o); k++) {
            ls_optim_range x = ls_optim_table_block(o, m, &b, k);
            memcpy(tables + x.first, r->tables + x.first, (x.end - x.first) * sizeof *tables);
        }
    }
    return LS_OK;
}

static ls_status copy_parts(const writing *w, float *flat, ls_scaler *scaler_p, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    int64_t steps = w->state.step;
    if (!w->end) LS_TRY(ls_store_copy(r->store, steps, flat, e));
    for (int i = w->first; i < w->end && i < ls_part_nholders(r->plan); i++)
        LS_TRY(ls_store_copy_owned(r->store, &r->plan->share, i, steps, flat, e));
    LS_TRY(copy_errors(w, errors_in(r->plan, flat), e));
    *scaler_p = ls_store_scaler_after(r->store, steps);
    return LS_OK;
}

/* Is the loss scaled? */
static bool has_scale(const ls_plan *p) {
    return p->share.compute == LS_F16 || p->share.reduce == LS_F16;
}

/* What the copy has besides the state's floats, behind them. */
typedef struct copied {
    ls_scaler scaler;
    ls_best best;
} copied;

static size_t copied_at(const ls_plan *p) {
    enum { LINE = 64 };
    return ls_round_up(p->share.nbytes.copy, LINE);
}

static copied *copied_in(const ls_plan *p, float *flat) {
    return (copied *)(void *)((char *)flat + copied_at(p));
}

/* Makes `w` describe the copy in `flat`. */
static void describe_copy(writing *w, float *flat) {
    const ls_snapshot_run *r = w->run;
    w->best = copied_in(r->plan, flat)->best;
    w->state.flat = ls_flat_of_state(flat, NULL, ls_optim_nstates(&r->plan->share.optim),
                                     r->plan->share.floats);
    if (r->plan->share.has_errors) {
        w->state.errors = errors_in(r->plan, flat);
        w->state.nerrors = r->plan->share.V;
        w->state.plan = r->plan;
    }
    if (r->tables) w->state.tables = tables_in(r->plan, flat);
    if (has_scale(r->plan)) w->state.scaler = copied_in(r->plan, flat)->scaler;
}

static ls_status copy(const writing *w, float *flat, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    copied *c = copied_in(r->plan, flat);
    LS_TRY(copy_parts(w, flat, &c->scaler, e));
    if (r->tables) LS_TRY(copy_tables(w, tables_in(r->plan, flat), e));
    ls_best_load(&c->best, r->best); /* the next evaluation comes after the next update */
    return LS_OK;
}

/* Draws a number that no other attempt has; > 0. */
static ls_status draw_attempt(uint32_t *attempt_p, ls_error *e) {
    uint32_t x = 0;
    if (getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x)
        return ls_fail(e, LS_EIO, "no random numbers: %s", strerror(errno));
    *attempt_p = (x & INT32_MAX) | 1;
    return LS_OK;
}

/* Waits until a worker, or the process that starts workers, has set `peers`. */
static ls_snapshot_peers await_peers(const ls_snapshot_state *s) {
    int peers = LS_PEERS_SILENT;
    while ((peers = atomic_load(&s->peers)) == LS_PEERS_SILENT) usleep(1000);
    return (ls_snapshot_peers)peers;
}

static ls_status await_parts(const ls_snapshot_run *r, ls_error *e) {
    ls_snapshot_peers peers = await_peers(r->state);
    if (peers == LS_PEERS_WRITTEN) return LS_OK;
    if (peers != LS_PEERS_FAILED)
        return ls_fail(e, LS_EPEER, "the workers ended before all hosts had written their parts");
    int failure = atomic_load(&r->state->failure);
    return ls_fail(e, LS_EPEER, "the host of worker %d could not write its part: its %s",
                   failure % LS_SNAPSHOT_WAS_KILLED - 1,
                   failure < LS_SNAPSHOT_WAS_KILLED ? "output says why" : "writer was killed");
}

static ls_status write_with_others(const writing *w, const ls_checkpoint_extra *x,
                                   const char *hidden, uint32_t attempt, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    const ls_owners own = {r->plan, w->first, w->end}, all = {r->plan, 0, nwriters(r->plan)};
    LS_TRY(ls_checkpoint_begin(hidden, &w->state, e));
    atomic_store(&r->state->attempt, attempt);
    ls_status s = ls_checkpoint_part(hidden, &w->state, &own, e);
    if (s == LS_OK) s = await_parts(r, e);
    if (s != LS_OK) {
        ls_checkpoint_drop(hidden);
        return s;
    }
    return ls_checkpoint_finish(r->dir, hidden, &w->state, &all, x, e);
}

static ls_status write_first(const writing *w, const ls_checkpoint_extra *x, ls_error *e) {
    uint32_t attempt = 0;
    if (!w->end) return ls_checkpoint_write(w->run->dir, &w->state, x, e);
    LS_TRY(draw_attempt(&attempt, e));
    char *hidden = ls_checkpoint_hidden(w->run->dir, w->state.step, attempt);
    ls_status s = write_with_others(w, x, hidden, attempt, e);
    free(hidden);
    return s;
}

static ls_status write_all(const writing *w, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    ls_data_files data;
    LS_TRY(ls_data_files_read(r->dir, &data, e));
    ls_best on_disk;
    ls_best_load(&on_disk, r->on_disk);
    ls_checkpoint_known known = {on_disk.step, on_disk.loss};
    ls_checkpoint_extra x = {.data = &data,
                             .config = r->config_text,
                             .frozen = ls_frozen_note_get(r->frozen),
                             .sum = ls_sum_order(r->plan->share.compute),
                             .known = &known,
                             .keep = r->config->checkpoint.keep};
    ls_best_describe(&w->best, r->config, w->state.step, &x);
    ls_status s = write_first(w, &x, e);
    if (s == LS_OK) ls_best_save(&(ls_best){.step = known.step, .loss = known.loss}, r->on_disk);
    ls_data_files_free(&data);
    return s;
}

/* LS_EABORT: another host has failed, or the view has ended; worker 0's host logs it. */
static ls_status write_part(const writing *w, ls_error *e) {
    const ls_snapshot_run *r = w->run;
    if (await_peers(r->state) != LS_PEERS_OPENED)
        return ls_fail(e, LS_EABORT, "the checkpoint was given up elsewhere");
    uint32_t attempt = atomic_load(&r->state->attempt);
    const ls_owners own = {r->plan, w->first, w->end};
    char *hidden = ls_checkpoint_hidden(r->dir, w->state.step, attempt);
    ls_status s = ls_checkpoint_part(hidden, &w->state, &own, e);
    if (s != LS_OK && !ls_file_exists(hidden))
        s = ls_fail(e, LS_EABORT, "%s: was removed elsewhere", hidden);
    free(hidden);
    return s;
}

static writing writing_of(const ls_snapshot_run *r, int64_t steps, bool together) {
    int end = r->first + r->n, all = nwriters(r->plan);
    writing w = {.run = r,
                 .state = {.model = r->plan->share.model,
                           .optim = &r->plan->share.optim,
                           .replicas = r->plan->share.islands,
                           .step = steps}};
    if (!together) return w;
    w.first = r->first;
    w.end = end < all ? end : all;
    return w;
}

static ls_status write_copy(const writing *w, ls_error *e) {
    return w->first == 0 ? write_all(w, e) : write_part(w, e);
}

/* The writer's process. An update may wait for the copy, so the copy has the workers' priority; the
 * rest has a lower one. If a writer that was killed has copied, this one writes that copy. */
static _Noreturn void write_beside(const ls_snapshot_run *r, int64_t steps, float *flat) {
    ls_error e = {0};
    writing w = writing_of(r, steps, atomic_load(&r->state->with_others) != 0);
    ls_status s = ls_snapshot_is_copied(r->state) ? LS_OK : copy(&w, flat, &e);
    if (s == LS_OK) set_mark(r->state, steps, LS_SNAPSHOT_COPIED);
    describe_copy(&w, flat);
    if (nice(NICE) < 0) errno = 0;
    if (s == LS_OK) s = write_copy(&w, &e);
    if (s != LS_OK && s != LS_EABORT)
        ls_log("the checkpoint of step %lld failed: %s", (long long)steps, e.msg);
    _exit(s == LS_OK ? 0 : 1);
}

/* ---- the process that starts the writer ---- */

static void finish(ls_snapshot *x, const ls_snapshot_run *r, bool good) {
    set_mark(r->state, x->steps, good ? LS_SNAPSHOT_WRITTEN : LS_SNAPSHOT_FAILED);
    x->writer = (ls_child){0};
}

/* Allocating and clearing pages takes many times as long as the copy itself, and longer still if
 * the system must take them from another program. So they are touched before the first copy, and
 * retained. Parts that are not copied take no pages. */
static ls_status take_memory(ls_snapshot *x, const ls_snapshot_run *r, ls_error *e) {
    size_t nbytes = copied_at(r->plan) + sizeof(copied);
    if (x->copy) return LS_OK;
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for a copy of the state, %.1f MB: %s",
                       (double)nbytes / 1e6, strerror(errno));
    madvise(p, nbytes, MADV_HUGEPAGE);
    x->copy = p;
    x->nbytes = nbytes;
    return LS_OK;
}

/* Touches the pages without changing what a writer may have written meanwhile. */
static void touch(float *p, size_t n) {
    enum { PAGE = 4096 / sizeof(float) };
    for (size_t i = 0; i < n; i += PAGE) atomic_fetch_or((_Atomic uint32_t *)(void *)(p + i), 0);
}

static _Noreturn void warm(const ls_snapshot_run *r, float *flat) {
    const ls_plan *p = r->plan;
    size_t n = p->share.floats;
    int flats = ls_optim_nflats(&p->share.optim);
    writing w = writing_of(r, 0, ls_snapshot_is_shared(p, r->n));
    if (nice(NICE) < 0) errno = 0;
    if (!w.end) touch(flat, p->share.nbytes.copy / sizeof *flat);
    for (int i = w.first; i < w.end && i < ls_part_nholders(p); i++)
        for (int k = 0; k < flats * p->share.nbuckets; k++) {
            ls_range b = ls_share_owned(&p->share, k / flats, i);
            touch(flat + (size_t)(k % flats) * n + b.first, b.end - b.first);
        }
    _exit(0);
}

/* Will a checkpoint be due by time, if the run lasts? A short run has none. */
static bool is_soon(const ls_snapshot *x, const ls_config *c) {
    double minutes = (double)(ls_clock_ns() - x->began_ns) / 60e9;
    return c->checkpoint.minutes > 0 && minutes >= c->checkpoint.minutes / 2;
}

void ls_snapshot_prepare(ls_snapshot *x, const ls_snapshot_run *r) {
    const ls_config *c = r->config;
    int how = 0;
    if (!x->began_ns) x->began_ns = ls_clock_ns();
    if (x->warmer.pid && ls_child_ended(&x->warmer, r->config->survival.heartbeat_s, &how))
        x->warmer = (ls_child){0};
    bool due = c->checkpoint.every > 0 || is_soon(x, c) || ls_best_is_sought(c);
    if (x->copy || !due || r->n == 0 || ls_store_steps(r->store) < 0) return;
    if (take_memory(x, r, NULL) == LS_OK && ls_child_start(&x->warmer, NULL) == 0) warm(r, x->copy);
}

static ls_status start_writer(ls_snapshot *x, const ls_snapshot_run *r, ls_error *e) {
    LS_TRY(take_memory(x, r, e));
    pid_t pid = ls_child_start(&x->writer, NULL);
    if (pid == 0) write_beside(r, x->steps, x->copy);
    if (pid > 0) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "can't start a process to write it: %s", ls_thread_why(errno));
}

static void start(ls_snapshot *x, const ls_snapshot_run *r) {
    ls_error e = {0};
    x->tries++;
    if (start_writer(x, r, &e) == LS_OK) return;
    ls_log("the checkpoint of step %lld failed: %s", (long long)x->steps, e.msg);
    finish(x, r, false);
}

/* While workers wait for the copy, the state can be copied again. A complete copy can be written
 * again, unless other hosts already write the other parts. But once the view has ended, the plan by
 * which hosts share the state, or the layout of the copy, may differ. */
static bool can_start_again(const ls_snapshot *x, const ls_snapshot_run *r) {
    if (x->given_up || x->tries >= MOST_TRIES) return false;
    return !ls_snapshot_is_copied(r->state) || (!atomic_load(&r->state->with_others) && !x->is_old);
}

static void on_end(ls_snapshot *x, const ls_snapshot_run *r, int how) {
    if (WIFSIGNALED(how) && can_start_again(x, r)) {
        if (ls_snapshot_is_copied(r->state))
            ls_log("the checkpoint of step %lld is written again: its writer was killed by signal "
                   "%d (%s)",
                   (long long)x->steps, WTERMSIG(how), strsignal(WTERMSIG(how)));
        start(x, r);
        return;
    }
    atomic_store(&r->state->was_killed, WIFSIGNALED(how) && !x->given_up);
    if (WIFSIGNALED(how) && x->given_up)
        ls_log("the checkpoint of step %lld failed: it was given up", (long long)x->steps);
    else if (WIFSIGNALED(how))
        ls_log("the checkpoint of step %lld failed: its writer was killed by signal %d (%s)",
               (long long)x->steps, WTERMSIG(how), strsignal(WTERMSIG(how)));
    finish(x, r, WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void take_up(ls_snapshot *x, const ls_snapshot_run *r) {
    ls_snapshot_mark now = atomic_load(&r->state->mark);
    x->steps = now.steps;
    x->tries = 0;
    x->given_up = false;
    x->is_old = false;
}

void ls_snapshot_attend(ls_snapshot *x, const ls_snapshot_run *r) {
    int how = 0;
    if (x->writer.pid && ls_child_ended(&x->writer, r->config->survival.heartbeat_s, &how))
        on_end(x, r, how);
    if (x->writer.pid || !ls_snapshot_is_pending(r->state)) return;
    take_up(x, r);
    start(x, r);
}

/* Ends a writer's wait for other hosts. If all parts are written, it waits for none; but if workers
 * now read an older checkpoint, the writer is killed so that it does not remove that as too old. */
bool ls_snapshot_end_view(ls_snapshot *x, const ls_snapshot_run *r, bool stateless) {
    ls_snapshot_state *s = r->state;
    x->is_old = true;
    if (!ls_snapshot_is_pending(s) || !atomic_load(&s->with_others)) return false;
    bool complete = atomic_load(&s->peers) == LS_PEERS_WRITTEN;
    if (!x->writer.pid) {
        take_up(x, r);
        finish(x, r, false);
        return !complete;
    }
    x->given_up = true;
    set_peers(s, LS_PEERS_GONE);
    if (stateless) kill(x->writer.pid, SIGKILL);
    return !complete;
}

ls_status ls_snapshot_now(ls_snapshot *x, const ls_snapshot_run *r, int64_t steps,
                          int64_t *newest_p, ls_error *e) {
    char *path = NULL;
    bool there = ls_checkpoint_newest_good(r->dir, &path, newest_p, NULL) == LS_OK && path;
    free(path);
    if (there && *newest_p >= steps) return LS_OK;
    *newest_p = steps;
    writing w = writing_of(r, steps, false);
    LS_TRY(take_memory(x, r, e));
    LS_TRY(copy(&w, x->copy, e));
    describe_copy(&w, x->copy);
    return write_copy(&w, e);
}

void ls_snapshot_close(ls_snapshot *x, const ls_snapshot_run *r) {
    if (!r->store) return;
    ls_snapshot_end_view(x, r, false);
    if (x->warmer.pid) kill(x->warmer.pid, SIGKILL);
    while (x->writer.pid || x->warmer.pid || ls_snapshot_is_pending(r->state)) {
        if (x->copy) ls_snapshot_prepare(x, r);
        ls_snapshot_attend(x, r);
        usleep(1000);
    }
    ls_unmap(x->copy, x->nbytes);
    x->copy = NULL;
}

/* ---- workers ---- */

static void want(ls_snapshot_state *s, int64_t steps, bool with_others) {
    atomic_store(&s->with_others, with_others);
    atomic_store(&s->attempt, 0);
    atomic_store(&s->was_killed, false);
    atomic_store(&s->peers, LS_PEERS_SILENT);
    set_mark(s, steps, LS_SNAPSHOT_WANTED);
    ls_launch_nudge();
}

bool ls_snapshot_ask(ls_snapshot_state *s, int64_t steps) {
    ls_snapshot_mark m = atomic_load(&s->mark);
    if (is_pending(&m)) return m.steps == steps;
    if (m.phase != LS_SNAPSHOT_WRITTEN || m.steps != steps) want(s, steps, false);
    return true;
}

/* Nothing is copied while the process that starts the writer is stopped. Other hosts then continue
 * without this one and need the run directory, whose lock this worker may hold: so it exits. */
static void wait_a_little(int64_t *looked_ns, unsigned us) {
    int64_t now = ls_clock_ns();
    usleep(us);
    if (now - *looked_ns < LOOK_NS) return;
    *looked_ns = now;
    if (ls_process_is_stopped(getppid())) _exit(1);
}

bool ls_snapshot_is_copied(const ls_snapshot_state *s) {
    ls_snapshot_mark now = atomic_load(&s->mark);
    return now.phase != LS_SNAPSHOT_WANTED;
}

void ls_snapshot_note_held(ls_snapshot_state *s, int64_t ns) {
    long long was = atomic_load(&s->held_ns);
    while (was < ns && !atomic_compare_exchange_weak(&s->held_ns, &was, ns)) {
    }
}

void ls_snapshot_wait_copied(ls_snapshot_state *s) {
    int64_t began_ns = ls_clock_ns(), looked_ns = began_ns;
    if (ls_snapshot_is_copied(s)) return;
    while (!ls_snapshot_is_copied(s)) wait_a_little(&looked_ns, 200);
    ls_snapshot_note_held(s, ls_clock_ns() - began_ns);
}

ls_status ls_snapshot_wait_written(const ls_snapshot_state *s, ls_error *e) {
    int64_t looked_ns = ls_clock_ns();
    while (ls_snapshot_is_pending(s)) wait_a_little(&looked_ns, 1000);
    ls_snapshot_mark m = atomic_load(&s->mark);
    if (m.phase != LS_SNAPSHOT_FAILED) return LS_OK;
    return ls_fail(e, LS_EIO, "the checkpoint of step %u could not be written", m.steps);
}

/* ---- several hosts ---- */

static bool is_at(const ls_snapshot_state *s, int64_t steps, ls_snapshot_phase phase) {
    ls_snapshot_mark m = atomic_load(&s->mark);
    return m.phase == phase && m.steps == steps;
}

bool ls_snapshot_is_written(const ls_snapshot_state *s, int64_t steps) {
    return is_at(s, steps, LS_SNAPSHOT_WRITTEN);
}

bool ls_snapshot_has_failed(const ls_snapshot_state *s) {
    ls_snapshot_mark m = atomic_load(&s->mark);
    return m.phase == LS_SNAPSHOT_FAILED;
}

void ls_snapshot_ask_share(const ls_snapshot_run *r, int worker, int64_t steps, int64_t *asked_p) {
    if (worker != r->first || worker >= nwriters(r->plan)) return;
    *asked_p = steps;
    want(r->state, steps, true);
}

enum { ATTEMPT = 0, PENDING = LS_SNAPSHOT_PENDING, HAS_FAILED = LS_SNAPSHOT_FAILURE };
enum { FIRST_IS_PENDING = 1, ANOTHER_IS_PENDING = 2 };

void ls_snapshot_say(const ls_snapshot_run *r, int worker, int64_t asked, int32_t *words) {
    const ls_snapshot_state *s = r->state;
    memset(words, 0, LS_SNAPSHOT_WORDS * sizeof *words);
    if (!s || worker != r->first) return;
    if (worker == 0 && asked >= 0) words[ATTEMPT] = (int32_t)atomic_load(&s->attempt);
    if (ls_snapshot_is_pending(s))
        words[PENDING] = worker == 0 ? FIRST_IS_PENDING : ANOTHER_IS_PENDING;
    /* Read last, since a snapshot is pending before it fails. */
    if (asked >= 0 && is_at(s, asked, LS_SNAPSHOT_FAILED))
        words[HAS_FAILED] = 1 + worker + (atomic_load(&s->was_killed) ? LS_SNAPSHOT_WAS_KILLED : 0);
}

void ls_snapshot_hear(const ls_snapshot_run *r, int worker, int64_t asked, const int32_t *words) {
    ls_snapshot_state *s = r->state;
    if (asked < 0 || !ls_snapshot_is_pending(s)) return;
    if (words[HAS_FAILED]) {
        atomic_store(&s->failure, words[HAS_FAILED]);
        set_peers(s, LS_PEERS_FAILED);
    } else if (worker == 0) {
        if (words[PENDING] != ANOTHER_IS_PENDING) set_peers(s, LS_PEERS_WRITTEN);
    } else if (words[ATTEMPT] && atomic_load(&s->peers) == LS_PEERS_SILENT) {
        atomic_store(&s->attempt, (uint32_t)words[ATTEMPT]);
        set_peers(s, LS_PEERS_OPENED);
    }
}
