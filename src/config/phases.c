/* phases.c - see phases.h. */
#include "config/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "config/key.h"

static bool read_whole(const ls_yaml_node *n, int64_t *out) {
    char *end = NULL;
    if (n->kind != LS_YAML_TEXT || !*n->text) return false;
    errno = 0;
    *out = strtoll(n->text, &end, 10);
    return !*end && !errno && strspn(n->text, "0123456789") == strlen(n->text);
}

static ls_status read_phase(const char *where, const ls_yaml_node *n, ls_config_phase *p,
                            ls_error *e) {
    const ls_config_key *k = ls_config_key_find("train.batch");
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    bool pair = n->kind == LS_YAML_LIST && n->nitems == 2 && read_whole(n->items[0], &p->step) &&
                read_whole(n->items[1], &p->batch);
    if (!pair)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.batch: its list has pairs of a step and a batch, e.g. [[0, 64], "
                       "[2000, 128]]",
                       where);
    if (p->batch < k->whole[LS_KEY_LOW] || p->batch > k->whole[LS_KEY_HIGH])
        return ls_fail(e, LS_EINVAL, "%s: train.batch: %lld is out of range; expected %s", where,
                       (long long)p->batch, range);
    return LS_OK;
}

static ls_status read_all(ls_config *c, const char *where, const ls_yaml_node *root, ls_error *e) {
    ls_config_phase *phases = c->train.phases;
    if (root->kind != LS_YAML_LIST || root->nitems < 1 || root->nitems > LS_CONFIG_PHASES)
        return ls_fail(e, LS_EINVAL,
                       "%s: train.batch: is neither a number nor a list of 1 to %d pairs, e.g. "
                       "[[0, 64], [2000, 128]]",
                       where, LS_CONFIG_PHASES);
    c->train.batch = 0;
    for (int i = 0; i < root->nitems; i++) {
        LS_TRY(read_phase(where, root->items[i], &phases[i], e));
        if (i == 0 && phases[0].step != 0)
            return ls_fail(e, LS_EINVAL,
                           "%s: train.batch: the first batch begins at step 0, not %lld", where,
                           (long long)phases[0].step);
        if (i > 0 && phases[i].step <= phases[i - 1].step)
            return ls_fail(e, LS_EINVAL,
                           "%s: train.batch: step %lld follows step %lld; list them in order",
                           where, (long long)phases[i].step, (long long)phases[i - 1].step);
        if (phases[i].batch > c->train.batch) c->train.batch = phases[i].batch;
    }
    c->train.nphases = root->nitems;
    return LS_OK;
}

ls_status ls_config_read_phases(ls_config *c, const char *where, ls_error *e) {
    ls_yaml_node *root = NULL;
    LS_TRY(ls_yaml_parse_tree(c->train.phased.text, where, 0, &root, e));
    ls_status s = read_all(c, where, root, e);
    ls_yaml_node_free(root);
    return s;
}

void ls_config_set_batch(ls_config *c, int64_t batch) {
    c->train.batch = batch;
    c->train.nphases = 0;
    c->train.phased = LS_CONFIG_NO_TREE;
}
