/* config.c - see config.h: reading configs, and setting single keys. */
#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/yaml.h"
#include "config/key.h"
#include "config/own.h"
#include "config/phases.h"
#include "config/suggest.h"

_Static_assert((int)LS_NCONFIG_KEYS <= (int)LS_CONFIG_MOST_KEYS,
               "each key has a place in `written`");

void ls_config_defaults(ls_config *c) {
    *c = (ls_config){0};
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) ls_config_key_reset(c, k);
    for (int i = 0; i < LS_OWN_TEXTS; i++) c->own.texts[i] = "";
    ls_config_own_defaults(c);
}

/* ---- what follows from the values ---- */

ls_config_span ls_config_warmup(const ls_config *c) {
    enum { MOST = 50 };
    int64_t tenth = c->train.steps / 10;
    if (c->optim.warmup.n != LS_AUTO) return c->optim.warmup;
    return (ls_config_span){.n = (double)(tenth < MOST ? tenth : MOST)};
}

bool ls_config_has_text(const ls_config *c) {
    bool is_text = c->data.format == LS_DATA_AUTO || c->data.format == LS_DATA_TEXT;
    return is_text && ls_config_has_tokens(c);
}

bool ls_config_has_ratings(const ls_config *c) { return *c->data.ratings.text != 0; }

bool ls_config_has_clicks(const ls_config *c) { return *c->data.clicks.text != 0; }

bool ls_config_has_chats(const ls_config *c) { return c->data.format == LS_DATA_CHAT; }

bool ls_config_has_corpus(const ls_config *c) {
    return ls_config_has_text(c) || ls_config_has_chats(c);
}

bool ls_config_has_tokens(const ls_config *c) {
    return c->model.kind == LS_MODEL_GPT2 || c->model.kind == LS_MODEL_LLAMA;
}

bool ls_config_sends_momentum(const ls_config_optim *o) {
    return o->optimizer == LS_OPTIMIZER_ONEBIT_ADAM || o->optimizer == LS_OPTIMIZER_ONEBIT_LAMB;
}

int64_t ls_config_ranks(const ls_config *c) {
    return c->parallel.mesh_pipe * c->parallel.mesh_tensor * c->parallel.mesh_context *
           c->parallel.mesh_expert;
}

int64_t ls_config_expert_of(const ls_config *c, int64_t workers) {
    int64_t expert = c->parallel.expert_virtual < workers ? c->parallel.expert_virtual : workers;
    while (expert > 0 && workers % expert) expert--;
    return expert > 0 && workers / expert <= c->parallel.context_virtual ? expert : 0;
}

int ls_config_threads(const ls_config *c, int workers, int cores) {
    if (c->parallel.threads != LS_AUTO) return (int)c->parallel.threads;
    int each = cores / workers;
    return each < 1 ? 1 : each < LS_CONFIG_MOST_THREADS ? each : LS_CONFIG_MOST_THREADS;
}

bool ls_config_binds(const ls_config *c, int workers, int threads, int cores, int nodes) {
    bool alone = 2 * workers * threads > cores;
    return c->parallel.bind == LS_BIND_ON ||
           (c->parallel.bind == LS_BIND_AUTO && nodes > 1 && alone);
}

int ls_config_workers_on(const ls_config *c, int cores) {
    int n = c->parallel.threads == LS_AUTO ? cores : cores / (int)c->parallel.threads;
    return n > 1 ? n : 1;
}

int64_t ls_config_most_workers(const ls_config *c) {
    bool chosen = c->parallel.mesh == LS_MESH_AUTO;
    int64_t pipe = chosen ? LS_CONFIG_MOST_PIPE : c->parallel.mesh_pipe;
    int64_t tensor = chosen ? c->parallel.tensor_virtual : c->parallel.mesh_tensor;
    int64_t parts = chosen ? c->parallel.context_virtual * c->parallel.expert_virtual
                           : c->parallel.mesh_context * c->parallel.mesh_expert;
    return c->train.virtual_workers * pipe * tensor * parts;
}

bool ls_config_has_crew(const ls_config *c) {
    return c->sync.mode == LS_SYNC_ASYNC || c->sync.mode == LS_SYNC_SSP;
}

bool ls_config_device_is_auto(const ls_config *c) {
    return strcmp(c->parallel.device, "auto") == 0;
}

bool ls_config_has_device(const ls_config *c) {
    return *c->parallel.device && !ls_config_device_is_auto(c);
}

bool ls_config_has_replicas(const ls_config *c) {
    return c->sync.mode == LS_SYNC_LOCAL || c->sync.mode == LS_SYNC_DILOCO ||
           c->sync.mode == LS_SYNC_GOSSIP;
}

int64_t ls_config_sync_every(const ls_config *c) {
    if (c->sync.every) return c->sync.every;
    return c->sync.mode == LS_SYNC_GOSSIP ? 1 : 50;
}

/* The replicas have a mean where it is looked at: in evaluations, checkpoints and at the end. */
int64_t ls_config_model_step(const ls_config *c, int64_t steps) {
    const int64_t looks[] = {c->train.eval_every, c->checkpoint.every};
    int64_t latest = 0;
    if (c->sync.mode != LS_SYNC_GOSSIP || steps == c->train.steps) return steps;
    for (int i = 0; i < 2; i++) {
        int64_t at = looks[i] > 0 ? steps - steps % looks[i] : 0;
        if (at > latest) latest = at;
    }
    return latest;
}

bool ls_config_has_pairs(const ls_config *c) {
    return ls_config_has_chats(c) && c->train.loss == LS_TRAIN_LOSS_DPO;
}

bool ls_config_has_positions(const ls_config *c) {
    return ls_config_has_pairs(c) || (ls_config_has_chats(c) && c->data.packing);
}

int64_t ls_config_positions(const ls_config *c) {
    return (ls_config_has_pairs(c) ? 2 : 1) * c->model.context;
}

bool ls_config_has_token_losses(const ls_config *c) {
    return ls_config_has_tokens(c) && !ls_config_has_pairs(c);
}

const char *ls_config_unit(const ls_config *c) {
    return ls_config_has_tokens(c) ? "tokens" : "samples";
}

double ls_config_units(const ls_config *c) {
    return ls_config_has_tokens(c) ? (double)ls_config_positions(c) : 1;
}

const char *ls_config_format(const ls_config *c) {
    static const char *const words[] = {ls_data_kind_words(LS_CHOICE_WORD) NULL};
    return c->data.format == LS_DATA_AUTO ? NULL : words[c->data.format];
}

/* ---- keys ---- */

static ls_status group_alone(const char *where, const char *name, ls_error *e) {
    ls_buf groups = {0};
    ls_config_key_list_groups(&groups);
    ls_status s =
        ls_fail(e, LS_EINVAL,
                "%.300s: '%.60s' is a group, not a key; set keys in it, e.g. train.steps, "
                "or remove it (the groups are %s)",
                where, name, groups.data);
    ls_buf_free(&groups);
    return s;
}

static ls_status not_maps(const char *where, const ls_config_key *k, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list of maps: [{key: value, ...}, ...]",
                   where, k->name);
}

const char *ls_config_suggest_key(const char *name) {
    const char *names[LS_NCONFIG_KEYS + LS_OWN_NUMBERS];
    const ls_config_key *k = NULL;
    int n = 0;
    for (; (k = ls_config_key_at(n)); n++) names[n] = k->name;
    return ls_config_suggest(name, names, n);
}

static ls_status unknown_key(const char *where, const char *name, ls_error *e) {
    if (ls_config_key_is_group(name)) return group_alone(where, name, e);
    const char *dot = strrchr(name, '.');
    char *above = ls_format("%.*s", dot ? (int)(dot - name) : 0, name);
    const ls_config_key *k = ls_config_key_find(above);
    free(above);
    if (k && k->type == LS_KEY_MAPS) return not_maps(where, k, e);
    const char *meant = ls_config_suggest_key(name);
    return ls_fail(e, LS_EINVAL,
                   "%.300s: unknown key '%.60s'%s%s%s 'lockstep help config' lists all", where,
                   name, meant ? "; did you mean '" : ";", meant ? meant : "", meant ? "'?" : "");
}

/* Keys of programs always act. */
static void mark_written(ls_config *c, const ls_config_key *k) {
    int i = ls_config_key_index(ls_config_key_find(k->name));
    if (i < LS_NCONFIG_KEYS) c->written[i] = LS_WRITTEN;
}

static bool is_tree(const char *key) { return ls_config_key_find_tree(key) != NULL; }

/* `where` is "path:line", "--set" or "sets". */
static ls_status set_tree(ls_config *c, const ls_config_key *k, const char *where,
                          const ls_yaml_item *item, ls_error *e) {
    ls_config_tree *tree = (void *)((char *)c + k->offset);
    const char *name = ls_file_name(where), *colon = strrchr(name, ':');
    snprintf(tree->file, sizeof tree->file, "%.*s", colon ? (int)(colon - name) : 60, name);
    tree->line = item->line;
    if (!*item->value) *tree = LS_CONFIG_NO_TREE;
    LS_TRY(ls_config_key_set(c, k, where, item->value, e));
    if (tree == &c->data.missing_by) c->data.missing = LS_MISSING_REFUSE;
    return tree == &c->train.phased ? ls_config_read_phases(c, where, e) : LS_OK;
}

/* Sets a key whose value is not a tree. */
static ls_status set_value(ls_config *c, const ls_config_key *k, const char *where,
                           const char *value, ls_error *e) {
    LS_TRY(ls_config_key_set(c, k, where, value, e));
    const void *at = (const char *)c + k->offset;
    if (at == &c->train.batch) ls_config_set_batch(c, c->train.batch);
    if (at == &c->model.layers) c->model.list = LS_CONFIG_NO_TREE;
    if (at == &c->data.missing) c->data.missing_by = LS_CONFIG_NO_TREE;
    if (at == &c->parallel.mesh_data || at == &c->parallel.mesh_pipe ||
        at == &c->parallel.mesh_tensor || at == &c->parallel.mesh_context ||
        at == &c->parallel.mesh_expert)
        c->parallel.mesh = LS_MESH_GIVEN; /* a key `parallel.mesh` comes after these */
    return LS_OK;
}

static ls_status set_item(ls_config *c, const ls_config_key *k, const char *where,
                          const ls_yaml_item *item, ls_error *e) {
    mark_written(c, k);
    if (k->type == LS_KEY_TREE) return set_tree(c, k, where, item, e);
    if (item->is_list && k->type != LS_KEY_LIST && k->type != LS_KEY_MAPS)
        return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected", where,
                       item->key);
    if (!*item->value && item->has_maps)
        return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' has an empty map", where, k->name);
    if (*item->value && item->has_maps != (k->type == LS_KEY_MAPS))
        return k->type == LS_KEY_MAPS
                   ? not_maps(where, k, e)
                   : ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list of texts; it has maps", where,
                             k->name);
    return set_value(c, k, where, item->value, e);
}

/* Sets a list that is written as in YAML: "[a, b]". */
static ls_status set_list(ls_config *c, const ls_config_key *k, const char *from, const char *value,
                          ls_error *e) {
    ls_buf text = {0};
    ls_yaml y = {0};
    ls_buf_printf(&text, "%s: %s", k->name, value);
    ls_status s = ls_yaml_parse_lists(&text, from, is_tree, &y, e);
    if (s == LS_OK && y.nitems != 1)
        s = ls_fail(e, LS_EINVAL, "%s: %s: other keys follow the list", from, k->name);
    else if (s == LS_OK)
        s = set_item(c, k, from, &y.items[0], e);
    ls_yaml_free(&y);
    ls_buf_free(&text);
    return s;
}

/* ---- reading ---- */

static unsigned char *written_at(ls_config *c, const char *key) {
    return &c->written[ls_config_key_index(ls_config_key_find(key))];
}

static ls_status apply(ls_config *c, const char *path, const ls_yaml *y, ls_error *e) {
    int lines[LS_NCONFIG_KEYS + LS_OWN_NUMBERS] = {
        0}; /* the line of each key that was read; 0: none */
    for (size_t i = 0; i < y->nitems; i++) {
        const ls_yaml_item *item = &y->items[i];
        char where[LS_CONFIG_TEXT];
        snprintf(where, sizeof where, "%.900s:%d", path, item->line);
        const ls_config_key *k =
            item->is_tree ? ls_config_key_find_tree(item->key) : ls_config_key_find(item->key);
        if (!k && item->is_list && ls_config_key_is_group(item->key))
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' is a list; a single value is expected",
                           where, item->key);
        if (!k && c->model.kind == LS_MODEL_PROGRAM && !ls_config_program()) {
            ls_config_owner o = ls_config_read_owner(path);
            return ls_fail(e, LS_EINVAL,
                           "%.300s: '%.60s' is a key of the program that this config is of "
                           "(model.kind is program); start that program%s%s",
                           where, item->key, *o.name ? ", " : "", o.name);
        }
        if (!k) return unknown_key(where, item->key, e);
        int *line = &lines[ls_config_key_index(ls_config_key_find(item->key))];
        if (*line)
            return ls_fail(e, LS_EINVAL, "%.300s: '%.60s' occurs twice; first in line %d", where,
                           item->key, *line);
        *line = item->line;
        LS_TRY(set_item(c, k, where, item, e));
    }
    return LS_OK;
}

/* A file that names most keys was written by the program: the user did not ask for each of them. */
static void settle_whole(ls_config *c, size_t nitems) {
    for (int i = 0; 2 * nitems > LS_NCONFIG_KEYS && i < LS_NCONFIG_KEYS; i++)
        if (c->written[i]) c->written[i] = LS_SAVED;
}

static bool is_named_yaml(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* Users often pass the text instead of a config that names it. */
static ls_status not_a_config(const char *path, ls_status s, ls_error *e) {
    char why[sizeof e->msg];
    if (!e || s != LS_EINVAL || is_named_yaml(path)) return s;
    snprintf(why, sizeof why, "%.380s", e->msg);
    return ls_fail(e, s, "%s; a config is a YAML file; a text belongs in its key data.path", why);
}

ls_status ls_config_read(const char *path, ls_config *c_p, ls_error *e) {
    ls_yaml y;
    ls_status s = ls_yaml_read_lists(path, is_tree, &y, e);
    if (s != LS_OK) return not_a_config(path, s, e);
    ls_config_defaults(c_p);
    s = apply(c_p, path, &y, e);
    if (s == LS_OK && c_p->train.epochs > 0 && !*written_at(c_p, "train.steps"))
        c_p->train.steps = 0;
    if (s == LS_OK) settle_whole(c_p, y.nitems);
    ls_yaml_free(&y);
    return s;
}

/* train.epochs takes the place of train.steps, and train.steps that of train.epochs. */
static void replace_length(ls_config *c, const char *set) {
    bool epochs = strcmp(set, "train.epochs") == 0 && c->train.epochs > 0;
    if (epochs) {
        *written_at(c, "train.steps") = LS_NOT_WRITTEN;
        c->train.steps = 0;
    } else if (strcmp(set, "train.steps") == 0) {
        *written_at(c, "train.epochs") = LS_NOT_WRITTEN;
        c->train.epochs = 0;
    } else if (strcmp(set, "train.epochs") == 0 && c->train.steps == 0) {
        c->train.steps = ls_config_key_find("train.steps")->whole[LS_KEY_USUAL];
        ls_log("train.epochs 0: the run takes train.steps, %lld, the default",
               (long long)c->train.steps);
    }
}

static ls_status set(ls_config *c, const char *from, const char *assignment, ls_error *e) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return ls_fail(e, LS_EINVAL,
                       "%s: '%.100s' has no '='; write key=value, e.g. train.steps=50", from,
                       assignment);
    char *name = ls_format("%.*s", (int)(equals - assignment), assignment);
    const ls_config_key *k = ls_config_key_find(name), *tree = ls_config_key_find_tree(name);
    if (tree && strchr("[{", equals[1]) && equals[1]) k = tree;
    bool is_list = k && (k->type == LS_KEY_MAPS || k->type == LS_KEY_TREE ||
                         (k->type == LS_KEY_LIST && equals[1] == '['));
    ls_status s = LS_OK;
    if (!k)
        s = unknown_key(from, name, e);
    else if (is_list)
        s = set_list(c, k, from, equals + 1, e);
    else
        s = set_value(c, k, from, equals + 1, e);
    if (k) mark_written(c, k);
    if (s == LS_OK) replace_length(c, k->name);
    free(name);
    return s;
}

ls_status ls_config_set(ls_config *c, const char *assignment, ls_error *e) {
    return set(c, "--set", assignment, e);
}

bool ls_config_sets_key(const ls_config_sets *s, const char *key) {
    size_t n = strlen(key);
    for (int i = 0; i < s->n; i++)
        if (strncmp(s->list[i], key, n) == 0 && s->list[i][n] == '=') return true;
    return false;
}

ls_status ls_config_set_all(ls_config *c, const ls_config_sets *s, ls_error *e) {
    for (int i = 0; i < s->n; i++) LS_TRY(set(c, s->from, s->list[i], e));
    return LS_OK;
}
