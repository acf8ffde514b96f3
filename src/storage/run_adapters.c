/* run_adapters.c - see run_adapters.h. */
#include "storage/run_adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/published_record.h"
#include "networks/family.h"
#include "networks/network.h"
#include "storage/checkpoint.h"

static ls_status read_config(const char *from, char **checkpoint_p, ls_config *c_p, ls_error *e) {
    LS_TRY(ls_checkpoint_resolve(from, checkpoint_p, e));
    char *path = ls_format("%s/config.yaml", *checkpoint_p);
    ls_status s = ls_config_read(path, c_p, e);
    free(path);
    return s;
}

ls_status ls_run_has_adapters(const char *from, bool *has_p, ls_error *e) {
    ls_config *c = LS_NEW(ls_config);
    char *checkpoint = NULL;
    ls_status s = read_config(from, &checkpoint, c, e);
    if (s == LS_OK) *has_p = c->lora.rank > 0;
    free(checkpoint);
    free(c);
    return s;
}

ls_status ls_run_adapters_open(const char *from, bool ema, ls_run_adapters *r_p, ls_error *e) {
    ls_run_adapters *r = r_p;
    r->checkpoint = NULL;
    r->params = NULL;
    r->model = (ls_model){0};
    LS_TRY(read_config(from, &r->checkpoint, &r->config, e));
    if (!r->config.lora.rank)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no adapters (lora.rank is 0); --to safetensors writes its weights",
                       from);
    LS_TRY(ls_network_create(&r->config, &r->model, e));
    r->params = LS_NEW_ARRAY(float, r->model.nfloats);
    ls_train_state state = {.model = &r->model, .flat = {1, {r->params}}, .ema = ema};
    return ls_checkpoint_load(r->checkpoint, &state, e);
}

void ls_run_adapters_close(ls_run_adapters *r) {
    free(r->params);
    ls_model_free(&r->model);
    free(r->checkpoint);
}

ls_status ls_run_adapters_architecture(const ls_run_adapters *r, ls_architecture *a_p,
                                       ls_error *e) {
    ls_published_record o = {0};
    ls_architecture a;
    LS_TRY(ls_family_of(&r->config, &a, e));
    LS_TRY(ls_published_record_read(r->checkpoint, &o, e));
    if (o.there && o.arch.family == LS_FAMILY_PHI3) a.family = o.arch.family;
    ls_published_record_free(&o);
    *a_p = a;
    return LS_OK;
}

bool ls_adapter_is_a(const ls_param *p) {
    return p->adapter && strstr(p->name, ".lora_A.") != NULL;
}

void ls_adapter_layer(const ls_param *p, char name[LS_NAME]) {
    snprintf(name, LS_NAME, "%s", p->name);
    char *end = p->adapter ? strstr(name, ".lora_") : strrchr(name, '.');
    if (end) *end = 0;
}
