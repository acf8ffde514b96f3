/* noise_line.h - the averages of the gradient noise scale (optim/noise.h) as part of a line of
 * metrics.jsonl, from which a resumed run takes them. */
#ifndef LS_REPORT_NOISE_LINE_H
#define LS_REPORT_NOISE_LINE_H

#include "base/json.h"
#include "optim/noise.h"

/* Rounds the averages to the digits that a line has, so that a resumed run has the same ones. */
void ls_noise_round(ls_noise_mean *);
ls_json *ls_noise_write(const ls_noise_mean *, int V);
/* Leaves *m_p unchanged if the line is from a run without them, or from another program. */
void ls_noise_read(const ls_json *, ls_noise_mean *m_p);

#endif
