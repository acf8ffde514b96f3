/* entry.h - how a process of another host comes in through the gate (wire.h): it connects, and the
 * settings of both hosts are compared. */
#ifndef LS_ASYNC_ENTRY_H
#define LS_ASYNC_ENTRY_H

#include "async/wire.h"
#include "net/key.h"

typedef struct ls_entry {
    const char *addresses; /* HOST:PORT,...: tried in turn */
    const char *settings;  /* that must match: lines */
    ls_wire_hello hello;
    bool has_key;
    ls_key key;
    int next; /* the address that is tried next */
} ls_entry;

/* Reads the join key; the other fields are set. LS_EINVAL: there is none. */
ls_status ls_entry_open(ls_entry *, ls_error *);
void ls_entry_close(ls_entry *);

/* A connection whose host has the same settings; it expects READY. LS_EPEER: the address can't be
 * reached, or does not answer; the next call tries the next one. LS_EINVAL: it has other
 * settings. */
ls_status ls_entry_connect(ls_entry *, ls_conn **c_p, ls_error *);

#endif
