/* watched.h - a run as it is watched: what metrics.jsonl says so far.
 *
 * Its rows are its steps. Each number of a step's line is a series (pyramid.h); step, tokens and
 * hours are series that rise, which the x axis can have. Evaluations are points, and what happened
 * to the run (starts, views, changed keys, gaps, its end) are marks.
 *
 * Every 1024 rows a place in the file is noted. Single rows are read again from there; and when
 * lines are taken back, the run goes back to the last place whose bytes are the same, and reads on
 * from it. Then `generation` changes, and who has copies of rows drops those from the place on.
 */
#ifndef LS_WATCH_WATCHED_H
#define LS_WATCH_WATCHED_H

#include "base/json.h"
#include "watch/follower.h"
#include "watch/line_form.h"
#include "watch/pyramid.h"

enum { LS_WATCHED_SERIES = 64, LS_WATCHED_NAME = 64, LS_CHUNK_ROWS = 1024 };

/* The x axes are the first series. */
enum { LS_X_STEP, LS_X_UNITS, LS_X_HOURS, LS_NX };

typedef struct ls_watched_series {
    char name[LS_WATCHED_NAME];
    ls_pyramid values;
    double last; /* value that is a number; NaN: none */
} ls_watched_series;

/* A number of an evaluation. */
typedef struct ls_watched_point {
    uint64_t at; /* of its line */
    int series;  /* of names */
    double x[LS_NX], value;
} ls_watched_point;

/* Something that happened, after these steps. */
typedef struct ls_watched_mark {
    uint64_t at;
    double x[LS_NX];
    char kind[16]; /* started, view, gap, changed, diverged, ended */
    ls_json *line; /* the line; NULL for a view: then `workers`, `view` */
    int workers, view;
} ls_watched_mark;

/* What all steps took together. Steps of ls_durations[i] seconds or fewer: durations[0] + ... +
 * durations[i]. */
enum { LS_NDURATIONS = 16 };
extern const double ls_durations[LS_NDURATIONS];
typedef struct ls_watched_totals {
    uint64_t durations[LS_NDURATIONS + 1];
    double seconds, waited_s;
    uint64_t views; /* changes */
} ls_watched_totals;

/* Numbers of a step that are looked at by their names. */
typedef enum ls_step_role {
    LS_ROLE_STEP,
    LS_ROLE_SECONDS,
    LS_ROLE_TOKENS_RATE,
    LS_ROLE_SAMPLES,
    LS_ROLE_VIEW,
    LS_ROLE_WORKERS,
    LS_ROLE_WAIT,
    LS_NROLES
} ls_step_role;

/* What the numbers of a step's line are. */
typedef struct ls_step_meaning {
    int nseries; /* numbers that are values of series: numbers[i] is one of series[i] */
    signed char numbers[LS_STEP_FIELDS], series[LS_STEP_FIELDS];
    signed char roles[LS_NROLES]; /* the number of each role; -1: the line has none */
} ls_step_meaning;

typedef struct ls_known_form {
    ls_line_form form;
    ls_step_meaning meaning;
} ls_known_form;

enum { LS_WATCHED_FORMS = 6 };

typedef struct ls_watched {
    char *path; /* of the run directory */
    ls_follower file;
    int64_t nrows;
    uint64_t generation;                          /* changes when rows were taken back */
    ls_watched_series *series[LS_WATCHED_SERIES]; /* [nseries] */
    int nseries;
    ls_watched_totals totals;
    ls_watched_totals *placed; /* [(nrows + 1023) / 1024] before the rows of places */
    ls_follow_place *places;   /* [(nrows + 1023) / 1024] the lines of rows 0, 1024, ... */
    ls_watched_point *points;  /* [npoints] */
    size_t npoints;
    char names[LS_WATCHED_SERIES][LS_WATCHED_NAME]; /* [nnames] of evaluations' numbers */
    int nnames;
    ls_watched_mark *marks; /* [nmarks] */
    size_t nmarks;
    double x[LS_NX];                        /* of the last row */
    double view;                            /* of the last row; NaN: none */
    bool counts_tokens;                     /* units are tokens, not samples */
    ls_known_form *forms[LS_WATCHED_FORMS]; /* [nforms] of steps' lines, the last used first */
    int nforms;
} ls_watched;

void ls_watched_open(ls_watched *, const char *run);
void ls_watched_close(ls_watched *);

/* Reads what is new, at most `most` bytes. True: something may have changed, and there may be
 * more. */
bool ls_watched_read(ls_watched *, double now_s, uint64_t most);
/* Gives back memory, where few lines will follow. */
void ls_watched_shrink(ls_watched *);

/* The series of this name; NULL: there is none. */
const ls_watched_series *ls_watched_find(const ls_watched *, const char *name);
/* The last value that is a number. */
double ls_watched_last(const ls_watched *, const char *name);

/* Single rows [from, to) of some series, read from the file: values [nseries][to - from], NaN where
 * a row has none. Returns the number of rows that were read: fewer if the file has changed
 * since. */
int64_t ls_watched_rows(const ls_watched *, const int *series, int nseries, int64_t from,
                        int64_t to, double *values);

#endif
