/* published.c - see published.h. */
#include "infer/published.h"

#include <string.h>

#include "base/file.h"
#include "base/intern.h"
#include "base/min.h"
#include "networks/llama.h"
#include "weights/model_text.h"

bool ls_published_is(const char *path) {
    if (!ls_file_is_dir(path)) return ls_file_exists(path) && ls_gguf_is(path);
    return ls_file_exists_in(path, LS_WEIGHTS_CONFIG) && !ls_file_exists_in(path, "config.yaml");
}

/* As long as the model allows, and no longer than is usual: memory grows with it. */
static ls_status choose_context(ls_config *c, ls_error *e) {
    ls_weights w = {0};
    LS_TRY(ls_weights_open(c->model.from, &w, e));
    c->model.context = ls_min(ls_architecture_positions(&w.arch), LS_PUBLISHED_CONTEXT);
    ls_weights_close(&w);
    return LS_OK;
}

ls_status ls_published_config(const char *path, const ls_config_sets *sets, ls_config *c_p,
                              ls_error *e) {
    ls_config_defaults(c_p);
    if (strlen(path) >= LS_CONFIG_TEXT)
        return ls_fail(e, LS_EINVAL, "%s: is longer than %d bytes", path, LS_CONFIG_TEXT - 1);
    LS_TRY(ls_config_set_all(c_p, sets, e));
    c_p->model.from = ls_intern(path);
    if (!ls_config_sets_key(sets, "model.context")) LS_TRY(choose_context(c_p, e));
    return ls_llama_adopt(c_p, e);
}

ls_status ls_published_tokenizer(const char *path, ls_tokenizer **t_p, ls_error *e) {
    ls_weights w = {0};
    LS_TRY(ls_weights_open(path, &w, e));
    ls_status s = ls_model_tokenizer(&w, t_p, NULL, e);
    ls_weights_close(&w);
    return s;
}
