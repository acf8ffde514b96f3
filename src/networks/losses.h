/* losses.h - model.loss: what is compared with what.
 *
 *     cross_entropy                                   of the last layer and the field label
 *     {mean_squared_error: {target: price}}
 *     - cross_entropy: {of: classes, target: kind, smoothing: 0.1}
 *     - mean_squared_error: {of: boxes, target: box, factor: 0.5}
 */
#ifndef LS_NETWORKS_LOSSES_H
#define LS_NETWORKS_LOSSES_H

#include "networks/value_names.h"
#include "networks/wants.h"

typedef struct ls_loss_entry ls_loss_entry; /* a kind of loss */

typedef struct ls_loss_wanted {
    const ls_loss_entry *entry;
    const ls_want *item; /* NULL: the loss of a config that names none */
    const char *target;  /* a field, or a value */
    bool of_classes;     /* the target is a class, an i32; else numbers, as many as predicted */
    ls_value *x;         /* what it compares with the target, once it is built; NULL: before, or it
                          * has no value for it */
    float divisor;       /* the loss is divided by it; 0: by 1 */
    int32_t ignored;     /* a class that does not count; -1: none */
} ls_loss_wanted;

typedef struct ls_losses {
    ls_wants wants;
    ls_loss_wanted list[LS_MOST_WANTS];
    int n; /* at least 1 */
} ls_losses;

/* LS_EINVAL: there is no such loss; the message names file and line. */
ls_status ls_losses_read(const ls_config *, ls_losses *, ls_error *);
void ls_losses_free(ls_losses *);
/* Appends the names of the losses that there are: "cross_entropy, mean_squared_error". */
void ls_losses_put_kinds(ls_buf *);
/* Is it a mean squared error, whose target may be scaled (scales.h)? */
bool ls_loss_has_scale(const ls_loss_wanted *);
/* The loss with this target; NULL: there is none, or several. target NULL: the only loss. */
const ls_loss_wanted *ls_losses_find(const ls_losses *, const char *target);

/* Adds all losses. last: what those read that name no value. classes: of the only loss, if it is of
 * classes; 0: any. The target of a loss that is no value of the model becomes a field. */
void ls_losses_build(ls_losses *, const ls_list_at *, ls_value *last, int64_t classes);

/* A target by its name: a value of the model, or else a field, which is added: one i32 (is_class)
 * or one f32. */
ls_value *ls_target_get(const ls_list_at *, const char *name, bool is_class);

#endif
