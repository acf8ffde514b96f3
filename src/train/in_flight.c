/* in_flight.c - see in_flight.h. */
#include "train/in_flight.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cluster/workers.h"

enum { CHECK_MS = 1000 };

struct ls_in_flight {
    ls_in_flight_config c;
    int stop_fd;
    pthread_t thread;
    atomic_llong began_ns; /* 0: no step is in flight */
    atomic_llong step;     /* from 1 */
    /* used only by the thread */
    int64_t logged;   /* the step of the latest line */
    double next_s;    /* when the next line is due */
    bool logged_stop; /* a line says that the run waits for this step */
};

/* "0:42", "1:03:10". */
static void write_time(double seconds, char *text, size_t nbytes) {
    long long s = (long long)seconds;
    if (s < 3600)
        snprintf(text, nbytes, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(text, nbytes, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

static bool is_asked_to_stop(const ls_in_flight *f) {
    return ls_interrupted() || atomic_load(&f->c.slot->asked) == LS_ASKED_STOP;
}

static void log_stop(ls_in_flight *f, int64_t step, const char *time) {
    f->logged_stop = true;
    ls_log(
        "interrupted: waiting for step %lld, in flight for %s; after %g s (survival.stop_s) it is "
        "given up, and repeated when the run continues; interrupt again to end at once",
        (long long)step, time, f->c.stop_s);
}

/* On a terminal the line is updated in place; elsewhere the intervals between lines grow. */
static void check(ls_in_flight *f) {
    int64_t began = atomic_load(&f->began_ns), step = atomic_load(&f->step);
    double seconds = (double)(ls_clock_ns() - began) / 1e9;
    char time[32];
    if (!began) return;
    if (step != f->logged) {
        f->logged = step;
        f->next_s = f->c.after_s;
        f->logged_stop = false;
    }
    write_time(seconds, time, sizeof time);
    if (!f->logged_stop && is_asked_to_stop(f)) log_stop(f, step, time);
    if (seconds < f->next_s) return;
    ls_log_status("step %lld/%lld  in flight, running %s", (long long)step, (long long)f->c.steps,
                  time);
    if (!ls_log_is_terminal()) f->next_s = f->next_s < 60 ? 3 * f->next_s : f->next_s + 60;
}

static void *watch(void *arg) {
    ls_in_flight *f = arg;
    struct pollfd stop = {.fd = f->stop_fd, .events = POLLIN};
    while (poll(&stop, 1, CHECK_MS) <= 0) check(f);
    return NULL;
}

ls_status ls_in_flight_open(const ls_in_flight_config *c, ls_in_flight **f_p, ls_error *e) {
    ls_in_flight *f = LS_NEW(ls_in_flight);
    f->c = *c;
    f->stop_fd = eventfd(0, EFD_CLOEXEC);
    int why = f->stop_fd < 0 ? errno : ls_thread_start(&f->thread, watch, f);
    if (why) {
        if (f->stop_fd >= 0) close(f->stop_fd);
        free(f);
        return ls_fail(e, LS_ENOMEM, "no thread to watch the step in flight: %s",
                       ls_thread_why(why));
    }
    *f_p = f;
    return LS_OK;
}

void ls_in_flight_close(ls_in_flight *f) {
    uint64_t one = 1;
    if (!f) return;
    while (write(f->stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(f->thread, NULL);
    close(f->stop_fd);
    free(f);
}

void ls_in_flight_begin(ls_in_flight *f, int64_t step) {
    if (!f) return;
    atomic_store(&f->step, step + 1);
    atomic_store(&f->began_ns, ls_clock_ns());
}

void ls_in_flight_end(ls_in_flight *f) {
    if (f) atomic_store(&f->began_ns, 0);
}
