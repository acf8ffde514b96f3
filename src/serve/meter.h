/* meter.h - counts and times of served requests, for Prometheus (text format 0.0.4). */
#ifndef LS_SERVE_METER_H
#define LS_SERVE_METER_H

#include "base/mem.h"
#include "serve/reply_workers.h"

enum { LS_METER_BUCKETS = 14 };

typedef struct ls_histogram {
    int64_t counts[LS_METER_BUCKETS + 1]; /* of each bucket; the last has no end */
    int64_t n;
    double sum;
} ls_histogram;

/* Counts replies that have ended, and requests that were refused. The workers' lock guards all
 * members except `refused`. */
typedef struct ls_meter {
    int64_t ended[3];                /* by length, by a stop or the model, by the server */
    int64_t refused[6];              /* by the first digit of their status */
    ls_histogram first, each, whole; /* seconds to the first token; a token after it; to the end */
} ls_meter;

void ls_meter_reply(ls_meter *, const ls_reply *);
void ls_meter_refused(ls_meter *, int status);
void ls_meter_write(const ls_meter *, const ls_reply_workers_counts *, const char *model,
                    ls_buf *out);

#endif
