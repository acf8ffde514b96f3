/* pages.c - see pages.h. */
#include "serve/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

enum { NONE = -1 };

/* Pages that nobody uses are in a list: those without a name, then in the order in which they were
 * left. */
typedef struct page {
    ls_page_name name;
    bool named;
    int users;
    int before, after; /* in the list of pages without users */
    int same;          /* the next one of its slot */
} page;

struct ls_pages {
    int fd, n, used;
    size_t stride;
    page *list;      /* [n] */
    int *slots;      /* [nslots] the first page of each, by name */
    int nslots;      /* a power of two */
    int first, last; /* of the list */
};

/* ---- the list of pages without users ---- */

static void leave_list(ls_pages *p, int i) {
    page *x = &p->list[i];
    *(x->before == NONE ? &p->first : &p->list[x->before].after) = x->after;
    *(x->after == NONE ? &p->last : &p->list[x->after].before) = x->before;
    p->used++;
}

/* At its end; or at its beginning, if the page has nothing that could be used again. */
static void join_list(ls_pages *p, int i) {
    page *x = &p->list[i];
    bool last = x->named;
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

static int find(const ls_pages *p, const ls_page_name *name) {
    int i = *slot_of(p, name);
    while (i != NONE && memcmp(&p->list[i].name, name, sizeof *name) != 0) i = p->list[i].same;
    return i;
}

static void forget(ls_pages *p, int i) {
    page *x = &p->list[i];
    if (!x->named) return;
    int *at = slot_of(p, &x->name);
    while (*at != i) at = &p->list[*at].same;
    *at = x->same;
    x->named = false;
}

/* ---- pages ---- */

ls_status ls_pages_open(size_t page_nbytes, int n, ls_pages **p_p, ls_error *e) {
    size_t unit = (size_t)sysconf(_SC_PAGESIZE), stride = (page_nbytes + unit - 1) / unit * unit;
    int fd = memfd_create("lockstep keys and values", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)(stride * (size_t)n)) != 0) {
        ls_status s = ls_fail(e, LS_ENOMEM, "no memory for %d pages of keys and values: %s", n,
                              strerror(errno));
        if (fd >= 0) close(fd);
        return s;
    }
    ls_pages *p = LS_NEW(ls_pages);
    *p = (ls_pages){.fd = fd, .n = n, .used = n, .stride = stride, .nslots = 64};
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
    void *memory = mmap(NULL, p->stride * (size_t)room, PROT_NONE,
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
    munmap(v->memory, p->stride * (size_t)v->room);
    free(v->of);
    *v = (ls_page_view){0};
}

/* Maps page i behind the view's last one. False: the system refuses it. */
static bool append(ls_pages *p, ls_page_view *v, int i) {
    char *at = v->memory + (size_t)v->n * p->stride;
    if (v->n == v->room || mmap(at, p->stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                p->fd, (off_t)((size_t)i * p->stride)) == MAP_FAILED)
        return false;
    if (p->list[i].users++ == 0) leave_list(p, i);
    v->of[v->n++] = i;
    return true;
}

bool ls_page_view_grow(ls_pages *p, ls_page_view *v) {
    int i = p->first;
    if (i == NONE || !append(p, v, i)) return false;
    forget(p, i);
    return true;
}

bool ls_page_view_find(ls_pages *p, ls_page_view *v, const ls_page_name *name) {
    int i = find(p, name);
    return i != NONE && append(p, v, i);
}

void ls_page_view_name(ls_pages *p, const ls_page_view *v, int i, const ls_page_name *name) {
    page *x = &p->list[v->of[i]];
    if (x->named || find(p, name) != NONE) return; /* one of them is enough */
    int *slot = slot_of(p, name);
    x->name = *name;
    x->named = true;
    x->same = *slot;
    *slot = v->of[i];
}

/* The last ones first: a page without those before it can't be found. */
void ls_page_view_clear(ls_pages *p, ls_page_view *v) {
    if (v->n == 0) return;
    for (int i = v->n - 1; i >= 0; i--)
        if (--p->list[v->of[i]].users == 0) join_list(p, v->of[i]);
    (void)!mmap(v->memory, p->stride * (size_t)v->n, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    v->n = 0;
}
