/* fresh.c - see fresh.h. */
#include "base/fresh.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- signals ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = sizeof signals / sizeof *signals, MOST_TRIES = 1000 };

/* The thread that waits for a signal. */
static struct {
    pthread_t thread;
    int pipe[2]; /* a byte: the signal's number; 0: no longer needed */
    bool caught[NSIGNALS];
    bool runs;
    atomic_bool came; /* a signal */
    const char *hidden;
} watch;

static void on_signal(int number) {
    int before = errno;
    unsigned char byte = (unsigned char)number;
    atomic_store(&watch.came, true);
    ssize_t ignored = write(watch.pipe[1], &byte, 1);
    (void)ignored;
    errno = before;
}

/* While other threads still write into it, it is removed again and again. */
static void *wait_for_signal(void *arg) {
    unsigned char number = 0;
    (void)arg;
    while (read(watch.pipe[0], &number, 1) < 0 && errno == EINTR) {
    }
    if (!number) return NULL;
    for (int i = 0; i < MOST_TRIES && ls_file_exists(watch.hidden); i++)
        ls_file_remove_tree(watch.hidden, NULL);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    for (;;) pause();
}

/* After a signal the program ends here. */
static void end_if_signalled(void) {
    while (atomic_load(&watch.came)) pause();
}

static void release_signals(void) {
    for (int i = 0; i < NSIGNALS; i++)
        if (watch.caught[i]) signal(signals[i], SIG_DFL);
}

static void catch_signals(void) {
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, now;
    for (int i = 0; i < NSIGNALS; i++) {
        bool free = sigaction(signals[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
                    now.sa_handler == SIG_DFL;
        watch.caught[i] = free && sigaction(signals[i], &ours, NULL) == 0;
    }
}

/* False: it can't be watched, or another one is. */
static bool watch_begin(const char *hidden) {
    if (watch.runs || pipe2(watch.pipe, O_CLOEXEC) != 0) return false;
    watch.hidden = hidden;
    watch.runs = pthread_create(&watch.thread, NULL, wait_for_signal, NULL) == 0;
    if (watch.runs)
        catch_signals();
    else
        for (int i = 0; i < 2; i++) close(watch.pipe[i]);
    return watch.runs;
}

static void watch_end(void) {
    release_signals();
    unsigned char none = 0;
    ssize_t ignored = write(watch.pipe[1], &none, 1);
    (void)ignored;
    pthread_join(watch.thread, NULL); /* after a signal, the program ends here */
    for (int i = 0; i < 2; i++) close(watch.pipe[i]);
    watch.runs = false;
}

/* ---- names ---- */

static char *trimmed(const char *path) {
    char *copy = ls_strdup(path);
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/') copy[--n] = 0;
    return copy;
}

static char *parent_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ls_strdup(".");
    return slash == path ? ls_strdup("/") : ls_format("%.*s", (int)(slash - path), path);
}

/* ---- what a killed program left ---- */

/* Removes a hidden directory whose lock is free. */
static void remove_free(const char *hidden) {
    int fd = open(hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) ls_file_remove_tree(hidden, NULL);
    if (fd >= 0) close(fd);
}

static void remove_left(const char *parent, const char *name) {
    DIR *d = opendir(parent);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (!ls_file_is_fresh_name(entry->d_name, name)) continue;
        char *hidden = ls_format("%s/%s", parent, entry->d_name);
        remove_free(hidden);
        free(hidden);
    }
    if (d) closedir(d);
}

/* ---- one file or directory ---- */

/* Makes and locks a hidden directory. *made_p is false if another program removed it before it was
 * locked. Some file systems have no locks: there no program removes it. */
static ls_status make_hidden(ls_fresh *f, bool *made_p, ls_error *e) {
    *made_p = false;
    LS_TRY(ls_file_fresh_name(f->path, &f->hidden, e));
    if (mkdir(f->hidden, 0700) != 0)
        return errno == EEXIST
                   ? LS_OK
                   : ls_fail(e, LS_EIO, "%s: can't be created: %s", f->path, strerror(errno));
    f->fd = open(f->hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd >= 0) flock(f->fd, LOCK_EX);
    *made_p = f->fd >= 0 && ls_file_is_at(f->fd, f->hidden);
    return LS_OK;
}

static void release(ls_fresh *f) {
    if (f->fd >= 0) close(f->fd);
    free(f->hidden);
    f->hidden = NULL;
    f->fd = -1;
}

static ls_status begin(ls_fresh *f, ls_fresh_kind kind, ls_error *e) {
    char *parent = parent_of(f->path);
    bool made = false;
    ls_status s = ls_file_make_parent(f->path, e);
    if (s == LS_OK) remove_left(parent, ls_file_name(f->path));
    free(parent);
    for (int i = 0; s == LS_OK && !made; i++) {
        release(f);
        s = i < MOST_TRIES ? make_hidden(f, &made, e)
                           : ls_fail(e, LS_EIO, "%s: other programs keep removing it", f->path);
    }
    LS_TRY(s);
    f->watched = watch_begin(f->hidden);
    f->at = ls_format("%s/%s", f->hidden, ls_file_name(f->path));
    if (kind == LS_FRESH_FILE || mkdir(f->at, 0777) == 0) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be created: %s", f->path, strerror(errno));
}

ls_status ls_fresh_begin(const char *path, ls_fresh_kind kind, ls_fresh *f_p, ls_error *e) {
    LS_TRY(ls_file_check_new(path, kind == LS_FRESH_FILE ? "file" : "directory", e));
    ls_fresh f = {.path = kind == LS_FRESH_FILE ? ls_strdup(path) : trimmed(path), .fd = -1};
    ls_status s = begin(&f, kind, e);
    if (s == LS_OK)
        *f_p = f;
    else
        ls_fresh_discard(&f);
    return s;
}

void ls_fresh_discard(ls_fresh *f) {
    if (!f->path) return;
    if (f->hidden) ls_file_remove_tree(f->hidden, NULL);
    if (f->watched) watch_end();
    release(f);
    free(f->path);
    free(f->at);
    *f = (ls_fresh){.fd = -1};
}

ls_status ls_fresh_end(ls_fresh *f, ls_error *e) {
    char *parent = parent_of(f->path);
    ls_status s = ls_file_is_dir(f->at) ? ls_file_sync_dir(f->at, e) : LS_OK;
    if (f->watched) end_if_signalled();
    if (s == LS_OK) s = ls_file_rename_new(f->at, f->path, e);
    if (s == LS_OK) s = ls_file_sync_dir(parent, e);
    free(parent);
    ls_fresh_discard(f);
    return s;
}
