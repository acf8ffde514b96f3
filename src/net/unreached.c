/* unreached.c - see unreached.h. */
#include "net/unreached.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_int noted;

bool ls_unreached_is_network(int why) {
    return why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH || why == EHOSTDOWN ||
           why == ENETDOWN || why == ECONNREFUSED || why == EADDRNOTAVAIL || why == EACCES ||
           why == EPERM;
}

void ls_unreached_note(int worker) {
    int none = 0;
    atomic_compare_exchange_strong(&noted, &none, worker + 1);
}

int ls_unreached_noted(void) { return atomic_load(&noted); }
