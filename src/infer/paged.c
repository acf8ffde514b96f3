/* paged.c - see paged.h. */
#include "infer/paged.h"

#include <assert.h>
#include <stdlib.h>

#include "base/round_up.h"
#include "layers/heads_device.h"

/* BLOCK: rows of an entry of ls_past_rows.blocks; ENTRY: numbers of one. */
enum { PAGE = LS_KEPT_PAGE, BLOCK = 64, ENTRY = 4 };

ls_status ls_infer_open_room(ls_infer *f, int64_t rows, int64_t texts, int64_t nlogits,
                             ls_error *e) {
    ls_device *d = f->compute->device;
    int64_t T = f->model->layers[f->model->nlayers - 1].T, pages = (T + PAGE - 1) / PAGE;
    size_t width = (size_t)(rows * ls_infer_width(f->model));
    size_t logits = (size_t)(nlogits * ls_infer_nlogits(f->model));
    f->room = NULL;
    if (!d) return LS_OK;
    size_t most = (size_t)(rows * (4 + ENTRY) + texts * pages);
    size_t results = logits > width ? logits : width;
    void *memory = NULL;
    LS_TRY(ls_device_alloc(d, (most + 64 + width + 64 + results) * sizeof(float), "results",
                           &memory, e));
    ls_infer_room *r = LS_NEW(ls_infer_room);
    *r = (ls_infer_room){.most = most, .there = memory};
    r->numbers = LS_NEW_ARRAY(int32_t, most);
    r->rows = (float *)memory + ls_round_up(most, 64);
    r->results = r->rows + ls_round_up(width, 64);
    f->room = r;
    return LS_OK;
}

void ls_infer_close_room(ls_infer *f) {
    ls_infer_room *r = f->room;
    if (!r) return;
    ls_device_free(f->compute->device, r->there);
    free(r->numbers);
    free(r);
    f->room = NULL;
}

/* Numbers are appended to the room's. */
typedef struct writer {
    ls_infer_room *r;
    size_t n;
} writer;

static void put(writer *w, int64_t x) {
    assert(w->n < w->r->most && x >= 0 && x <= INT32_MAX);
    w->r->numbers[w->n++] = (int32_t)x;
}

/* Where the device has what is put next. */
static const int32_t *place(const writer *w) { return w->r->there + w->n; }

/* A text and its rows. */
typedef struct part {
    const ls_past_text *text;
    int64_t rows;
} part;

static part part_of(const ls_infer_together *o, int i) {
    const ls_past_text *t = &o->texts[i];
    int64_t end = i + 1 < o->ntexts ? o->texts[i + 1].first : o->T;
    return (part){.text = t, .rows = end - t->first};
}

static int64_t npages_of(const part *p) { return (p->text->n + p->rows + PAGE - 1) / PAGE; }

/* Entries of the texts that have few rows, or of the others; returns how many. */
static int64_t put_entries(writer *w, const ls_infer_together *o, bool few) {
    int64_t table = 0, n = 0, each = few ? 1 : BLOCK;
    for (int i = 0; i < o->ntexts; i++) {
        part p = part_of(o, i);
        for (int64_t r = 0; r < p.rows && few == (p.rows <= LS_HEADS_FEW); r += each, n++) {
            put(w, p.text->first + r);
            put(w, p.rows - r < each ? p.rows - r : each);
            put(w, p.text->n + r);
            put(w, table);
        }
        table += npages_of(&p);
    }
    return n;
}

static void put_places(writer *w, const ls_infer_together *o, bool as_slots) {
    for (int i = 0; i < o->ntexts; i++) {
        part p = part_of(o, i);
        for (int64_t r = 0; r < p.rows; r++) {
            int64_t t = p.text->n + r;
            put(w, as_slots ? (int64_t)p.text->pages[t / PAGE] * PAGE + t % PAGE : t);
        }
    }
}

static void put_tables(writer *w, const ls_infer_together *o) {
    for (int i = 0; i < o->ntexts; i++) {
        part p = part_of(o, i);
        for (int64_t k = 0; k < npages_of(&p); k++) put(w, p.text->pages[k]);
    }
}

void ls_infer_room_send(ls_infer_room *r, const ls_infer *f, const ls_infer_together *o) {
    writer w = {.r = r};
    r->past = (ls_past_rows){.places = place(&w), .kept = o->texts[0].kept};
    put_places(&w, o, false);
    r->past.slots = place(&w);
    put_places(&w, o, true);
    r->past.few = place(&w);
    r->past.nfew = put_entries(&w, o, true);
    r->past.blocks = place(&w);
    r->past.nblocks = put_entries(&w, o, false);
    r->wanted = place(&w);
    for (int64_t i = 0; i < o->nwanted; i++) put(&w, o->wanted[i]);
    r->shown = place(&w);
    for (int64_t i = 0; i < o->nshown; i++) put(&w, o->shown[i]);
    r->past.tables = place(&w);
    put_tables(&w, o);
    ls_device_copy_to(f->compute->device, LS_DEVICE_COMPUTE, r->there, r->numbers,
                      w.n * sizeof *r->numbers);
}
