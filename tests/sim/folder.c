/* folder.c - the run directory: metrics, a line for each step, and the newest checkpoint.
 *
 * It is on a disk that all hosts share. Worker 0 of each view takes it; a later write by a worker
 * of an earlier view is refused, as if each write first checked which view has it.
 *
 * A view that goes back does not cut the log: repeated steps are the same, and a later view may
 * continue from a host that had got further.
 */
#include "check.h"
#include "world.h"

bool folder_take(host *h, ls_view_id id, int64_t steps) {
    world *w = h->w;
    folder *f = &w->folder;
    if (view_compare(f->owner, id) > 0) {
        w->tally->refused++;
        trace(w, "view %lld.%lld may not take the run directory", (long long)id.term,
              (long long)id.number);
        return false;
    }
    f->owner = id;
    while (w->opt.cuts_log && f->nlines && f->lines[f->nlines - 1].step > steps) f->nlines--;
    int64_t last = f->nlines ? f->lines[f->nlines - 1].step : 0;
    if (last == steps - 1 && h->store.last.steps == steps) folder_append(w, id, steps);
    check_log(w, steps);
    return true;
}

static bool may_write(world *w, ls_view_id id) {
    folder *f = &w->folder;
    if (view_compare(f->owner, id) == 0) return true;
    w->tally->refused++;
    trace(w, "view %lld.%lld no longer has the run directory", (long long)id.term,
          (long long)id.number);
    if (w->opt.no_fence)
        violate(
            w, "worker 0 of view %lld.%lld writes after view %lld.%lld has taken the run directory",
            (long long)id.term, (long long)id.number, (long long)f->owner.term,
            (long long)f->owner.number);
    return false;
}

bool folder_append(world *w, ls_view_id id, int64_t step) {
    folder *f = &w->folder;
    if (!may_write(w, id)) return false;
    if (f->nlines && f->lines[f->nlines - 1].step >= step) { /* the same step, repeated */
        w->tally->replayed++;
        return true;
    }
    if (f->nlines == 4 * MOST_STEPS) {
        violate(w, "the log has too many lines");
        return false;
    }
    f->lines[f->nlines].step = step;
    f->lines[f->nlines++].view = id;
    return true;
}

bool folder_save(world *w, ls_view_id id, int64_t steps, const uint64_t *blocks) {
    folder *f = &w->folder;
    if (!may_write(w, id)) return false;
    if (f->saved > steps) return true;
    for (int b = 0; b < w->plan.B; b++) {
        if (blocks[b] != w->values[steps][b])
            violate(w, "the checkpoint of step %lld has a wrong block %d", (long long)steps, b);
        f->blocks[b] = blocks[b];
    }
    f->saved = steps;
    trace(w, "checkpoint of step %lld", (long long)steps);
    return true;
}
