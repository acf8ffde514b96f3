/* folder.c - the run's folder: metrics, a line a step, and the newest checkpoint.
 *
 * A disk that all hosts share. Worker 0 of each view takes it; what a worker of an earlier view
 * writes afterwards is refused, as by a note of who has it that is looked at before each write.
 *
 * A view that goes back does not cut the log: steps that are done again are the same, and a later
 * view may go on from a host that had come further.
 */
#include "check.h"
#include "world.h"

bool folder_take(host *h, ls_view_id id, int64_t steps) {
    world *w = h->w;
    folder *f = &w->folder;
    if (view_compare(f->owner, id) > 0) {
        w->tally->refused++;
        tell(w, "view %lld.%lld may not take the folder", (long long)id.term, (long long)id.number);
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
    tell(w, "view %lld.%lld has the folder no more", (long long)id.term, (long long)id.number);
    if (w->opt.no_fence)
        violate(w, "worker 0 of view %lld.%lld writes after view %lld.%lld has taken the folder",
                (long long)id.term, (long long)id.number, (long long)f->owner.term,
                (long long)f->owner.number);
    return false;
}

bool folder_append(world *w, ls_view_id id, int64_t step) {
    folder *f = &w->folder;
    if (!may_write(w, id)) return false;
    if (f->nlines && f->lines[f->nlines - 1].step >= step) { /* the same step, done again */
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
    tell(w, "checkpoint of step %lld", (long long)steps);
    return true;
}
