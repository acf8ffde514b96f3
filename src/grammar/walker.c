/* walker.c - see walker.h. */
#include "grammar/walker.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/sequences.h"

#define UNKNOWN UINT32_MAX
enum { NO_CALLS = 0 }; /* the frame of the text itself */

/* A node and the frame that it is in. */
typedef struct walker_place {
    uint32_t node, frame;
} walker_place;

/* A call that was reached: its rule, how deep it is nested, and where to go on after it. */
typedef struct walker_call {
    uint32_t rank, rule, depth;
    walker_place after;
} walker_call;

struct ls_walker {
    const ls_grammar *g;
    uint8_t classes[256]; /* bytes that no edge tells apart are of one class */
    uint32_t nclasses;
    ls_sequences states; /* places, two words each */
    ls_sequences frames; /* the depth, then places, two words each */
    uint32_t *rows;      /* [states.n][nclasses] the next state, or UNKNOWN */
    bool *is_end;        /* [states.n] */
    size_t nrows, room;
    walker_place *places; /* [nplaces] of the state that is being made */
    size_t nplaces;
    walker_call *calls; /* [ncalls] that are not yet entered */
    size_t ncalls;
    ls_buf words;
};

/* ---- bytes ---- */

static void find_classes(ls_walker *w) {
    bool cut[257] = {false};
    for (uint32_t i = 0; i < w->g->nedges; i++)
        cut[w->g->edges[i].first] = cut[w->g->edges[i].last + 1] = true;
    uint32_t class = 0;
    for (int b = 0; b < 256; b++) {
        class += b > 0 && cut[b];
        w->classes[b] = (uint8_t) class;
    }
    w->nclasses = class + 1;
}

static const ls_grammar_edge *edge_of(const ls_grammar *g, const ls_grammar_node *node,
                                      uint8_t byte) {
    if (node->nedges == 0) return NULL; /* no node has any: there is no list of them */
    const ls_grammar_edge *edges = g->edges + node->edges;
    uint32_t low = 0, high = node->nedges;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (edges[middle].last < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < node->nedges && edges[low].first <= byte ? &edges[low] : NULL;
}

/* ---- a state's places ---- */

static uint32_t depth_of(const ls_walker *w, uint32_t frame) {
    size_t n = 0;
    return *ls_sequences_get(&w->frames, frame, &n);
}

/* Adds a place, unless it is there or can't be completed. */
static void add_place(ls_walker *w, walker_place p) {
    if (depth_of(w, p.frame) + w->g->nodes[p.node].depth > LS_GRAMMAR_DEPTH) return;
    for (size_t i = 0; i < w->nplaces; i++)
        if (w->places[i].node == p.node && w->places[i].frame == p.frame) return;
    w->places = ls_grow(w->places, w->nplaces, sizeof *w->places);
    w->places[w->nplaces++] = p;
}

/* The rule of the place ends: the calls that its frame has go on. */
static void leave(ls_walker *w, uint32_t frame) {
    size_t n = 0;
    ls_sequences_get(&w->frames, frame, &n);
    for (size_t i = 1; i < n; i += 2) {
        const uint32_t *words = ls_sequences_get(&w->frames, frame, &n);
        add_place(w, (walker_place){words[i], words[i + 1]});
    }
}

static void note_calls(ls_walker *w, walker_place p) {
    const ls_grammar *g = w->g;
    const ls_grammar_node *node = &g->nodes[p.node];
    uint32_t depth = depth_of(w, p.frame);
    for (uint32_t i = 0; i < node->ncalls; i++) {
        const ls_grammar_call *c = &g->calls[node->calls + i];
        const ls_grammar_rule *rule = &g->rules[c->rule];
        if (depth + 1 + g->nodes[rule->start].depth > LS_GRAMMAR_DEPTH ||
            depth + g->nodes[c->to].depth > LS_GRAMMAR_DEPTH)
            continue;
        w->calls = ls_grow(w->calls, w->ncalls, sizeof *w->calls);
        w->calls[w->ncalls++] = (walker_call){rule->rank, c->rule, depth + 1, {c->to, p.frame}};
    }
}

static int compare_places(const void *a, const void *b) {
    const walker_place *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

/* By rank, so that all calls of a rule at this place are there when it is entered. */
static int compare_calls(const void *a, const void *b) {
    const walker_call *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return compare_places(&x->after, &y->after);
}

/* Enters the first rule that is called, with one frame for all calls of it at one depth. */
static void enter(ls_walker *w) {
    qsort(w->calls, w->ncalls, sizeof *w->calls, compare_calls);
    walker_call first = w->calls[0];
    size_t n = 0;
    w->words.len = 0;
    ls_buf_append(&w->words, &first.depth, sizeof first.depth);
    for (; n < w->ncalls && w->calls[n].rank == first.rank && w->calls[n].depth == first.depth; n++)
        if (n == 0 || compare_places(&w->calls[n].after, &w->calls[n - 1].after) != 0)
            ls_buf_append(&w->words, &w->calls[n].after, sizeof w->calls[n].after);
    w->ncalls -= n;
    memmove(w->calls, w->calls + n, w->ncalls * sizeof *w->calls);
    uint32_t frame = ls_sequences_add(&w->frames, (const uint32_t *)(const void *)w->words.data,
                                      w->words.len / sizeof(uint32_t));
    add_place(w, (walker_place){w->g->rules[first.rule].start, frame});
}

/* Places where a byte may be read, or where the text may end. */
static bool matters(const ls_walker *w, walker_place p) {
    const ls_grammar_node *node = &w->g->nodes[p.node];
    return node->nedges || (node->ends && p.frame == NO_CALLS);
}

static uint32_t add_state(ls_walker *w) {
    bool end = false;
    size_t n = 0;
    for (size_t i = 0; i < w->nplaces; i++) {
        walker_place p = w->places[i];
        if (!matters(w, p)) continue;
        end = end || (w->g->nodes[p.node].ends && p.frame == NO_CALLS);
        w->places[n++] = p;
    }
    if (n > 1) qsort(w->places, n, sizeof *w->places, compare_places);
    uint32_t state = ls_sequences_add(&w->states, (const uint32_t *)(const void *)w->places, 2 * n);
    w->nplaces = 0;
    if (state < w->nrows) return state;
    if (w->nrows == w->room) {
        w->room = w->room ? 2 * w->room : 64;
        w->rows = ls_realloc(w->rows, w->room * w->nclasses * sizeof *w->rows);
        w->is_end = ls_realloc(w->is_end, w->room * sizeof *w->is_end);
    }
    for (uint32_t c = 0; c < w->nclasses; c++) w->rows[state * w->nclasses + c] = UNKNOWN;
    w->is_end[state] = end;
    w->nrows++;
    return state;
}

/* The state of the places that were added, and of all that is reached from them without reading. */
static uint32_t make_state(ls_walker *w) {
    size_t done = 0;
    for (;;) {
        for (; done < w->nplaces; done++) {
            walker_place p = w->places[done];
            if (w->g->nodes[p.node].ends && p.frame != NO_CALLS) leave(w, p.frame);
            note_calls(w, p);
        }
        if (w->ncalls == 0) return add_state(w);
        enter(w);
    }
}

/* ---- walking ---- */

void ls_walker_clear(ls_walker *w) {
    static const uint32_t depth = 0;
    ls_sequences_free(&w->states);
    ls_sequences_free(&w->frames);
    free(w->rows);
    free(w->is_end);
    w->rows = NULL;
    w->is_end = NULL;
    w->nrows = w->room = 0;
    ls_sequences_add(&w->frames, &depth, 1);
    make_state(w); /* LS_WALKER_DEAD has no places */
    add_place(w, (walker_place){w->g->rules[0].start, NO_CALLS});
    make_state(w);
}

ls_walker *ls_walker_new(const ls_grammar *g) {
    ls_walker *w = LS_NEW(ls_walker);
    w->g = g;
    find_classes(w);
    ls_walker_clear(w);
    return w;
}

void ls_walker_free(ls_walker *w) {
    if (!w) return;
    ls_sequences_free(&w->states);
    ls_sequences_free(&w->frames);
    ls_buf_free(&w->words);
    free(w->rows), free(w->is_end), free(w->places), free(w->calls);
    free(w);
}

static uint32_t find_next(ls_walker *w, uint32_t state, uint8_t byte) {
    size_t n = 0;
    ls_sequences_get(&w->states, state, &n);
    for (size_t i = 0; i < n; i += 2) {
        const uint32_t *words = ls_sequences_get(&w->states, state, &n);
        const ls_grammar_edge *x = edge_of(w->g, &w->g->nodes[words[i]], byte);
        if (x) add_place(w, (walker_place){x->to, words[i + 1]});
    }
    return make_state(w);
}

uint32_t ls_walker_step(ls_walker *w, uint32_t state, uint8_t byte) {
    size_t at = (size_t)state * w->nclasses + w->classes[byte];
    uint32_t next = w->rows[at];
    if (next != UNKNOWN) return next;
    next = find_next(w, state, byte);
    w->rows[at] = next;
    return next;
}

bool ls_walker_is_end(const ls_walker *w, uint32_t state) { return w->is_end[state]; }

size_t ls_walker_nbytes(const ls_walker *w) {
    return ls_sequences_nbytes(&w->states) + ls_sequences_nbytes(&w->frames) +
           w->room * (w->nclasses * sizeof *w->rows + sizeof *w->is_end);
}
