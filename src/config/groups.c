/* groups.c - see groups.h. */
#include "config/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/key.h"

/* Besides `match` and `lr_scale`, these keys of the config may be set in a group. */
static const char *const settings[] = {"optimizer", "beta1",    "beta2",        "eps",
                                       "momentum",  "nesterov", "weight_decay", "lr_decay"};
enum { NSETTINGS = sizeof settings / sizeof *settings };

static ls_status set_scale(ls_config_group *g, const char *where, const char *value, ls_error *e) {
    char *end = NULL;
    double x = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (!number || !(x >= 0 && x <= 1000))
        return ls_fail(e, LS_EINVAL, "%s: lr_scale: '%.60s' is not a number from 0 to 1000", where,
                       value);
    g->lr_scale = x;
    return LS_OK;
}

static ls_status set_match(ls_config_group *g, const char *where, const char *value, ls_error *e) {
    if (!*value) return ls_fail(e, LS_EINVAL, "%s: match is empty", where);
    if (strlen(value) >= sizeof g->match)
        return ls_fail(e, LS_EINVAL, "%s: match: '%.40s...' is longer than %zu bytes", where, value,
                       sizeof g->match - 1);
    snprintf(g->match, sizeof g->match, "%s", value);
    return LS_OK;
}

static ls_status unknown_key(const char *where, const char *name, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s: '%.60s' is not a key of a group; these are match, lr_scale, optimizer, "
                   "beta1, beta2, eps, momentum, nesterov, weight_decay, lr_decay",
                   where, name);
}

/* Sets one pair "key=value"; the settings go to `c`. */
static ls_status set_pair(ls_config_group *g, ls_config *c, const char *where, char *pair,
                          ls_error *e) {
    char *value = strchr(pair, '='), name[64];
    *value++ = 0;
    if (strcmp(pair, "match") == 0) return set_match(g, where, value, e);
    if (strcmp(pair, "lr_scale") == 0) return set_scale(g, where, value, e);
    for (int i = 0; i < NSETTINGS; i++) {
        if (strcmp(pair, settings[i]) != 0) continue;
        snprintf(name, sizeof name, "optim.%s", pair);
        g->decays_all = g->decays_all || strcmp(pair, "weight_decay") == 0;
        g->sets |= 1u << i;
        return ls_config_key_set(c, ls_config_key_find(name), where, value, e);
    }
    return unknown_key(where, pair, e);
}

static ls_status read_group(const ls_config *usual, const char *where, char *map,
                            ls_config_group *g, ls_error *e) {
    ls_config c = *usual;
    *g = (ls_config_group){.lr_scale = 1};
    const char *keys[2 + NSETTINGS]; /* keys of the pairs so far; all differ */
    int nkeys = 0;
    for (char *pair; (pair = strsep(&map, "\t"));) {
        if (!*pair) continue;
        LS_TRY(set_pair(g, &c, where, pair, e)); /* ends the key with a zero */
        for (int i = 0; i < nkeys; i++)
            if (strcmp(keys[i], pair) == 0)
                return ls_fail(e, LS_EINVAL, "%s: '%s' occurs twice", where, pair);
        keys[nkeys++] = pair;
    }
    if (!*g->match)
        return ls_fail(e, LS_EINVAL, "%s: has no `match`, a pattern such as \"*.bias\"", where);
    g->with = c.optim;
    return LS_OK;
}

bool ls_config_group_sets(const ls_config_group *g, const char *setting) {
    for (int i = 0; i < NSETTINGS; i++)
        if (strcmp(settings[i], setting) == 0) return g->sets >> i & 1;
    return false;
}

ls_status ls_config_read_groups(const ls_config *c, const char *where, ls_config_group *groups,
                                int *n_p, ls_error *e) {
    char *all = ls_strdup(c->optim.groups), *maps = *all ? all : NULL, text[LS_CONFIG_TEXT];
    ls_status s = LS_OK;
    *n_p = 0;
    for (char *map; s == LS_OK && (map = strsep(&maps, "\n"));) {
        snprintf(text, sizeof text, "%.800s: group %d of optim.groups", where, *n_p + 1);
        if (*n_p == LS_CONFIG_GROUPS)
            s = ls_fail(e, LS_EINVAL, "%s: at most %d groups are possible", text, LS_CONFIG_GROUPS);
        else
            s = read_group(c, text, map, &groups[*n_p], e);
        *n_p += s == LS_OK;
    }
    free(all);
    return s;
}
