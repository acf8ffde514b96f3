/* shared_remote.c - the remote way: other processes' own memory, read by process_vm_readv(2).
 *
 * Between processes of one user the kernel copies at half the speed of memcpy() in the caches:
 * once, where the stage needs two copies, but sums are faster through the stage. The system must
 * allow it (Yama's ptrace_scope 0, no seccomp filter against it). Each member tries when all
 * members have come to a call for the first time, and shows in its later calls whether it can read
 * all others: the same calls go the remote way at every member. A member's process number may mean
 * another process (in another namespace): so its page shows a random number, which must be found in
 * its memory.
 *
 * Nothing is ever written to another process's own memory: a worker whose call has failed may have
 * given its buffers other uses. One that reads such a buffer never ends its call, since it waits
 * for the failed worker to be done.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "base/copy.h"
#include "base/mem.h"
#include "coll/shared_inside.h"

/* Shorter inputs go faster through the stage, in one round. */
enum { LEAST = 65536 };

struct remote {
    uint64_t mark;
    enum { UNKNOWN, REACHED, OUT_OF_REACH } state;
};

struct remote *ls_shared_remote_new(const ls_shared *s) {
    struct remote *r = LS_NEW(struct remote);
    page *mine = s->pages[s->rank];
    if (s->commons->threads ||
        getrandom(&r->mark, sizeof r->mark, GRND_NONBLOCK) != (ssize_t)sizeof r->mark)
        r->state = OUT_OF_REACH;
    mine->mark = r->mark;
    mine->mark_at = (uintptr_t)&r->mark;
    return r;
}

void ls_shared_remote_free(struct remote *r) { free(r); }

bool ls_shared_reaches(const ls_shared *s) { return s->remote->state == REACHED; }

static bool read_process(const ls_shared *s, int member, uint64_t at, size_t n, unsigned char *to) {
    int pid = atomic_load(&ls_commons_worker_of(s->commons, s->ranks[member])->pid);
    for (size_t done = 0; done < n;) {
        struct iovec mine = {to + done, n - done};
        struct iovec theirs = {(void *)(uintptr_t)(at + done), n - done};
        ssize_t got = process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

void ls_shared_reach(ls_shared *s) {
    if (s->remote->state != UNKNOWN) return;
    s->remote->state = REACHED;
    for (int i = 0; i < s->size; i++) {
        uint64_t found = 0;
        const page *p = s->pages[i];
        if (i == s->rank) continue;
        if (!p->mark || !read_process(s, i, p->mark_at, sizeof found, (unsigned char *)&found) ||
            found != p->mark)
            s->remote->state = OUT_OF_REACH;
    }
}

bool ls_shared_goes_remote(const ls_shared *s, const ls_shared_call *x) {
    if (ls_collective_reduces(x->call.what)) return false;
    bool pairwise = ls_collective_is_pairwise(x->call.what);
    if (!pairwise && longest_nbytes(s, &x->call) <= LEAST) return false;
    for (int i = 0; i < s->size; i++)
        if (!(slot_of(s, x, i)->ways & REACHES)) return false;
    return true;
}

bool ls_shared_read(ls_shared *s, ls_shared_call *x, reading p, unsigned char *to) {
    const slot *theirs = slot_of(s, x, p.member);
    if (p.member != s->rank) s->bytes_read += p.nbytes;
    if (p.member == s->rank || is_small(s, x) || theirs->ways & IN_SHARED) {
        const unsigned char *from = input_of(s, x, p.member);
        if (from + p.at != to) ls_copy(to, from + p.at, p.nbytes);
        return true;
    }
    if (read_process(s, p.member, theirs->in_at + p.at, p.nbytes, to)) return true;
    x->left = p.member;
    return false;
}
