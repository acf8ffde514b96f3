/* supervise.c - see supervise.h. */
#include "net/supervise.h"

#include <string.h>
#include <time.h>

#include "base/log.h"

void ls_supervisor_begin(ls_supervisor *s, ls_region *region) {
    *s = (ls_supervisor){.region = region};
    sigemptyset(&s->waited);
    sigaddset(&s->waited, SIGCHLD);
    sigaddset(&s->waited, SIGINT);
    sigaddset(&s->waited, SIGTERM);
    sigaddset(&s->waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &s->waited, &s->before);
}

ls_supervisor_event ls_supervisor_wait(ls_supervisor *s) {
    struct timespec moment = {.tv_nsec = 100 * 1000 * 1000};
    int got = sigtimedwait(&s->waited, NULL, &moment);
    if (got != SIGINT && got != SIGTERM && got != SIGHUP) return LS_SUPERVISOR_LOOK;
    if (++s->interrupts == 1) {
        ls_log("%s: stopping after this step, with a checkpoint; again to end at once",
               strsignal(got));
        atomic_store(&s->region->header->stop, 1);
        return LS_SUPERVISOR_LOOK;
    }
    ls_error e = {0};
    ls_fail(&e, LS_EABORT, "interrupted twice: ended at once, without a checkpoint");
    ls_region_fail(s->region, -1, &e);
    return LS_SUPERVISOR_END_NOW;
}

ls_status ls_supervisor_end(ls_supervisor *s, ls_error *e) {
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    int worker = -1;
    return ls_region_failed(s->region, &worker, e) ? e->code : LS_OK;
}
