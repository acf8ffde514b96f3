/* losses.c - see losses.h. */
#include "networks/losses.h"

#include <string.h>

#include "base/mem.h"
#include "networks/layer_options.h"

typedef struct loss_options {
    const char *name;
    float factor, smoothing;
    int64_t ignore;
    int64_t classes; /* } linear_cross_entropy */
    ls_value *tied;  /* } */
} loss_options;

struct ls_loss_entry {
    ls_option_list options;
    bool of_classes;
    bool has_logits; /* it compares its input itself with the target */
    void (*add)(ls_model *, ls_value *x, ls_value *target, const loss_options *);
};

#define LOSS(loss)                                                                                 \
    static void add_##loss(ls_model *m, ls_value *x, ls_value *target, const loss_options *o) {    \
        (ls_##loss)(m, x, target,                                                                  \
                    (ls_loss_options){.name = o->name,                                             \
                                      .factor = o->factor,                                         \
                                      .smoothing = o->smoothing,                                   \
                                      .ignore = (int32_t)o->ignore});                              \
    }

LOSS(binary_cross_entropy)
LOSS(bpr)
LOSS(cross_entropy)
LOSS(mean_squared_error)

static void add_linear_cross_entropy(ls_model *m, ls_value *x, ls_value *target,
                                     const loss_options *o) {
    (ls_linear_cross_entropy)(
        m, x, target,
        (ls_linear_cross_entropy_options){.name = o->name, .classes = o->classes, .tied = o->tied});
}

#define FACTOR LS_OPT_REAL(loss_options, factor, 1e-30, 1e30)

static const ls_loss_entry entries[] = {
    {{"binary_cross_entropy", NULL, {FACTOR}}, false, true, add_binary_cross_entropy},
    {{"bpr", NULL, {FACTOR}}, false, true, add_bpr},
    {{"cross_entropy",
      NULL,
      {FACTOR, LS_OPT_REAL(loss_options, smoothing, 0, 1),
       LS_OPT_INT(loss_options, ignore, 0, INT32_MAX)}},
     true,
     true,
     add_cross_entropy},
    {{"linear_cross_entropy",
      NULL,
      {LS_OPT_INT(loss_options, classes, 1, INT32_MAX), LS_OPT_VALUE(loss_options, tied)}},
     true,
     false,
     add_linear_cross_entropy},
    {{"mean_squared_error", NULL, {FACTOR}}, false, true, add_mean_squared_error},
};
static const ls_want_kinds kinds = {"model.loss", entries, sizeof *entries,
                                    sizeof entries / sizeof *entries};

/* ---- reading ---- */

void ls_losses_put_kinds(ls_buf *out) { ls_wants_put_kinds(&kinds, out); }

static ls_loss_wanted wanted_of(const ls_want *item, const ls_loss_entry *entry) {
    return (ls_loss_wanted){.entry = entry,
                            .item = item,
                            .target = item && item->target ? item->target : "label",
                            .of_classes = entry->of_classes,
                            .ignored = -1};
}

ls_status ls_losses_read(const ls_config *c, ls_losses *s, ls_error *e) {
    *s = (ls_losses){0};
    LS_TRY(ls_wants_read(&c->model.loss, &kinds, &s->wants, e));
    if (s->wants.n == 0) s->list[s->n++] = wanted_of(NULL, ls_wants_find(&kinds, "cross_entropy"));
    for (int i = 0; i < s->wants.n; i++)
        s->list[s->n++] = wanted_of(&s->wants.list[i], s->wants.list[i].entry);
    return LS_OK;
}

void ls_losses_free(ls_losses *s) {
    ls_wants_free(&s->wants);
    *s = (ls_losses){0};
}

bool ls_loss_has_scale(const ls_loss_wanted *w) { return w->entry->add == add_mean_squared_error; }

const ls_loss_wanted *ls_losses_find(const ls_losses *s, const char *target) {
    const ls_loss_wanted *found = NULL;
    for (int i = 0; i < s->n; i++) {
        if (target && strcmp(s->list[i].target, target) != 0) continue;
        if (found) return NULL;
        found = &s->list[i];
    }
    return found;
}

/* ---- building ---- */

ls_value *ls_target_get(const ls_list_at *at, const char *name, bool is_class) {
    ls_value *v = ls_names_find(at, name);
    if (v || !ls_build_is_good(at->m)) return v;
    v = (ls_input)(at->m, name, is_class ? LS_I32 : LS_F32, LS_SCALAR);
    ls_names_add(at, name, v);
    return ls_names_find(at, name);
}

/* The numbers that the loss needs are known before it is added: its own message would not say
 * why. */
static bool fits(const ls_list_at *at, const ls_loss_wanted *w, const ls_value *target,
                 int64_t classes) {
    int64_t count = ls_value_count(w->x), needs = ls_value_count(target);
    if (w->of_classes) needs *= classes ? classes : ls_value_last(w->x);
    if (count != needs && (classes || !w->of_classes))
        ls_build_fail(at->m, "%s has %lld numbers; the loss needs %lld",
                      w->item && w->item->of ? w->item->of : "the last layer", (long long)count,
                      (long long)needs);
    return ls_build_is_good(at->m);
}

static void build(ls_loss_wanted *w, const ls_list_at *at, ls_value *last, int64_t classes) {
    static const char *const others[] = {"target", "of", NULL};
    loss_options o = {0};
    const ls_want *item = w->item;
    if (item) ls_list_go(at, item->node);
    w->x = item && item->of ? ls_names_get(at, item->node, item->of) : last;
    ls_value *target = ls_target_get(at, w->target, w->of_classes);
    if (!ls_build_is_good(at->m)) return;
    w->x = ls_names_numbers(at, w->x);
    ls_options_read(at, &w->entry->options, item ? item->options : NULL, others, &o);
    if (!ls_build_is_good(at->m)) return;
    if (w->entry->has_logits && !fits(at, w, target, classes)) return;
    if (o.ignore) w->ignored = (int32_t)o.ignore;
    if (w->divisor > 0) o.factor = (o.factor > 0 ? o.factor : 1) / w->divisor;
    if (!o.tied && !o.classes) o.classes = classes;
    w->entry->add(at->m, w->x, target, &o);
    if (!w->entry->has_logits) w->x = NULL;
}

void ls_losses_build(ls_losses *s, const ls_list_at *at, ls_value *last, int64_t classes) {
    for (int i = 0; i < s->n && ls_build_is_good(at->m); i++)
        build(&s->list[i], at, last, s->n == 1 ? classes : 0);
}
