/* fake_nccl.c - libnccl.so.2 for tests on a machine without a GPU: processes of this host send each
 * other bytes through a file that they share, from and to memory of the driver's (fake_cuda.c). It
 * has the functions that src/device/nccl.h names. Its calls wait until all bytes have come.
 *
 * FAKE_NCCL_FAIL=NAME:CODE in the environment: the function that returns an error.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/nccl.h"

enum { SYSTEM_ERROR = 2, REMOTE_ERROR = 6, INVALID_USAGE = 5 };
enum { CHUNK = 65536, MOST = 4096 };
static const int64_t PATIENCE_NS = 60LL * 1000 * 1000 * 1000;

typedef struct mailbox {
    atomic_uint full;
    uint32_t n;
    unsigned char data[CHUNK];
} mailbox;

typedef struct shared {
    atomic_int joined, aborted;
    mailbox boxes[]; /* [n][n]: from, to */
} shared;

struct ls_nccl_comm {
    shared *at;
    size_t nbytes;
    int n, rank;
};

typedef struct operation {
    ls_nccl_comm comm;
    ls_cuda_stream stream;
    void *there;
    unsigned char *here;
    size_t nbytes, done;
    int peer;
    int sends;
} operation;

static _Thread_local operation list[MOST];
static _Thread_local int n, depth;

static int fails(const char *name) {
    const char *x = getenv("FAKE_NCCL_FAIL");
    size_t length = strlen(name);
    return x && strncmp(x, name, length) == 0 && x[length] == ':' ? atoi(x + length + 1) : 0;
}

#define FUNCTION(name, symbol, parameters) int fake_##name parameters __asm__(symbol);
LS_NCCL_FUNCTIONS(FUNCTION)
const char *fake_error_text(int result) __asm__("ncclGetErrorString");

const char *fake_error_text(int result) {
    return result == REMOTE_ERROR ? "remote process exited" : "as asked for";
}

int fake_version(int *version_p) {
    const char *x = getenv("FAKE_NCCL_VERSION");
    *version_p = x ? atoi(x) : 21805;
    return fails("ncclGetVersion");
}

int fake_make_id(ls_nccl_id *id_p) {
    static atomic_int made;
    const char *folder = getenv("TMPDIR");
    memset(id_p, 0, sizeof *id_p);
    snprintf(id_p->bytes, sizeof id_p->bytes, "%s/fake-nccl-%ld-%d", folder ? folder : "/tmp",
             (long)getpid(), atomic_fetch_add(&made, 1));
    return fails("ncclGetUniqueId");
}

int fake_open(ls_nccl_comm *comm_p, int members, ls_nccl_id id, int rank) {
    struct ls_nccl_comm c = {.n = members, .rank = rank};
    int64_t begin = ls_clock_ns();
    if (fails("ncclCommInitRank")) return fails("ncclCommInitRank");
    c.nbytes = sizeof(shared) + (size_t)(members * members) * sizeof(mailbox);
    int file = open(id.bytes, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)c.nbytes) != 0) return SYSTEM_ERROR;
    c.at = mmap(NULL, c.nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (c.at == MAP_FAILED) return SYSTEM_ERROR;
    atomic_fetch_add(&c.at->joined, 1);
    while (atomic_load(&c.at->joined) < members) {
        if (ls_clock_ns() - begin > PATIENCE_NS) return SYSTEM_ERROR;
        usleep(100);
    }
    if (rank == 0) unlink(id.bytes);
    *comm_p = malloc(sizeof c);
    **comm_p = c;
    return 0;
}

int fake_abort(ls_nccl_comm c) {
    atomic_store(&c->at->aborted, 1);
    munmap(c->at, c->nbytes);
    free(c);
    return 0;
}

/* Moves a piece, if it can be moved. */
static int move(operation *o) {
    int from = o->sends ? o->comm->rank : o->peer, to = o->sends ? o->peer : o->comm->rank;
    mailbox *b = &o->comm->at->boxes[from * o->comm->n + to];
    if (atomic_load(&b->full) == (unsigned)o->sends) return 0;
    size_t left = o->nbytes - o->done;
    if (o->sends) {
        b->n = (uint32_t)(left < CHUNK ? left : CHUNK);
        memcpy(b->data, o->here + o->done, b->n);
    } else if (b->n <= left) {
        memcpy(o->here + o->done, b->data, b->n);
    } else {
        abort(); /* the two ends disagree on the length */
    }
    o->done += b->n;
    atomic_store(&b->full, (unsigned)o->sends);
    return 1;
}

/* Messages between two go one after the other. */
static int waits_for_another(int i) {
    for (int k = 0; k < i; k++)
        if (list[k].done < list[k].nbytes && list[k].peer == list[i].peer &&
            list[k].sends == list[i].sends)
            return 1;
    return 0;
}

static int run(const ls_cuda *cuda) {
    int64_t begin = ls_clock_ns();
    int got = 0;
    for (int i = 0; i < n && !got; i++) {
        list[i].here = malloc(list[i].nbytes);
        if (!list[i].sends) continue;
        got = cuda->copy_from(list[i].here, (ls_cuda_address)(uintptr_t)list[i].there,
                              list[i].nbytes, list[i].stream);
        if (!got) got = cuda->stream_finish(list[i].stream);
    }
    for (int left = n; left && !got;) {
        int moved = 0;
        left = 0;
        for (int i = 0; i < n; i++) {
            if (list[i].done == list[i].nbytes) continue;
            left++;
            if (!waits_for_another(i)) moved += move(&list[i]);
        }
        if (left && !moved) usleep(20);
        if (left && atomic_load(&list[0].comm->at->aborted)) got = REMOTE_ERROR;
        if (ls_clock_ns() - begin > PATIENCE_NS) got = SYSTEM_ERROR;
    }
    for (int i = 0; i < n && !got; i++)
        if (!list[i].sends)
            got = cuda->copy_to((ls_cuda_address)(uintptr_t)list[i].there, list[i].here,
                                list[i].nbytes, list[i].stream);
    if (n) cuda->stream_finish(list[0].stream); /* before the buffers go */
    return got;
}

int fake_group_start(void) {
    depth++;
    return 0;
}

int fake_group_end(void) {
    const ls_cuda *cuda = NULL;
    if (--depth) return 0;
    if (fails("ncclGroupEnd")) return fails("ncclGroupEnd");
    int got = ls_cuda_load(&cuda, NULL) == LS_OK ? run(cuda) : SYSTEM_ERROR;
    for (int i = 0; i < n; i++) free(list[i].here);
    n = 0;
    return got;
}

static int add(operation o) {
    if (n == MOST || depth == 0 || o.peer < 0 || o.peer >= o.comm->n || o.peer == o.comm->rank)
        return INVALID_USAGE;
    list[n++] = o;
    return 0;
}

int fake_send(const void *p, size_t count, int type, int to, ls_nccl_comm c, ls_cuda_stream s) {
    if (type != LS_NCCL_UINT8) return INVALID_USAGE;
    return add((operation){.comm = c,
                           .stream = s,
                           .there = (void *)(uintptr_t)p,
                           .nbytes = count,
                           .peer = to,
                           .sends = 1});
}

int fake_receive(void *p, size_t count, int type, int from, ls_nccl_comm c, ls_cuda_stream s) {
    if (type != LS_NCCL_UINT8) return INVALID_USAGE;
    return add((operation){.comm = c, .stream = s, .there = p, .nbytes = count, .peer = from});
}
