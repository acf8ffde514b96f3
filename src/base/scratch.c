/* scratch.c - see scratch.h. */
#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

ls_status ls_scratch_open(const char *dir, size_t nbytes, int *file_p, ls_error *e) {
    char *path = ls_format("%s/.lockstep-XXXXXX", dir);
    int file = mkstemp(path);
    int why = errno;
    if (file >= 0) unlink(path);
    free(path);
    if (file < 0)
        return ls_fail(e, LS_EIO, "%s: a file can't be created here: %s", dir, strerror(why));
    if (ftruncate(file, (off_t)nbytes) == 0) {
        *file_p = file;
        return LS_OK;
    }
    why = errno;
    close(file);
    return ls_fail(e, LS_EIO, "%s: a file of %.1f MB can't be created here: %s", dir,
                   (double)nbytes / 1e6, strerror(why));
}

ls_status ls_scratch_reserve(int file, const char *dir, size_t first, size_t nbytes, ls_error *e) {
    int why = nbytes ? posix_fallocate(file, (off_t)first, (off_t)nbytes) : 0;
    if (why == 0) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: has no room for another %.1f MB: %s", dir, (double)nbytes / 1e6,
                   strerror(why));
}

ls_status ls_scratch_map(int file, const char *dir, size_t nbytes, void **p_p, ls_error *e) {
    void *p = mmap(NULL, nbytes ? nbytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (p == MAP_FAILED)
        return ls_fail(e, LS_EIO, "%s: a file of %.1f MB can't be mapped: %s", dir,
                       (double)nbytes / 1e6, strerror(errno));
    *p_p = p;
    return LS_OK;
}
