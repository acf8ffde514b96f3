/* model_metrics.h - model.metrics: what evaluations measure beside the loss.
 *
 *     [accuracy, top: 5]                              of the loss's values and target
 *     - confusion: {target: kind, name: kinds}        of the loss with this target
 *     - rmse: {of: price, target: price_paid}
 */
#ifndef LS_NETWORKS_MODEL_METRICS_H
#define LS_NETWORKS_MODEL_METRICS_H

#include "networks/losses.h"

typedef struct ls_metric_entry ls_metric_entry; /* a kind of metric */

typedef struct ls_metric_wanted {
    const ls_metric_entry *entry;
    const ls_want *item;
    bool of_classes; /* the target is a class */
} ls_metric_wanted;

typedef struct ls_metric_list {
    ls_wants wants;
    ls_metric_wanted list[LS_MOST_WANTS];
    int n; /* 0: the usual ones of the loss */
} ls_metric_list;

/* LS_EINVAL: there is no such metric; the message names file and line. */
ls_status ls_metrics_read(const ls_config *, ls_metric_list *, ls_error *);
void ls_metrics_free(ls_metric_list *);

/* Adds all metrics, after the losses. last: what those read that name no value and whose target no
 * loss has. */
void ls_metrics_build(const ls_metric_list *, const ls_list_at *, const ls_losses *,
                      ls_value *last);

#endif
