/* entry.h - how a process of another host comes in through the gate (wire.h): it connects, and both
 * hosts compare what they have (net/tcp/admission.h). */
#ifndef LS_ASYNC_ENTRY_H
#define LS_ASYNC_ENTRY_H

#include "async/wire.h"
#include "net/join_key.h"

typedef struct ls_entry {
    const char *addresses;  /* HOST:PORT,...: tried in turn */
    ls_admission admission; /* identity() opens the run's data, if it is not open */
    ls_wire_hello hello;
    bool has_key;
    ls_key key;
    int next; /* the address that is tried next */
} ls_entry;

/* Reads the join key; the other fields are set. LS_EINVAL: there is none. */
ls_status ls_entry_open(ls_entry *, ls_error *);
void ls_entry_close(ls_entry *);

/* A connection whose host has the same settings, run and data. LS_EPEER: the address can't be
 * reached, or does not answer; the next call tries the next one. LS_EINVAL: it has others. Other
 * errors are those of identity(). */
ls_status ls_entry_connect(ls_entry *, ls_conn **c_p, ls_error *);

#endif
