/* gate.h - the process through which workers on other hosts take part (wire.h).
 *
 * It listens where `lockstep train --listen` says. A worker that has the join key and the same
 * settings gets a slot of the board (board.h), and a thread that plays its part there: it pulls for
 * it, and pushes what it sends. If the connection is lost, the slot is left: another worker gets
 * the batch.
 */
#ifndef LS_ASYNC_GATE_H
#define LS_ASYNC_GATE_H

#include "async/crew.h"

/* Lets workers in until the process ends. */
ls_status ls_async_guard(const ls_async_crew *, ls_error *);

#endif
