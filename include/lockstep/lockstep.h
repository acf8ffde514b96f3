/* lockstep.h - the public face of liblockstep.
 *
 * Data-parallel training that gives the same bits for any number of workers. This header has what
 * every caller needs: the version, and how errors are reported. Names that start with ls_ or
 * LS_ are ours.
 */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#ifdef __cplusplus
extern "C" {
/* After a member: it is 0 unless an initializer names it (so C++ compilers don't warn). */
#define LS_UNSET = {}
#else
#define LS_UNSET
#endif

#define LS_VERSION_MAJOR 0
#define LS_VERSION_MINOR 1
#define LS_VERSION_PATCH 0
#define LS_VERSION       "0.1.0"

/* Any function may be called with NULL in place of a group, a trainer, a table or a model: it
 * returns LS_EINVAL, 0, false or NULL, and does nothing.
 *
 * What a function returns: LS_OK, or what failed. The code alone says what can still be used: above
 * LS_EPEER only this call failed, and nothing else changed; with LS_EPEER and below the outputs are
 * undefined, and the group can only be closed. */
typedef enum ls_status {
    LS_OK = 0,
    LS_EINVAL = -1,     /* a bad argument or bad input                  } this call failed; */
    LS_ENOMEM = -2,     /* out of memory                                } nothing else      */
    LS_EIO = -3,        /* a file could not be read/written             } changed           */
    LS_EPENDING = -4,   /* a call is still in flight: wait for it again }                   */
    LS_EPEER = -20,     /* a worker is lost             }                                   */
    LS_ETIMEOUT = -40,  /* a wait ran out               } the whole group can't be used     */
    LS_EABORT = -41,    /* group aborted                } any more                          */
    LS_EDISAGREE = -42, /* workers made different calls }                                   */
    LS_EBROKEN = -43,   /* messages can't be moved here }                                   */
} ls_status;

/* An error as a value: the function that first decides it fills it in, callers pass it up. */
typedef struct ls_error {
    ls_status code;
    int line;         /* the place in the library's source that decided it: */
    const char *file; /* static text, the path as it was passed to the compiler */
    char msg[512];    /* one line for the user: what, where, what to do */
} ls_error;

/* The library's version, e.g. "0.1.0". Any thread; never fails. */
const char *ls_version(void);

/* A status in words, e.g. "bad input". Any thread; never fails. */
const char *ls_status_name(ls_status code);

#ifdef __cplusplus
}
#endif
#endif
