/* span.h - when an action ran, or is predicted to run. */
#ifndef LS_EXEC_SPAN_H
#define LS_EXEC_SPAN_H

#include "plan/plan.h"

typedef struct ls_span {
    int action; /* of the plan */
    int worker; /* that ran it; a communication has a span on each worker */
    ls_lane lane;
    int64_t begin_ns, end_ns; /* from the beginning of the step */
} ls_span;

#endif
