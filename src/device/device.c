/* device.c - see device.h. */
#include "device/device.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pages.h"
#include "device/kinds.h"

static const ls_device_ops *const kinds[] = {&ls_device_c, &ls_device_opencl, &ls_device_cuda};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static const ls_device_ops *kind_of(const char *name) {
    size_t length = strcspn(name, ":");
    for (int i = 0; i < NKINDS; i++)
        if (strlen(kinds[i]->kind) == length && !memcmp(kinds[i]->kind, name, length))
            return kinds[i];
    return NULL;
}

bool ls_device_is_numbered(const char *name) { return strchr(name, ':') != NULL; }

bool ls_device_is_kind(const char *name, const char *kind) {
    const ls_device_ops *ops = kind_of(name);
    return ops && strcmp(ops->kind, kind) == 0;
}

/* *index_p: 0 without a number. */
static ls_status read_name(const char *name, const ls_device_ops **ops_p, int *index_p,
                           ls_error *e) {
    size_t length = strcspn(name, ":");
    char *end = NULL;
    long index = name[length] ? strtol(name + length + 1, &end, 10) : 0;
    *ops_p = kind_of(name);
    if (!*ops_p || index < 0 || index > 1000000 ||
        (name[length] && (*end || end == name + length + 1)))
        return ls_fail(e, LS_EINVAL,
                       "device %s: not known; devices are c, opencl and cuda, with a number as in "
                       "cuda:1 where there are several, or auto",
                       name);
    *index_p = (int)index;
    return LS_OK;
}

ls_status ls_device_list(const char *name, ls_device_seen list[LS_DEVICE_LIST], int *n_p,
                         ls_error *e) {
    const ls_device_ops *ops = NULL;
    int index = 0, all = 0, n = 0;
    bool others = false;
    LS_TRY(read_name(name, &ops, &index, e));
    LS_TRY(ops->list(list, LS_DEVICE_LIST, &all, e));
    for (int i = 0; i < all; i++) others |= !list[i].is_cores;
    for (int i = 0; i < all; i++) {
        bool fits =
            ls_device_is_numbered(name) ? list[i].number == index : !list[i].is_cores || !others;
        for (int k = 0; k < n; k++) fits &= !list[i].id || list[k].id != list[i].id;
        if (fits) list[n++] = list[i]; /* once, if several drivers have it */
    }
    *n_p = n;
    return LS_OK;
}

static ls_status open_named(const char *name, bool bare, ls_device **d_p, ls_error *e) {
    const ls_device_ops *ops = NULL;
    int index = 0;
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0;
    LS_TRY(read_name(name, &ops, &index, e));
    if (!ls_device_is_numbered(name)) {
        LS_TRY(ls_device_list(name, list, &n, e));
        if (n > 0) index = list[0].number; /* else open() says what is missing */
    }
    LS_TRY(ops->open(index, bare, d_p, e));
    (*d_p)->ops = ops;
    (*d_p)->patience_ns = (int64_t)10 * 1000 * 1000 * 1000;
    return LS_OK;
}

ls_status ls_device_open(const char *name, ls_device **d_p, ls_error *e) {
    return open_named(name, false, d_p, e);
}

ls_status ls_device_open_bare(const char *name, ls_device **d_p, ls_error *e) {
    return open_named(name, true, d_p, e);
}

void ls_device_room_of(ls_device *d, ls_device_room *room) {
    *room = (ls_device_room){0};
    d->ops->room(d, room);
}

/* Waits for all that is queued, also after an error. */
static void finish_all(ls_device *d) {
    for (int s = 0; s < LS_DEVICE_NSTREAMS; s++) d->ops->finish(d, (ls_device_stream)s, NULL);
}

/* Has all memory at p, NULL: of the device, been closed by those that opened it? Waits once. */
static bool is_closed(ls_device *d, const void *p) {
    if (ls_readers_await(&d->readers, p, d->patience_ns)) return true;
    if (d->patience_ns)
        ls_log("device %s: another worker has not closed this one's memory; it is freed when this "
               "process ends",
               d->name);
    d->patience_ns = 0;
    return false;
}

/* A device whose memory others may still read stays open until the process ends. */
static void leave(ls_device *d) {
    static _Atomic(ls_device *) left;
    d->next_left = atomic_load(&left);
    while (!atomic_compare_exchange_weak(&left, &d->next_left, d)) continue;
}

void ls_device_close(ls_device *d) {
    if (!d) return;
    finish_all(d);
    if (!is_closed(d, NULL)) {
        leave(d);
        return;
    }
    ls_readers_free(&d->readers);
    d->ops->close(d);
}

ls_status ls_device_alloc(ls_device *d, size_t nbytes, const char *what, void **p_p, ls_error *e) {
    return d->ops->alloc(d, nbytes, what, p_p, e);
}

void ls_device_free(ls_device *d, void *p) {
    if (!p) return;
    finish_all(d);
    if (is_closed(d, p)) d->ops->free(d, p);
}

ls_status ls_device_pin(ls_device *d, void *p, size_t nbytes, ls_error *e) {
    LS_TRY(d->ops->pin(d, p, nbytes, e));
    ls_pages_hold(p, nbytes);
    return LS_OK;
}

void ls_device_unpin(ls_device *d, void *p) {
    d->ops->unpin(d, p);
    ls_pages_let_go(p);
}

/* The first error stays. */
static void keep(ls_device *d, ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    d->status = s;
    d->error = *e;
}

void ls_device_copy_to(ls_device *d, ls_device_stream s, void *to, const void *from,
                       size_t nbytes) {
    ls_error e = {0};
    if (d->status == LS_OK && nbytes) keep(d, d->ops->copy_to(d, s, to, from, nbytes, &e), &e);
}

void ls_device_copy_from(ls_device *d, ls_device_stream s, void *to, const void *from,
                         size_t nbytes) {
    ls_error e = {0};
    if (d->status == LS_OK && nbytes) keep(d, d->ops->copy_from(d, s, to, from, nbytes, &e), &e);
}

void ls_device_copy(ls_device *d, ls_device_stream s, void *to, const void *from, size_t nbytes) {
    ls_error e = {0};
    if (d->status == LS_OK && nbytes) keep(d, d->ops->copy(d, s, to, from, nbytes, &e), &e);
}

void ls_device_clear(ls_device *d, ls_device_stream s, void *p, size_t nbytes) {
    ls_error e = {0};
    if (d->status == LS_OK && nbytes) keep(d, d->ops->clear(d, s, p, nbytes, &e), &e);
}

/* What CUDA allows; the other kinds refuse the same. */
static ls_status check_groups(const ls_device_call *l, ls_error *e) {
    if (l->groups_x <= INT32_MAX && l->groups_y <= UINT16_MAX) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "kernel %s: %lld x %lld groups; at most %d x %d are possible on a device: a "
                   "smaller micro-batch needs fewer",
                   ls_device_kernels[l->kernel].name, (long long)l->groups_x,
                   (long long)l->groups_y, INT32_MAX, UINT16_MAX);
}

void ls_device_launch(ls_device *d, ls_device_stream s, const ls_device_call *l) {
    ls_error e = {0};
    assert(strlen(ls_device_kernels[l->kernel].params) <= LS_LAUNCH_ARGS);
    if (d->status != LS_OK || l->groups_x <= 0 || l->groups_y <= 0) return;
    ls_status got = check_groups(l, &e);
    if (got == LS_OK) got = d->ops->launch(d, s, l, &e);
    keep(d, got, &e);
}

void ls_device_record(ls_device *d, ls_device_stream s, int event) {
    ls_error e = {0};
    assert(event >= 0 && event < LS_DEVICE_EVENTS);
    if (d->status == LS_OK) keep(d, d->ops->record(d, s, event, &e), &e);
}

void ls_device_wait(ls_device *d, ls_device_stream s, int event) {
    ls_error e = {0};
    assert(event >= 0 && event < LS_DEVICE_EVENTS);
    if (d->status == LS_OK) keep(d, d->ops->wait(d, s, event, &e), &e);
}

ls_status ls_device_await(ls_device *d, int event, ls_error *e) {
    ls_error own = {0};
    assert(event >= 0 && event < LS_DEVICE_EVENTS);
    if (d->status == LS_OK) keep(d, d->ops->await(d, event, &own), &own);
    if (d->status != LS_OK && e) *e = d->error;
    return d->status;
}

ls_status ls_device_finish(ls_device *d, ls_device_stream s, ls_error *e) {
    ls_error own = {0};
    if (d->status == LS_OK) keep(d, d->ops->finish(d, s, &own), &own);
    if (d->status != LS_OK && e) *e = d->error;
    return d->status;
}

bool ls_device_shares(const char *name) {
    const ls_device_ops *ops = kind_of(name);
    return ops && ops->shares;
}

ls_status ls_device_share(ls_device *d, const void *p, ls_device_handle *h, ls_error *e) {
    *h = (ls_device_handle){0};
    if (!d->ops->shares)
        return ls_fail(e, LS_EINVAL, "devices %s can't read each other's memory", d->ops->kind);
    LS_TRY(d->ops->share(d, p, h, e));
    return ls_readers_share(&d->readers, p, &h->readers, e);
}

ls_status ls_device_open_shared(ls_device *d, const ls_device_handle *h, void **p_p, ls_error *e) {
    int file = -1;
    LS_TRY(ls_readers_enter(&h->readers, &file, e));
    ls_status s = d->ops->open_shared(d, h, p_p, e);
    if (s == LS_OK)
        ls_readers_add(&d->readers, *p_p, file);
    else
        close(file);
    return s;
}

void ls_device_close_shared(ls_device *d, void *p) {
    if (!p) return;
    d->ops->close_shared(d, p);
    ls_readers_leave(&d->readers, p);
}
