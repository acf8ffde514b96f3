/* host_message.c - checks a message from another host: see views_own.h.
 *
 * Hosts have the key, but one may be of another version, damaged, or compromised. Every number that
 * views.c, leader.c or their orders depend on is checked here, before any of them sees it.
 */
#include <math.h>
#include <string.h>

#include "cluster/views_own.h"

/* Views of one term, and terms: far more than there can be, far fewer than overflow. */
static const int64_t MOST_NUMBER = (int64_t)1 << 62;

static bool is_count(int64_t n, int64_t most) { return n >= 0 && n <= most; }

static bool is_id(ls_view_id id) {
    return is_count(id.term, INT64_MAX) && is_count(id.number, MOST_NUMBER);
}

static bool is_scaler(const ls_scaler *s) {
    return isfinite(s->scale) && s->scale >= 0 && s->good >= 0 && s->left >= 0 && s->skipped >= 0;
}

/* A byte other than 0 and 1 must not be read as a bool. */
static bool is_bool(const bool *b) {
    unsigned char byte;
    memcpy(&byte, b, 1);
    return byte <= 1;
}

static bool is_task(const ls_store_note *n) {
    bool fits = (unsigned)n->task < LS_NTASKS && is_bool(&n->averages) && is_bool(&n->apart);
    for (int i = 0; i < LS_PLAN_MAX_ISLANDS; i++)
        fits = fits && (n->out.skipped || isfinite(n->islands[i].grad_scale)) &&
               isfinite(n->islands[i].samples) && isfinite(n->islands[i].lr_scale);
    return fits;
}

static bool is_note(const ls_store_note *n, int64_t steps) {
    return is_count(n->steps, steps) && isfinite(n->lr) && is_count(n->updates, steps) &&
           is_bool(&n->out.skipped) && is_task(n) && is_count(n->update.updates, steps) &&
           n->out.batch.epoch <= INT64_MAX && n->out.batch.first <= INT64_MAX &&
           n->out.batch.count <= INT64_MAX && isfinite(n->update.lr) && isfinite(n->loss_scale) &&
           is_scaler(&n->scaler);
}

static bool is_decided(const ls_store_decided *d, int64_t steps) {
    bool fits = is_note(&d->note, steps);
    for (int i = 0; i < LS_PLAN_MAX_ISLANDS; i++) fits = fits && is_count(d->islands[i], steps);
    return fits;
}

static bool is_state(const ls_host_state *k, int64_t steps) {
    return k->steps >= -1 && k->steps <= steps && is_scaler(&k->scaler) && is_id(k->view) &&
           is_id(k->from) && is_count(k->unfinished, 1) && is_count(k->whole, 1) &&
           is_decided(&k->decided, steps) && is_note(&k->last, steps);
}

static bool is_view(const ls_view *v, int most, int64_t steps) {
    return is_id(v->id) && v->id.number > 0 && v->steps >= -1 && v->steps <= steps &&
           is_scaler(&v->scaler) && v->size >= 1 && v->size <= most && v->first >= 0 && v->n >= 1 &&
           v->first <= v->size - v->n && v->nhosts >= 1 && v->nhosts <= LS_HOSTS_MAX &&
           is_note(&v->last, steps) && memchr(v->address, 0, sizeof v->address);
}

static const char *state_wrong(const ls_views_config *c, const ls_host_message *s, int64_t steps) {
    if (!is_count(s->nworkers, LS_HOST_WORKERS_MAX)) return "its number of workers is out of range";
    if (s->about < LS_BLAMES_ENDED || s->about > c->most) return "it blames no worker of the view";
    if (!memchr(s->view.address, 0, sizeof s->view.address)) return "its address has no end";
    return is_state(&s->state, steps) ? NULL : "its state has numbers out of range";
}

const char *ls_host_message_wrong(const ls_views_config *c, const ls_host_message *s,
                                  bool by_leader) {
    int64_t steps = c->steps ? c->steps : INT64_MAX;
    if (!memchr(s->text, 0, sizeof s->text)) return "its text has no end";
    if (s->how > LS_VIEW_FAILED) return "there is no such end of a view";
    switch (s->what) {
    case LS_HOST_ALIVE: return NULL;
    case LS_HOST_JOIN:
    case LS_HOST_ENDED:
    case LS_HOST_REST:
    case LS_HOST_LEAVE:
        if (by_leader) return "only hosts that follow send it";
        return state_wrong(c, s, steps);
    case LS_HOST_TRIED:
        if (by_leader) return "only hosts that follow send it";
        return NULL;
    case LS_HOST_BEGIN:
        if (!by_leader) return "only the leading host sends it";
        return is_view(&s->view, c->most, steps) ? NULL : "the view has numbers out of range";
    case LS_HOST_OUT:
    case LS_HOST_TRY:
        if (!by_leader) return "only the leading host sends it";
        return memchr(s->view.address, 0, sizeof s->view.address) ? NULL : "its address has no end";
    case LS_HOST_END:
    case LS_HOST_FINISH:
    case LS_HOST_OVER:
        if (!by_leader) return "only the leading host sends it";
        if (s->what == LS_HOST_FINISH && !is_decided(&s->decided, steps))
            return "the step has numbers out of range";
        return s->what == LS_HOST_OVER || is_id(s->view.id) ? NULL : "there is no such view";
    default: return "there is no such kind of message";
    }
}
