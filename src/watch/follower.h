/* follower.h - the lines of a file that another program appends to, each once.
 *
 * Only bytes that were appended are read. A line without its line break is left for the next time.
 * Bytes that are zero are left, too: a file system over a network may show a file's new length
 * before its bytes; if lines follow and the zeros stay for some seconds, the line with them is
 * passed over. The file is opened for each look, never locked, and may be missing.
 *
 * Lines may be taken back: a run that resumes cuts off those after its checkpoint, and a run may be
 * replaced. The follower notices when the bytes before its place are no longer those that it has
 * read; the user then moves it to an earlier place, or to the beginning.
 */
#ifndef LS_WATCH_FOLLOWER_H
#define LS_WATCH_FOLLOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_FOLLOW_GUARD = 64 };

/* The beginning of a line, and the bytes before it. */
typedef struct ls_follow_place {
    uint64_t at;
    char guard[LS_FOLLOW_GUARD]; /* [min(at, LS_FOLLOW_GUARD)] */
} ls_follow_place;

typedef struct ls_follower {
    char *path;
    ls_follow_place place;          /* the next line to read */
    bool unsettled;                 /* the file ends in part of a line, or in zeros */
    bool passes;                    /* a line that is too long has begun */
    double zeros_s;                 /* since when zeros are at the place; 0: none are */
    uint64_t device, inode, nbytes; /* of the file when it was last looked at */
    int64_t changed_ns;
} ls_follower;

/* Takes a line [n] without its line break, which begins at place `at`. 32 bytes behind it can be
 * read. */
typedef void ls_follow_use(void *arg, const char *line, size_t n, uint64_t at);

typedef enum ls_followed {
    LS_FOLLOWED_NOTHING, /* there are no new lines */
    LS_FOLLOWED_LINES,   /* there may be some: use() was called for each */
    LS_FOLLOWED_BACK     /* the bytes before the place have changed: nothing was read */
} ls_followed;

void ls_follower_open(ls_follower *, const char *path);
void ls_follower_close(ls_follower *);

/* Reads what is new; now_s: a clock. At most `most` bytes: call it again while it returns
 * LS_FOLLOWED_LINES. A file that can't be read has nothing new. */
ls_followed ls_follower_read(ls_follower *, double now_s, uint64_t most, ls_follow_use *,
                             void *arg);

/* Fills in the guard of a place in the file, whose `at` is set. */
void ls_follower_mark(const ls_follower *, ls_follow_place *);
/* Are the bytes before the place still those of its guard? */
bool ls_follower_holds(const ls_follower *, const ls_follow_place *);
/* The next line to read is there. */
void ls_follower_move(ls_follower *, const ls_follow_place *);

#endif
