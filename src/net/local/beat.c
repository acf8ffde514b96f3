/* beat.c - see beat.h. */
#include "net/local/beat.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { BEAT_MS = 100 };

struct ls_beat {
    ls_board_slot *slot;
    int stop_fd;
    pthread_t thread;
};

static void *run(void *arg) {
    const ls_beat *b = arg;
    struct pollfd stop = {.fd = b->stop_fd, .events = POLLIN};
    do atomic_store(&b->slot->beat_ns, ls_clock_ns());
    while (poll(&stop, 1, BEAT_MS) <= 0);
    return NULL;
}

ls_status ls_beat_start(ls_board_slot *slot, ls_beat **b_p, ls_error *e) {
    ls_beat *b = LS_NEW(ls_beat);
    atomic_store(&slot->pid, (int)getpid());
    *b = (ls_beat){.slot = slot, .stop_fd = eventfd(0, EFD_CLOEXEC)};
    int why = b->stop_fd < 0 ? errno : ls_thread_start(&b->thread, run, b);
    if (why) {
        if (b->stop_fd >= 0) close(b->stop_fd);
        free(b);
        return ls_fail(e, LS_ENOMEM, "can't start the heartbeat thread: %s", ls_thread_why(why));
    }
    *b_p = b;
    return LS_OK;
}

void ls_beat_stop(ls_beat *b) {
    if (!b) return;
    uint64_t one = 1;
    while (write(b->stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(b->thread, NULL);
    close(b->stop_fd);
    free(b);
}
