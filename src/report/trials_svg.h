/* trials_svg.h - a picture of a search: the metric of each trial by its steps. */
#ifndef LS_REPORT_TRIALS_SVG_H
#define LS_REPORT_TRIALS_SVG_H

#include "report/plot.h"

typedef enum ls_trial_look {
    LS_TRIAL_GREY,  /* it was stopped, or replaced */
    LS_TRIAL_GOING, /* still in the search, or trained to its end */
    LS_TRIAL_BEST
} ls_trial_look;

typedef struct ls_trial_curve {
    ls_curve_series series;
    ls_trial_look look;
    bool fits; /* the axes reach as far as its values; other curves are cut off at the frame */
} ls_trial_curve;

typedef struct ls_trials_picture {
    const char *title;
    const ls_trial_curve *curves; /* [n] */
    int n;
} ls_trials_picture;

/* 800 x 450, self-contained. */
ls_status ls_trials_svg_write(const char *path, const ls_trials_picture *, ls_error *);

#endif
