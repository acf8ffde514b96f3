/* on_device.c - see on_device.h. */
#include "exec/on_device.h"

#include "base/round_up.h"

enum { SENT, COMPUTED, BEGUN }; /* events; all from BEGUN on are of single copies */

static ls_status get(const ls_on_device *x, size_t nbytes, const char *what, char **p_p,
                     ls_error *e) {
    void *p = NULL;
    if (nbytes) LS_TRY(ls_device_alloc(x->compute.device, nbytes, what, &p, e));
    *p_p = p;
    return LS_OK;
}

static ls_status get_all(ls_on_device *x, ls_error *e) {
    const ls_device_memory *n = &x->nbytes;
    /* What others read takes whole pages: a driver may put several smaller blocks into one page,
     * and opens all of it. */
    size_t unit = n->sums > 0 ? LS_DEVICE_PAGE : 1;
    LS_TRY(get(x, ls_round_up(n->params, unit), "parameters", &x->params, e));
    LS_TRY(get(x, n->state, "the optimizer's states", &x->state, e));
    LS_TRY(get(x, ls_round_up(n->grads, unit), "gradients", &x->grads, e));
    LS_TRY(get(x, n->arena, "activations", &x->arena, e));
    LS_TRY(get(x, n->work, "a layer's work", &x->work, e));
    LS_TRY(get(x, n->norms, "norms", &x->norms, e));
    LS_TRY(get(x, n->sums, "sums over workers", &x->sums, e));
    LS_TRY(get(x, n->incoming, "sums of other workers", &x->incoming, e));
    LS_TRY(get(x, n->halves, "numbers in 16 bits", &x->halves, e));
    LS_TRY(get(x, n->samples, "samples", &x->samples, e));
    return get(x, n->losses, "losses", &x->losses, e);
}

ls_status ls_on_device_open(ls_on_device *x, const char *device, const ls_compute *host,
                            const ls_device_memory *n, ls_error *e) {
    *x = (ls_on_device){.compute = *host, .nbytes = *n};
    LS_TRY(ls_device_open(device, &x->compute.device, e));
    ls_status s = get_all(x, e);
    if (s == LS_ENOMEM && e) {
        const ls_error why = *e;
        ls_fail(e, s, "%s; a smaller train.micro_batch, parallel.recompute=2 or lora.rank=8 may do",
                why.msg);
    }
    if (s != LS_OK) {
        ls_on_device_close(x);
        return s;
    }
    /* No layer writes what lies between the gradients of two parameters: it is 0, as on the
     * host. */
    ls_device_clear(x->compute.device, LS_DEVICE_COMPUTE, x->grads, n->grads);
    if (n->norms) /* nor does the worker write the norms of others */
        ls_device_clear(x->compute.device, LS_DEVICE_COMPUTE, x->norms, n->norms);
    return LS_OK;
}

ls_status ls_on_device_await(const ls_on_device *x, ls_error *e) {
    ls_device *d = x->compute.device;
    ls_status s = LS_OK;
    for (int i = 0; d && i < LS_DEVICE_NSTREAMS; i++) /* after an error all of them fail */
        s = ls_device_finish(d, (ls_device_stream)i, e);
    return s;
}

void ls_on_device_close(ls_on_device *x) {
    ls_device *d = x->compute.device;
    if (!d) return;
    ls_on_device_await(x, NULL);
    for (size_t i = 0; i < sizeof x->pinned / sizeof *x->pinned; i++)
        if (x->pinned[i]) ls_device_unpin(d, x->pinned[i]);
    char *const all[] = {x->params, x->state,    x->grads, x->arena,   x->work,   x->norms,
                         x->sums,   x->incoming, x->lent,  x->samples, x->losses, x->halves};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ls_device_free(d, all[i]);
    ls_device_close(d);
    *x = (ls_on_device){0};
}

void *ls_on_device_half(const ls_on_device *x, const char *p) {
    const char *const all[] = {x->params, x->grads, x->arena};
    const size_t nbytes[] = {x->nbytes.params, x->nbytes.grads, x->nbytes.arena};
    size_t before = 0;
    int i = 0;
    while (i < 2 && !(p >= all[i] && p < all[i] + nbytes[i])) before += nbytes[i++];
    return x->halves + (before + (size_t)(p - all[i])) / 2;
}

void ls_on_device_send(const ls_on_device *x, void *to, const void *from, size_t nbytes) {
    ls_device *d = x->compute.device;
    ls_device_copy_to(d, LS_DEVICE_COPY, to, from, nbytes);
    ls_device_record(d, LS_DEVICE_COPY, SENT);
    ls_device_wait(d, LS_DEVICE_COMPUTE, SENT);
}

ls_status ls_on_device_await_copies(const ls_on_device *x, ls_error *e) {
    ls_device *d = x->compute.device;
    return d ? ls_device_finish(d, LS_DEVICE_COPY, e) : LS_OK;
}

bool ls_on_device_pins(const ls_on_device *x, const void *p) {
    return p && (x->pinned[0] == p || x->pinned[1] == p);
}

/* An event for a copy, which waits for what was queued. It is used again when it has happened. */
static int begin(ls_on_device *x) {
    enum { EVENTS = LS_DEVICE_EVENTS - BEGUN };
    ls_device *d = x->compute.device;
    int event = BEGUN + (int)(x->nbegun % EVENTS);
    if (x->nbegun++ >= EVENTS) ls_device_await(d, event, NULL);
    ls_device_record(d, LS_DEVICE_COMPUTE, COMPUTED);
    ls_device_wait(d, LS_DEVICE_COPY, COMPUTED);
    return event;
}

int ls_on_device_begin_give(ls_on_device *x, void *to, const void *from, size_t nbytes) {
    ls_device *d = x->compute.device;
    int event = begin(x);
    ls_device_copy_to(d, LS_DEVICE_COPY, to, from, nbytes);
    ls_device_record(d, LS_DEVICE_COPY, event);
    ls_device_wait(d, LS_DEVICE_COMPUTE, event);
    return event;
}

ls_status ls_on_device_give(ls_on_device *x, void *to, const void *from, size_t nbytes,
                            ls_error *e) {
    int event = ls_on_device_begin_give(x, to, from, nbytes);
    return ls_device_await(x->compute.device, event, e);
}

ls_status ls_on_device_need(ls_on_device *x, size_t nbytes, ls_error *e) {
    if (nbytes <= x->nbytes.arena || x->lent) return LS_OK; /* it is the same each time */
    return get(x, nbytes, "evaluation", &x->lent, e);
}

void ls_on_device_pin(ls_on_device *x, int i, void *p, size_t nbytes) {
    if (ls_device_pin(x->compute.device, p, nbytes, NULL) == LS_OK) x->pinned[i] = p;
}

int ls_on_device_begin_fetch(ls_on_device *x, void *to, const void *from, size_t nbytes) {
    ls_device *d = x->compute.device;
    int event = begin(x);
    ls_device_copy_from(d, LS_DEVICE_COPY, to, from, nbytes);
    ls_device_record(d, LS_DEVICE_COPY, event);
    return event;
}

ls_status ls_on_device_fetch(const ls_on_device *x, void *to, const void *from, size_t nbytes,
                             ls_error *e) {
    ls_device *d = x->compute.device;
    ls_device_record(d, LS_DEVICE_COMPUTE, COMPUTED);
    ls_device_wait(d, LS_DEVICE_COPY, COMPUTED);
    ls_device_copy_from(d, LS_DEVICE_COPY, to, from, nbytes);
    return ls_device_finish(d, LS_DEVICE_COPY, e);
}
