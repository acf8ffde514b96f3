/* terms.c - see terms.h. */
#include "plan/terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_CAPACITY = 1024 };

void terms_open(terms *t) {
    *t = (terms){.n = TERM_NFIXED, .capacity = FIRST_CAPACITY};
    t->list = LS_NEW_ARRAY(term, (size_t)t->capacity);
    t->index = LS_NEW_ARRAY(int, (size_t)(2 * t->capacity));
}

void terms_close(terms *t) {
    free(t->list);
    free(t->index);
    *t = (terms){0};
}

static bool same(const term *a, const term *b) {
    return a->left == b->left && a->right == b->right && a->link.layer == b->link.layer &&
           a->link.vw == b->link.vw && a->link.micro == b->link.micro;
}

/* Where the number of such a term stands, or is to stand. */
static int *place_of(const terms *t, const term *x) {
    uint64_t h = (uint64_t)x->left * 0x9E3779B97F4A7C15u + (uint64_t)(x->right + 1);
    h = h * 0xBF58476D1CE4E5B9u + (uint64_t)(x->link.layer * 4096 + x->link.vw * 64);
    h = h * 0x94D049BB133111EBu + (uint64_t)(x->link.micro + 1);
    int mask = 2 * t->capacity - 1, i = (int)(h >> 33) & mask;
    while (t->index[i] && !same(&t->list[t->index[i]], x)) i = (i + 1) & mask;
    return &t->index[i];
}

static void grow(terms *t) {
    t->capacity *= 2;
    t->list = ls_realloc(t->list, (size_t)t->capacity * sizeof *t->list);
    free(t->index);
    t->index = LS_NEW_ARRAY(int, (size_t)(2 * t->capacity));
    for (int i = TERM_NFIXED; i < t->n; i++) *place_of(t, &t->list[i]) = i;
}

static int number_of(terms *t, const term *x) {
    if (t->n == t->capacity) grow(t);
    int *place = place_of(t, x);
    if (*place) return *place;
    t->list[t->n] = *x;
    return *place = t->n++;
}

int term_link(terms *t, int chain, link_term link) {
    return number_of(t, &(term){.left = chain, .right = -1, .link = link});
}

int term_sum(terms *t, int left, int right) {
    return number_of(t, &(term){.left = left, .right = right});
}

void term_visit(const terms *t, int number, term_fn *fn, void *arg) {
    if (number < TERM_NFIXED) return;
    const term *x = &t->list[number];
    term_visit(t, x->left, fn, arg);
    if (x->right >= 0)
        term_visit(t, x->right, fn, arg);
    else
        fn(x->link, arg);
}
