/* join_key.h - the join key: what a worker must have to belong to a group that spans hosts.
 *
 * All workers of a group are given one secret; the key that the connections use is derived from
 * it. Whoever has the secret is a member, with all rights of a member. Others can't join, and can't
 * read or change the messages between members.
 *
 * The secret has to be random, as ls_key_make() makes it: an attacker who records a handshake can
 * try guesses offline, and sooner or later finds a secret that a person thought of.
 */
#ifndef LS_NET_JOIN_KEY_H
#define LS_NET_JOIN_KEY_H

#include <stdbool.h>

#include "base/error.h"

enum { LS_KEY_SECRET_MIN = 16, LS_KEY_SECRET_MAX = 4096 }; /* characters of a secret */

typedef struct ls_key {
    unsigned char bytes[32];
} ls_key;

/* The key of the secret in LOCKSTEP_KEY, or in the file that LOCKSTEP_KEY_FILE names (only its
 * owner may have access to it); one newline at the end is not part of the secret. Neither is set:
 * *found_p is false and *key_p untouched. The owner of *key_p wipes it with ls_key_wipe().
 *
 * Errors   LS_EINVAL: both are set; the secret is too short or too long; the file's mode.
 *          LS_EIO: the file can't be read.
 */
ls_status ls_key_find(ls_key *key_p, bool *found_p, ls_error *);

/* As ls_key_find(), but without a key it fails, unless `insecure` or LOCKSTEP_INSECURE=1 allows to
 * continue without a key. Then *found_p is false, even if there is a key. */
ls_status ls_key_require(bool insecure, ls_key *key_p, bool *found_p, ls_error *e);

/* The key of a secret that the caller has. `name` is what the message calls it. LS_EINVAL: it is
 * too short or too long. */
ls_status ls_key_of(const char *secret, const char *name, ls_key *key_p, ls_error *);

void ls_key_wipe(ls_key *);

/* A new secret: 64 hex digits (256 random bits) and a terminating 0. */
void ls_key_make(char text[65]);

#endif
