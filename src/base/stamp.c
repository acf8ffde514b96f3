/* stamp.c - see stamp.h. */
#include "base/stamp.h"

static int64_t ns_of(const struct timespec *t) {
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

ls_stamp ls_stamp_of(const struct stat *st) {
    return (ls_stamp){(uint64_t)st->st_size, (uint64_t)st->st_ino, ns_of(&st->st_mtim),
                      ns_of(&st->st_ctim)};
}

bool ls_stamp_same(const ls_stamp *a, const ls_stamp *b) {
    return a->nbytes == b->nbytes && a->inode == b->inode && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

bool ls_stamp_is_written(const ls_stamp *then, const ls_stamp *now) {
    return then->inode == now->inode &&
           (then->nbytes != now->nbytes || then->mtime_ns != now->mtime_ns);
}
