/* origin.c - see origin.h. */
#include "storage/origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/intern.h"
#include "base/log.h"
#include "config/key.h"
#include "dataset/decisions.h"
#include "dataset/record_advice.h"
#include "storage/checkpoint.h"
#include "storage/pretrained.h"
#include "storage/unsaved.h"

/* Takes train.from from the run's config. False: it is a new run, without a readable config. */
static bool take_up(ls_config *c, const char *run) {
    char *path = ls_format("%s/config.yaml", run);
    ls_config was;
    bool there = ls_file_exists(path) && ls_config_read(path, &was, NULL) == LS_OK;
    if (there && strcmp(was.train.from, c->train.from) != 0) {
        if (*c->train.from) ls_log("%s: continues with the train.from that it began with", run);
        c->train.from = was.train.from;
    }
    free(path);
    return there;
}

static ls_status check_model(const ls_config *c, const char *checkpoint, ls_error *e) {
    char *path = ls_format("%s/config.yaml", checkpoint);
    ls_config was;
    ls_status s = ls_config_read(path, &was, e);
    free(path);
    if (s != LS_OK) return s;
    const struct {
        const char *name;
        int64_t now, was;
    } keys[] = {{"layers", c->model.layers, was.model.layers},
                {"width", c->model.width, was.model.width},
                {"heads", c->model.heads, was.model.heads},
                {"context", c->model.context, was.model.context},
                {"vocab", c->model.vocab, was.model.vocab}};
    const char *const *kinds = ls_config_key_find("model.kind")->choices;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].now != keys[i].was && c->model.kind != was.model.kind)
            return ls_fail(e, LS_EINVAL,
                           "train.from: %s has model.kind %s, the config has %s; the model must "
                           "be the same",
                           checkpoint, kinds[was.model.kind], kinds[c->model.kind]);
        else if (keys[i].now != keys[i].was)
            return ls_fail(e, LS_EINVAL,
                           "train.from: %s has model.%s %lld, the config has %lld; set "
                           "model.%s=%lld",
                           checkpoint, keys[i].name, (long long)keys[i].was, (long long)keys[i].now,
                           keys[i].name, (long long)keys[i].was);
    return LS_OK;
}

/* A run's newest good checkpoint; or the checkpoint itself. */
static ls_status find(const char *from, char **path_p, ls_error *e) {
    char *path = NULL;
    int64_t step = 0;
    if (ls_file_exists_in(from, "config.json") && !ls_file_exists_in(from, LS_MANIFEST_FILE))
        return ls_fail(e, LS_EINVAL,
                       "train.from: %s: is a published model, not a run: model.from names it",
                       from);
    if (ls_unsaved_is_run(from))
        LS_TRY(ls_checkpoint_newest_good(from, &path, &step, e));
    else
        LS_TRY(ls_checkpoint_resolve(from, &path, e));
    ls_error why = {0};
    if (!path) return ls_fail(e, ls_unsaved_fail(from, &why), "train.from: %s", why.msg);
    *path_p = realpath(path, NULL);
    ls_status s =
        *path_p ? LS_OK
                : ls_fail(e, LS_EIO, "train.from: %s: can't be opened: %s", path, strerror(errno));
    free(path);
    return s;
}

ls_status ls_origin_resolve(ls_config *c, const char *run, ls_error *e) {
    if (run && take_up(c, run)) return LS_OK;
    if (!*c->train.from) return LS_OK;
    char *path = NULL;
    LS_TRY(find(c->train.from, &path, e));
    ls_status s = check_model(c, path, e);
    if (s == LS_OK && strlen(path) >= LS_CONFIG_TEXT)
        s = ls_fail(e, LS_EINVAL, "train.from: %s: is longer than %d bytes", path,
                    LS_CONFIG_TEXT - 1);
    if (s == LS_OK) c->train.from = ls_intern(path);
    free(path);
    return s;
}

ls_status ls_origin_complete(ls_config *c, const char *run, ls_error *e) {
    LS_TRY(ls_pretrained_resolve(c, run, e));
    if (ls_config_has_chats(c) && c->model.kind != LS_MODEL_LLAMA)
        return ls_fail(e, LS_EINVAL,
                       "model.from: %s: conversations (data.format: chat) need a model of kind "
                       "llama",
                       c->model.from);
    return ls_decisions_take(c, run, e);
}
