/* rater.c - see rater.h. */
#include "infer/rater.h"

#include <string.h>

enum { USERS, ITEMS, COLUMNS };

bool ls_rater_is_possible(const ls_predictor *p) {
    return !p->is_text && ls_config_has_ratings(&p->trained.config);
}

static ls_status find_inputs(ls_rater *r, const char *path, ls_error *e) {
    r->user = ls_model_field(r->model, "user");
    r->items = ls_model_field(r->model, "items");
    if (r->ids.n != COLUMNS)
        return ls_fail(e, LS_EINVAL, "%s/" LS_IDS_FILE ": has no users and items", path);
    if (!r->items || r->items->type != LS_I32)
        return ls_fail(e, LS_EINVAL, "%s: the model reads no 'items'", path);
    r->user_names = &r->ids.columns[USERS].ids;
    r->item_names = &r->ids.columns[ITEMS].ids;
    r->width = (int64_t)(r->items->nbytes / sizeof(int32_t));
    return LS_OK;
}

ls_status ls_rater_open(const ls_predictor *p, ls_rater *r_p, ls_error *e) {
    *r_p = (ls_rater){.model = &p->trained.model};
    LS_TRY(ls_ids_read(p->trained.path, &r_p->ids, e));
    ls_status s = find_inputs(r_p, p->trained.path, e);
    if (s != LS_OK) ls_rater_close(r_p);
    return s;
}

void ls_rater_close(ls_rater *r) {
    ls_ids_free(&r->ids);
    *r = (ls_rater){0};
}

void ls_rater_fill(const ls_rater *r, int32_t user, const int32_t *items, int64_t n, char *sample) {
    int32_t *to = (int32_t *)(void *)(sample + r->items->offset);
    memset(sample, 0, r->model->sample_nbytes);
    if (r->user) memcpy(sample + r->user->offset, &user, sizeof user);
    for (int64_t i = 0; i < r->width; i++) to[i] = items[i < n ? i : n - 1];
}
