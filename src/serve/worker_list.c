/* worker_list.c - see worker_list.h. */
#include "serve/worker_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/page_name.h"

/* NEAR: a worker that has had a prompt's beginning is preferred to one with up to this many replies
 * fewer; STARTS: failed starts in a row before the first pause, of PAUSE_MS; it doubles with each
 * further one, up to MOST_MS. */
enum { NEAR = 2, STARTS = 3, PAUSE_MS = 100, MOST_MS = 10000 };

/* ---- starting ---- */

static int run_worker(void *arg, int number, int fd) {
    const ls_worker_list *w = arg;
    return ls_worker_run(w->o, number, fd);
}

ls_status ls_worker_list_open(ls_worker_list *w, const ls_worker_options *o, ls_error *e) {
    w->o = o;
    w->places = o->engine.texts;
    w->list = LS_NEW_ARRAY(ls_worker_process, (size_t)o->n);
    for (int i = 0; i < o->n; i++) w->list[i] = (ls_worker_process){.number = i, .fd = -1};
    LS_TRY(ls_fork_server_open("serve", o->n, run_worker, w, &w->forks, e));
    for (int i = 0; i < o->n; i++) LS_TRY(ls_fork_server_start(w->forks, i, &w->list[i].fd, e));
    return LS_OK;
}

void ls_worker_list_close(ls_worker_list *w) {
    ls_fork_server_close(w->forks);
    for (int i = 0; w->list && i < w->o->n; i++) {
        if (w->list[i].fd >= 0) close(w->list[i].fd);
        ls_buf_free(&w->list[i].out);
        ls_buf_free(&w->list[i].come);
    }
    free(w->list);
}

static int64_t pause_ms(int failures) {
    int64_t ms = PAUSE_MS;
    if (failures < STARTS) return 0;
    for (int i = STARTS; i < failures && ms < MOST_MS; i++) ms *= 2;
    return ms < MOST_MS ? ms : MOST_MS;
}

static void note_failure(ls_worker_process *x) {
    int64_t ms = pause_ms(++x->failures);
    x->start_at_ns = ls_clock_ns() + ms * 1000000;
    if (ms)
        ls_log("serve: worker %d has not begun %d times in a row; it is started again in %.1f s",
               x->number, x->failures, (double)ms / 1e3);
}

/* If the process that forks workers was killed too, starts a new one. */
static void start(ls_worker_list *w, ls_worker_process *x) {
    ls_error e = {0};
    ls_status s = w->forks ? ls_fork_server_start(w->forks, x->number, &x->fd, &e) : LS_EIO;
    if (s != LS_OK) {
        ls_fork_server_close(w->forks);
        w->forks = NULL;
        s = ls_fork_server_open("serve", w->o->n, run_worker, w, &w->forks, &e);
        if (s == LS_OK) s = ls_fork_server_start(w->forks, x->number, &x->fd, &e);
    }
    if (s == LS_OK) return;
    x->fd = -1;
    ls_log("serve: %s", e.msg);
    note_failure(x);
}

void ls_worker_list_restart(ls_worker_list *w) {
    for (int i = 0; i < w->o->n; i++) {
        ls_worker_process *x = &w->list[i];
        if (x->fd < 0 && ls_clock_ns() >= x->start_at_ns) start(w, x);
    }
}

int ls_worker_list_pause(const ls_worker_list *w) {
    int64_t least = INT64_MAX, now = ls_clock_ns();
    for (int i = 0; i < w->o->n; i++)
        if (w->list[i].fd < 0 && w->list[i].start_at_ns < least) least = w->list[i].start_at_ns;
    if (least == INT64_MAX) return -1;
    return least > now ? (int)((least - now) / 1000000 + 1) : 0;
}

/* ---- choosing ---- */

static ls_page_name beginning_of(const ls_reply *r) {
    ls_page_name start = ls_page_name_start(r->adapter);
    return ls_page_name_of(&start, r->tokens, LS_BEGINNING);
}

static bool has_begun(const ls_worker_process *x, const ls_page_name *name) {
    size_t n = x->nbegun < LS_BEGINNINGS ? x->nbegun : LS_BEGINNINGS;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&x->begun[i], name, sizeof *name) == 0) return true;
    return false;
}

ls_worker_process *ls_worker_list_choose(const ls_worker_list *w, const ls_reply *r) {
    ls_worker_process *best = NULL;
    int least = 0;
    bool is_long = r->nprompt > LS_BEGINNING;
    ls_page_name name = {0};
    if (is_long) name = beginning_of(r);
    for (int i = 0; i < w->o->n; i++) {
        ls_worker_process *x = &w->list[i];
        if (!x->ready || x->nreplies >= w->places) continue;
        int n = x->nreplies - (is_long && has_begun(x, &name) ? NEAR : 0);
        if (best && n >= least) continue;
        best = x;
        least = n;
    }
    if (best && is_long && !has_begun(best, &name))
        best->begun[best->nbegun++ % LS_BEGINNINGS] = name;
    return best;
}

/* ---- bytes ---- */

void ls_worker_send(ls_worker_process *x) {
    while (x->sent < x->out.len) {
        ssize_t n = send(x->fd, x->out.data + x->sent, x->out.len - x->sent, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* try again later; if the worker has ended, ls_worker_receive() finds it */
        x->sent += (size_t)n;
    }
    x->sent = x->out.len = 0;
}

bool ls_worker_receive(ls_worker_list *w, ls_worker_process *x) {
    ssize_t n = 0;
    while ((n = recv(x->fd, w->part, sizeof w->part, 0)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) ls_buf_append(&x->come, w->part, (size_t)n);
    return n < 0 && errno == EAGAIN;
}

void ls_worker_clear(ls_worker_process *x) {
    close(x->fd);
    if (!x->ready) note_failure(x);
    x->fd = -1;
    x->ready = false;
    x->nreplies = 0;
    x->out.len = x->sent = x->come.len = x->nbegun = 0;
    x->counts = (ls_engine_counts){0};
}
