/* program.c - see networks/program.h. */
#include "networks/program.h"

#include "config/own.h"
#include "model/builder.h"

struct ls_keys {
    const ls_config *config;
    ls_model *model; /* that is being built */
};

static const ls_program *program; /* NULL: there is none */

ls_status ls_program_use(const ls_program *p, ls_error *e) {
    if (!p || !p->build)
        return ls_fail(e, LS_EINVAL, "the program has no function that builds its model");
    LS_TRY(ls_config_use_program(p->name, p->keys, e));
    program = p;
    return LS_OK;
}

ls_status ls_program_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    if (!program)
        return ls_fail(e, LS_EINVAL, "model.kind is program, and this program has no model");
    ls_model m = {0};
    program->build(&m, &(ls_keys){c, &m});
    ls_status s = ls_build_finish(&m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}

/* ---- keys: an unknown one is an error of the model ---- */

int64_t ls_key_int(const ls_keys *k, const char *name) {
    int64_t value = 0;
    ls_error e = {0};
    if (ls_config_own_int(k->config, name, &value, &e) != LS_OK)
        ls_build_fail(k->model, "%s", e.msg);
    return value;
}

double ls_key_float(const ls_keys *k, const char *name) {
    double value = 0;
    ls_error e = {0};
    if (ls_config_own_float(k->config, name, &value, &e) != LS_OK)
        ls_build_fail(k->model, "%s", e.msg);
    return value;
}

const char *ls_key_string(const ls_keys *k, const char *name) {
    const char *value = "";
    ls_error e = {0};
    if (ls_config_own_string(k->config, name, &value, &e) != LS_OK)
        ls_build_fail(k->model, "%s", e.msg);
    return value;
}
