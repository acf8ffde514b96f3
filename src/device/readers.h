/* readers.h - who has opened a device's memory.
 *
 * A driver may forbid that memory is freed which another process has mapped (CUDA does: what then
 * happens is not defined). So memory that is shared has a file, which whoever opens the memory
 * opens, too, and locks for readers (flock). Its owner frees the memory when it gets the lock for
 * itself. The kernel unlocks for a process that ends, in whatever way; so a reader that died is not
 * waited for.
 */
#ifndef LS_DEVICE_READERS_H
#define LS_DEVICE_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* How another process finds the file. */
typedef struct ls_readers_name {
    int pid, file;
    uint64_t inode; /* the number may be another file's by then */
} ls_readers_name;

/* Memory of a device: its own, which others may have opened, or another's, which it has. */
typedef struct ls_readers {
    struct ls_readers *next;
    const void *p;
    bool own;
    int file;
} ls_readers;

/* Of memory at p of this process. Once for each; again gives the same name. LS_EIO: no file can be
 * made. */
ls_status ls_readers_share(ls_readers **list, const void *p, ls_readers_name *name_p, ls_error *);

/* A lock for a reader, before it opens the memory. LS_EIO: the owner is gone, or has freed it. */
ls_status ls_readers_enter(const ls_readers_name *, int *file_p, ls_error *);
/* What was entered is for memory at p of this process. */
void ls_readers_add(ls_readers **list, const void *p, int file);
/* After the memory was closed: a reader less. */
void ls_readers_leave(ls_readers **list, const void *p);

/* Waits until nobody reads what is at p, NULL: all that is shared, and forgets it. False: somebody
 * still does after patience_ns. */
bool ls_readers_await(ls_readers **list, const void *p, int64_t patience_ns);

/* All locks of a device that is closed. */
void ls_readers_free(ls_readers **list);

#endif
