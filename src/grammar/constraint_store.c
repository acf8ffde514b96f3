/* constraint_store.c - see constraint_store.h. */
#include "grammar/constraint_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct stored_constraint {
    char *key; /* [n] */
    size_t n;
    ls_constraint *c;
    int users;
    uint64_t used; /* when, in calls */
} stored_constraint;

struct ls_constraint_store {
    const ls_tokenizer *tokenizer;
    uint32_t V;
    ls_token_tree *tree; /* NULL: not yet made */
    pthread_mutex_t lock;
    stored_constraint *list; /* [n] */
    size_t n;
    uint64_t calls;
};

ls_constraint_store *ls_constraint_store_new(const ls_tokenizer *t, uint32_t V) {
    ls_constraint_store *s = LS_NEW(ls_constraint_store);
    s->tokenizer = t;
    s->V = V;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void drop(ls_constraint_store *s, size_t i) {
    free(s->list[i].key);
    ls_constraint_free(s->list[i].c);
    s->list[i] = s->list[--s->n];
}

void ls_constraint_store_free(ls_constraint_store *s) {
    if (!s) return;
    while (s->n) drop(s, s->n - 1);
    free(s->list);
    ls_token_tree_free(s->tree);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const ls_token_tree *ls_constraint_store_tokens(ls_constraint_store *s) {
    pthread_mutex_lock(&s->lock);
    if (!s->tree) s->tree = ls_token_tree_new(s->tokenizer, s->V);
    const ls_token_tree *v = s->tree;
    pthread_mutex_unlock(&s->lock);
    return v;
}

ls_constraint *ls_constraint_store_find(ls_constraint_store *s, const char *key, size_t n) {
    ls_constraint *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n && !found; i++) {
        stored_constraint *x = &s->list[i];
        if (x->n != n || memcmp(x->key, key, n) != 0) continue;
        x->users++;
        x->used = ++s->calls;
        found = x->c;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Those that nobody uses: the oldest goes while they are too many, or have too much memory. */
static void drop_old(ls_constraint_store *s) {
    for (;;) {
        size_t n = 0, nbytes = 0, oldest = 0;
        for (size_t i = 0; i < s->n; i++) {
            const stored_constraint *x = &s->list[i];
            if (x->users) continue;
            if (n++ == 0 || x->used < s->list[oldest].used) oldest = i;
            nbytes += ls_constraint_nbytes(x->c);
        }
        if (n <= LS_STORED_CONSTRAINTS && nbytes <= (size_t)4 * LS_CONSTRAINT_NBYTES) return;
        drop(s, oldest);
    }
}

ls_constraint *ls_constraint_store_add(ls_constraint_store *s, const char *key, size_t n,
                                       ls_grammar *g) {
    ls_constraint *c = ls_constraint_new(ls_constraint_store_tokens(s), g);
    stored_constraint x = {.key = ls_alloc(n + 1), .n = n, .c = c, .users = 1};
    memcpy(x.key, key, n);
    pthread_mutex_lock(&s->lock);
    drop_old(s);
    x.used = ++s->calls;
    s->list = ls_grow(s->list, s->n, sizeof *s->list);
    s->list[s->n++] = x;
    pthread_mutex_unlock(&s->lock);
    return c;
}

void ls_constraint_store_give(ls_constraint_store *s, ls_constraint *c) {
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) s->list[i].users -= s->list[i].c == c;
    pthread_mutex_unlock(&s->lock);
}
