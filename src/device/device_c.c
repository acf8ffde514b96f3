/* device_c.c - device `c`: a stand-in for a GPU, on the host, that shows mistakes of its user.
 *
 * Its memory can't be touched by the host's code, begins with NaNs, and ends at a page that nobody
 * can touch. Queued work runs late, in the thread that queues or waits, and what streams do beside
 * each other in an order drawn from a seed, the device's number (c:7): a copy or an event that is
 * missing shows as wrong numbers or as a fault. Its memory is files without a name, which devices
 * of other processes map.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "base/round_up.h"
#include "device/kinds.h"
#include "device/run_c.h"

enum { BLOCKS = 64, QUEUE = 1024, ALIGN = 256, BURST = 4 };

typedef enum work_kind { COPY, CLEAR, LAUNCH, RECORD, WAIT } work_kind;

typedef struct work {
    work_kind kind;
    void *to;
    const void *from;
    size_t nbytes;
    int event;
    int64_t times; /* Record, Wait: how often the event was recorded then */
    ls_device_call launch;
} work;

typedef struct queue {
    work *works; /* [QUEUE], a ring */
    int64_t begun, queued;
} queue;

/* Memory that was mapped: the part that a user got lies at its end, before a page that is never
 * readable. */
typedef struct block {
    char *map;
    size_t nbytes; /* that become readable */
    void *p;
    int file;
} block;

/* What a handle says. */
typedef struct shared_c {
    char kind[8]; /* "c" */
    pid_t pid;
    int file;
    size_t nbytes, at; /* where p lies in the file */
} shared_c;
_Static_assert(sizeof(shared_c) <= sizeof((ls_device_handle){0}.bytes), "it fits");

typedef struct device_c {
    ls_device device;
    pthread_mutex_t lock;
    uint64_t seed, drawn;
    size_t page;
    bool open; /* its memory can be touched: only under the lock */
    queue queues[LS_DEVICE_NSTREAMS];
    block blocks[BLOCKS];
    int64_t recorded[LS_DEVICE_EVENTS], happened[LS_DEVICE_EVENTS];
} device_c;

static device_c *of(ls_device *d) { return (device_c *)(void *)d; }

static uint32_t draw(device_c *d, uint32_t n) {
    uint32_t words[4];
    ls_random_words(d->seed, LS_STREAM_FAKE, 0, d->drawn++, words);
    return words[0] % n;
}

/* ---- memory ---- */

/* Before work that touches memory, and before the lock is released: a call of mprotect() costs as
 * much as a small kernel. */
static void let_touch(device_c *d, bool yes) {
    if (d->open == yes) return;
    d->open = yes;
    for (int i = 0; i < BLOCKS; i++)
        if (d->blocks[i].map)
            mprotect(d->blocks[i].map, d->blocks[i].nbytes,
                     yes ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Maps a file as a block, with a page behind it. NULL: there is no room, or no memory. */
static block *map_block(device_c *d, int file, size_t nbytes) {
    block *b = d->blocks;
    while (b < d->blocks + BLOCKS && b->map) b++;
    if (b == d->blocks + BLOCKS) return NULL;
    void *map =
        mmap(NULL, nbytes + d->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return NULL;
    if (mmap(map, nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        munmap(map, nbytes + d->page);
        return NULL;
    }
    *b = (block){.map = map, .nbytes = nbytes, .file = file};
    return b;
}

static ls_status alloc_block(ls_device *device, size_t nbytes, const char *what, void **p_p,
                             ls_error *e) {
    device_c *d = of(device);
    size_t whole = (nbytes + d->page - 1) / d->page * d->page;
    int file = memfd_create("lockstep-device-c", MFD_CLOEXEC);
    bool has = file >= 0 && ftruncate(file, (off_t)whole) == 0;
    pthread_mutex_lock(&d->lock);
    block *b = has ? map_block(d, file, whole) : NULL;
    if (b) {
        b->p = b->map + whole - ls_round_up(nbytes, ALIGN);
        mprotect(b->map, whole, PROT_READ | PROT_WRITE);
        memset(b->map, 0xff, whole);
        mprotect(b->map, whole, PROT_NONE);
        *p_p = b->p;
    }
    pthread_mutex_unlock(&d->lock);
    if (b) return LS_OK;
    if (file >= 0) close(file);
    return ls_fail(e, LS_ENOMEM,
                   "device c: no memory for %s, %zu bytes (it has room for %d blocks)", what,
                   nbytes, BLOCKS);
}

static void unmap_block(const device_c *d, block *b) {
    munmap(b->map, b->nbytes + d->page);
    if (b->file >= 0) close(b->file);
    *b = (block){0};
}

static void free_block(ls_device *device, void *p) {
    device_c *d = of(device);
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < BLOCKS; i++)
        if (d->blocks[i].p == p && p) unmap_block(d, &d->blocks[i]);
    pthread_mutex_unlock(&d->lock);
}

static ls_status share(ls_device *device, const void *p, ls_device_handle *h, ls_error *e) {
    const device_c *d = of(device);
    for (int i = 0; i < BLOCKS; i++) {
        const block *b = &d->blocks[i];
        if (b->p != p || !p) continue;
        const shared_c s = {.kind = "c",
                            .pid = getpid(),
                            .file = b->file,
                            .nbytes = b->nbytes,
                            .at = (size_t)((const char *)p - b->map)};
        memcpy(h->bytes, &s, sizeof s);
        return LS_OK;
    }
    return ls_fail(e, LS_EINVAL, "device c: this memory is not its own");
}

static ls_status open_shared(ls_device *device, const ls_device_handle *h, void **p_p,
                             ls_error *e) {
    device_c *d = of(device);
    shared_c s;
    char path[64];
    memcpy(&s, h->bytes, sizeof s);
    if (strcmp(s.kind, "c") != 0)
        return ls_fail(e, LS_EINVAL, "device c can read memory of devices c alone");
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)s.pid, s.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return ls_fail(e, LS_EIO, "device c: memory of process %ld can't be opened: %s",
                       (long)s.pid, strerror(errno));
    pthread_mutex_lock(&d->lock);
    block *b = map_block(d, file, s.nbytes);
    if (b) *p_p = b->p = b->map + s.at;
    pthread_mutex_unlock(&d->lock);
    if (b) return LS_OK;
    close(file);
    return ls_fail(e, LS_ENOMEM, "device c: no memory to map that of process %ld", (long)s.pid);
}

/* ---- work ---- */

static work *first_of(const queue *q) { return &q->works[q->begun % QUEUE]; }

static bool may_run(const device_c *d, const queue *q) {
    if (q->begun == q->queued) return false;
    const work *w = first_of(q);
    return w->kind != WAIT || d->happened[w->event] >= w->times;
}

static void run_first(device_c *d, queue *q) {
    const work *w = first_of(q);
    if (w->kind != RECORD && w->kind != WAIT) let_touch(d, true);
    switch (w->kind) {
    case COPY: memcpy(w->to, w->from, w->nbytes); break;
    case CLEAR: memset(w->to, 0, w->nbytes); break;
    case LAUNCH: ls_run_c(&w->launch, draw(d, 2)); break;
    case RECORD: d->happened[w->event] = w->times; break;
    case WAIT: break;
    }
    q->begun++;
}

/* Runs the first work of some stream that may run. False: none may. */
static bool run_some(device_c *d) {
    int some = (int)draw(d, LS_DEVICE_NSTREAMS);
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++) {
        queue *q = &d->queues[(some + i) % LS_DEVICE_NSTREAMS];
        if (!may_run(d, q)) continue;
        run_first(d, q);
        return true;
    }
    return false;
}

static void release(device_c *d) {
    let_touch(d, false);
    pthread_mutex_unlock(&d->lock);
}

static ls_status queue_work(ls_device *device, ls_device_stream s, const work *w) {
    device_c *d = of(device);
    queue *q = &d->queues[s];
    pthread_mutex_lock(&d->lock);
    while (q->queued - q->begun == QUEUE && run_some(d)) continue;
    q->works[q->queued % QUEUE] = *w;
    work *own = &q->works[q->queued++ % QUEUE];
    if (w->kind == RECORD) own->times = ++d->recorded[w->event];
    if (w->kind == WAIT) own->times = d->recorded[w->event];
    if (draw(d, BURST) == 0) /* seldom, and then several: see let_touch() */
        while (draw(d, BURST) && run_some(d)) continue;
    release(d);
    return LS_OK;
}

static ls_status copy(ls_device *d, ls_device_stream s, void *to, const void *from, size_t nbytes,
                      ls_error *e) {
    (void)e;
    return queue_work(d, s, &(work){.kind = COPY, .to = to, .from = from, .nbytes = nbytes});
}

static ls_status clear(ls_device *d, ls_device_stream s, void *p, size_t nbytes, ls_error *e) {
    (void)e;
    return queue_work(d, s, &(work){.kind = CLEAR, .to = p, .nbytes = nbytes});
}

static ls_status launch(ls_device *d, ls_device_stream s, const ls_device_call *l, ls_error *e) {
    (void)e;
    return queue_work(d, s, &(work){.kind = LAUNCH, .launch = *l});
}

static ls_status record(ls_device *d, ls_device_stream s, int event, ls_error *e) {
    (void)e;
    return queue_work(d, s, &(work){.kind = RECORD, .event = event});
}

static ls_status wait_for(ls_device *d, ls_device_stream s, int event, ls_error *e) {
    (void)e;
    return queue_work(d, s, &(work){.kind = WAIT, .event = event});
}

static ls_status await(ls_device *device, int event, ls_error *e) {
    device_c *d = of(device);
    (void)e;
    pthread_mutex_lock(&d->lock);
    while (d->happened[event] < d->recorded[event] && run_some(d)) continue;
    release(d);
    return LS_OK;
}

/* Copies are the processor's. */
static ls_status pin(ls_device *d, void *p, size_t nbytes, ls_error *e) {
    (void)d, (void)p, (void)nbytes, (void)e;
    return LS_OK;
}
static void unpin(ls_device *d, void *p) { (void)d, (void)p; }

static ls_status finish(ls_device *device, ls_device_stream s, ls_error *e) {
    device_c *d = of(device);
    (void)e;
    pthread_mutex_lock(&d->lock);
    while (d->queues[s].begun < d->queues[s].queued && run_some(d)) continue;
    release(d);
    return LS_OK;
}

/* ---- opening, closing ---- */

static void close_device(ls_device *device) {
    device_c *d = of(device);
    for (int i = 0; i < BLOCKS; i++)
        if (d->blocks[i].map) unmap_block(d, &d->blocks[i]);
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++) free(d->queues[i].works);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* Any number of processes may have any of them. */
static ls_status list_devices(ls_device_seen *list, int room, int *n_p, ls_error *e) {
    (void)room, (void)e;
    list[0] = (ls_device_seen){.is_cores = true};
    *n_p = 1;
    return LS_OK;
}

/* Each of its blocks is the host's, which counts them. */
static void room(ls_device *d, ls_device_room *room_p) { (void)d, (void)room_p; }

static ls_status open_device(int index, bool bare, ls_device **d_p, ls_error *e) {
    (void)bare;
    device_c *d = calloc(1, sizeof *d);
    if (!d) return ls_fail(e, LS_ENOMEM, "device c: no memory");
    pthread_mutex_init(&d->lock, NULL);
    d->seed = (uint64_t)index;
    d->page = (size_t)sysconf(_SC_PAGESIZE);
    strcpy(d->device.name, "the host's cores, in place of a GPU");
    for (int i = 0; i < LS_DEVICE_NSTREAMS; i++) {
        d->queues[i].works = calloc(QUEUE, sizeof(work));
        if (d->queues[i].works) continue;
        close_device(&d->device);
        return ls_fail(e, LS_ENOMEM, "device c: no memory");
    }
    *d_p = &d->device;
    return LS_OK;
}

const ls_device_ops ls_device_c = {.kind = "c",
                                   .shares = true,
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
                                   .share = share,
                                   .open_shared = open_shared,
                                   .close_shared = free_block,
                                   .close = close_device};
