/* cache.h - the cache directory, which processes share: what is in it can be removed at any time,
 * and is made again. */
#ifndef LS_BASE_CACHE_H
#define LS_BASE_CACHE_H

#include "base/hash.h"
#include "base/mem.h"

/* The directory of this name in the cache; the caller frees it. cache NULL:
 * $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep. */
char *ls_cache_dir(const char *cache, const char *name);

/* Makes the directory and waits until no other process or thread has a lock for `what` in it. It is
 * held until *lock_p is closed; a process that ends releases it. LS_EIO: the directory can't be
 * written. */
ls_status ls_cache_lock(const char *dir, ls_hash what, int *lock_p, ls_error *);

/* Notes that a file of the cache was used, once a day. */
void ls_cache_touch(int fd);
/* Removes the files of the directory that were not used for 30 days. */
void ls_cache_remove_old(const char *dir);

#endif
