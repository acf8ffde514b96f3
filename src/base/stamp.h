/* stamp.h - the state of a file as stat() reports it, which shows cheaply whether a file that is
 * open, or about which something is known, has changed.
 *
 * A stamp is taken before the file is read. If the stamp is the same later, no program has written
 * to the file meanwhile (a disk that loses bits is not noticed). If it differs, the file's bytes
 * decide, or if the file was written to while it was in use, nothing more can be known. The change
 * time (ctime) reveals changes that a program hides by setting the modification time back; it also
 * changes with a link, a mode or a name.
 */
#ifndef LS_BASE_STAMP_H
#define LS_BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct ls_stamp {
    uint64_t nbytes, inode;
    int64_t mtime_ns, ctime_ns;
} ls_stamp;

ls_stamp ls_stamp_of(const struct stat *);
bool ls_stamp_same(const ls_stamp *, const ls_stamp *);
/* Is it the same file, of another size or modification time? */
bool ls_stamp_is_written(const ls_stamp *then, const ls_stamp *now);

#endif
