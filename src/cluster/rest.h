/* rest.h - a worker whose view has ended badly, through no fault of its own, stays for the next.
 *
 * A process that has its memory, its files and half of a step is worth more than a new one. Who
 * started the workers recalls those that are left; each gives up what it waits for, closes its
 * group, and rests until it is sent on, or ended.
 *
 *     parent    recall ----------.           all rest: mends, starts others --> send on
 *     worker        runs --------+--> rests ----------------------------------.--> runs
 *
 * Between workers of one host alone; told on the board.
 */
#ifndef LS_CLUSTER_REST_H
#define LS_CLUSTER_REST_H

#include "net/local/board.h"

/* ---- by who starts the workers ---- */

void ls_rest_recall(ls_board_slot *);
void ls_rest_send_on(ls_board_slot *, int64_t view);
/* For a worker that is to be started. */
void ls_rest_clear(ls_board_slot *);

/* ---- by a worker ---- */

/* Its part of the view has ended. Because another was lost? Then it waits a little to be recalled;
 * true: it shall rest. */
bool ls_rest_may(ls_board_slot *, ls_status);
/* Until it is sent on from `view`; returns the view in which it goes on. */
int64_t ls_rest(ls_board_slot *, int64_t view);

#endif
