/* readers.c - see readers.h. */
#include "device/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static void add(ls_readers **list, const ls_readers *r) {
    ls_readers *own = LS_NEW(ls_readers);
    *own = *r;
    own->next = *list;
    *list = own;
}

static ls_readers **find(ls_readers **at, const void *p, bool own) {
    while (*at && ((p && (*at)->p != p) || (*at)->own != own)) at = &(*at)->next;
    return at;
}

static void forget(ls_readers **at) {
    ls_readers *r = *at;
    *at = r->next;
    close(r->file);
    free(r);
}

ls_status ls_readers_share(ls_readers **list, const void *p, ls_readers_name *name, ls_error *e) {
    const ls_readers *has = *find(list, p, true);
    struct stat facts = {0};
    int file = has ? has->file : memfd_create("lockstep-device-readers", MFD_CLOEXEC);
    if (file < 0 || fstat(file, &facts) != 0)
        return ls_fail(e, LS_EIO, "no file to share a device's memory: %s", strerror(errno));
    if (!has) add(list, &(ls_readers){.p = p, .own = true, .file = file});
    *name = (ls_readers_name){(int)getpid(), file, (uint64_t)facts.st_ino};
    return LS_OK;
}

ls_status ls_readers_enter(const ls_readers_name *name, int *file_p, ls_error *e) {
    char path[64];
    struct stat facts = {0};
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->pid, name->file);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return ls_fail(e, LS_EIO, "a device's memory of process %d can't be opened: %s", name->pid,
                       strerror(errno));
    if (fstat(file, &facts) != 0 || (uint64_t)facts.st_ino != name->inode ||
        flock(file, LOCK_SH | LOCK_NB) != 0) {
        close(file);
        return ls_fail(e, LS_EIO, "a device's memory of process %d is freed", name->pid);
    }
    *file_p = file;
    return LS_OK;
}

void ls_readers_add(ls_readers **list, const void *p, int file) {
    add(list, &(ls_readers){.p = p, .file = file});
}

void ls_readers_leave(ls_readers **list, const void *p) {
    ls_readers **at = find(list, p, false);
    if (*at) forget(at);
}

static bool await_one(int file, int64_t until_ns) {
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec pause = {.tv_nsec = 1000 * 1000};
        if (ls_clock_ns() >= until_ns) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

bool ls_readers_await(ls_readers **list, const void *p, int64_t patience_ns) {
    int64_t until_ns = ls_clock_ns() + patience_ns;
    for (ls_readers **at; *(at = find(list, p, true)); forget(at))
        if (!await_one((*at)->file, until_ns)) return false;
    return true;
}

void ls_readers_free(ls_readers **list) {
    while (*list) forget(list);
}
