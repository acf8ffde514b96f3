/* check.h - what must hold in the simulated cluster.
 *
 * At each moment:
 *  (1) A block with mark s has the reference's value after s steps, on any host (store_put).
 *  (2) Gradients that are reduced are the reference's; a step is finished only from these.
 *  (3) Orders come in a sequence that makes sense: a crew begins on a host at rest that has
 *      finished its previous view, a repairer where no worker lives; workers are asked and killed
 *      only while a crew runs.
 *  (4) A host begins views of the term that it knows, each later than the one before. All hosts
 *      begin the same view with the same size and steps, and their workers do not overlap.
 *  (5) At most one host that is not stopped believes that it leads, and it holds the lease; terms
 *      of leaders strictly increase.
 *  (6) A view does not begin before a step that a host in it has complete or noted. It begins from
 *      a checkpoint only if there is no state, or after the leader has lost a host of the latest
 *      whole view.
 *  (7) Only worker 0 of the latest view that has taken the run directory writes to it. Two views
 *      may have workers at one time, on different hosts: those of a stopped supervisor live on for
 *      a while.
 *  (8) When a view has taken the run directory, the log has each step before the view's first once.
 *  (9) Not more than a few views begin, one after the other, without a decided step, a fault or a
 *      new leader between them; a pair of hosts that is cut may cost two.
 * At the end:
 * (10) After the last fault the run completes within a bounded time, without giving up; the log has
 *      each step once, and the last checkpoint is the reference's after all steps.
 * If the leader is fixed and is lost, the run ends: (1) to (8) still hold on the other hosts.
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "world.h"

void check_begin(host *, const ls_view *);
void check_ask(host *);
void check_end(host *);
void check_finish(host *, const ls_store_note *);
void check_leads(host *);
void check_whole(team *);
void check_stateless(host *);
void check_log(world *, int64_t steps);
void check_final(world *);

#endif
