/* snapshot.c - see snapshot.h. */
#include "train/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "net/launch.h"
#include "net/process.h"
#include "train/checkpoint.h"
#include "train/run.h"

enum { MAX_TOKENIZER = 64 << 20, NICE = 10, MOST_TRIES = 20 };
static const int64_t LOOK_NS = (int64_t)3 * 1000000000;

/* Is what was asked for neither written nor given up? */
static bool is_pending(const ls_store *s) {
    int64_t wanted = ls_store_get(s, LS_STORE_WANTED), written = ls_store_get(s, LS_STORE_WRITTEN);
    return wanted != written && wanted != -written;
}

/* ---- the writer ---- */

static ls_status write_copy(const ls_run *r, ls_train_state *state, ls_error *e) {
    char *path = ls_format("%s/tokenizer.json", r->dir);
    ls_buf tokenizer = {0};
    ls_status s = ls_file_read(path, MAX_TOKENIZER, &tokenizer, e);
    ls_checkpoint_extra x = {
        .tokenizer = &tokenizer, .config = &r->config_text, .keep = r->config.checkpoint.keep};
    if (s == LS_OK) s = ls_checkpoint_write(r->dir, state, &x, e);
    ls_buf_free(&tokenizer);
    free(path);
    return s;
}

static ls_status copy_and_write(const ls_run *r, int64_t steps, ls_error *e) {
    size_t n = r->model.nfloats;
    void *copy = NULL;
    ls_scaler scaler = {0};
    LS_TRY(ls_map(3 * n * sizeof(float), "a copy of the state, to be written", &copy, e));
    float *flat = copy;
    LS_TRY(ls_store_copy(r->store, steps, flat, flat + n, flat + 2 * n, &scaler, e));
    ls_store_set(r->store, LS_STORE_COPIED, steps + 1);
    ls_train_state state = {
        .model = &r->model, .step = steps, .params = flat, .m = flat + n, .v = flat + 2 * n};
    if (ls_run_has_scale(r)) state.scaler = scaler;
    return write_copy(r, &state, e);
}

static _Noreturn void writer(const ls_run *r, int64_t steps) {
    ls_error e = {0};
    if (nice(NICE) < 0) errno = 0; /* then as urgent as the workers */
    ls_status s = copy_and_write(r, steps, &e);
    if (s != LS_OK) ls_log("the checkpoint of step %lld failed: %s", (long long)steps, e.msg);
    _exit(s == LS_OK ? 0 : 1);
}

/* ---- who starts it ---- */

static void finish(ls_snapshot *x, const ls_run *r, bool good) {
    int64_t mark = x->steps + 1;
    ls_store_set(r->store, LS_STORE_COPIED, mark);
    ls_store_set(r->store, LS_STORE_WRITTEN, good ? mark : -mark);
    x->writer = (ls_child){0};
}

static void start(ls_snapshot *x, const ls_run *r) {
    pid_t pid = ls_child_start(&x->writer, NULL);
    if (pid == 0) writer(r, x->steps);
    x->tries++;
    if (pid > 0) return;
    ls_log("the checkpoint of step %lld failed: no process to write it: %s", (long long)x->steps,
           strerror(errno));
    finish(x, r, false);
}

/* While workers wait for the copy, the state is there to be copied again. */
static void on_end(ls_snapshot *x, const ls_run *r, int how) {
    bool copied = ls_store_get(r->store, LS_STORE_COPIED) == x->steps + 1;
    if (WIFSIGNALED(how) && !copied && x->tries < MOST_TRIES) {
        start(x, r);
        return;
    }
    if (WIFSIGNALED(how))
        ls_log("the checkpoint of step %lld failed: its writer was killed by signal %d (%s)",
               (long long)x->steps, WTERMSIG(how), strsignal(WTERMSIG(how)));
    finish(x, r, WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

void ls_snapshot_attend(ls_snapshot *x, const ls_run *r) {
    int how = 0;
    if (x->writer.pid && ls_child_ended(&x->writer, r->survival.heartbeat_s, &how))
        on_end(x, r, how);
    if (x->writer.pid || !is_pending(r->store)) return;
    x->steps = ls_store_get(r->store, LS_STORE_WANTED) - 1;
    x->tries = 0;
    start(x, r);
}

ls_status ls_snapshot_now(const ls_run *r, int64_t steps, ls_error *e) {
    int64_t newest = -1;
    char *path = NULL;
    if (ls_checkpoint_newest(r->dir, &path, &newest, NULL) == LS_OK) free(path);
    return newest >= steps ? LS_OK : copy_and_write(r, steps, e);
}

void ls_snapshot_close(ls_snapshot *x, const ls_run *r) {
    while (x->writer.pid) {
        ls_snapshot_attend(x, r);
        usleep(1000);
    }
}

/* ---- workers ---- */

bool ls_snapshot_ask(ls_store *s, int64_t steps) {
    int64_t written = ls_store_get(s, LS_STORE_WRITTEN), wanted = ls_store_get(s, LS_STORE_WANTED);
    if (wanted == steps + 1 && written != -wanted) return true; /* asked for already */
    if (is_pending(s)) return false;
    ls_store_set(s, LS_STORE_WANTED, steps + 1);
    ls_launch_nudge();
    return true;
}

/* Nothing is copied while who starts the writer is stopped. Other hosts then go on without this
 * one, and need the folder, whose lock this worker may have: it ends. */
static void wait_a_little(int64_t *looked_ns, unsigned us) {
    int64_t now = ls_clock_ns();
    usleep(us);
    if (now - *looked_ns < LOOK_NS) return;
    *looked_ns = now;
    if (ls_process_is_stopped(getppid())) _exit(1);
}

void ls_snapshot_wait_copied(const ls_store *s) {
    int64_t looked_ns = ls_clock_ns();
    while (ls_store_get(s, LS_STORE_COPIED) < ls_store_get(s, LS_STORE_WANTED))
        wait_a_little(&looked_ns, 200);
}

ls_status ls_snapshot_wait_written(const ls_store *s, ls_error *e) {
    int64_t looked_ns = ls_clock_ns();
    while (is_pending(s)) wait_a_little(&looked_ns, 1000);
    int64_t wanted = ls_store_get(s, LS_STORE_WANTED);
    if (ls_store_get(s, LS_STORE_WRITTEN) == wanted) return LS_OK;
    return ls_fail(e, LS_EIO, "the checkpoint of step %lld could not be written",
                   (long long)wanted - 1);
}
