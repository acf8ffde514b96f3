/* rest.h - a worker whose view has ended badly, through no fault of its own, stays for the next.
 *
 * A process that has its memory, its files and half of a step is worth more than a new one. The
 * supervisor recalls the survivors; each stops waiting, closes its group, and rests until it is
 * sent on, or ended.
 *
 *     parent    recall ----------.           all rest: repairs, starts others -> send on
 *     worker        runs --------+--> rests ----------------------------------.--> runs
 *
 * For the workers of one host only; they communicate over the board.
 */
#ifndef LS_CLUSTER_REST_H
#define LS_CLUSTER_REST_H

#include "net/local/board.h"

/* ---- for the supervisor ---- */

void ls_rest_recall(ls_board_slot *);
void ls_rest_send_on(ls_board_slot *, int64_t view);
/* Prepares the slot of a worker that will be started. */
void ls_rest_clear(ls_board_slot *);

/* ---- for a worker ---- */

/* The worker's part of the view has ended. If the reason is that another worker was lost, waits
 * briefly to be recalled; true: the worker must rest. */
bool ls_rest_may(ls_board_slot *, ls_status);
/* Rests until it is sent on from `view`; returns the view in which it continues. */
int64_t ls_rest(ls_board_slot *, int64_t view);

#endif
