/* runtime_plain.c - workers whose state ends with them; see runtime.h. */
#include "async/bounded.h"
#include "train/audit.h"
#include "train/host.h"
#include "train/loop.h"

static ls_status finish(const ls_host *h, bool stopped, bool *unfinished_p, ls_error *e) {
    (void)h;
    (void)e;
    *unfinished_p = stopped;
    return LS_OK;
}

/* Each worker gets the signal itself. */
static bool gives_up(void *arg) {
    const ls_member *m = arg;
    ls_error why;
    if (m->bounded && ls_bounded_check(m->bounded, &why) != LS_OK) return true;
    return ls_interrupted() && ls_interrupted_s() >= m->run->config.survival.stop_s;
}

static void connect(ls_member *m, ls_exec_config *x) {
    x->gives_up = gives_up;
    x->gives_up_arg = m;
    if (m->bounded) ls_bounded_connect(m->bounded, x);
}

static void has_made(const ls_member *m) { (void)m; }

static ls_status take_up(ls_member *m, bool found, ls_error *e) {
    (void)m;
    (void)found;
    (void)e;
    return LS_OK;
}

static ls_asked asked(const ls_loop *l) {
    return ls_interrupted() ? LS_ASKED_STOP : (ls_asked)atomic_load(&l->m.slot->asked);
}

static ls_status evict(const ls_loop *l, const ls_verdict *v, const char *what, ls_error *e) {
    return ls_fail(
        e, LS_EINVAL,
        "audit after step %lld: worker %d differs from the others in %s; " LS_AUDIT_ADVICE,
        (long long)l->steps, v->culprit, what);
}

static bool may_rest(const ls_host *h, ls_status how) {
    (void)h;
    (void)how;
    return false;
}

const ls_runtime ls_runtime_plain = {
    .survives = false,
    .when_lost = "; the run ends. Continue from the last checkpoint with --resume, which "
                 "begins again where there is none",
    .finish = finish,
    .connect = connect,
    .has_made = has_made,
    .take_up = take_up,
    .asked = asked,
    .evict = evict,
    .may_rest = may_rest,
};
