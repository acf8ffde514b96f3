/* device_opencl.c - device `opencl`: what an OpenCL driver offers: GPUs of several makers, and the
 * host's cores by PoCL. opencl:N counts the devices of all platforms.
 *
 * Memory is coarse-grained shared virtual memory, since its addresses are pointers. Streams are
 * queues in order. A device is refused that lacks the arithmetic that the kernels' bits rest on:
 * numbers below 2^-126, and double, in which floats are divided where the device rounds their
 * quotients otherwise.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "device/compiled.h"
#include "device/compiler_log.h"
#include "device/kinds.h"
#include "device/opencl.h"

/* The driver aligns memory to 128 bytes at most. */
enum { ALIGN = 256, MAX_DEVICES = 64 };
#define LONG_S 1.0 /* a compilation that takes longer is kept */

typedef struct block {
    void *p, *from; /* that the user has; that the driver gave */
} block;

typedef struct device_opencl {
    ls_device device;
    const ls_opencl *cl;
    int index;
    pthread_mutex_t lock; /* of what follows, and of the kernels' arguments */
    cl_device_id id;
    cl_context context;
    cl_program program;
    cl_kernel kernels[LS_NDEVICE_KERNELS];
    cl_command_queue queues[LS_DEVICE_NSTREAMS];
    cl_event events[LS_DEVICE_EVENTS]; /* NULL: not yet recorded */
    block *blocks;
    size_t nblocks;
    size_t most_nbytes; /* of one allocation */
} device_opencl;

static device_opencl *of(ls_device *d) { return (device_opencl *)(void *)d; }

static ls_status check(const device_opencl *d, cl_int got, const char *what, ls_error *e) {
    if (got == CL_SUCCESS) return LS_OK;
    return ls_fail(e, LS_EIO, "device opencl:%d (%s): %s failed: %s (%d)", d->index, d->device.name,
                   what, ls_opencl_error(got), got);
}

/* ---- memory ---- */

static ls_status alloc_block(ls_device *device, size_t nbytes, const char *what, void **p_p,
                             ls_error *e) {
    device_opencl *d = of(device);
    void *from = NULL;
    if (nbytes <= d->most_nbytes)
        from = d->cl->SVMAlloc(d->context, CL_MEM_READ_WRITE, nbytes + ALIGN, 0);
    if (!from)
        return ls_fail(e, LS_ENOMEM,
                       "device opencl:%d (%s) has no room for %s, %zu bytes: it has %zu bytes, and "
                       "gives at most %zu at once",
                       d->index, device->name, what, nbytes, device->memory_nbytes, d->most_nbytes);
    block b = {.p = (char *)from + (ALIGN - (uintptr_t)from % ALIGN) % ALIGN, .from = from};
    pthread_mutex_lock(&d->lock);
    d->blocks = ls_grow(d->blocks, d->nblocks, sizeof b);
    d->blocks[d->nblocks++] = b;
    pthread_mutex_unlock(&d->lock);
    *p_p = b.p;
    return LS_OK;
}

static void free_block(ls_device *device, void *p) {
    device_opencl *d = of(device);
    void *from = NULL;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->nblocks && !from; i++) {
        if (d->blocks[i].p != p) continue;
        from = d->blocks[i].from;
        d->blocks[i] = d->blocks[--d->nblocks];
    }
    pthread_mutex_unlock(&d->lock);
    if (from) d->cl->SVMFree(d->context, from);
}

/* ---- work ---- */

/* What is queued begins at once. */
static ls_status begin(const device_opencl *d, ls_device_stream s, cl_int queued, const char *what,
                       ls_error *e) {
    LS_TRY(check(d, queued, what, e));
    return check(d, d->cl->Flush(d->queues[s]), "clFlush", e);
}

static ls_status copy(ls_device *device, ls_device_stream s, void *to, const void *from,
                      size_t nbytes, ls_error *e) {
    device_opencl *d = of(device);
    return begin(d, s,
                 d->cl->EnqueueSVMMemcpy(d->queues[s], CL_FALSE, to, from, nbytes, 0, NULL, NULL),
                 "a copy", e);
}

static ls_status clear(ls_device *device, ls_device_stream s, void *p, size_t nbytes, ls_error *e) {
    device_opencl *d = of(device);
    static const char zero = 0;
    return begin(
        d, s, d->cl->EnqueueSVMMemFill(d->queues[s], p, &zero, sizeof zero, nbytes, 0, NULL, NULL),
        "clearing memory", e);
}

static cl_int set_arg(const device_opencl *d, cl_kernel k, cl_uint i, char type,
                      const ls_device_arg *a) {
    if (type == 'l') return d->cl->SetKernelArg(k, i, sizeof(cl_long), &a->l);
    if (type == 'f') return d->cl->SetKernelArg(k, i, sizeof(cl_float), &a->f);

    if (!a->p) return d->cl->SetKernelArg(k, i, sizeof(cl_mem), NULL);
    return d->cl->SetKernelArgSVMPointer(k, i, a->p);
}

static ls_status launch(ls_device *device, ls_device_stream s, const ls_device_call *l,
                        ls_error *e) {
    device_opencl *d = of(device);
    const ls_device_kernel_facts *facts = &ls_device_kernels[l->kernel];
    cl_kernel k = d->kernels[l->kernel];
    size_t items[2] = {(size_t)facts->items, 1};
    size_t all[2] = {(size_t)l->groups_x * items[0], (size_t)l->groups_y};
    cl_int got = CL_SUCCESS;
    pthread_mutex_lock(&d->lock);
    for (cl_uint i = 0; facts->params[i] && got == CL_SUCCESS; i++)
        got = set_arg(d, k, i, facts->params[i], &l->args[i]);
    if (got == CL_SUCCESS)
        got = d->cl->EnqueueNDRangeKernel(d->queues[s], k, 2, NULL, all, items, 0, NULL, NULL);
    pthread_mutex_unlock(&d->lock);
    return begin(d, s, got, facts->name, e);
}

static ls_status record(ls_device *device, ls_device_stream s, int event, ls_error *e) {
    device_opencl *d = of(device);
    cl_event now = NULL;
    cl_int got = d->cl->EnqueueMarkerWithWaitList(d->queues[s], 0, NULL, &now);
    LS_TRY(begin(d, s, got, "clEnqueueMarkerWithWaitList", e));
    pthread_mutex_lock(&d->lock);
    if (d->events[event]) d->cl->ReleaseEvent(d->events[event]);
    d->events[event] = now;
    pthread_mutex_unlock(&d->lock);
    return LS_OK;
}

static ls_status wait_for(ls_device *device, ls_device_stream s, int event, ls_error *e) {
    device_opencl *d = of(device);
    cl_int got = CL_SUCCESS;
    pthread_mutex_lock(&d->lock);
    if (d->events[event])
        got = d->cl->EnqueueBarrierWithWaitList(d->queues[s], 1, &d->events[event], NULL);
    pthread_mutex_unlock(&d->lock);
    return check(d, got, "clEnqueueBarrierWithWaitList", e);
}

static ls_status await(ls_device *device, int event, ls_error *e) {
    device_opencl *d = of(device);
    pthread_mutex_lock(&d->lock);
    cl_event now = d->events[event];
    if (now) d->cl->RetainEvent(now);
    pthread_mutex_unlock(&d->lock);
    if (!now) return LS_OK;
    cl_int got = d->cl->WaitForEvents(1, &now);
    d->cl->ReleaseEvent(now);
    return check(d, got, "queued work", e);
}

/* Drivers pin what they need. */
static ls_status pin(ls_device *d, void *p, size_t nbytes, ls_error *e) {
    (void)d, (void)p, (void)nbytes, (void)e;
    return LS_OK;
}
static void unpin(ls_device *d, void *p) { (void)d, (void)p; }

static ls_status finish(ls_device *device, ls_device_stream s, ls_error *e) {
    device_opencl *d = of(device);
    return check(d, d->cl->Finish(d->queues[s]), "queued work", e);
}

/* ---- opening, closing ---- */

static void close_device(ls_device *device) {
    device_opencl *d = of(device);
    for (int i = 0; i < LS_DEVICE_EVENTS; i++)
        if (d->events[i]) d->cl->ReleaseEvent(d->events[i]);
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++)
        if (d->queues[i]) d->cl->ReleaseCommandQueue(d->queues[i]);
    for (int i = 0; i < LS_NDEVICE_KERNELS; i++)
        if (d->kernels[i]) d->cl->ReleaseKernel(d->kernels[i]);
    if (d->program) d->cl->ReleaseProgram(d->program);
    for (size_t i = 0; i < d->nblocks; i++) d->cl->SVMFree(d->context, d->blocks[i].from);
    if (d->context) d->cl->ReleaseContext(d->context);
    pthread_mutex_destroy(&d->lock);
    free(d->blocks);
    free(d);
}

/* The devices of all platforms; returns their number. */
static int all_ids(const ls_opencl *cl, cl_device_id ids[MAX_DEVICES], cl_uint *nplatforms_p) {
    cl_platform_id platforms[MAX_DEVICES];
    cl_uint nplatforms = 0;
    int nids = 0;
    if (cl->GetPlatformIDs(MAX_DEVICES, platforms, &nplatforms) != CL_SUCCESS) nplatforms = 0;
    for (cl_uint i = 0; i < nplatforms && i < MAX_DEVICES && nids < MAX_DEVICES; i++) {
        cl_uint got = 0, room = (cl_uint)(MAX_DEVICES - nids);
        if (cl->GetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, room, ids + nids, &got) ==
            CL_SUCCESS)
            nids += (int)(got < room ? got : room);
    }
    *nplatforms_p = nplatforms;
    return nids;
}

/* The same for the same device in all processes: the driver's own, or else its number among those
 * that the process sees. */
static uint64_t number_of_device(const ls_opencl *cl, cl_device_id id, int i) {
    static const char *const limits[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};
    unsigned char uuid[CL_UUID_SIZE_KHR];
    ls_buf text = {0};
    if (cl->GetDeviceInfo(id, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL) == CL_SUCCESS)
        return ls_hash_bytes(uuid, sizeof uuid).lo | 1;
    ls_buf_printf(&text, "%d", i);
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
        ls_buf_printf(&text, " %s", getenv(limits[k]) ? getenv(limits[k]) : "");
    uint64_t hash = ls_hash_bytes(text.data, text.len).lo | 1;
    ls_buf_free(&text);
    return hash;
}

/* Device `index` of all platforms. */
static ls_status find(const ls_opencl *cl, int index, cl_device_id *id_p, ls_error *e) {
    cl_device_id ids[MAX_DEVICES];
    cl_uint nplatforms = 0;
    int nids = all_ids(cl, ids, &nplatforms);
    if (nids == 0)
        return ls_fail(e, LS_EINVAL,
                       "device opencl:%d: no OpenCL device was found (platforms: %u); install the "
                       "device's driver, or Debian's package pocl-opencl-icd for the host's cores",
                       index, nplatforms);
    if (index >= nids)
        return ls_fail(e, LS_EINVAL, "device opencl:%d: the highest is opencl:%d", index, nids - 1);
    *id_p = ids[index];
    return LS_OK;
}

static cl_ulong fact(const device_opencl *d, cl_device_info what) {
    cl_ulong x = 0; /* those asked for have 8 bytes */
    if (d->cl->GetDeviceInfo(d->id, what, sizeof x, &x, NULL) != CL_SUCCESS) x = 0;
    return x;
}

static void text(const device_opencl *d, cl_device_info what, char *to, size_t size) {
    char all[1024] = "";
    if (d->cl->GetDeviceInfo(d->id, what, sizeof all - 1, all, NULL) != CL_SUCCESS) all[0] = 0;
    size_t n = strnlen(all, size - 1);
    memcpy(to, all, n);
    to[n] = 0;
}

/* Refuses a device whose memory or arithmetic is not enough. */
static ls_status check_abilities(const device_opencl *d, const char *version, ls_error *e) {
    const cl_device_fp_config needs = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
    cl_device_fp_config lacks = needs & ~fact(d, CL_DEVICE_SINGLE_FP_CONFIG);
    const char *what = NULL;
    if (!(fact(d, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        what = "shared virtual memory";
    else if (!fact(d, CL_DEVICE_DOUBLE_FP_CONFIG))
        what = "double (cl_khr_fp64)";
    else if (lacks & CL_FP_DENORM)
        what = "float numbers below 2^-126";
    else if (lacks)
        what = "float as in IEEE 754";
    if (!what) return LS_OK;
    return ls_fail(e, LS_EINVAL, "device opencl:%d (%s, %s) can't be used: it lacks %s", d->index,
                   d->device.name, version, what);
}

static bool is_usable(const ls_opencl *cl, cl_device_id id) {
    const device_opencl d = {.cl = cl, .id = id};
    return check_abilities(&d, "", NULL) == LS_OK;
}

/* One that can't be used is not chosen; by its number it can be asked why. */
static ls_status list_devices(ls_device_seen *list, int room, int *n_p, ls_error *e) {
    const ls_opencl *cl = NULL;
    cl_device_id ids[MAX_DEVICES];
    cl_uint nplatforms = 0;
    LS_TRY(ls_opencl_load(&cl, e));
    int n = all_ids(cl, ids, &nplatforms), nlisted = 0;
    for (int i = 0; i < n && nlisted < room; i++) {
        cl_device_type type = 0;
        cl->GetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof type, &type, NULL);
        if (!is_usable(cl, ids[i])) continue;
        list[nlisted++] = (ls_device_seen){.number = i,
                                           .id = number_of_device(cl, ids[i], i),
                                           .is_cores = (type & CL_DEVICE_TYPE_CPU) != 0};
    }
    *n_p = nlisted;
    return LS_OK;
}

static ls_status build_failed(const device_opencl *d, cl_int got, ls_error *e) {
    size_t nbytes = 0;
    d->cl->GetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &nbytes);
    char *log = ls_alloc(nbytes + 1);
    int length = 0;
    d->cl->GetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, nbytes, log, NULL);
    const char *line = ls_compiler_log_line(log, &length);
    ls_status s =
        ls_fail(e, LS_EIO, "device opencl:%d (%s): its kernels can't be compiled: %s (%d): %.*s",
                d->index, d->device.name, ls_opencl_error(got), got, length, line);
    free(log);
    return s;
}

/* Of all that decides what a compiler makes. */
static ls_hash key_of(const device_opencl *d, const char *options) {
    static const cl_device_info facts[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION,
                                           CL_DRIVER_VERSION};
    ls_hasher *h = ls_hasher_new();
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char value[256];
        text(d, facts[i], value, sizeof value);
        ls_hasher_add(h, value, strlen(value) + 1);
    }
    ls_hasher_add(h, options, strlen(options) + 1);
    ls_hasher_add(h, ls_device_opencl_text, strlen(ls_device_opencl_text) + 1);
    ls_hasher_add(h, ls_device_kernels_text, strlen(ls_device_kernels_text) + 1);
    return ls_hasher_finish(h);
}

/* Makes the program of code that was kept. A driver that does not take it compiles again. */
static bool take_code(device_opencl *d, const char *options, const ls_buf *code) {
    const unsigned char *data = (const unsigned char *)code->data;
    cl_int got = CL_SUCCESS;
    d->program =
        d->cl->CreateProgramWithBinary(d->context, 1, &d->id, &code->len, &data, NULL, &got);
    if (got == CL_SUCCESS) got = d->cl->BuildProgram(d->program, 1, &d->id, options, NULL, NULL);
    if (got == CL_SUCCESS) return true;
    if (d->program) d->cl->ReleaseProgram(d->program);
    d->program = NULL;
    return false;
}

static void keep_code(const device_opencl *d, const ls_compiled *place) {
    char version[64];
    size_t nbytes = 0;
    text(d, CL_DEVICE_VERSION, version, sizeof version);
    if (strstr(version, "PoCL"))
        return; /* it keeps what it compiled, and would compile all else now */
    if (d->cl->GetProgramInfo(d->program, CL_PROGRAM_BINARY_SIZES, sizeof nbytes, &nbytes, NULL) !=
            CL_SUCCESS ||
        nbytes == 0)
        return;
    ls_buf code = {.data = ls_alloc(nbytes), .len = nbytes};
    if (d->cl->GetProgramInfo(d->program, CL_PROGRAM_BINARIES, sizeof code.data, &code.data,
                              NULL) == CL_SUCCESS)
        ls_compiled_keep(place, &code);
    ls_buf_free(&code);
}

/* Most drivers keep what they have compiled, and the next time is short: what takes longer is kept
 * here. */
static ls_status compile(device_opencl *d, const char *options, const ls_compiled *place,
                         ls_error *e) {
    const char *texts[] = {ls_device_opencl_text, ls_device_kernels_text};
    int64_t began = ls_clock_ns();
    cl_int got = CL_SUCCESS;
    d->program = d->cl->CreateProgramWithSource(d->context, 2, texts, NULL, &got);
    LS_TRY(check(d, got, "clCreateProgramWithSource", e));
    got = d->cl->BuildProgram(d->program, 1, &d->id, options, NULL, NULL);
    if (got != CL_SUCCESS) return build_failed(d, got, e);
    if (ls_clock_ns() - began > ls_clock_ns_of(LONG_S)) keep_code(d, place);
    return LS_OK;
}

static ls_status make_program(device_opencl *d, const char *version, ls_error *e) {
    char options[96];
    ls_compiled place;
    ls_buf code = {0};
    bool divides = fact(d, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    snprintf(options, sizeof options, "-cl-std=%s %s",
             strncmp(version, "OpenCL 2", 8) == 0 ? "CL2.0" : "CL3.0",
             divides ? "-cl-fp32-correctly-rounded-divide-sqrt" : "-DDIVIDES_IN_DOUBLE");
    bool found = ls_compiled_open(&place, key_of(d, options), "opencl", &code);
    ls_status s = LS_OK;
    if (!found || !take_code(d, options, &code)) s = compile(d, options, &place, e);
    ls_compiled_close(&place);
    ls_buf_free(&code);
    return s;
}

static ls_status build(device_opencl *d, const char *version, ls_error *e) {
    LS_TRY(make_program(d, version, e));
    cl_int got = CL_SUCCESS;
    for (int i = 0; i < LS_NDEVICE_KERNELS; i++) {
        const ls_device_kernel_facts *facts = &ls_device_kernels[i];
        size_t items = 0;
        d->kernels[i] = d->cl->CreateKernel(d->program, facts->name, &got);
        LS_TRY(check(d, got, facts->name, e));
        got = d->cl->GetKernelWorkGroupInfo(d->kernels[i], d->id, CL_KERNEL_WORK_GROUP_SIZE,
                                            sizeof items, &items, NULL);
        LS_TRY(check(d, got, facts->name, e));
        if (items < (size_t)facts->items)
            return ls_fail(e, LS_EINVAL,
                           "device opencl:%d (%s) can't be used: it runs groups of %zu items of "
                           "kernel %s, which needs %d",
                           d->index, d->device.name, items, facts->name, facts->items);
    }
    return LS_OK;
}

/* OpenCL does not say what is free. */
static void room(ls_device *device, ls_device_room *room_p) {
    size_t all = device->memory_nbytes;
    *room_p = (ls_device_room){.all = all, .free = all, .most = of(device)->most_nbytes};
}

static ls_status set_up(device_opencl *d, bool bare, ls_error *e) {
    char version[32];
    cl_int got = CL_SUCCESS;
    text(d, CL_DEVICE_NAME, d->device.name, sizeof d->device.name);
    text(d, CL_DEVICE_VERSION, version, sizeof version);
    LS_TRY(check_abilities(d, version, e));
    d->device.memory_nbytes = fact(d, CL_DEVICE_GLOBAL_MEM_SIZE);
    d->most_nbytes = fact(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE) - ALIGN;
    d->context = d->cl->CreateContext(NULL, 1, &d->id, NULL, NULL, &got);
    LS_TRY(check(d, got, "clCreateContext", e));
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++) {
        d->queues[i] = d->cl->CreateCommandQueueWithProperties(d->context, d->id, NULL, &got);
        LS_TRY(check(d, got, "clCreateCommandQueueWithProperties", e));
    }
    return bare ? LS_OK : build(d, version, e);
}

static ls_status open_device(int index, bool bare, ls_device **d_p, ls_error *e) {
    const ls_opencl *cl = NULL;
    cl_device_id id = NULL;
    LS_TRY(ls_opencl_load(&cl, e));
    LS_TRY(find(cl, index, &id, e));
    device_opencl *d = LS_NEW(device_opencl);
    d->cl = cl;
    d->index = index;
    d->id = id;
    pthread_mutex_init(&d->lock, NULL);
    ls_status s = set_up(d, bare, e);
    if (s == LS_OK)
        *d_p = &d->device;
    else
        close_device(&d->device);
    return s;
}

const ls_device_ops ls_device_opencl = {.kind = "opencl",
                                        .list = list_devices,
                                        .open = open_device,
                                        .room = room,
                                        .alloc = alloc_block,
                                        .free = free_block,
                                        .copy_to = copy,
                                        .copy_from = copy,
                                        .copy = copy,
                                        .clear = clear,
                                        .launch = launch,
                                        .record = record,
                                        .wait = wait_for,
                                        .await = await,
                                        .finish = finish,
                                        .pin = pin,
                                        .unpin = unpin,
                                        .close = close_device};
