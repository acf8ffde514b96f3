/* waiting.c - see waiting.h. */
#include "base/waiting.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

static const int64_t AGAIN_NS = INT64_C(1000000000) * LS_WAITING_AGAIN_S;

static struct {
    char what[160];
    int64_t began_ns, after_ns;
    bool runs, over;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
} now;

/* Waits until that time or ls_waiting_end(). */
static void wait_until(int64_t ns) {
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    int failed = 0;
    while (!now.over && !failed) failed = pthread_cond_timedwait(&now.ended, &now.mutex, &t);
}

static void *watch(void *arg) {
    (void)arg;
    pthread_mutex_lock(&now.mutex);
    wait_until(now.began_ns + now.after_ns);
    if (!now.over) ls_log("%s ...", now.what);
    for (int64_t n = 1; !now.over; n++) {
        wait_until(now.began_ns + n * AGAIN_NS);
        if (now.over) break;
        n = (ls_clock_ns() - now.began_ns) / AGAIN_NS; /* more, if the process was stopped */
        ls_log("%s ... (%lld s so far)", now.what, (long long)n * LS_WAITING_AGAIN_S);
    }
    pthread_mutex_unlock(&now.mutex);
    return NULL;
}

void ls_waiting_begin(int64_t after_ns, const char *fmt, ...) {
    pthread_condattr_t monotonic;
    va_list args;
    va_start(args, fmt);
    vsnprintf(now.what, sizeof now.what, fmt, args);
    va_end(args);
    now.began_ns = ls_clock_ns();
    now.after_ns = after_ns;
    now.over = false;
    pthread_mutex_init(&now.mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&now.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    now.runs = pthread_create(&now.thread, NULL, watch, NULL) == 0; /* if not, nothing is logged */
}

void ls_waiting_end(void) {
    pthread_mutex_lock(&now.mutex);
    now.over = true;
    pthread_cond_signal(&now.ended);
    pthread_mutex_unlock(&now.mutex);
    if (now.runs) pthread_join(now.thread, NULL);
    pthread_cond_destroy(&now.ended);
    pthread_mutex_destroy(&now.mutex);
}

/* ---- waits that look by themselves ---- */

static const int64_t FIRST_NS = INT64_C(1000000000) * LS_WAITING_FIRST_S;

ls_waiting_report ls_waiting_report_begin(void) {
    int64_t now_ns = ls_clock_ns();
    return (ls_waiting_report){now_ns, now_ns + FIRST_NS};
}

bool ls_waiting_report_due(ls_waiting_report *r, int *s_p) {
    int64_t now_ns = ls_clock_ns(), waited = now_ns - r->began_ns;
    if (now_ns < r->next_ns) return false;
    while (r->next_ns <= now_ns) r->next_ns += r->next_ns - r->began_ns;
    *s_p = (int)(waited / 1000000000);
    return true;
}
