/* continued.h - attention of a call that continues one text, or several: keys and values of earlier
 * positions are kept (kept.h).
 *
 * The bits are those of ls_heads_forward() over each whole text, whatever other texts the call has
 * and however a text was cut into calls.
 */
#ifndef LS_LAYERS_CONTINUED_H
#define LS_LAYERS_CONTINUED_H

#include "layers/heads.h"

/* Keeps the keys and values of the call's rows, and computes y. Of the heads, n is 1 and `call` is
 * set: its past says which texts there are; on a device it is one (heads_device.h). */
void ls_heads_continue(const ls_heads *);

#endif
