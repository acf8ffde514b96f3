/* stop.c - see stop.h. */
#include "net/launch/stop.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/launch/child.h"

enum { STOPPED = 75 }; /* the exit code: start it again */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = sizeof numbers / sizeof *numbers };

static volatile sig_atomic_t recorded, records; /* recorded: a signal's number; 0: none */
static int64_t recorded_ns;                     /* of ls_stop_again() */

enum { AGAIN_NS = 500 * 1000 * 1000 };

bool ls_stop_again(int number, int64_t *first_ns) {
    int64_t now = ls_clock_ns();
    if (number == SIGHUP) return false;
    if (!*first_ns) *first_ns = now;
    return now - *first_ns >= AGAIN_NS;
}

/* From a signal handler; a terminal that does not take it must not hold up the end. */
static _Noreturn void end_at_once(const char *text, size_t nbytes, int code) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t ignored = poll(&p, 1, 0) > 0 ? write(STDERR_FILENO, text, nbytes) : 0;
    (void)ignored;
    _exit(code);
}

static void on_stop(int number) {
    static const char early[] = "lockstep: interrupted before the first step; nothing was written: "
                                "the same command begins again\n";
    static const char twice[] = "lockstep: interrupted twice: ended at once\n";
    if (!records) end_at_once(early, sizeof early - 1, STOPPED);
    if (!recorded) recorded_ns = 0;
    if (ls_stop_again(number, &recorded_ns)) end_at_once(twice, sizeof twice - 1, 1);
    recorded = number;
}

static void set_all(void (*handler)(int)) {
    for (int i = 0; i < NSIGNALS; i++)
        if (!ls_process_ignores(numbers[i]))
            sigaction(numbers[i],
                      &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
}

void ls_stop_begin(void) {
    recorded = records = 0;
    set_all(on_stop);
    ls_process_heed_usr1();
}

void ls_stop_record(void) { records = 1; }

void ls_stop_repeat(void) {
    int number = recorded;
    recorded = 0;
    if (number) raise(number);
}

void ls_stop_end(void) {
    set_all(SIG_DFL);
    ls_stop_repeat();
}
