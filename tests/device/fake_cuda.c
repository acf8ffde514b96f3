/* fake_cuda.c - libcuda.so.1 for tests on a machine without a GPU: its GPUs are devices `c`, so
 * kernels run as C, late and in an order of chance, and memory can't be touched by the host. It has
 * the functions that src/device/cuda.h names.
 *
 * Variables of the environment, read at each call, make it fail:
 *   FAKE_CUDA_DRIVER=11040        the version of CUDA that it supports
 *   FAKE_CUDA_DEVICES=2           how many GPUs there are
 *   FAKE_CUDA_MEMORY=1000         bytes of a GPU
 *   FAKE_CUDA_USED=500            of these, what others have; twice on GPU 1, thrice on GPU 2 ...
 *   FAKE_CUDA_SM=120              its architecture
 *   FAKE_CUDA_PEERS=none          GPUs can't read each other, and the driver says so; blind: it
 *                                 does not; broken: they read zeros
 *   FAKE_CUDA_SEED=3              the number of the device `c`
 *   FAKE_CUDA_FAIL=NAME:CODE      the function that returns an error; -9: in which the process dies
 *   FAKE_CUDA_FAIL_ONCE=FILE      it does so only if this file is there, and removes it
 *   FAKE_CUDA_SLOW_CLOSE=200      milliseconds that cuIpcCloseMemHandle takes on GPU 1, twice on
 *                                 GPU 2 ...
 *
 * Memory that is freed while another process has it mapped ends the process, with a line.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device/cuda.h"
#include "device/device.h"

enum {
    INVALID_VALUE = 1,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    NO_PEERS = 217,
    NOT_FOUND = 500,
    LOST = 719
};
enum { MAX_CONTEXTS = 8, MAX_BLOCKS = 64 };

/* Memory, or what another process has; a file is locked by those that have it mapped. */
typedef struct mapped {
    void *p;
    size_t nbytes;
    int file; /* 0: none yet */
} mapped;

struct ls_cuda_context {
    ls_device *d; /* NULL: not retained */
    int retained, streams, events, opened, pinned;
    size_t used;
    mapped blocks[MAX_BLOCKS], others[MAX_BLOCKS];
};
struct ls_cuda_stream {
    ls_cuda_context context;
    ls_device_stream s;
};
struct ls_cuda_event {
    ls_cuda_context context;
    int i;
};
struct ls_cuda_module {
    int functions;
};
struct ls_cuda_function {
    ls_device_kernel kernel;
};

static struct ls_cuda_context contexts[MAX_CONTEXTS];
static _Thread_local ls_cuda_context stack[8];
static _Thread_local int depth;

static long setting(const char *name, long otherwise) {
    const char *x = getenv(name);
    return x ? atol(x) : otherwise;
}

static int fails(const char *name) {
    const char *x = getenv("FAKE_CUDA_FAIL"), *once = getenv("FAKE_CUDA_FAIL_ONCE");
    size_t n = strlen(name);
    if (!x || strncmp(x, name, n) != 0 || x[n] != ':') return 0;
    if (once && unlink(once) != 0) return 0;
    if (atoi(x + n + 1) == -9) raise(SIGKILL);
    return atoi(x + n + 1);
}

#define FUNCTION(name, symbol, parameters) int fake_##name parameters __asm__(symbol);
LS_CUDA_FUNCTIONS(FUNCTION)

int fake_init(unsigned flags) {
    if (fails("cuInit")) return fails("cuInit");
    return flags ? INVALID_VALUE : 0;
}

int fake_version(int *version_p) {
    *version_p = (int)setting("FAKE_CUDA_DRIVER", 13000);
    return fails("cuDriverGetVersion");
}

int fake_error_name(int error, const char **name_p) {
    *name_p = error == LOST ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_THE_FAKE";
    return 0;
}

int fake_error_text(int error, const char **text_p) {
    *text_p = error == LOST ? "unspecified launch failure" : "as asked for";
    return 0;
}

int fake_device_count(int *n_p) {
    *n_p = (int)setting("FAKE_CUDA_DEVICES", 1);
    return 0;
}

int fake_device_get(int *device_p, int index) {
    *device_p = index;
    return 0;
}

int fake_device_name(char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake H100 %d", device);
    return 0;
}

/* That of another GPU with another CUDA_VISIBLE_DEVICES, as for processes that see one each. */
int fake_device_uuid(unsigned char uuid[16], int device) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    snprintf((char *)uuid, 16, "%d of %s", device, visible ? visible : "all");
    return 0;
}

int fake_device_memory(size_t *nbytes_p, int device) {
    (void)device;
    *nbytes_p = (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30);
    return 0;
}

static bool peers_are(const char *what) {
    const char *x = getenv("FAKE_CUDA_PEERS");
    return x && strcmp(x, what) == 0;
}

int fake_device_can_access(int *can_p, int device, int peer) {
    if (device == peer) return INVALID_VALUE;
    *can_p = !peers_are("none");
    return 0;
}

int fake_device_attribute(int *value_p, int attribute, int device) {
    (void)device;
    long sm = setting("FAKE_CUDA_SM", 90);
    *value_p = (int)(attribute == LS_CUDA_MAJOR ? sm / 10 : sm % 10);
    return attribute == LS_CUDA_MAJOR || attribute == LS_CUDA_MINOR ? 0 : INVALID_VALUE;
}

int fake_context_retain(ls_cuda_context *context_p, int device) {
    char name[32];
    ls_cuda_context c = &contexts[device];
    if (fails("cuDevicePrimaryCtxRetain")) return fails("cuDevicePrimaryCtxRetain");
    *context_p = c;
    if (c->retained && ++c->retained) return 0;
    snprintf(name, sizeof name, "c:%d", (int)setting("FAKE_CUDA_SEED", device));
    *c = (struct ls_cuda_context){0};
    if (ls_device_open(name, &c->d, NULL) != LS_OK) return LS_CUDA_OUT_OF_MEMORY;
    c->retained = 1;
    return 0;
}

/* With the last one all that was made must have been given back. */
int fake_context_release(int device) {
    ls_cuda_context c = &contexts[device];
    if (c->retained && --c->retained) return 0;
    if (!c->d || c->streams || c->events || c->opened || c->pinned || c->used) abort();
    ls_device_close(c->d);
    c->d = NULL;
    return 0;
}

int fake_context_push(ls_cuda_context c) {
    if (fails("cuCtxPushCurrent")) return fails("cuCtxPushCurrent");
    if (!c->d || depth == 8) return INVALID_CONTEXT;
    stack[depth++] = c;
    return 0;
}

int fake_context_pop(ls_cuda_context *context_p) {
    if (depth == 0) return INVALID_CONTEXT;
    *context_p = stack[--depth];
    return 0;
}

static int in_context(const char *name) { return depth == 0 ? INVALID_CONTEXT : fails(name); }
static ls_cuda_context now(void) { return stack[depth - 1]; }

int fake_memory_info(size_t *free_p, size_t *all_p) {
    *all_p = (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30);
    *free_p = *all_p - now()->used;
    *free_p -= (size_t)setting("FAKE_CUDA_USED", 0) * (size_t)(now() - contexts + 1);
    return fails("cuMemGetInfo");
}

int fake_alloc(ls_cuda_address *p_p, size_t nbytes) {
    void *p = NULL;
    size_t left = 0, all = 0;
    int i = 0, got = in_context("cuMemAlloc");
    if (got) return got;
    fake_memory_info(&left, &all);
    while (i < MAX_BLOCKS && now()->blocks[i].p) i++;
    if (i == MAX_BLOCKS || nbytes > left) return LS_CUDA_OUT_OF_MEMORY;
    if (ls_device_alloc(now()->d, nbytes, "fake", &p, NULL) != LS_OK) return LS_CUDA_OUT_OF_MEMORY;
    now()->blocks[i] = (mapped){.p = p, .nbytes = nbytes};
    now()->used += nbytes;
    *p_p = (ls_cuda_address)(uintptr_t)p;
    return 0;
}

static mapped *find(mapped *all, ls_cuda_address p) {
    for (int i = 0; i < MAX_BLOCKS; i++)
        if ((ls_cuda_address)(uintptr_t)all[i].p == p) return &all[i];
    return NULL;
}

/* What CUDA does then is not defined. */
static void check_unmapped(const mapped *m) {
    if (!m->file || flock(m->file, LOCK_EX | LOCK_NB) == 0) return;
    fprintf(stderr, "cuMemFree of memory that another process has mapped\n");
    abort();
}

int fake_free(ls_cuda_address p) {
    int got = in_context("cuMemFree");
    if (got) return got;
    mapped *m = find(now()->blocks, p);
    if (!m || !p) return INVALID_VALUE;
    check_unmapped(m);
    if (m->file) close(m->file);
    now()->used -= m->nbytes;
    ls_device_free(now()->d, m->p);
    m->p = NULL;
    return 0;
}

static int in_stream(const char *name, ls_cuda_stream s) {
    int got = in_context(name);
    return !got && s->context != now() ? INVALID_VALUE : got;
}

int fake_copy_to(ls_cuda_address to, const void *from, size_t nbytes, ls_cuda_stream s) {
    int got = in_stream("cuMemcpyHtoDAsync", s);
    if (!got) ls_device_copy_to(s->context->d, s->s, (void *)(uintptr_t)to, from, nbytes);
    return got;
}

int fake_copy_from(void *to, ls_cuda_address from, size_t nbytes, ls_cuda_stream s) {
    int got = in_stream("cuMemcpyDtoHAsync", s);
    if (!got) ls_device_copy_from(s->context->d, s->s, to, (void *)(uintptr_t)from, nbytes);
    return got;
}

int fake_copy(ls_cuda_address to, ls_cuda_address from, size_t nbytes, ls_cuda_stream s) {
    int got = in_stream("cuMemcpyAsync", s);
    mapped *other = got ? NULL : find(now()->others, from);
    if (other && other->nbytes && peers_are("broken")) return fake_set(to, 0, nbytes, s);
    if (!got)
        ls_device_copy(s->context->d, s->s, (void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                       nbytes);
    return got;
}

/* What device `c` needs of a handle, and behind it where the file is. */
enum { FILE_AT = 48 };

int fake_ipc_handle(ls_cuda_ipc *h_p, ls_cuda_address p) {
    ls_device_handle h = {0};
    int got = in_context("cuIpcGetMemHandle");
    if (got) return got;
    mapped *m = find(now()->blocks, p);
    if (!m || now()->d->ops->share(now()->d, m->p, &h, NULL) != LS_OK) return INVALID_VALUE;
    if (!m->file) m->file = memfd_create("fake-cuda", MFD_CLOEXEC);
    const int where[3] = {(int)getpid(), m->file, (int)(now() - contexts)};
    memcpy(h_p->bytes, h.bytes, FILE_AT);
    memcpy(h_p->bytes + FILE_AT, where, sizeof where);
    return 0;
}

int fake_ipc_open(ls_cuda_address *p_p, ls_cuda_ipc ipc, unsigned flags) {
    ls_device_handle h = {0};
    int where[3], got = in_context("cuIpcOpenMemHandle");
    char path[64];
    mapped m = {0}, *other = NULL;
    if (got) return got;
    memcpy(h.bytes, ipc.bytes, FILE_AT);
    memcpy(where, ipc.bytes + FILE_AT, sizeof where);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
    bool other_gpu = where[2] != now() - contexts;
    if (other_gpu && (peers_are("none") || peers_are("blind"))) return NO_PEERS;
    if (flags != LS_CUDA_IPC_LAZY_PEERS ||
        now()->d->ops->open_shared(now()->d, &h, &m.p, NULL) != LS_OK)
        return INVALID_VALUE;
    m.file = open(path, O_RDONLY | O_CLOEXEC);
    other = find(now()->others, 0);
    if (m.file < 0 || flock(m.file, LOCK_SH) != 0 || !other) abort();
    *other = m;
    other->nbytes = other_gpu; /* only that counts here */
    now()->opened++;
    *p_p = (ls_cuda_address)(uintptr_t)m.p;
    return 0;
}

int fake_ipc_close(ls_cuda_address p) {
    int got = in_context("cuIpcCloseMemHandle");
    if (got) return got;
    mapped *other = find(now()->others, p);
    if (!other || !p) return INVALID_VALUE;
    long ms = setting("FAKE_CUDA_SLOW_CLOSE", 0) * (now() - contexts);
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
    now()->opened--;
    now()->d->ops->close_shared(now()->d, other->p);
    close(other->file);
    *other = (mapped){0};
    return 0;
}

int fake_set(ls_cuda_address to, unsigned char value, size_t nbytes, ls_cuda_stream s) {
    int got = in_stream("cuMemsetD8Async", s);
    if (value) return INVALID_VALUE;
    if (!got) ls_device_clear(s->context->d, s->s, (void *)(uintptr_t)to, nbytes);
    return got;
}

int fake_stream_create(ls_cuda_stream *stream_p, unsigned flags) {
    int got = in_context("cuStreamCreate");
    if (got) return got;
    if (flags != LS_CUDA_STREAM_NON_BLOCKING || now()->streams == LS_DEVICE_NSTREAMS)
        return INVALID_VALUE;
    *stream_p = malloc(sizeof **stream_p);
    **stream_p = (struct ls_cuda_stream){now(), (ls_device_stream)now()->streams++};
    return 0;
}

int fake_stream_destroy(ls_cuda_stream s) {
    s->context->streams--;
    free(s);
    return 0;
}

int fake_stream_finish(ls_cuda_stream s) {
    int got = in_stream("cuStreamSynchronize", s);
    if (got) return got;
    return ls_device_finish(s->context->d, s->s, NULL) == LS_OK ? 0 : LOST;
}

int fake_stream_wait(ls_cuda_stream s, ls_cuda_event e, unsigned flags) {
    int got = in_stream("cuStreamWaitEvent", s);
    if (flags) return INVALID_VALUE;
    if (!got) ls_device_wait(s->context->d, s->s, e->i);
    return got;
}

int fake_event_create(ls_cuda_event *event_p, unsigned flags) {
    int got = in_context("cuEventCreate");
    if (got) return got;
    if (flags != LS_CUDA_EVENT_DISABLE_TIMING || now()->events == LS_DEVICE_EVENTS)
        return INVALID_VALUE;
    *event_p = malloc(sizeof **event_p);
    **event_p = (struct ls_cuda_event){now(), now()->events++};
    return 0;
}

int fake_event_await(ls_cuda_event e) {
    int got = in_context("cuEventSynchronize");
    if (got) return got;
    return ls_device_await(e->context->d, e->i, NULL) == LS_OK ? 0 : LOST;
}

/* A range once, and before it is freed. */
int fake_host_pin(void *p, size_t nbytes, unsigned flags) {
    int got = in_context("cuMemHostRegister");
    if (got) return got;
    if (flags || !p || !nbytes) return INVALID_VALUE;
    now()->pinned++;
    return 0;
}

int fake_host_unpin(void *p) {
    int got = in_context("cuMemHostUnregister");
    if (got) return got;
    if (!p || now()->pinned == 0) return INVALID_VALUE;
    now()->pinned--;
    return 0;
}

int fake_event_destroy(ls_cuda_event e) {
    e->context->events--;
    free(e);
    return 0;
}

int fake_event_record(ls_cuda_event e, ls_cuda_stream s) {
    int got = in_stream("cuEventRecord", s);
    if (!got) ls_device_record(s->context->d, s->s, e->i);
    return got;
}

/* The image is what fake_nvrtc.c made, or has nothing for this GPU. */
int fake_module_load(ls_cuda_module *module_p, const void *image) {
    int got = in_context("cuModuleLoadData");
    if (got) return got;
    long sm = setting("FAKE_CUDA_SM", 90), of = 0;
    char kind[16] = "";
    if (sscanf(image, "code of the fake for %15[a-z]_%ld", kind, &of) != 2) return INVALID_IMAGE;
    if (strcmp(kind, "sm") == 0 ? of != sm : of > sm) return NO_BINARY_FOR_GPU; /* else: assembly */
    *module_p = malloc(sizeof **module_p);
    (*module_p)->functions = 0;
    return 0;
}

int fake_module_unload(ls_cuda_module m) {
    free(m);
    return 0;
}

int fake_module_function(ls_cuda_function *function_p, ls_cuda_module m, const char *name) {
    static struct ls_cuda_function functions[LS_NDEVICE_KERNELS];
    m->functions++;
    for (int i = 0; i < LS_NDEVICE_KERNELS; i++) {
        if (strcmp(ls_device_kernels[i].name, name) != 0) continue;
        functions[i].kernel = (ls_device_kernel)i;
        *function_p = &functions[i];
        return 0;
    }
    return NOT_FOUND;
}

int fake_launch(ls_cuda_function f, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                unsigned items_x, unsigned items_y, unsigned items_z, unsigned shared_nbytes,
                ls_cuda_stream s, void **params, void **extra) {
    const ls_device_kernel_facts *facts = &ls_device_kernels[f->kernel];
    ls_device_call l = {.kernel = f->kernel, .groups_x = groups_x, .groups_y = groups_y};
    int got = in_stream("cuLaunchKernel", s);
    if (got) return got;
    if (groups_z != 1 || items_x != (unsigned)facts->items || items_y != 1 || items_z != 1 ||
        shared_nbytes || extra || groups_y > 65535)
        return INVALID_VALUE;
    for (int i = 0; facts->params[i]; i++)
        memcpy(&l.args[i], params[i], facts->params[i] == 'f' ? sizeof(float) : sizeof(void *));
    ls_device_launch(s->context->d, s->s, &l);
    return 0;
}
