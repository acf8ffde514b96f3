/* device_cuda.c - device `cuda`: NVIDIA's GPUs, by the driver's own calls. cuda:N is number N of
 * those that the driver shows (CUDA_VISIBLE_DEVICES).
 *
 * The driver and the compiler are loaded when a device is opened. A process that is forked after
 * that can't use the driver: it must be opened there. Copies run beside kernels only if the host's
 * memory is pinned; else the driver copies through memory of its own, and may wait.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/compiled.h"
#include "device/cuda.h"
#include "device/device_cuda.h"
#include "device/kinds.h"

typedef struct device_cuda {
    ls_device device;
    const ls_cuda *cuda;
    int index, id;
    ls_cuda_context context; /* NULL: not yet retained */
    ls_cuda_module module;
    ls_cuda_function kernels[LS_NDEVICE_KERNELS];
    ls_cuda_stream streams[LS_DEVICE_NSTREAMS];
    ls_cuda_event events[LS_DEVICE_EVENTS];
} device_cuda;

static device_cuda *of(ls_device *d) { return (device_cuda *)(void *)d; }
static ls_cuda_address address(const void *p) { return (ls_cuda_address)(uintptr_t)p; }

/* After these the driver refuses this process: to a run it is a worker that is lost, and another
 * process takes its place (LS_EPEER). 711 to 713 are of peers and of pinned memory. */
static bool is_lost(int code) {
    return code == 214 || code == 220 || code == 226 || code == 700 || code == 702 || code == 709 ||
           code == 710 || (code >= 714 && code <= 719) || code == 999;
}

static ls_status check(const device_cuda *d, int got, const char *what, ls_error *e) {
    const char *name = NULL, *text = NULL;
    if (got == 0) return LS_OK;
    d->cuda->error_name(got, &name);
    d->cuda->error_text(got, &text);
    if (got == LS_CUDA_UNAVAILABLE)
        return ls_fail(e, LS_EIO,
                       "device cuda:%d (%s) is not free: %s: %s; in compute mode Exclusive_Process "
                       "one process at a time can use it, in Prohibited none (nvidia-smi -q -d "
                       "COMPUTE shows the mode, nvidia-smi -c 0 allows all)",
                       d->index, d->device.name, what, text ? text : "?");
    if (got == LS_CUDA_TIMEOUT)
        return ls_fail(
            e, LS_EIO,
            "device cuda:%d (%s) is lost: %s: a kernel took longer than a GPU that draws "
            "a display allows; use another GPU, or smaller micro-batches, and continue "
            "with --resume",
            d->index, d->device.name, what);
    if (is_lost(got))
        return ls_fail(e, LS_EPEER,
                       "device cuda:%d (%s) is lost: %s: %s (%s); dmesg may have an Xid that says "
                       "why; --resume continues a run that has ended",
                       d->index, d->device.name, what, name ? name : "error", text ? text : "?");
    bool full = got == LS_CUDA_OUT_OF_MEMORY;
    return ls_fail(e, full ? LS_ENOMEM : LS_EIO, "device cuda:%d (%s): %s failed: %s (%s)%s",
                   d->index, d->device.name, what, name ? name : "error", text ? text : "?",
                   full ? "; nvidia-smi lists who has its memory" : "");
}

/* The driver's calls use the thread's own context: between these two it is the device's. */
static ls_status enter(const device_cuda *d, ls_error *e) {
    return check(d, d->cuda->context_push(d->context), "cuCtxPushCurrent", e);
}

static void leave(const device_cuda *d) {
    ls_cuda_context before = NULL;
    d->cuda->context_pop(&before);
}

ls_status ls_device_cuda_enter(ls_device *d, ls_error *e) { return enter(of(d), e); }
void ls_device_cuda_leave(ls_device *d) { leave(of(d)); }
ls_cuda_stream ls_device_cuda_stream(ls_device *d, ls_device_stream s) { return of(d)->streams[s]; }

/* ---- memory ---- */

static ls_status alloc_block(ls_device *device, size_t nbytes, const char *what, void **p_p,
                             ls_error *e) {
    device_cuda *d = of(device);
    ls_cuda_address p = 0;
    size_t left = 0, all = 0;
    LS_TRY(enter(d, e));
    int got = d->cuda->alloc(&p, nbytes); /* at a multiple of 256 */
    bool none = got == LS_CUDA_OUT_OF_MEMORY;
    bool known = none && d->cuda->memory_info(&left, &all) == 0;
    leave(d);
    if (none && !known)
        return ls_fail(e, LS_ENOMEM, "device cuda:%d (%s) has no room for %s, %zu bytes", d->index,
                       device->name, what, nbytes);
    if (none)
        return ls_fail(
            e, LS_ENOMEM,
            "device cuda:%d (%s) has no room for %s, %zu bytes: %zu of its %zu bytes are "
            "free (nvidia-smi lists who has the others)",
            d->index, device->name, what, nbytes, left, all);
    LS_TRY(check(d, got, what, e));
    *p_p = (void *)(uintptr_t)p;
    return LS_OK;
}

static void free_block(ls_device *device, void *p) {
    device_cuda *d = of(device);
    if (enter(d, NULL) != LS_OK) return;
    d->cuda->free(address(p));
    leave(d);
}

/* What is left when all that a context needs is there. */
static void room(ls_device *device, ls_device_room *room_p) {
    const device_cuda *d = of(device);
    size_t left = 0, all = 0;
    if (enter(d, NULL) != LS_OK) return;
    if (d->cuda->memory_info(&left, &all) == 0)
        *room_p = (ls_device_room){.all = all, .free = left, .most = left};
    leave(d);
}

/* The same in all processes of a machine: that of the driver, which a MIG instance has, too. */
static uint64_t id_of(const ls_cuda *cuda, int number) {
    unsigned char uuid[16] = {0};
    int id = 0;
    if (cuda->device_get(&id, number) != 0 || cuda->device_uuid(uuid, id) != 0)
        uuid[0] = (unsigned char)number;
    return ls_hash_bytes(uuid, sizeof uuid).lo | 1;
}

static int count(const ls_cuda *cuda) {
    int n = 0;
    return cuda->device_count(&n) == 0 ? n : 0;
}

/* What a handle says. Within a process all users of a device have the same addresses. */
typedef struct shared_cuda {
    char kind[8]; /* "cuda" */
    uint64_t device;
    ls_cuda_address p;
    int pid, index;
    ls_cuda_ipc ipc;
} shared_cuda;
_Static_assert(sizeof(shared_cuda) <= sizeof((ls_device_handle){0}.bytes), "it fits");

static ls_status share(ls_device *device, const void *p, ls_device_handle *h, ls_error *e) {
    const device_cuda *d = of(device);
    shared_cuda s = {.kind = "cuda",
                     .device = id_of(d->cuda, d->index),
                     .p = address(p),
                     .pid = (int)getpid(),
                     .index = d->index};
    LS_TRY(enter(d, e));
    int got = d->cuda->ipc_handle(&s.ipc, s.p);
    leave(d);
    LS_TRY(check(d, got, "cuIpcGetMemHandle", e));
    memcpy(h->bytes, &s, sizeof s);
    return LS_OK;
}

/* The driver knows pairs of GPUs that can't; of one that this process does not see it knows only
 * when the memory is opened. */
static ls_status check_peer(const device_cuda *d, uint64_t other, ls_error *e) {
    for (int i = 0, n = count(d->cuda); i < n; i++) {
        int id = 0, can = 1;
        if (i == d->index || id_of(d->cuda, i) != other) continue;
        if (d->cuda->device_get(&id, i) != 0) continue;
        if (d->cuda->device_can_access(&can, d->id, id) != 0 || can) continue;
        return ls_fail(e, LS_EINVAL,
                       "device cuda:%d (%s) can't read the memory of cuda:%d: these GPUs have no "
                       "peer access to each other (nvidia-smi topo -p2p r)",
                       d->index, d->device.name, i);
    }
    return LS_OK;
}

static ls_status open_shared(ls_device *device, const ls_device_handle *h, void **p_p,
                             ls_error *e) {
    const device_cuda *d = of(device);
    ls_cuda_address p = 0;
    shared_cuda s;
    memcpy(&s, h->bytes, sizeof s);
    if (strcmp(s.kind, "cuda") != 0)
        return ls_fail(e, LS_EINVAL, "device cuda:%d can read memory of devices cuda alone",
                       d->index);
    if (s.pid == (int)getpid() && s.index != d->index)
        return ls_fail(e, LS_EINVAL,
                       "devices cuda:%d and cuda:%d of one process can't read each other's memory: "
                       "each worker must be a process (parallel.transport)",
                       d->index, s.index);
    if (s.pid == (int)getpid()) {
        *p_p = (void *)(uintptr_t)s.p;
        return LS_OK;
    }
    LS_TRY(check_peer(d, s.device, e));
    LS_TRY(enter(d, e));
    int got = d->cuda->ipc_open(&p, s.ipc, LS_CUDA_IPC_LAZY_PEERS);
    leave(d);
    LS_TRY(check(d, got, "cuIpcOpenMemHandle", e));
    *p_p = (void *)(uintptr_t)p;
    return LS_OK;
}

/* The driver refuses an address of this process, which needs no more. */
static void close_shared(ls_device *device, void *p) {
    const device_cuda *d = of(device);
    if (enter(d, NULL) != LS_OK) return;
    d->cuda->ipc_close(address(p));
    leave(d);
}

/* ---- work ---- */

/* Leaves the context, and checks. */
static ls_status done(const device_cuda *d, int got, const char *what, ls_error *e) {
    leave(d);
    return check(d, got, what, e);
}

static ls_status copy_to(ls_device *device, ls_device_stream s, void *to, const void *from,
                         size_t nbytes, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->copy_to(address(to), from, nbytes, d->streams[s]), "a copy to it", e);
}

static ls_status copy_from(ls_device *device, ls_device_stream s, void *to, const void *from,
                           size_t nbytes, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->copy_from(to, address(from), nbytes, d->streams[s]), "a copy from it",
                e);
}

static ls_status copy(ls_device *device, ls_device_stream s, void *to, const void *from,
                      size_t nbytes, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->copy(address(to), address(from), nbytes, d->streams[s]), "a copy", e);
}

static ls_status clear(ls_device *device, ls_device_stream s, void *p, size_t nbytes, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->set(address(p), 0, nbytes, d->streams[s]), "clearing memory", e);
}

static ls_status launch(ls_device *device, ls_device_stream s, const ls_device_call *l,
                        ls_error *e) {
    device_cuda *d = of(device);
    const ls_device_kernel_facts *facts = &ls_device_kernels[l->kernel];
    ls_device_arg args[LS_LAUNCH_ARGS];
    void *params[LS_LAUNCH_ARGS];
    memcpy(args, l->args, sizeof args);
    for (int i = 0; i < LS_LAUNCH_ARGS; i++) params[i] = &args[i]; /* each of its own size */
    LS_TRY(enter(d, e));
    return done(d,
                d->cuda->launch(d->kernels[l->kernel], (unsigned)l->groups_x, (unsigned)l->groups_y,
                                1, (unsigned)facts->items, 1, 1, 0, d->streams[s], params, NULL),
                facts->name, e);
}

static ls_status record(ls_device *device, ls_device_stream s, int event, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->event_record(d->events[event], d->streams[s]), "cuEventRecord", e);
}

static ls_status wait_for(ls_device *device, ls_device_stream s, int event, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->stream_wait(d->streams[s], d->events[event], 0), "cuStreamWaitEvent",
                e);
}

static ls_status await(ls_device *device, int event, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->event_await(d->events[event]), "queued work", e);
}

static ls_status pin(ls_device *device, void *p, size_t nbytes, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    int got = d->cuda->host_pin(p, nbytes, 0);
    leave(d);
    ls_status s = check(d, got, "cuMemHostRegister", e);
    if (s != LS_OK && got != LS_CUDA_PINNED) /* not by another worker of this process */
        ls_log("device cuda:%d (%s): the host's memory can't be pinned (error %d), so copies are "
               "slower and don't run beside kernels",
               d->index, d->device.name, got);
    return s;
}

static void unpin(ls_device *device, void *p) {
    device_cuda *d = of(device);
    if (enter(d, NULL) != LS_OK) return;
    d->cuda->host_unpin(p);
    leave(d);
}

static ls_status finish(ls_device *device, ls_device_stream s, ls_error *e) {
    device_cuda *d = of(device);
    LS_TRY(enter(d, e));
    return done(d, d->cuda->stream_finish(d->streams[s]), "queued work", e);
}

/* ---- opening, closing ---- */

static void close_device(ls_device *device) {
    device_cuda *d = of(device);
    if (d->context && enter(d, NULL) == LS_OK) {
        for (int i = 0; i < LS_DEVICE_EVENTS; i++)
            if (d->events[i]) d->cuda->event_destroy(d->events[i]);
        for (int i = 0; i < LS_DEVICE_NSTREAMS; i++)
            if (d->streams[i]) d->cuda->stream_destroy(d->streams[i]);
        if (d->module) d->cuda->module_unload(d->module);
        leave(d);
    }
    if (d->context) d->cuda->context_release(d->id);
    free(d);
}

static ls_status list_devices(ls_device_seen *list, int room, int *n_p, ls_error *e) {
    const ls_cuda *cuda = NULL;
    LS_TRY(ls_cuda_load(&cuda, e));
    int n = count(cuda);
    *n_p = n < room ? n : room;
    for (int i = 0; i < *n_p; i++) list[i] = (ls_device_seen){.number = i, .id = id_of(cuda, i)};
    return LS_OK;
}

static ls_status find(device_cuda *d, ls_error *e) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int n = count(d->cuda);
    if (n == 0)
        return ls_fail(e, LS_EINVAL,
                       "device cuda:%d: NVIDIA's driver shows no GPU%s%s; nvidia-smi lists them, "
                       "and a container needs --gpus all",
                       d->index, visible ? ", with CUDA_VISIBLE_DEVICES=" : "",
                       visible ? visible : "");
    if (d->index >= n)
        return ls_fail(e, LS_EINVAL, "device cuda:%d: the highest is cuda:%d%s%s", d->index, n - 1,
                       visible ? ", with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
    LS_TRY(check(d, d->cuda->device_get(&d->id, d->index), "cuDeviceGet", e));
    LS_TRY(check(d, d->cuda->device_name(d->device.name, sizeof d->device.name, d->id),
                 "cuDeviceGetName", e));
    return check(d, d->cuda->device_memory(&d->device.memory_nbytes, d->id), "cuDeviceTotalMem", e);
}

/* Hopper has code of its own kind: sm_90a. */
static ls_status architecture(const device_cuda *d, char *to, size_t size, ls_error *e) {
    int major = 0, minor = 0;
    LS_TRY(check(d, d->cuda->device_attribute(&major, LS_CUDA_MAJOR, d->id), "cuDeviceGetAttribute",
                 e));
    LS_TRY(check(d, d->cuda->device_attribute(&minor, LS_CUDA_MINOR, d->id), "cuDeviceGetAttribute",
                 e));
    snprintf(to, size, "sm_%d%d%s", major, minor, major == 9 && minor == 0 ? "a" : "");
    return LS_OK;
}

/* True: the installed file has code for this GPU, and the module is loaded. */
static bool load_installed(device_cuda *d, const char *target) {
    enum { MAX_NBYTES = 1 << 30 };
    ls_buf code = {0};
    ls_error why = {0};
    char *path = ls_compiled_installed();
    if (!path) return false;
    ls_status s = ls_file_read(path, MAX_NBYTES, &code, &why);
    if (s == LS_OK) {
        int got = d->cuda->module_load(&d->module, code.data);
        if (got == LS_CUDA_NO_CODE)
            s = ls_fail(&why, LS_EINVAL, "%s has no kernels for %s", path, target);
        else
            s = check(d, got, path, &why);
    }
    if (s != LS_OK) ls_log("%s; NVIDIA's compiler makes them", why.msg);
    ls_buf_free(&code);
    free(path);
    return s == LS_OK;
}

static ls_status load_compiled(device_cuda *d, const char *target, ls_error *e) {
    const ls_nvrtc *compiler = NULL;
    ls_buf code = {0};
    LS_TRY(ls_nvrtc_load(d->cuda->driver / 1000, target, &compiler, e));
    LS_TRY(ls_compiled_kernels(compiler, target, &code, e));
    int got = d->cuda->module_load(&d->module, code.data);
    ls_buf_free(&code);
    return check(d, got, "loading the kernels", e);
}

static ls_status load_kernels(device_cuda *d, ls_error *e) {
    char target[32];
    LS_TRY(architecture(d, target, sizeof target, e));
    if (!load_installed(d, target)) LS_TRY(load_compiled(d, target, e));
    for (int i = 0; i < LS_NDEVICE_KERNELS; i++) {
        const char *name = ls_device_kernels[i].name;
        LS_TRY(check(d, d->cuda->module_function(&d->kernels[i], d->module, name), name, e));
    }
    return LS_OK;
}

/* In the device's context. */
static ls_status create(device_cuda *d, bool bare, ls_error *e) {
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++)
        LS_TRY(check(d, d->cuda->stream_create(&d->streams[i], LS_CUDA_STREAM_NON_BLOCKING),
                     "cuStreamCreate", e));
    for (int i = 0; i < LS_DEVICE_EVENTS; i++)
        LS_TRY(check(d, d->cuda->event_create(&d->events[i], LS_CUDA_EVENT_DISABLE_TIMING),
                     "cuEventCreate", e));
    return bare ? LS_OK : load_kernels(d, e);
}

static ls_status set_up(device_cuda *d, bool bare, ls_error *e) {
    ls_cuda_context context = NULL;
    LS_TRY(find(d, e));
    LS_TRY(check(d, d->cuda->context_retain(&context, d->id), "cuDevicePrimaryCtxRetain", e));
    d->context = context;
    LS_TRY(enter(d, e));
    ls_status s = create(d, bare, e);
    leave(d);
    return s;
}

static ls_status open_device(int index, bool bare, ls_device **d_p, ls_error *e) {
    const ls_cuda *cuda = NULL;
    LS_TRY(ls_cuda_load(&cuda, e));
    device_cuda *d = LS_NEW(device_cuda);
    d->cuda = cuda;
    d->index = index;
    ls_status s = set_up(d, bare, e);
    if (s == LS_OK)
        *d_p = &d->device;
    else
        close_device(&d->device);
    return s;
}

const ls_device_ops ls_device_cuda = {.kind = "cuda",
                                      .shares = true,
                                      .list = list_devices,
                                      .open = open_device,
                                      .room = room,
                                      .alloc = alloc_block,
                                      .free = free_block,
                                      .copy_to = copy_to,
                                      .copy_from = copy_from,
                                      .copy = copy,
                                      .clear = clear,
                                      .launch = launch,
                                      .record = record,
                                      .wait = wait_for,
                                      .await = await,
                                      .finish = finish,
                                      .pin = pin,
                                      .unpin = unpin,
                                      .share = share,
                                      .open_shared = open_shared,
                                      .close_shared = close_shared,
                                      .close = close_device};
