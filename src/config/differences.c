/* differences.c - see differences.h. */
#include "config/differences.h"

#include <string.h>

#include "config/key.h"

/* ---- between runs ---- */

/* A resumed run may change these two, since it says then what that means: add_note(). */
static bool changes_bits(const ls_config_key *k) {
    return k->resumed != LS_KEY_FREE || strcmp(k->name, "train.steps") == 0 ||
           strcmp(k->name, "parallel.reduce") == 0;
}

static ls_json *values_of(const ls_config *const *c, int n, const ls_config_key *k) {
    ls_json *values = ls_json_new_array();
    for (int i = 0; i < n; i++) {
        ls_buf text = {0};
        ls_config_key_write(c[i], k, &text);
        ls_json_push(values, ls_json_new_text(text.data));
        ls_buf_free(&text);
    }
    return values;
}

ls_json *ls_config_differences(const ls_config *const *c, int n) {
    ls_json *list = ls_json_new_array();
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        bool equal = true;
        for (int j = 1; j < n && equal; j++) equal = ls_config_key_is_equal(c[0], c[j], k);
        if (equal) continue;
        ls_json *one = ls_json_new_object();
        ls_json_set_text(one, "key", k->name);
        ls_json_set(one, "values", values_of(c, n, k));
        ls_json_set_bool(one, "bits", changes_bits(k));
        ls_json_push(list, one);
    }
    return list;
}

ls_json *ls_config_changes(const ls_config *was, const ls_config *now) {
    ls_json *o = ls_json_new_object();
    const ls_config *const both[] = {was, now};
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (k->resumed == LS_KEY_STEERED && !ls_config_key_is_equal(was, now, k))
            ls_json_set(o, k->name, values_of(both, 2, k));
    return o;
}

/* ---- between hosts that train together ---- */

/* Keys that may differ between hosts: paths on a host, and what a host decides for itself. */
static bool may_differ(const ls_config_key *k) {
    static const char *const keys[] = {
        "data.path",           "data.labels",        "data.val_path",     "data.val_labels",
        "data.cache",          "data.cache_gb",      "data.threads",      "data.mix",
        "parallel.device",     "parallel.threads",   "parallel.overlap",  "parallel.state_dir",
        "parallel.fit",        "survival.rejoin_s",  "survival.etcd_ca",  "survival.etcd_cert",
        "survival.membership", "survival.etcd_user", "survival.etcd_key", "log.every",
        "train.sample_file",   "sync.servers",       "parallel.bind",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], k->name) == 0) return true;
    return false;
}

void ls_config_must_match(const ls_config *c, ls_buf *out) {
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        if (may_differ(k)) continue;
        ls_buf_printf(out, "%s ", k->name);
        ls_config_key_write(c, k, out);
        ls_buf_printf(out, "\n");
    }
}

/* ---- between a run and the run that resumes it ---- */

/* The one that is set, if two keys have the name of k; else k. */
static const ls_config_key *visible_of(const ls_config *c, const ls_config_key *k) {
    if (!ls_config_key_is_hidden(c, k)) return k;
    const ls_config_key *tree = ls_config_key_find_tree(k->name);
    return k == tree ? ls_config_key_find(k->name) : tree;
}

/* Appends a sentence on what a change of this key means, if it means anything. */
static void add_note(const ls_config_key *k, const char *was, const char *now, bool has_tokens,
                     ls_buf *note) {
    if (strcmp(k->name, "train.steps") == 0)
        ls_buf_printf(note,
                      "train.steps was %s and is now %s: from here on the learning rates are those "
                      "of the new value. ",
                      was, now);
    if (k->resumed == LS_KEY_STEERED)
        ls_buf_printf(note, "%s was %s and is now %s, from the next step on. ", k->name, was, now);
    if (strcmp(k->name, "parallel.reduce") == 0)
        ls_buf_printf(note,
                      "parallel.reduce was %s and is now %s: the bits are not those of a single "
                      "run. ",
                      was, now);
    bool path = strcmp(k->name, "data.path") == 0 || strcmp(k->name, "data.val_path") == 0;
    if (has_tokens && path)
        ls_buf_printf(note,
                      "%s has changed, but the run has saved its tokens: the text is read only if "
                      "they are missing. ",
                      k->name);
}

const char *ls_config_find_fixed(const ls_config *was, const ls_config *now) {
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (k->resumed != LS_KEY_FREE && !ls_config_key_is_equal(was, now, k)) return k->name;
    return NULL;
}

bool ls_config_is_steered(const char *key) {
    const ls_config_key *k = ls_config_key_find(key);
    return k && k->resumed == LS_KEY_STEERED;
}

/* Why a key that usually may change can't in this run; NULL: it can. */
static const char *why_not_steered(const ls_config *was, const ls_config *now,
                                   const ls_config_key *k) {
    bool velocity = strcmp(k->name, "optim.momentum") == 0 &&
                    was->optim.optimizer == LS_OPTIMIZER_SGD &&
                    (was->optim.momentum > 0) != (now->optim.momentum > 0);
    bool rate = strcmp(k->name, "optim.lr") == 0 || strcmp(k->name, "optim.warmup") == 0;
    if (velocity) return "the run has no velocity without momentum";
    if (rate && was->optim.optimizer == LS_OPTIMIZER_SCHEDULE_FREE)
        return "schedule-free's average is of steps with one learning rate";
    return was->sync.mode == LS_SYNC_ASYNC ? "an asynchronous run is replayed with one value"
                                           : NULL;
}

/* May the run continue with the new value? */
static ls_status check_change(const ls_config *was, const ls_config *now, const ls_config_key *k,
                              const char *const texts[2], ls_error *e) {
    const char *why = k->resumed == LS_KEY_STEERED ? why_not_steered(was, now, k) : NULL;
    if (k->resumed == LS_KEY_FIXED) why = "resuming would not give the bits of a single run";
    if (!why) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s is %.60s, but the run began with %.60s; %s: change it back, or begin a new "
                   "run, which can take this one's weights (train.from)",
                   k->name, texts[1], texts[0], why);
}

ls_status ls_config_compatible(const ls_config *was, const ls_config *now, char **note_p,
                               ls_error *e) {
    ls_buf note = {0};
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        if (ls_config_key_is_equal(was, now, k)) continue;
        ls_buf a = {0}, b = {0};
        ls_config_key_write(was, visible_of(was, k), &a);
        ls_config_key_write(now, visible_of(now, k), &b);
        ls_status s = check_change(was, now, k, (const char *const[]){a.data, b.data}, e);
        add_note(k, a.data, b.data, ls_config_has_corpus(now), &note);
        ls_buf_free(&a);
        ls_buf_free(&b);
        if (s != LS_OK) {
            ls_buf_free(&note);
            return s;
        }
    }
    if (note.len) note.data[note.len - 1] = 0; /* the space after the last sentence */
    *note_p = note.data;
    return LS_OK;
}
