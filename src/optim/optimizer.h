/* optimizer.h - what an optimizer is: its states, its settings, its update; and which parameters it
 * trains.
 *
 * A rule (optimizer.c has their table) declares the states that it needs beside the parameters. All
 * states are f32, one an element, and begin at 0. Parameters are in groups, each with its own rule
 * and settings. If a moving average of the parameters is wanted, it is one more state after those
 * of the rules; earlier versions of the parameters, where gradients are computed at these, are
 * further states. Worlds, journals, checkpoints and memory tables iterate over `nstates` buffers,
 * and know no rule.
 */
#ifndef LS_OPTIM_OPTIMIZER_H
#define LS_OPTIM_OPTIMIZER_H

#include "config/config.h"
#include "model/model.h"
#include "model/table_blocks.h"

/* The most states of a rule, states, and groups: those of a config, and each once more
 * (ls_optim_rule.rest). */
enum {
    LS_RULE_STATES = 4,
    LS_OPTIM_STATES = LS_RULE_STATES + 1 + LS_STALENESS_MOST,
    LS_OPTIM_GROUPS = 32
};

/* The suffix of the average's tensors. */
#define LS_OPTIM_EMA "ema"

typedef struct ls_optim_rule {
    const char *name; /* optim.optimizer in configs */
    int nstates;
    const char *states[LS_RULE_STATES]; /* tensor NAME has its state in NAME.<this> */
    /* Above 0: state `average` - 1 is an average of the parameter, and is what the training is for:
     * evaluations use it, and checkpoints have it as the weight, and the parameter, where gradients
     * are taken, as the state. */
    int average;
    /* Not NULL: the states of a parameter with several dims are means over its last dim, and over
     * the one before that; that of a vector has this name and one value an element. */
    const char *factored;
    bool by_row; /* its states are one number for each row, along the last dim */
    int squares; /* above 0: states from this one on are square, of the shorter of two dims */
    int pairs;   /* above 0: states from this one on are two numbers */
    /* whole: a parameter that the rule trains has one owner (ls_param.whole). The rule trains only
     * matrices, only tables that are read by ids, or only parameters that decay, and the rule
     * `rest` trains the others. */
    bool whole, matrices, tables, decaying;
    ls_update_rule rest;
} ls_optim_rule;

extern const ls_optim_rule ls_optim_rules[LS_NRULES];

/* The settings of a group. A rule reads its own. */
typedef struct ls_optim_group {
    ls_update_rule rule;
    double beta1, beta2, eps, weight_decay, momentum;
    double lr_scale; /* multiplies the learning rate */
    double lr_decay; /* update t, from 0, has 1 / (1 + t lr_decay) of the rate */
    int64_t warmup;  /* of the learning rate, steps */
    int64_t freeze;  /* onebit: updates after which the gradient is the momentum; else 0 */
    bool nesterov;
    bool decays_all; /* weight decay also applies to parameters without `decay` (layer.h) */
} ls_optim_group;

/* All groups; a parameter has the number of its own (ls_param.group). */
typedef struct ls_optim {
    double ema; /* the average is this part of itself and the rest new parameters; 0: none */
    int older;  /* versions of the parameters that are retained (sync.staleness): that after k
                 * updates is "older.R", R = k modulo `older` */
    /* When rows of tables (ls_param.rows) are trained, and how long they stay, in steps
     * (model.filter_freq, steps_to_live); 0: always */
    int64_t filter_freq, steps_to_live;
    int ngroups;
    ls_optim_group groups[LS_OPTIM_GROUPS];
    int replicas; /* trained side by side; 0: the model is one */
    /* with replicas, the optimizer of the parameters that they have in common; its states are where
     * those of the groups' rules would be */
    ls_optim_group outer;
} ls_optim;

/* The optimizer of a config. Sets the group of each parameter of the model and which parameters are
 * whole, and places them anew. LS_EINVAL: optim.groups has a pattern that matches no parameter, or
 * one that an earlier group has taken. */
ls_status ls_optim_of(const ls_config *, ls_model *, ls_optim *o_p, ls_error *);
/* The part of ls_optim_of() after parameters have their groups: a group whose rule trains only some
 * kinds of parameters becomes two, and whole parameters are placed. */
void ls_optim_place(ls_optim *, ls_model *);
/* AdamW, with the defaults of the config's keys, for all parameters. */
ls_optim ls_optim_usual(void);

/* The most states of any group's rule, and the average: each of the buffers holds one. */
int ls_optim_nstates(const ls_optim *);
/* Buffers of a saved state: the parameters, and the states. */
int ls_optim_nflats(const ls_optim *);
/* The average's number among them; -1: there is none. */
int ls_optim_ema(const ls_optim *);
/* The number of the first of the older versions. */
int ls_optim_older(const ls_optim *);

/* The name of a parameter's state `i`; NULL: it has none of this number. A running value has no
 * states of a rule. */
const char *ls_optim_state_name(const ls_optim *, const ls_param *, int i);
/* The name of state `i` of the common parameters of replicas; NULL: they have none of this
 * number. */
const char *ls_optim_outer_state_name(const ls_optim *, int i);

/* The parameter as its state `i` is: with the state's dims and number of elements. */
ls_param ls_optim_state_param(const ls_optim *, const ls_param *, int i);

/* Tables of which parameters are windows (ls_param.window) lie one after the other: the weights of
 * all tables (ls_model.table_floats), then the first states of all, and so on; states differ in
 * length. The floats of all of these; and the place where a parameter's buffer begins: buffer 0 has
 * the weights, 1 + i state i. */
size_t ls_optim_tables_floats(const ls_optim *, const ls_model *);
size_t ls_optim_table_at(const ls_optim *, const ls_model *, const ls_param *, int buffer);
/* If rows are not always trained and do not stay forever, tables have a buffer more, after those of
 * flat.h: for each row how often its id was seen (up to filter_freq), and after how many steps the
 * last time (0: never); in checkpoints NAME.seen. */
#define LS_OPTIM_SEEN "seen"
typedef struct ls_optim_seen {
    float count, steps;
} ls_optim_seen;
bool ls_optim_sees(const ls_optim *);
/* Buffers of tables, with that one. */
int ls_optim_table_buffers(const ls_optim *);
/* Floats of a row of a table in one of these buffers; 0: the table has no state of this number. */
size_t ls_optim_row_floats(const ls_optim *, const ls_param *, int buffer);
/* The floats among those of all tables that a block of rows has in a buffer; empty: it has none. */
typedef struct ls_optim_range {
    size_t first, end;
} ls_optim_range;
ls_optim_range ls_optim_table_block(const ls_optim *, const ls_model *, const ls_table_block *,
                                    int buffer);

/* The buffer (flat.h) that has a parameter's weights after `updates` updates: 0, or that of the
 * rule's average. */
int ls_optim_weights(const ls_optim *, const ls_param *, int64_t updates);
/* Is it another one than 0 for any group? */
bool ls_optim_averages(const ls_optim *);

/* Appends the names of all states, each once: "exp_avg, exp_avg_sq, ema". */
void ls_optim_list_states(const ls_optim *, ls_buf *);

/* What an update is given, the same for all parameters. */
typedef struct ls_optim_step {
    int64_t updates; /* before this one */
    double lr;
    double grad_scale; /* multiplies the gradient: clips it, and divides the loss scale out */
    double samples;    /* of the batch; running values are divided by it (ls_param.momentum) */
} ls_optim_step;

/* The scalars of a group's update, with and without weight decay. */
ls_update_scalars ls_optim_scalars(const ls_optim_group *, const ls_optim_step *, bool decay);

#endif
