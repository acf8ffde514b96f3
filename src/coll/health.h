/* health.h - what can go wrong with a group's calls: workers that disagree, are late, or are lost.
 *
 * A worker that waits looks now and then at those it waits for. There is one way to look at a
 * member: on its page, where all members share memory; else by asking the thread that answers for
 * it (net/tcp/watch.h). Either tells what it has called last, and where, though it computes or is
 * stuck.
 *
 * Histories are compared, not calls (record.h): one worker may be done with the call in which the
 * other waits, and may even have left. Its history stays: on its page, or as its last words.
 *
 * A worker that finds that two disagree informs all others before it returns its own error, so that
 * each gets the same line, also when one closes its group and exits at once. A worker that loses
 * another asks the rest, before it says so, whether there is such a reason.
 *
 * Only the group's own thread calls these, except ls_group_break().
 */
#ifndef LS_COLL_HEALTH_H
#define LS_COLL_HEALTH_H

#include "coll/request.h"

/* The group can only be closed from now on, because of e (the first one counts). suspect: the
 * member whose message was of another call, or -1. Any thread. */
void ls_group_break(ls_group *, int suspect, const ls_error *e);
/* The same; m->found: two members' counts differ. */
void ls_group_break_by(ls_group *, int suspect, const ls_miscount *m, const ls_error *e);
/* The error of a broken group: its reason the first time, afterwards that there was one. Returns
 * the code. */
ls_status ls_group_error(ls_group *, ls_error *e);

/* Shows to the others which call this worker has made; for calls that are not shared (shared.h). */
void ls_health_publish(ls_group *, const ls_request *);
/* Shows that it waits for r, and that it does no more (NULL). */
void ls_health_waits(ls_group *, const ls_request *);

/* Another worker may have said why the group can't go on: looked at as a call begins. Breaks the
 * group. */
void ls_health_listen(ls_group *);
/* The group is closed. Logs what this worker has not been told. */
void ls_health_leave(ls_group *);
/* One look, every 20 ms at most, whether all is well with r, which is not done. It breaks the group
 * where it is not; it reports once who is late. r NULL: all own calls are done, others' are not. */
void ls_health_check(ls_group *, ls_request *r);
/* A shared call has found a member in another call. Breaks the group. */
void ls_health_differs(ls_group *, const ls_request *);
/* r, or (NULL) other workers' calls, were waited for as long as the group allows. */
void ls_health_timed_out(ls_group *, const ls_request *r, int64_t waited_ns);

#endif
