/* beat.h - a thread that shows that its worker is alive, whatever it computes or waits for. */
#ifndef LS_NET_LOCAL_BEAT_H
#define LS_NET_LOCAL_BEAT_H

#include "net/local/board.h"

typedef struct ls_beat ls_beat;

/* From here on the slot's beat is never older than about a tenth of a second, while the process
 * runs. The slot must outlive *b_p. */
ls_status ls_beat_start(ls_board_slot *, ls_beat **b_p, ls_error *);
void ls_beat_stop(ls_beat *); /* NULL is fine */

#endif
