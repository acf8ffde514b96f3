/* goal.h - a metric of evaluations, and the value that it has to reach: "val_loss<=2.5". */
#ifndef LS_REPORT_GOAL_H
#define LS_REPORT_GOAL_H

#include "report/evaluation.h"

enum { LS_GOAL_METRIC = 64, LS_GOAL_TEXT = LS_GOAL_METRIC + 32 };

typedef struct ls_goal {
    char metric[LS_GOAL_METRIC]; /* as a line of metrics.jsonl names it: "val_accuracy" */
    bool rises;                  /* it is reached from below, by ">=" */
    double value;
} ls_goal;

/* Reads "val_loss<=2.5" or "val_accuracy>=0.93". */
ls_status ls_goal_read(const char *text, ls_goal *g_p, ls_error *);
/* Writes the goal as ls_goal_read() reads it: equal goals have equal texts. */
void ls_goal_write(const ls_goal *, char text[LS_GOAL_TEXT]);

/* Is `a` as good as `b`, or better? NaN is not. */
bool ls_goal_is_better(const ls_goal *, double a, double b);
bool ls_goal_is_reached(const ls_goal *, double value);
/* The evaluation's number. False: it has none of this name. */
bool ls_goal_value(const ls_goal *, const ls_evaluation *, double *value_p);

#endif
