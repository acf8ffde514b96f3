/* optimizer.c - see optimizer.h. The names of states are PyTorch's. */
#include "optim/optimizer.h"

#include <fnmatch.h>
#include <string.h>

#include "base/math.h"
#include "base/round_up.h"
#include "config/groups.h"

const ls_optim_rule ls_optim_rules[LS_NRULES] = {
    [LS_RULE_ADAMW] = {.name = "adamw", .nstates = 2, .states = {"exp_avg", "exp_avg_sq"}},
    [LS_RULE_ADAM] = {.name = "adam", .nstates = 2, .states = {"exp_avg", "exp_avg_sq"}},
    [LS_RULE_SGD] = {.name = "sgd"},
    [LS_RULE_MOMENTUM] = {.name = "sgd with momentum", .nstates = 1, .states = {"momentum_buffer"}},
    [LS_RULE_LION] = {.name = "lion", .nstates = 1, .states = {"exp_avg"}},
    [LS_RULE_ADAGRAD] = {.name = "adagrad", .nstates = 1, .states = {"sum"}},
    [LS_RULE_SCHEDULE_FREE] = {.name = "schedule-free",
                               .nstates = 3,
                               .states = {"z", "exp_avg_sq", "y"},
                               .average = 3},
    [LS_RULE_ONEBIT_ADAM] = {.name = "onebit_adam",
                             .nstates = 2,
                             .states = {"exp_avg", "exp_avg_sq"}},
    [LS_RULE_LARS] = {.name = "lars",
                      .nstates = 1,
                      .states = {"momentum_buffer"},
                      .whole = true,
                      .decaying = true,
                      .rest = LS_RULE_MOMENTUM},
    [LS_RULE_LAMB] = {.name = "lamb",
                      .nstates = 2,
                      .states = {"exp_avg", "exp_avg_sq"},
                      .whole = true,
                      .decaying = true,
                      .rest = LS_RULE_ADAMW},
    [LS_RULE_ADAFACTOR] = {.name = "adafactor",
                           .nstates = 2,
                           .states = {"row_var", "col_var"},
                           .factored = "variance",
                           .whole = true},
    [LS_RULE_MUON] = {.name = "muon",
                      .nstates = 1,
                      .states = {"momentum_buffer"},
                      .whole = true,
                      .matrices = true,
                      .rest = LS_RULE_ADAMW},
    [LS_RULE_SOAP] = {.name = "soap",
                      .nstates = 4,
                      .states = {"exp_avg", "exp_avg_sq", "GG", "Q"},
                      .squares = 2,
                      .whole = true,
                      .matrices = true,
                      .rest = LS_RULE_ADAMW},
    [LS_RULE_ONEBIT_LAMB] = {.name = "onebit_lamb",
                             .nstates = 4,
                             .states = {"exp_avg", "exp_avg_sq", "exp_avg_sq_fresh", "trust"},
                             .pairs = 3,
                             .whole = true,
                             .decaying = true,
                             .rest = LS_RULE_ONEBIT_ADAM},
    [LS_RULE_ROWWISE_ADAGRAD] = {.name = "rowwise_adagrad",
                                 .nstates = 1,
                                 .states = {"sum"},
                                 .by_row = true,
                                 .whole = true,
                                 .tables = true,
                                 .rest = LS_RULE_ADAGRAD},
};

static ls_update_rule rule_of(const ls_config_optim *c) {
    static const ls_update_rule rules[] = {[LS_OPTIMIZER_ADAMW] = LS_RULE_ADAMW,
                                           [LS_OPTIMIZER_ADAM] = LS_RULE_ADAM,
                                           [LS_OPTIMIZER_SGD] = LS_RULE_SGD,
                                           [LS_OPTIMIZER_LION] = LS_RULE_LION,
                                           [LS_OPTIMIZER_ADAGRAD] = LS_RULE_ADAGRAD,
                                           [LS_OPTIMIZER_SCHEDULE_FREE] = LS_RULE_SCHEDULE_FREE,
                                           [LS_OPTIMIZER_LARS] = LS_RULE_LARS,
                                           [LS_OPTIMIZER_LAMB] = LS_RULE_LAMB,
                                           [LS_OPTIMIZER_ADAFACTOR] = LS_RULE_ADAFACTOR,
                                           [LS_OPTIMIZER_MUON] = LS_RULE_MUON,
                                           [LS_OPTIMIZER_SOAP] = LS_RULE_SOAP,
                                           [LS_OPTIMIZER_ONEBIT_ADAM] = LS_RULE_ONEBIT_ADAM,
                                           [LS_OPTIMIZER_ONEBIT_LAMB] = LS_RULE_ONEBIT_LAMB,
                                           [LS_OPTIMIZER_ROWWISE_ADAGRAD] =
                                               LS_RULE_ROWWISE_ADAGRAD};
    if (c->optimizer == LS_OPTIMIZER_SGD && c->momentum > 0) return LS_RULE_MOMENTUM;
    return rules[c->optimizer];
}

/* optim.momentum; where it is not set, the usual one of a rule that needs it. */
static double momentum_of(const ls_config_optim *c) {
    if (c->momentum > 0 || c->optimizer == LS_OPTIMIZER_SGD) return c->momentum;
    return c->optimizer == LS_OPTIMIZER_MUON ? 0.95 : 0.9;
}

static double lr_decay_of(const ls_config_optim *c) {
    ls_update_rule rule = rule_of(c);
    return rule == LS_RULE_ADAGRAD || rule == LS_RULE_ROWWISE_ADAGRAD ? c->lr_decay : 0;
}

/* warmup: as schedule-free has it, in steps. */
static ls_optim_group group_of(const ls_config_optim *c, int64_t warmup, double lr_scale,
                               bool decays_all) {
    return (ls_optim_group){.rule = rule_of(c),
                            .lr_decay = lr_decay_of(c),
                            .beta1 = c->beta1,
                            .beta2 = c->beta2,
                            .eps = c->eps,
                            .weight_decay = c->weight_decay,
                            .momentum = momentum_of(c),
                            .nesterov = c->nesterov,
                            .lr_scale = lr_scale,
                            .warmup = warmup,
                            .freeze = ls_config_sends_momentum(c) ? c->freeze_step : 0,
                            .decays_all = decays_all};
}

ls_optim ls_optim_usual(void) {
    ls_config c;
    ls_config_defaults(&c);
    const int64_t warmup = (int64_t)ls_config_warmup(&c).n;
    return (ls_optim){.ngroups = 1, .groups = {group_of(&c.optim, warmup, 1, false)}};
}

/* Gives the parameters that match, and that no group has yet, to group `number`. */
static ls_status take(const char *pattern, int number, ls_model *m, ls_error *e) {
    bool matches = false, trains = false, takes = false;
    for (int i = 0; i < m->nparams; i++) {
        ls_param *p = &m->params[i];
        if (p->momentum > 0 || fnmatch(pattern, p->name, 0) != 0) continue;
        matches = true;
        if (p->frozen) continue;
        trains = true;
        if (p->group) continue;
        takes = true;
        p->group = (unsigned char)number;
    }
    if (takes) return LS_OK;
    if (!matches)
        return ls_fail(e, LS_EINVAL,
                       "optim.groups: '%.60s' matches no parameter that is trained; their names "
                       "are like %s",
                       pattern, m->nparams ? m->params[0].name : "");
    return ls_fail(e, LS_EINVAL, "optim.groups: '%.60s' matches only parameters that %s", pattern,
                   trains ? "earlier groups have" : "are frozen (train.freeze)");
}

/* Does the layer compute the model's output: is it a loss with parameters, or read by one without?
 */
static bool is_output(const ls_model *m, int layer) {
    bool is = m->layers[layer].traits.loss;
    for (int i = 0; i < m->nlayers; i++)
        for (int k = 0; k < m->layers[i].ninputs; k++)
            is = is || (m->layers[i].traits.loss && !m->layers[i].nparams &&
                        m->layers[i].inputs[k] == layer);
    return is;
}

static bool is_table(const ls_model *m, int param) {
    for (int i = 0; i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        for (int k = l->nparams - l->half.ntables; k < l->nparams; k++)
            if (l->params[k] == param && m->params[param].ndims == 2) return true;
    }
    return false;
}

/* Is it a matrix between layers: neither a table nor of the output? */
static bool is_matrix(const ls_model *m, int param) {
    bool at_end = false;
    for (int i = 0; i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        for (int k = 0; k < l->nparams; k++)
            at_end = at_end || (l->params[k] == param &&
                                (k >= l->nparams - l->half.ntables || is_output(m, i)));
    }
    return m->params[param].ndims == 2 && !at_end;
}

static bool trains(const ls_optim *o, const ls_model *m, int param) {
    const ls_param *p = &m->params[param];
    const ls_optim_group *g = &o->groups[p->group];
    const ls_optim_rule *rule = &ls_optim_rules[g->rule];
    if (rule->matrices) return is_matrix(m, param);
    if (rule->tables) return is_table(m, param);
    return !rule->decaying || ((p->decay || g->decays_all) && g->weight_decay > 0);
}

void ls_optim_place(ls_optim *o, ls_model *m) {
    int rest[LS_OPTIM_GROUPS] = {0}; /* of each group, the one for what its rule does not train */
    for (int i = 0; i < m->nparams; i++) {
        ls_param *p = &m->params[i];
        int g = p->group;
        p->cut.whole = false;
        if (p->momentum > 0 || p->frozen) continue;
        if (trains(o, m, i)) {
            p->cut.whole = ls_optim_rules[o->groups[g].rule].whole;
            continue;
        }
        if (!rest[g]) {
            rest[g] = o->ngroups++;
            o->groups[rest[g]] = o->groups[g];
            o->groups[rest[g]].rule = ls_optim_rules[o->groups[g].rule].rest;
        }
        p->group = (unsigned char)rest[g];
    }
    ls_model_place(m);
}

/* Replicas are averaged by one step of plain descent: from the common parameters, by the mean of
 * what replicas have moved away from them. */
static ls_optim_group outer_of(const ls_config *c) {
    static const ls_update_rule rules[] = {[LS_OUTER_NESTEROV] = LS_RULE_MOMENTUM,
                                           [LS_OUTER_SGD] = LS_RULE_MOMENTUM,
                                           [LS_OUTER_ADAMW] = LS_RULE_ADAMW};
    ls_optim_group g = {.rule = LS_RULE_SGD, .lr_scale = 1};
    if (c->sync.mode != LS_SYNC_DILOCO) return g;
    g.rule = c->sync.outer == LS_OUTER_SGD && c->sync.outer_momentum == 0 ? LS_RULE_SGD
                                                                          : rules[c->sync.outer];
    g.momentum = g.beta1 = c->sync.outer_momentum;
    g.beta2 = 0.95;
    g.eps = 1e-8;
    g.nesterov = c->sync.outer == LS_OUTER_NESTEROV;
    return g;
}

ls_status ls_optim_of(const ls_config *c, ls_model *m, ls_optim *o_p, ls_error *e) {
    ls_config_group groups[LS_CONFIG_GROUPS];
    int n = 0;
    _Static_assert(LS_OPTIM_GROUPS == 2 * (LS_CONFIG_GROUPS + 1), "group 0 has the others");
    LS_TRY(ls_config_read_groups(c, "config", groups, &n, e));
    const int64_t warmup = (int64_t)ls_config_warmup(c).n;
    ls_optim o = {
        .ema = c->optim.ema, .ngroups = 1 + n, .groups = {group_of(&c->optim, warmup, 1, false)}};
    o.filter_freq = c->model.filter_freq;
    o.steps_to_live = c->model.steps_to_live;
    if (c->sync.mode == LS_SYNC_SSP) o.older = (int)c->sync.staleness;
    for (int i = 0; i < n; i++) {
        LS_TRY(take(groups[i].match, i + 1, m, e));
        o.groups[i + 1] =
            group_of(&groups[i].with, warmup, groups[i].lr_scale, groups[i].decays_all);
    }
    ls_optim_place(&o, m);
    if (ls_config_has_replicas(c)) {
        o.replicas = (int)c->sync.replicas;
        o.outer = outer_of(c);
    }
    *o_p = o;
    return LS_OK;
}

/* The most states of any group's rule. */
static int most_states(const ls_optim *o) {
    int most = 0;
    for (int i = 0; i < o->ngroups; i++) {
        int n = ls_optim_rules[o->groups[i].rule].nstates;
        if (n > most) most = n;
    }
    int outer = o->replicas ? ls_optim_rules[o->outer.rule].nstates : 0;
    return outer > most ? outer : most;
}

int ls_optim_ema(const ls_optim *o) { return o->ema > 0 ? most_states(o) : -1; }

int ls_optim_older(const ls_optim *o) { return most_states(o) + (o->ema > 0); }

int ls_optim_nstates(const ls_optim *o) { return ls_optim_older(o) + o->older; }

static const char *const older_names[] = {
    "older.0", "older.1", "older.2",  "older.3",  "older.4",  "older.5",  "older.6",  "older.7",
    "older.8", "older.9", "older.10", "older.11", "older.12", "older.13", "older.14", "older.15"};
_Static_assert(sizeof older_names / sizeof *older_names == LS_STALENESS_MOST, "one name each");

int ls_optim_nflats(const ls_optim *o) { return 1 + ls_optim_nstates(o); }

const char *ls_optim_state_name(const ls_optim *o, const ls_param *p, int i) {
    const ls_optim_rule *rule = &ls_optim_rules[o->groups[p->group].rule];
    if (i == ls_optim_ema(o)) return LS_OPTIM_EMA;
    if (i >= ls_optim_older(o))
        return i < ls_optim_nstates(o) ? older_names[i - ls_optim_older(o)] : NULL;
    if (rule->factored && p->ndims < 2) return i == 0 ? rule->factored : NULL;
    return i < rule->nstates && p->momentum == 0 ? rule->states[i] : NULL;
}

ls_param ls_optim_state_param(const ls_optim *o, const ls_param *p, int i) {
    const ls_optim_rule *rule = &ls_optim_rules[o->groups[p->group].rule];
    ls_param s = *p;
    if (i >= rule->nstates) return s;
    if (rule->by_row) {
        s.count /= (size_t)s.dims[p->ndims - 1];
        s.dims[p->ndims - 1] = 1;
    }
    if (rule->squares && i >= rule->squares) {
        s.dims[0] = s.dims[1] = p->dims[0] < p->dims[1] ? p->dims[0] : p->dims[1];
        s.count = (size_t)(s.dims[0] * s.dims[1]);
    }
    if (rule->pairs && i >= rule->pairs) {
        s.ndims = 1;
        s.dims[0] = 2;
        s.count = 2;
    }
    if (rule->factored && p->ndims > 1) {
        int d = p->ndims - (i == 0 ? 1 : 2);
        s.count /= (size_t)s.dims[d];
        s.dims[d] = 1;
    }
    return s;
}

bool ls_optim_sees(const ls_optim *o) { return o->filter_freq > 0 || o->steps_to_live > 0; }

int ls_optim_table_buffers(const ls_optim *o) { return ls_optim_nflats(o) + ls_optim_sees(o); }

/* The floats of a table in a buffer after the weights, in whole vectors. */
static size_t table_floats(const ls_optim *o, const ls_param *p, int state) {
    return p->window.rows
               ? ls_round_up((size_t)p->window.rows * ls_optim_row_floats(o, p, 1 + state), 16)
               : 0;
}

/* Floats of the tables of all states before `state`, and of this state for the parameters before
 * `end`. */
static size_t states_before(const ls_optim *o, const ls_model *m, int state, const ls_param *end) {
    size_t sum = 0;
    for (int i = 0; i < m->nparams; i++)
        for (int k = 0; k < state + (&m->params[i] < end); k++)
            sum += table_floats(o, &m->params[i], k);
    return sum;
}

size_t ls_optim_tables_floats(const ls_optim *o, const ls_model *m) {
    return m->table_floats + states_before(o, m, ls_optim_table_buffers(o) - 1, m->params);
}

size_t ls_optim_table_at(const ls_optim *o, const ls_model *m, const ls_param *p, int buffer) {
    return buffer ? m->table_floats + states_before(o, m, buffer - 1, p) : p->window.at;
}

size_t ls_optim_row_floats(const ls_optim *o, const ls_param *p, int buffer) {
    if (!buffer) return (size_t)p->dims[1];
    if (buffer == ls_optim_nflats(o)) return sizeof(ls_optim_seen) / sizeof(float);
    if (!ls_optim_state_name(o, p, buffer - 1)) return 0;
    return (size_t)ls_optim_state_param(o, p, buffer - 1).dims[1];
}

ls_optim_range ls_optim_table_block(const ls_optim *o, const ls_model *m, const ls_table_block *b,
                                    int buffer) {
    const ls_param *p = &m->params[b->param];
    size_t each = ls_optim_row_floats(o, p, buffer);
    size_t at = each ? ls_optim_table_at(o, m, p, buffer) : 0;
    return (ls_optim_range){at + (size_t)b->first * each, at + (size_t)b->end * each};
}

const char *ls_optim_outer_state_name(const ls_optim *o, int i) {
    const ls_optim_rule *rule = &ls_optim_rules[o->outer.rule];
    return i < rule->nstates ? rule->states[i] : NULL;
}

int ls_optim_weights(const ls_optim *o, const ls_param *p, int64_t updates) {
    return updates > 0 && p->momentum == 0 ? ls_optim_rules[o->groups[p->group].rule].average : 0;
}

bool ls_optim_averages(const ls_optim *o) {
    bool any = false;
    for (int g = 0; g < o->ngroups; g++) any = any || ls_optim_rules[o->groups[g].rule].average;
    return any;
}

/* Does a group before this one have the state? */
static bool is_listed(const ls_optim *o, int group, const char *name) {
    for (int g = 0; g < group; g++) {
        const ls_optim_rule *rule = &ls_optim_rules[o->groups[g].rule];
        for (int i = 0; i < rule->nstates; i++)
            if (strcmp(rule->states[i], name) == 0) return true;
    }
    return false;
}

void ls_optim_list_states(const ls_optim *o, ls_buf *out) {
    const char *comma = "";
    for (int g = 0; g < o->ngroups; g++) {
        const ls_optim_rule *rule = &ls_optim_rules[o->groups[g].rule];
        for (int i = 0; i < rule->nstates; i++) {
            if (is_listed(o, g, rule->states[i])) continue;
            ls_buf_printf(out, "%s%s", comma, rule->states[i]);
            comma = ", ";
        }
    }
    if (o->ema > 0) ls_buf_printf(out, "%s" LS_OPTIM_EMA, comma);
    for (int i = 0; i < o->older; i++)
        ls_buf_printf(out, "%s%s", i || o->ema > 0 ? ", " : comma, older_names[i]);
}

/* Schedule-free: the weight of update t in an average weighted by the squares of learning rates,
 * which rise linearly over the warm-up and are constant then. */
static double weight_of(const ls_optim_group *g, uint64_t t) {
    double w = (double)g->warmup, last = (double)t < w ? (double)t : w;
    double squares = w > 0 ? last * (last + 1) * (2 * last + 1) / (6 * w * w) : 0;
    double now = (double)t < w ? (double)t * (double)t / (w * w) : 1;
    return now / (squares + ((double)t > w ? (double)t - w : 0));
}

/* With beta1 0 and beta2 1 Adam takes the gradient for the first moment, and leaves the second as
 * it is. The correction of that is the one of its last change. 1-bit LAMB needs the betas. */
static ls_update_scalars frozen_scalars(const ls_optim_group *g, uint64_t t, ls_update_scalars s) {
    s.frozen = true;
    s.first_frozen = t == (uint64_t)g->freeze + 1;
    if (g->rule == LS_RULE_ONEBIT_ADAM) s.beta1 = 0;
    if (g->rule == LS_RULE_ONEBIT_ADAM) s.beta2 = 1;
    s.correct2 = (float)(1.0 / (1.0 - ls_math_pow_int(g->beta2, (uint64_t)g->freeze)));
    return s;
}

ls_update_scalars ls_optim_scalars(const ls_optim_group *g, const ls_optim_step *s, bool decay) {
    uint64_t t = (uint64_t)s->updates + 1;
    ls_update_scalars all = {
        .lr = (float)(s->lr * g->lr_scale / (1 + (double)s->updates * g->lr_decay)),
        .beta1 = (float)g->beta1,
        .beta2 = (float)g->beta2,
        .eps = (float)g->eps,
        .weight_decay = decay ? (float)g->weight_decay : 0,
        .momentum = (float)g->momentum,
        .correct1 = (float)(1.0 / (1.0 - ls_math_pow_int(g->beta1, t))),
        .correct2 = (float)(1.0 / (1.0 - ls_math_pow_int(g->beta2, t))),
        .grad_scale = (float)s->grad_scale,
        .weight = (float)weight_of(g, t),
        .nesterov = g->nesterov,
        .first = t == 1,
    };
    return g->freeze > 0 && s->updates >= g->freeze ? frozen_scalars(g, t, all) : all;
}
