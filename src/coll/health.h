/* health.h - what can go wrong with a group's calls: workers that disagree, are late, or are lost.
 *
 * A worker that waits checks from time to time on the members that it waits for: it reads their
 * pages if all members share memory; else it asks the threads that answer for them
 * (net/tcp/watch.h). Both show the member's last call and its place, even while the member computes
 * or is stuck.
 *
 * Histories are compared, not calls (call_record.h): one worker may be done with the call in which
 * the other waits, and may even have left. Its history stays: on its page, or as its last words.
 *
 * A worker that finds a disagreement informs all others before it returns its own error, so that
 * each reports the same line, even when one closes its group and exits at once. A worker that loses
 * another first asks the rest whether there is such a reason, then reports the loss.
 *
 * Only the group's own thread calls these, except ls_group_break().
 */
#ifndef LS_COLL_HEALTH_H
#define LS_COLL_HEALTH_H

#include "coll/request.h"

/* The group can only be closed from now on, because of e (the first one counts). suspect: the
 * member whose message belonged to another call, or -1. Any thread. */
void ls_group_break(ls_group *, int suspect, const ls_error *e);
/* As ls_group_break(); m->found: the counts of two members differ. */
void ls_group_break_by(ls_group *, int suspect, const ls_miscount *m, const ls_error *e);
/* Fills in the error of a broken group: the reason the first time; afterwards, that the group can
 * only be closed because of it. Returns the code. */
ls_status ls_group_error(ls_group *, ls_error *e);

/* Shows the others which call this worker has made; for calls that are not shared (shared.h). */
void ls_health_publish(ls_group *, const ls_request *);
/* Shows that this worker waits for r, or (NULL) that it no longer waits. */
void ls_health_waits(ls_group *, const ls_request *);

/* At the beginning of a call: breaks the group if another worker has reported why it can't go on.
 */
void ls_health_listen(ls_group *);
/* The group is closed. Logs a reason that this worker has not returned. */
void ls_health_leave(ls_group *);
/* Checks, at most every 20 ms, whether all is well with r, which is not done: breaks the group if
 * not, and reports late members once. r NULL: all calls of this worker are done, but other
 * workers' are not. */
void ls_health_check(ls_group *, ls_request *r);
/* A shared call has found a member in another call. Breaks the group. */
void ls_health_differs(ls_group *, const ls_request *);
/* The wait for r, or (NULL) for other workers' calls, has lasted as long as the group allows. */
void ls_health_timed_out(ls_group *, const ls_request *r, int64_t waited_ns);

#endif
