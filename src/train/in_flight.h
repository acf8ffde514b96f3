/* in_flight.h - worker 0 logs a step that takes long, while the step is in flight.
 *
 * A thread checks once a second, since the worker itself may be in one layer for minutes. It logs
 * how long the step has run and, after Ctrl-C or SIGTERM, that the run waits for it.
 */
#ifndef LS_TRAIN_IN_FLIGHT_H
#define LS_TRAIN_IN_FLIGHT_H

#include "base/error.h"
#include "net/local/board.h"

typedef struct ls_in_flight ls_in_flight;

typedef struct ls_in_flight_config {
    const ls_board_slot *slot; /* of the worker; must outlive this */
    int64_t steps;             /* of the run */
    double stop_s;             /* survival.stop_s */
    double after_s;            /* a step that takes longer is logged: LS_IN_FLIGHT_S */
} ls_in_flight_config;

#define LS_IN_FLIGHT_S 10.0

ls_status ls_in_flight_open(const ls_in_flight_config *, ls_in_flight **f_p, ls_error *);
void ls_in_flight_close(ls_in_flight *); /* NULL is fine */

/* Around each step (from 0). NULL is fine. */
void ls_in_flight_begin(ls_in_flight *, int64_t step);
void ls_in_flight_end(ls_in_flight *);

#endif
