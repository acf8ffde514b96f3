/* identity.h - two lines of text by which hosts see that they take part in the same run:
 *
 *     run 5f0c...    the number of RUN/lock (lock.h)
 *     data 31d2...   the hash of what the run is trained on, as RUN records it
 */
#ifndef LS_STORAGE_IDENTITY_H
#define LS_STORAGE_IDENTITY_H

#include "dataset/dataset.h"

/* Appends the lines; nothing if the directory has no run yet. LS_EINVAL, LS_EIO: its files are
 * damaged, or can't be read. */
ls_status ls_identity_write(const char *dir, const ls_config *, ls_buf *out, ls_error *);
/* For a host that joins a run that has begun. LS_EINVAL: the directory has no run; the message says
 * what to do. */
ls_status ls_identity_require(const char *dir, ls_error *);
/* Appends the lines. LS_EINVAL: as above, or it lacks its record of data. */
ls_status ls_identity_of_run(const char *dir, const ls_config *, ls_buf *out, ls_error *);
/* As ls_identity_of_run(), but first reads all of the run's data. LS_EINVAL: also if that is not
 * the data of the record. */
ls_status ls_identity_check(const char *dir, const ls_config *, const ls_model *, ls_buf *out,
                            ls_error *);

#endif
