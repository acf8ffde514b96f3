/* damage.h - what is left out because it is damaged (data.damaged: skip): how many, and the messages
 * about the first ones.
 */
#ifndef LS_SOURCE_DAMAGE_H
#define LS_SOURCE_DAMAGE_H

#include <stdint.h>

#include "base/mem.h"

enum { LS_DAMAGE_NAMED = 3 };

typedef struct ls_damage { /* zero-initialised: nothing is damaged */
    uint64_t n;
    ls_buf named; /* the first messages, a line each */
} ls_damage;

/* Counts a record or file that is left out, as `why` says. */
void ls_damage_add(ls_damage *, const char *why);
/* Logs the first ones and, if there are more, how many. what: names the data. */
void ls_damage_note(const ls_damage *, const char *what);
void ls_damage_free(ls_damage *);

#endif
