/* admission.h - the first messages between a host that joins a run and the host that it joins, by
 * which each checks that both take part in the same run.
 *
 *     the host that joins                    the host that it joins
 *     HELLO                             -->
 *                                       <--  its settings, and what it knows of the run
 *     its own; or REFUSES, and why      -->
 *
 * With sync.mode all_reduce, supervisors meet (cluster/links.h); with async and ssp, a worker meets
 * the servers (async/wire.h). The kinds of frames differ, but not their contents, so a host that
 * meets the other kind also learns what differs.
 *
 * Settings are text: lines of a name, a space and a value. After those of the config come those of
 * the run and its data (storage/identity.h), which a host lacks until the run has begun there.
 */
#ifndef LS_NET_TCP_ADMISSION_H
#define LS_NET_TCP_ADMISSION_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

enum {
    LS_GREET_HOST = 21,           /* HELLO of a supervisor, with LS_GREET_HOST_NBYTES */
    LS_GREET_HOST_SETTINGS = 23,  /* and the answer */
    LS_GREET_WORKER = 41,         /* HELLO of a worker, with LS_GREET_WORKER_NBYTES */
    LS_GREET_WORKER_SETTINGS = 42 /* and the answer */
};
enum {
    LS_GREET_HOST_NBYTES = 16,
    LS_GREET_WORKER_NBYTES = 32,
    LS_SETTINGS_NBYTES = 16384, /* the longest text of a config's settings */
    LS_ADMISSION_NBYTES = LS_SETTINGS_NBYTES + 256,
    LS_REFUSAL_NBYTES = 256 /* of REFUSES, at most */
};

/* What both hosts must have in common. */
typedef struct ls_admission {
    const char *settings; /* of the config */
    /* Appends what this host knows of the run. joins: it first reads the run's data, all of it.
     * NULL: it knows nothing. */
    ls_status (*identity)(void *arg, bool joins, ls_buf *out, ls_error *);
    void *arg;
} ls_admission;

/* Are the texts of two hosts or workers, `us` and `them`, the same? LS_EINVAL: what differs. */
ls_status ls_admission_compare(const char *own, const char *theirs, const char *us,
                               const char *them, ls_error *);
/* LS_EINVAL: the config has more than LS_SETTINGS_NBYTES. */
ls_status ls_admission_check_size(const ls_admission *, ls_error *);
/* The text for the host that joins. */
void ls_admission_write(const ls_admission *, ls_buf *out);
/* The text of this host, which joins one with `theirs`. LS_EINVAL: it does not match; the message
 * names what differs. Other errors are those of identity(). */
ls_status ls_admission_answer(const ls_admission *, const char *theirs, ls_buf *out, ls_error *);
/* Does the text of a host that joins match? `name`: the host. LS_EINVAL as above. */
ls_status ls_admission_check(const ls_admission *, const char *name, const char *theirs,
                             ls_error *);

#endif
