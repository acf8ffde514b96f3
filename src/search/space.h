/* space.h - a search over configs: its method, its rules, and what each key's values are drawn
 * from. It is read from a file:
 *
 *     method: asha                    # or grid, random, pbt
 *     trials: 20
 *     space:
 *       optim.optimizer: {choice: [adamw, sgd]}
 *       optim.lr:
 *         - {log_uniform: [1e-4, 1e-2], when: {optim.optimizer: adamw}}
 *         - {log_uniform: [1e-2, 1], when: {optim.optimizer: sgd}}
 *       model.layers: {int: [1, 4]}
 *       optim.weight_decay: {uniform: [0, 0.2]}
 *
 * A trial's values depend on the file's seed and the trial's number alone. Numbers are drawn as
 * texts of six digits, so that a config that is written with them has the same values.
 */
#ifndef LS_SEARCH_SPACE_H
#define LS_SEARCH_SPACE_H

#include <stdbool.h>

#include "config/config.h"

enum { LS_SPACE_KEYS = 32, LS_SPACE_TRIALS = 1000 };
enum { LS_SPACE_METRIC = 64, LS_SPACE_NBYTES = 1 << 20 }; /* the latter: of a file */

typedef enum ls_space_method {
    LS_SPACE_GRID,
    LS_SPACE_RANDOM,
    LS_SPACE_ASHA,
    LS_SPACE_PBT
} ls_space_method;

/* asha: which trials go on from a rung. */
typedef enum ls_rung_rule {
    LS_SPACE_PROMOTE, /* the best 1 / reduction of those that have come; others wait */
    LS_SPACE_STOP     /* a trial that is no worse than this part of those before it; else it ends */
} ls_rung_rule;

typedef struct ls_space_rules {
    int64_t method; /* an ls_space_method */
    int64_t trials;
    int64_t maximize; /* 1: a higher metric is better */
    int64_t steps;    /* of a whole trial */
    int64_t seed;
    int64_t rule; /* asha: an ls_rung_rule */
    int64_t grace,
        reduction;    /* asha: steps of the first rung; each other has this many times more */
    int64_t interval; /* pbt: steps between exchanges */
    double quantile, resample; /* pbt: part that is replaced; probability of a value drawn anew */
    char metric[LS_SPACE_METRIC]; /* a number of evaluations in metrics.jsonl */
} ls_space_rules;

typedef enum ls_range_kind {
    LS_RANGE_CHOICE,
    LS_RANGE_UNIFORM,
    LS_RANGE_LOG_UNIFORM,
    LS_RANGE_INT
} ls_range_kind;

/* An earlier key of the space has one of these values. */
typedef struct ls_space_condition {
    int key;
    char **values; /* [n] */
    int n;
} ls_space_condition;

typedef struct ls_space_range {
    ls_range_kind kind;
    char **choices; /* [nchoices] */
    int nchoices;
    double low, high;               /* of the other kinds, both included */
    ls_space_condition *conditions; /* [nconditions] */
    int nconditions, line;
} ls_space_range;

/* The first range whose conditions hold is used. If there is none, the config's value stays. */
typedef struct ls_space_key {
    char *name;
    ls_space_range *ranges; /* [nranges] */
    int nranges;
} ls_space_key;

/* A value for each key, as a text; NULL: the config's value stays. */
typedef struct ls_space_point {
    char *values[LS_SPACE_KEYS];
} ls_space_point;

typedef struct ls_space {
    char *path; /* of the file, or its name, for messages */
    char *text; /* what the file says of the keys */
    ls_space_rules rules;
    ls_space_key keys[LS_SPACE_KEYS]; /* [nkeys] */
    int nkeys;
    ls_space_point *grid; /* [rules.trials] of a grid, else NULL */
} ls_space;

/* Reads a space from the text of a file; `name` is the file's name in messages. `base` is the
 * config that is searched: its train.steps are the default of `steps`. ls_space_free() it.
 * LS_EINVAL: the message names file, line and key. */
ls_status ls_space_parse(const ls_buf *text, const char *name, const ls_config *base, ls_space *s_p,
                         ls_error *);
extern const char *const ls_space_methods[]; /* the names, by ls_space_method, then NULL */
void ls_space_free(ls_space *);

/* The range of a key for these values of the keys above it; NULL: the config's value stays. */
const ls_space_range *ls_space_range_of(const ls_space *, int key, const ls_space_point *);

/* The values of a trial, from 0. ls_space_point_free() it. */
void ls_space_point_of(const ls_space *, int trial, ls_space_point *p_p);
/* pbt: other values near those of `from`, by Ray Tune's rules: with the probability `resample` a
 * value is drawn anew; else a number is multiplied by 1.2 or 0.8, and a choice becomes one of its
 * neighbours. A value that the config can't have stays as it was. `exchange` counts from 0. */
typedef struct ls_space_explorer {
    const ls_config *base;
    int trial, exchange;
} ls_space_explorer;
void ls_space_explore(const ls_space *, const ls_space_explorer *, const ls_space_point *from,
                      ls_space_point *p_p);
/* pbt: which of n trials is copied; from 0. */
int ls_space_pick(const ls_space *, int trial, int exchange, int n);

void ls_space_point_copy(const ls_space_point *, ls_space_point *p_p);
void ls_space_point_free(ls_space_point *);
/* "optim.lr=0.003 model.layers=2": free() it. */
char *ls_space_point_text(const ls_space *, const ls_space_point *);

/* The config of a trial with these values: base with them, and with train.steps. LS_EINVAL: it is
 * not possible; the message names the values. */
ls_status ls_space_config(const ls_space *, const ls_config *base, const ls_space_point *,
                          ls_config *c_p, ls_error *);

#endif
