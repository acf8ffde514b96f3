/* adapter_file.c - see adapter_file.h. */
#include "storage/adapter_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "storage/adapter_gguf_read.h"
#include "storage/peft_read.h"
#include "weights/gguf.h"

bool ls_adapter_file_is(const char *path) {
    return ls_gguf_is(path) || ls_file_exists_in(path, "adapter_config.json");
}

static ls_status make_absolute(ls_config *c, ls_error *e) {
    char *path = realpath(c->model.adapter, NULL);
    ls_status s = LS_OK;
    if (!path)
        return ls_fail(e, LS_EIO, "model.adapter: %s: can't be opened: %s", c->model.adapter,
                       strerror(errno));
    if (strlen(path) < LS_CONFIG_TEXT)
        c->model.adapter = ls_intern(path);
    else
        s = ls_fail(e, LS_EINVAL, "model.adapter: the path is longer than %d bytes",
                    LS_CONFIG_TEXT - 1);
    free(path);
    return s;
}

ls_status ls_adapter_file_adopt(ls_config *c, ls_error *e) {
    if (!*c->model.adapter) return LS_OK;
    LS_TRY(make_absolute(c, e));
    return ls_gguf_is(c->model.adapter) ? ls_adapter_gguf_adopt(c, e) : ls_peft_adopt(c, e);
}

ls_status ls_adapter_file_load(const ls_config *c, const ls_train_state *s, ls_error *e) {
    return ls_gguf_is(c->model.adapter) ? ls_adapter_gguf_load(c, s, e) : ls_peft_load(c, s, e);
}
