/* pages.c - see pages.h. */
#include "serve/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/round_up.h"

enum { NONE = -1, PARTS = LS_PAGE_PARTS };

/* Pages that nobody uses are in a list: those without a name, then in the order in which they were
 * left. */
typedef struct page {
    ls_page_name name[PARTS];
    bool named[PARTS];
    int same[PARTS]; /* the next part of its slot */
    int users;
    int before, after; /* in the list of pages without users */
} page;

struct ls_pages {
    int fd, n, used; /* fd: NONE where a device has the pages */
    ls_device *device;
    char *there; /* [n] pages of the device */
    size_t stride;
    page *list; /* [n] */
    int *slots; /* [nslots] the first part of each, by name: PARTS * its page + its place there */
    int nslots; /* a power of two */
    int first, last; /* of the list */
};

/* ---- the list of pages without users ---- */

static void leave_list(ls_pages *p, int i) {
    page *x = &p->list[i];
    *(x->before == NONE ? &p->first : &p->list[x->before].after) = x->after;
    *(x->after == NONE ? &p->last : &p->list[x->after].before) = x->before;
    p->used++;
}

static bool has_name(const page *x) {
    bool has = false;
    for (int k = 0; k < PARTS; k++) has |= x->named[k];
    return has;
}

/* At its end; or at its beginning, if the page has nothing that could be used again. */
static void join_list(ls_pages *p, int i) {
    page *x = &p->list[i];
    bool last = has_name(x);
    x->before = last ? p->last : NONE;
    x->after = last ? NONE : p->first;
    *(x->before == NONE ? &p->first : &p->list[x->before].after) = i;
    *(x->after == NONE ? &p->last : &p->list[x->after].before) = i;
    p->used--;
}

/* ---- names ---- */

static int *slot_of(const ls_pages *p, const ls_page_name *name) {
    uint64_t word;
    memcpy(&word, name->bytes, sizeof word);
    return &p->slots[word & (uint64_t)(p->nslots - 1)];
}

/* The part of this name, or NONE. */
static int find(const ls_pages *p, const ls_page_name *name) {
    int i = *slot_of(p, name);
    while (i != NONE && memcmp(&p->list[i / PARTS].name[i % PARTS], name, sizeof *name) != 0)
        i = p->list[i / PARTS].same[i % PARTS];
    return i;
}

static void forget(ls_pages *p, int i) {
    page *x = &p->list[i];
    for (int k = 0; k < PARTS; k++) {
        if (!x->named[k]) continue;
        int *at = slot_of(p, &x->name[k]);
        while (*at != PARTS * i + k) at = &p->list[*at / PARTS].same[*at % PARTS];
        *at = x->same[k];
        x->named[k] = false;
    }
}

/* ---- pages ---- */

/* The memory of n pages. */
static ls_status open_file(ls_pages *p, int n, ls_error *e) {
    size_t unit = (size_t)sysconf(_SC_PAGESIZE);
    p->stride = ls_round_up(p->stride, unit);
    p->fd = memfd_create("lockstep keys and values", MFD_CLOEXEC);
    if (p->fd >= 0 && ftruncate(p->fd, (off_t)(p->stride * (size_t)n)) == 0) return LS_OK;
    ls_status s =
        ls_fail(e, LS_ENOMEM, "no memory for %d pages of keys and values: %s", n, strerror(errno));
    if (p->fd >= 0) close(p->fd);
    return s;
}

static ls_status open_there(ls_pages *p, int n, ls_error *e) {
    void *memory = NULL;
    LS_TRY(ls_device_alloc(p->device, p->stride * (size_t)n, "keys and values", &memory, e));
    p->there = memory;
    p->fd = NONE;
    return LS_OK;
}

ls_status ls_pages_open(ls_device *d, size_t page_nbytes, int n, ls_pages **p_p, ls_error *e) {
    ls_pages *p = LS_NEW(ls_pages);
    *p = (ls_pages){.device = d, .n = n, .used = n, .stride = page_nbytes, .nslots = 64};
    ls_status s = d ? open_there(p, n, e) : open_file(p, n, e);
    if (s != LS_OK) {
        free(p);
        return s;
    }
    while (p->nslots < 2 * n) p->nslots *= 2;
    p->list = LS_NEW_ARRAY(page, (size_t)n);
    p->slots = LS_NEW_ARRAY(int, (size_t)p->nslots);
    for (int i = 0; i < p->nslots; i++) p->slots[i] = NONE;
    p->first = p->last = NONE;
    for (int i = n - 1; i >= 0; i--) join_list(p, i);
    *p_p = p;
    return LS_OK;
}

void ls_pages_close(ls_pages *p) {
    if (!p) return;
    if (p->device)
        ls_device_free(p->device, p->there);
    else
        close(p->fd);
    free(p->list);
    free(p->slots);
    free(p);
}

size_t ls_pages_stride(const ls_pages *p) { return p->stride; }
int ls_pages_count(const ls_pages *p) { return p->n; }
int ls_pages_used(const ls_pages *p) { return p->used; }

/* ---- views ---- */

ls_status ls_page_view_open(const ls_pages *p, int room, ls_page_view *v, ls_error *e) {
    void *memory = p->there;
    if (!p->device)
        memory = mmap(NULL, p->stride * (size_t)room, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no addresses for a text of %d pages: %s", room,
                       strerror(errno));
    *v = (ls_page_view){.memory = memory, .room = room};
    v->of = LS_NEW_ARRAY(int, (size_t)room);
    return LS_OK;
}

void ls_page_view_close(ls_pages *p, ls_page_view *v) {
    if (!v->memory) return;
    ls_page_view_clear(p, v);
    if (!p->device) munmap(v->memory, p->stride * (size_t)v->room);
    free(v->of);
    *v = (ls_page_view){0};
}

static bool map(const ls_pages *p, const ls_page_view *v, int i) {
    char *at = v->memory + (size_t)v->n * p->stride;
    return mmap(at, p->stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->fd,
                (off_t)((size_t)i * p->stride)) != MAP_FAILED;
}

/* Page i comes behind the view's last one. False: the system refuses it. */
static bool append(ls_pages *p, ls_page_view *v, int i) {
    if (v->n == v->room || (!p->device && !map(p, v, i))) return false;
    if (p->list[i].users++ == 0) leave_list(p, i);
    v->of[v->n++] = i;
    return true;
}

/* The last ones first: a page without those before it can't be found. */
static void drop_last(ls_pages *p, ls_page_view *v) {
    int i = v->of[--v->n];
    if (--p->list[i].users == 0) join_list(p, i);
}

bool ls_page_view_grow(ls_pages *p, ls_page_view *v) {
    int i = p->first;
    if (i == NONE || !append(p, v, i)) return false;
    forget(p, i);
    return true;
}

bool ls_page_view_find(ls_pages *p, ls_page_view *v, const ls_page_name *name) {
    int i = find(p, name);
    return i != NONE && i % PARTS == PARTS - 1 && append(p, v, i / PARTS);
}

/* The contents of page `from` to the view's last page. False: the system refuses it. */
static bool copy_here(const ls_pages *p, const ls_page_view *v, int from) {
    char *at = v->memory + (size_t)(v->n - 1) * p->stride;
    off_t source = (off_t)((size_t)from * p->stride);
    for (size_t done = 0; done < p->stride;) {
        ssize_t n = pread(p->fd, at + done, p->stride - done, source + (off_t)done);
        if (n < 1) return false;
        done += (size_t)n;
    }
    return true;
}

/* Queued, before the kernels that read the copy. */
static void copy_there(const ls_pages *p, int to, int from) {
    ls_device_copy(p->device, LS_DEVICE_COMPUTE, p->there + (size_t)to * p->stride,
                   p->there + (size_t)from * p->stride, p->stride);
}

bool ls_page_view_copy(ls_pages *p, ls_page_view *v, const ls_page_name *name) {
    int i = find(p, name);
    if (i == NONE || !ls_page_view_grow(p, v)) return false;
    int from = i / PARTS, to = v->of[v->n - 1];
    if (from == to) return true; /* it was the next free one */
    if (p->device) {
        copy_there(p, to, from);
    } else if (!copy_here(p, v, from)) {
        drop_last(p, v);
        return false;
    }
    return true;
}

void ls_page_view_name(ls_pages *p, const ls_page_view *v, int64_t i, const ls_page_name *name) {
    int at = v->of[i / PARTS], k = (int)(i % PARTS);
    page *x = &p->list[at];
    if (x->named[k] || find(p, name) != NONE) return; /* one of them is enough */
    int *slot = slot_of(p, name);
    x->name[k] = *name;
    x->named[k] = true;
    x->same[k] = *slot;
    *slot = PARTS * at + k;
}

void ls_page_view_clear(ls_pages *p, ls_page_view *v) {
    if (v->n == 0) return;
    size_t nbytes = p->stride * (size_t)v->n;
    while (v->n) drop_last(p, v);
    if (p->device) return;
    (void)!mmap(v->memory, nbytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
