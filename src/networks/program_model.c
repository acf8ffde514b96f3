/* program_model.c - see networks/program_model.h. */
#include "networks/program_model.h"

#include <pthread.h>
#include <string.h>

#include "config/own.h"
#include "layers/moe.h"
#include "model/builder.h"

struct ls_keys {
    const ls_config *config;
    ls_model *model; /* that is being built; NULL: data are opened */
    ls_error *error; /* the first one, of data */
};

static const ls_program *program; /* NULL: there is none */

ls_status ls_program_use(const ls_program *p, ls_error *e) {
    if (!p || !p->build)
        return ls_fail(e, LS_EINVAL, "the program has no function that builds its model");
    LS_TRY(ls_config_use_program(p->name, p->keys, p->source || p->open, e));
    program = p;
    return LS_OK;
}

ls_status ls_program_use_model(const ls_program *p, ls_error *e) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool in_use = p && program && program->build == p->build && strcmp(program->name, p->name) == 0;
    ls_status s = in_use ? LS_OK : ls_program_use(p, e);
    if (s == LS_OK && !in_use) ls_config_program_take_any_data();
    pthread_mutex_unlock(&lock);
    return s;
}

ls_status ls_program_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    if (!program)
        return ls_fail(e, LS_EINVAL, "model.kind is program, and this program has no model");
    ls_model m = {0};
    program->build(&m, &(ls_keys){c, &m, NULL});
    ls_layers_note_loads(&m);
    return ls_build_finish_as(&m, m_p, e);
}

bool ls_program_has_data(void) { return program && (program->source || program->open); }

ls_status ls_program_open_data(const ls_config *c, ls_own_source *source_p, ls_error *e) {
    ls_error own = {0};
    if (!program->open) {
        *source_p = *program->source;
        return LS_OK;
    }
    ls_keys keys = {.config = c, .error = &own};
    ls_status s = program->open(&keys, source_p, &own);
    if (s == LS_OK && !own.msg[0]) return LS_OK;
    own.msg[sizeof own.msg - 1] = 0;
    return ls_fail(e, s == LS_OK ? LS_EINVAL : s, "the program's data: %.300s",
                   *own.msg ? own.msg : ls_status_name(s));
}

/* ---- keys: an unknown one is an error of the model, or of the data ---- */

static void fail(const ls_keys *k, const ls_error *e) {
    if (k->model)
        ls_build_fail(k->model, "%s", e->msg);
    else if (!k->error->msg[0])
        *k->error = *e;
}

int64_t ls_key_int(const ls_keys *k, const char *name) {
    int64_t value = 0;
    ls_error e = {0};
    if (ls_config_own_int(k->config, name, &value, &e) != LS_OK) fail(k, &e);
    return value;
}

double ls_key_float(const ls_keys *k, const char *name) {
    double value = 0;
    ls_error e = {0};
    if (ls_config_own_float(k->config, name, &value, &e) != LS_OK) fail(k, &e);
    return value;
}

const char *ls_key_string(const ls_keys *k, const char *name) {
    const char *value = "";
    ls_error e = {0};
    if (ls_config_own_string(k->config, name, &value, &e) != LS_OK) fail(k, &e);
    return value;
}
