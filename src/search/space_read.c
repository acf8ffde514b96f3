/* space_read.c - reads the file of a search. See space.h. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/yaml.h"
#include "config/differences.h"
#include "search/space.h"

enum { BILLION = 1000000000, MOST_CHOICES = 256, MOST_EXCHANGES = 1000 };

typedef struct reader {
    ls_space *s;
    const ls_config *base;
    bool has_mode;
} reader;

static ls_status bad(const reader *r, int line, ls_error *e, const char *what, const char *name) {
    return ls_fail(e, LS_EINVAL, "%s:%d: %.60s: %s", r->s->path, line, name, what);
}

/* ---- a grid ---- */

static ls_status add_point(ls_space *s, const ls_space_point *p, ls_error *e) {
    int64_t n = s->rules.trials;
    if (n == LS_SPACE_TRIALS)
        return ls_fail(e, LS_EINVAL,
                       "%s: the grid has more than %d combinations; use fewer values, or method "
                       "random",
                       s->path, LS_SPACE_TRIALS);
    s->grid = ls_grow(s->grid, (size_t)n, sizeof *s->grid);
    ls_space_point_copy(p, &s->grid[n]);
    s->rules.trials++;
    return LS_OK;
}

static ls_status check_range(const ls_space *s, int key, const ls_space_range *a, ls_error *e) {
    if (a->kind == LS_RANGE_CHOICE || a->kind == LS_RANGE_INT) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s:%d: %s: a grid takes the values of choice or int; list them, or use method "
                   "random",
                   s->path, a->line, s->keys[key].name);
}

/* Sets the keys from `key` on to all their values, one after the other. */
static ls_status expand(ls_space *s, int key, ls_space_point *p, ls_error *e) {
    if (key == s->nkeys) return add_point(s, p, e);
    const ls_space_range *a = ls_space_range_of(s, key, p);
    if (!a) return expand(s, key + 1, p, e);
    LS_TRY(check_range(s, key, a, e));
    double n = a->kind == LS_RANGE_CHOICE ? a->nchoices : a->high - a->low + 1;
    ls_status got = LS_OK;
    for (int i = 0; got == LS_OK && i < n; i++) {
        p->values[key] =
            a->kind == LS_RANGE_CHOICE ? ls_strdup(a->choices[i]) : ls_format("%.0f", a->low + i);
        got = expand(s, key + 1, p, e);
        free(p->values[key]);
        p->values[key] = NULL;
    }
    return got;
}

/* Sets s->grid and rules.trials to all combinations; the last key changes fastest. */
static ls_status make_grid(ls_space *s, ls_error *e) {
    ls_space_point p = {0};
    s->rules.trials = 0;
    return expand(s, 0, &p, e);
}

/* ---- the keys besides `space` ---- */

enum {
    GRID = 1 << LS_SPACE_GRID,
    RANDOM = 1 << LS_SPACE_RANDOM,
    ASHA = 1 << LS_SPACE_ASHA,
    PBT = 1 << LS_SPACE_PBT,
    ALL = GRID | RANDOM | ASHA | PBT
};

const char *const ls_space_methods[] = {"grid", "random", "asha", "pbt", NULL};
static const char *const modes[] = {"min", "max", NULL};
static const char *const rules[] = {"promote", "stop", NULL};

typedef struct setting {
    const char *name;
    int methods; /* that have it */
    size_t offset;
    const char *const *words; /* or NULL: a number */
    bool is_real;
    double low, high;
} setting;

#define AT(field) offsetof(ls_space_rules, field)
static const setting settings[] = {
    {"method", ALL, AT(method), ls_space_methods, false, 0, 0},
    {"trials", RANDOM | ASHA | PBT, AT(trials), NULL, false, 1, LS_SPACE_TRIALS},
    {"mode", ALL, AT(maximize), modes, false, 0, 0},
    {"steps", ALL, AT(steps), NULL, false, 1, BILLION},
    {"seed", RANDOM | ASHA | PBT, AT(seed), NULL, false, 0, 9007199254740992.0},
    {"rule", ASHA, AT(rule), rules, false, 0, 0},
    {"grace", ASHA, AT(grace), NULL, false, 1, BILLION},
    {"reduction", ASHA, AT(reduction), NULL, false, 2, 1000},
    {"interval", PBT, AT(interval), NULL, false, 1, BILLION},
    {"quantile", PBT, AT(quantile), NULL, true, 0, 0.5},
    {"resample", PBT, AT(resample), NULL, true, 0, 1},
};
#undef AT
enum { NSETTINGS = sizeof settings / sizeof *settings };

/* Is the text a number, and nothing else? */
static bool read_number(const char *text, double *value_p) {
    char *end = NULL;
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return false;
    *value_p = strtod(text, &end);
    return !*end && isfinite(*value_p);
}

static ls_status set_word(const reader *r, const setting *k, const ls_yaml_item *item,
                          ls_error *e) {
    int64_t *at = (int64_t *)(void *)((char *)&r->s->rules + k->offset);
    ls_buf list = {0};
    for (int i = 0; k->words[i]; i++) {
        ls_buf_printf(&list, "%s%s", i ? ", " : "", k->words[i]);
        if (strcmp(k->words[i], item->value) != 0) continue;
        *at = i;
        ls_buf_free(&list);
        return LS_OK;
    }
    ls_status s = ls_fail(e, LS_EINVAL, "%s:%d: %s: '%.60s' is not one of %s", r->s->path,
                          item->line, k->name, item->value, list.data);
    ls_buf_free(&list);
    return s;
}

static ls_status set_number(const reader *r, const setting *k, const ls_yaml_item *item,
                            ls_error *e) {
    char *at = (char *)&r->s->rules + k->offset;
    double v = 0;
    bool good = read_number(item->value, &v) && v >= k->low && v <= k->high;
    if (!good || (!k->is_real && v != floor(v)))
        return ls_fail(e, LS_EINVAL, "%s:%d: %s: '%.60s' is not a %snumber from %g to %.16g",
                       r->s->path, item->line, k->name, item->value, k->is_real ? "" : "whole ",
                       k->low, k->high);
    if (k->is_real)
        *(double *)(void *)at = v;
    else
        *(int64_t *)(void *)at = (int64_t)v;
    return LS_OK;
}

static ls_status set_metric(const reader *r, const ls_yaml_item *item, ls_error *e) {
    ls_space_rules *u = &r->s->rules;
    if (!*item->value || strlen(item->value) >= LS_SPACE_METRIC)
        return bad(r, item->line, e,
                   "it is the name of a number in metrics.jsonl, such as val_loss", "metric");
    strcpy(u->metric, item->value);
    return LS_OK;
}

static ls_status unknown_setting(const reader *r, const ls_yaml_item *item, ls_error *e) {
    static const char *const others[] = {"metric", "space"};
    const char *meant = NULL;
    for (int i = 0; i < NSETTINGS; i++)
        if (ls_is_near(item->key, settings[i].name)) meant = settings[i].name;
    for (int i = 0; i < 2; i++)
        if (ls_is_near(item->key, others[i])) meant = others[i];
    return ls_fail(e, LS_EINVAL,
                   "%s:%d: unknown key '%.60s'%s%s%s keys of configs belong below 'space:'",
                   r->s->path, item->line, item->key, meant ? "; did you mean '" : ";",
                   meant ? meant : "", meant ? "'?" : "");
}

static const setting *find_setting(const char *name) {
    for (int i = 0; i < NSETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0) return &settings[i];
    return NULL;
}

static ls_status check_once(const reader *r, const ls_yaml *y, size_t i, ls_error *e) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(y->items[k].key, y->items[i].key) == 0)
            return ls_fail(e, LS_EINVAL, "%s:%d: '%.60s' occurs twice; first in line %d",
                           r->s->path, y->items[i].line, y->items[i].key, y->items[k].line);
    return LS_OK;
}

static ls_status read_settings(reader *r, const ls_yaml *y, ls_error *e) {
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        const setting *k = find_setting(item->key);
        LS_TRY(check_once(r, y, i, e));
        if (strcmp(item->key, "space") == 0) continue;
        if (item->is_list)
            return bad(r, item->line, e, "is a list; one value is expected", item->key);
        if (strcmp(item->key, "metric") == 0) {
            LS_TRY(set_metric(r, item, e));
            continue;
        }
        if (!k) return unknown_setting(r, item, e);
        LS_TRY(k->words ? set_word(r, k, item, e) : set_number(r, k, item, e));
        if (strcmp(k->name, "mode") == 0) r->has_mode = true;
    }
    return LS_OK;
}

/* Which settings the method has is known once all are read. */
static ls_status check_settings(const reader *r, const ls_yaml *y, ls_error *e) {
    const ls_space_rules *u = &r->s->rules;
    bool has_trials = false;
    for (size_t i = 0; i < y->nitems; i++) {
        const setting *k = find_setting(y->items[i].key);
        if (k && !(k->methods & 1 << u->method))
            return ls_fail(e, LS_EINVAL, "%s:%d: %s: is not a setting of method %s; leave it out",
                           r->s->path, y->items[i].line, k->name, ls_space_methods[u->method]);
        if (k && strcmp(k->name, "trials") == 0) has_trials = true;
    }
    if (!has_trials && u->method != LS_SPACE_GRID)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no 'trials'; set how many are trained, e.g. trials: 20",
                       r->s->path);
    if (!r->has_mode && !strstr(u->metric, "loss") && !strstr(u->metric, "bits"))
        return ls_fail(e, LS_EINVAL,
                       "%s: metric %s: is a lower or a higher value better? Set mode: "
                       "min or mode: max",
                       r->s->path, u->metric);
    if (u->method == LS_SPACE_PBT && u->trials < 2)
        return ls_fail(e, LS_EINVAL, "%s: method pbt needs at least 2 trials", r->s->path);
    if (u->method == LS_SPACE_PBT && u->steps / u->interval > MOST_EXCHANGES)
        return ls_fail(
            e, LS_EINVAL,
            "%s: interval: %lld steps are too few: a trial of %lld steps has at most %d exchanges",
            r->s->path, (long long)u->interval, (long long)u->steps, MOST_EXCHANGES);
    if (u->method == LS_SPACE_ASHA && u->grace > u->steps)
        return ls_fail(e, LS_EINVAL, "%s: grace: %lld steps are more than a trial has, %lld",
                       r->s->path, (long long)u->grace, (long long)u->steps);
    return LS_OK;
}

/* ---- ranges ---- */

/* Does the config's key take this value? The message names the line. */
static ls_status check_value(const reader *r, int line, const char *key, const char *value,
                             ls_error *e) {
    ls_config c = *r->base;
    ls_error why = {0};
    char *assignment = ls_format("%s=%s", key, value);
    ls_status s = ls_config_set(&c, assignment, &why);
    free(assignment);
    if (s == LS_OK) return LS_OK;
    const char *msg = strncmp(why.msg, "--set: ", 7) == 0 ? why.msg + 7 : why.msg;
    return ls_fail(e, s, "%s:%d: %s", r->s->path, line, msg);
}

static ls_status read_texts(const reader *r, const char *name, const ls_yaml_node *n,
                            char ***list_p, int *n_p, ls_error *e) {
    if (n->kind == LS_YAML_LIST && n->nitems > MOST_CHOICES)
        return bad(r, n->line, e, "has more values than the 256 that are possible", name);
    if (n->kind != LS_YAML_LIST || n->nitems == 0)
        return bad(r, n->line, e, "expected a list of values, such as [1, 2]", name);
    for (int i = 0; i < n->nitems; i++) {
        if (n->items[i]->kind != LS_YAML_TEXT)
            return bad(
                r, n->items[i]->line, e,
                "a list or a map can't be one of the values; write it in quotes, as --set takes it",
                name);
        *list_p = ls_grow(*list_p, (size_t)*n_p, sizeof **list_p);
        (*list_p)[(*n_p)++] = ls_strdup(n->items[i]->text);
    }
    return LS_OK;
}

static ls_status read_choice(const reader *r, const char *name, const ls_yaml_node *n,
                             ls_space_range *a, ls_error *e) {
    LS_TRY(read_texts(r, name, n, &a->choices, &a->nchoices, e));
    for (int i = 0; i < a->nchoices; i++)
        LS_TRY(check_value(r, n->items[i]->line, name, a->choices[i], e));
    return LS_OK;
}

static ls_status read_limits(const reader *r, const char *name, const ls_yaml_node *n,
                             ls_space_range *a, ls_error *e) {
    double *const ends[2] = {&a->low, &a->high};
    bool pair = n->kind == LS_YAML_LIST && n->nitems == 2;
    for (int i = 0; pair && i < 2; i++)
        pair = n->items[i]->kind == LS_YAML_TEXT && read_number(n->items[i]->text, ends[i]);
    if (!pair)
        return bad(r, n->line, e, "expected the lowest and the highest value, such as [1, 4]",
                   name);
    if (a->kind == LS_RANGE_INT && (a->low != floor(a->low) || a->high != floor(a->high)))
        return bad(r, n->line, e, "int takes whole numbers", name);
    if (a->low > a->high || (a->low == a->high && a->kind != LS_RANGE_INT))
        return bad(r, n->line, e, "is empty: the first value must be the lower one", name);
    if (a->kind == LS_RANGE_LOG_UNIFORM && a->low <= 0)
        return bad(r, n->line, e, "log_uniform needs values above 0", name);
    for (int i = 0; i < 2; i++) LS_TRY(check_value(r, n->line, name, n->items[i]->text, e));
    return LS_OK;
}

/* when: {optim.optimizer: adamw, model.layers: [2, 4]} */
static ls_status read_conditions(const reader *r, const char *name, const ls_yaml_node *n,
                                 ls_space_range *a, ls_error *e) {
    if (n->kind != LS_YAML_MAP || n->nitems == 0)
        return bad(r, n->line, e, "'when' expects keys of the space and their values", name);
    for (int i = 0; i < n->nitems; i++) {
        const ls_yaml_node *item = n->items[i];
        ls_space_condition c = {0};
        int nabove = r->s->nkeys - 1; /* keys above this one */
        while (c.key < nabove && strcmp(r->s->keys[c.key].name, item->key) != 0) c.key++;
        if (c.key == nabove)
            return ls_fail(
                e, LS_EINVAL,
                "%s:%d: %s: 'when' names '%.60s', which is not a key of the space above this one",
                r->s->path, item->line, name, item->key);
        a->conditions = ls_grow(a->conditions, (size_t)a->nconditions, sizeof *a->conditions);
        a->conditions[a->nconditions++] = c;
        ls_space_condition *own = &a->conditions[a->nconditions - 1];
        if (item->kind != LS_YAML_TEXT) {
            LS_TRY(read_texts(r, name, item, &own->values, &own->n, e));
        } else {
            own->values = ls_grow(NULL, 0, sizeof *own->values);
            own->values[own->n++] = ls_strdup(item->text);
        }
        for (int k = 0; k < own->n; k++)
            LS_TRY(check_value(r, item->line, item->key, own->values[k], e));
    }
    return LS_OK;
}

static ls_status read_range(const reader *r, const char *name, const ls_yaml_node *n,
                            ls_space_range *a, ls_error *e) {
    static const char *const kinds[] = {"choice", "uniform", "log_uniform", "int"};
    const ls_yaml_node *values = NULL, *when = NULL;
    a->line = n->line;
    for (int i = 0; n->kind == LS_YAML_MAP && i < n->nitems; i++) {
        const ls_yaml_node *item = n->items[i];
        int kind = 0;
        while (kind < 4 && strcmp(kinds[kind], item->key) != 0) kind++;
        if (strcmp(item->key, "when") == 0) {
            when = item;
        } else if (kind < 4 && !values) {
            values = item;
            a->kind = (ls_range_kind)kind;
        } else {
            return ls_fail(
                e, LS_EINVAL,
                "%s:%d: %s: '%.60s': expected one of choice, uniform, log_uniform, int, and 'when'",
                r->s->path, item->line, name, item->key);
        }
    }
    if (!values)
        return bad(r, n->line, e,
                   "expected choice, uniform, log_uniform or int, e.g. {choice: [1, 2]}", name);
    if (when) LS_TRY(read_conditions(r, name, when, a, e));
    return a->kind == LS_RANGE_CHOICE ? read_choice(r, name, values, a, e)
                                      : read_limits(r, name, values, a, e);
}

/* ---- keys ---- */

/* Keys that the search sets itself, or without which values could not be compared. */
static const char *const own_keys[] = {"train.epochs",       "train.steps",    "train.eval_every",
                                       "train.eval_samples", "train.patience", NULL};

static ls_status check_key(const reader *r, const char *name, int line, ls_error *e) {
    for (int i = 0; own_keys[i]; i++)
        if (strcmp(own_keys[i], name) == 0)
            return bad(r, line, e,
                       "is the same in all trials, since they are compared; set 'steps' for all, "
                       "or the config's key",
                       name);
    if (r->s->rules.method == LS_SPACE_PBT && !ls_config_is_steered(name))
        return bad(
            r, line, e,
            "can't change within a run, as method pbt needs; use another method, or keys of optim",
            name);
    return LS_OK;
}

static ls_status read_key(reader *r, const ls_yaml_node *n, ls_error *e) {
    bool is_list = n->kind == LS_YAML_LIST;
    int nranges = is_list ? n->nitems : 1;
    LS_TRY(check_key(r, n->key, n->line, e));
    if (r->s->nkeys == LS_SPACE_KEYS)
        return bad(r, n->line, e, "is one key too many: a space has at most 32", n->key);
    ls_space_key *k = &r->s->keys[r->s->nkeys++];
    *k = (ls_space_key){.name = ls_strdup(n->key)};
    if (nranges == 0) return bad(r, n->line, e, "is an empty list", n->key);
    k->ranges = LS_NEW_ARRAY(ls_space_range, (size_t)nranges);
    for (int i = 0; i < nranges; i++) {
        ls_space_range *a = &k->ranges[k->nranges++];
        LS_TRY(read_range(r, k->name, is_list ? n->items[i] : n, a, e));
        if (a->nconditions && r->s->rules.method == LS_SPACE_PBT)
            return bad(r, a->line, e, "method pbt has no 'when'", n->key);
    }
    return LS_OK;
}

static char *without_line_ends(const char *text) {
    ls_buf b = {0};
    for (; *text; text++)
        if (*text != '\n') ls_buf_append(&b, text, 1);
    return b.data;
}

static ls_status read_keys(reader *r, const ls_yaml *y, ls_error *e) {
    const ls_yaml_item *item = NULL;
    ls_yaml_node *root = NULL;
    for (size_t i = 0; i < y->nitems; i++)
        if (strcmp(y->items[i].key, "space") == 0) item = &y->items[i];
    if (!item || !item->is_tree)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no 'space': keys of the config and their values, e.g. space: "
                       "{optim.lr: {log_uniform: [1e-4, 1e-2]}}",
                       r->s->path);
    LS_TRY(ls_yaml_parse_tree(item->value, r->s->path, item->line, &root, e));
    r->s->text = without_line_ends(item->value);
    ls_status s = LS_OK;
    if (root->kind != LS_YAML_MAP || root->nitems == 0)
        s = bad(r, item->line, e,
                "expected keys of the config and their values, e.g. optim.lr: {log_uniform: [1e-4, "
                "1e-2]}",
                "space");
    for (int i = 0; s == LS_OK && i < root->nitems; i++) s = read_key(r, root->items[i], e);
    ls_yaml_node_free(root);
    return s;
}

/* ---- the file ---- */

static bool is_tree(const char *key) { return strcmp(key, "space") == 0; }

static void set_defaults(ls_space *s, const ls_config *base) {
    s->rules = (ls_space_rules){.method = LS_SPACE_RANDOM,
                                .steps = base->train.steps,
                                .seed = 1,
                                .reduction = 4,
                                .interval = 60,
                                .quantile = 0.25,
                                .resample = 0.25,
                                .metric = "val_loss"};
}

static ls_status read_all(reader *r, const ls_yaml *y, ls_error *e) {
    LS_TRY(read_settings(r, y, e));
    ls_space_rules *u = &r->s->rules;
    if (!u->grace) u->grace = u->steps < 100 ? 1 : u->steps / 100;
    LS_TRY(check_settings(r, y, e));
    LS_TRY(read_keys(r, y, e));
    return u->method == LS_SPACE_GRID ? make_grid(r->s, e) : LS_OK;
}

ls_status ls_space_parse(const ls_buf *text, const char *name, const ls_config *base, ls_space *s_p,
                         ls_error *e) {
    ls_yaml y;
    ls_space s = {0};
    reader r = {.s = &s, .base = base};
    LS_TRY(ls_yaml_parse_lists(text, name, is_tree, &y, e));
    s.path = ls_strdup(name);
    set_defaults(&s, base);
    ls_status got = read_all(&r, &y, e);
    ls_yaml_free(&y);
    if (got == LS_OK)
        *s_p = s;
    else
        ls_space_free(&s);
    return got;
}

static void free_texts(char **list, int n) {
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
}

void ls_space_free(ls_space *s) {
    for (int64_t i = 0; s->grid && i < s->rules.trials; i++) ls_space_point_free(&s->grid[i]);
    for (int i = 0; i < s->nkeys; i++) {
        for (int k = 0; k < s->keys[i].nranges; k++) {
            ls_space_range *a = &s->keys[i].ranges[k];
            for (int j = 0; j < a->nconditions; j++)
                free_texts(a->conditions[j].values, a->conditions[j].n);
            free(a->conditions);
            free_texts(a->choices, a->nchoices);
        }
        free(s->keys[i].ranges);
        free(s->keys[i].name);
    }
    free(s->grid);
    free(s->text);
    free(s->path);
    *s = (ls_space){0};
}
