/* cache.c - see cache.h. A file's access time tells when it was used: it is set here, since a
 * filesystem may not. */
#include "base/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

static const char LOCK[] = "lock";
static const time_t DAY = 24 * 60 * 60, OLD = 30 * DAY;

char *ls_cache_dir(const char *cache, const char *name) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache) return ls_format("%s/%s", cache, name);
    if (xdg && *xdg) return ls_format("%s/lockstep/%s", xdg, name);
    return ls_format("%s/.cache/lockstep/%s", home && *home ? home : "/var/tmp", name);
}

/* One file has all locks: each is a byte of it, whose offset is a part of the hash. Open file
 * descriptions own them, so threads exclude each other, too. */
ls_status ls_cache_lock(const char *dir, ls_hash what, int *lock_p, ls_error *e) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    l.l_start = (off_t)(what.lo >> 2);
    LS_TRY(ls_file_make_dirs(dir, e));
    char *path = ls_format("%s/%s", dir, LOCK);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666), got = fd;
    while (fd >= 0 && (got = fcntl(fd, F_OFD_SETLKW, &l)) != 0 && errno == EINTR) continue;
    ls_status s = LS_OK;
    if (got < 0) {
        s = ls_fail(e, LS_EIO, "%s: can't be locked: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
    }
    free(path);
    if (s == LS_OK) *lock_p = fd;
    return s;
}

/* Not each time: it changes the file's state (base/stamp.h), by which others see that it is
 * whole. */
void ls_cache_touch(int fd) {
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_atime > time(NULL) - DAY) return;
    (void)futimens(fd, times); /* another user's file: it can't be noted */
}

void ls_cache_remove_old(const char *dir) {
    DIR *d = opendir(dir);
    time_t now = time(NULL);
    struct stat st;
    if (!d) return;
    for (struct dirent *entry; (entry = readdir(d));)
        if (strcmp(entry->d_name, LOCK) != 0 &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_atime < now - OLD)
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
}
