/* damage.h - records and files that are left out because they are damaged (data.damaged: skip):
 * their number, and the messages about the first ones.
 */
#ifndef LS_SOURCE_DAMAGE_H
#define LS_SOURCE_DAMAGE_H

#include "lockstep/lockstep.h"
#include "source/bytes.h"

enum { LS_DAMAGE_NAMED = 10 };

typedef struct ls_damage { /* zero-initialised: nothing is damaged */
    uint64_t n;
    char named[LS_DAMAGE_NAMED][sizeof(((ls_error *)0)->msg)]; /* the first messages */
} ls_damage;

/* Counts a record or file that is left out, as `why` says. */
void ls_damage_add(ls_damage *, const char *why);
/* Logs the first ones and, if there are more, how many. what: names the data. */
void ls_damage_note(const ls_damage *, const char *what);

/* Writes it to an index, and reads it from one. */
void ls_damage_put(const ls_damage *, ls_buf *);
void ls_damage_take(ls_damage *, ls_bytes *);

#endif
