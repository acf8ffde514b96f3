/* pages.c - see pages.h. */
#include "base/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/round_up.h"

static const uintptr_t PAGE = 4096;

typedef struct held {
    struct held *next;
    uintptr_t first, end;
} held;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static held *all;

void ls_pages_hold(const void *p, size_t nbytes) {
    held *h = LS_NEW(held);
    *h = (held){.first = (uintptr_t)p, .end = (uintptr_t)p + nbytes};
    pthread_mutex_lock(&lock);
    h->next = all;
    all = h;
    pthread_mutex_unlock(&lock);
}

void ls_pages_let_go(const void *p) {
    pthread_mutex_lock(&lock);
    held **at = &all;
    while (*at && (*at)->first != (uintptr_t)p) at = &(*at)->next;
    held *h = *at;
    if (h) *at = h->next;
    pthread_mutex_unlock(&lock);
    free(h);
}

static bool is_held(uintptr_t a, uintptr_t b) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const held *h = all; h; h = h->next) found |= h->first < b && a < h->end;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Private pages can't be removed: they are discarded. */
static void give_back(uintptr_t a, uintptr_t b) {
    if (madvise((void *)a, b - a, MADV_REMOVE) != 0) madvise((void *)a, b - a, MADV_DONTNEED);
}

void ls_pages_return(void *p, size_t nbytes) {
    uintptr_t a = ls_round_up((uintptr_t)p, PAGE), b = ((uintptr_t)p + nbytes) / PAGE * PAGE;
    if (a < b && !is_held(a, b)) give_back(a, b);
}

void ls_pages_clear(void *p, size_t nbytes) {
    enum { PART = 4096 };
    unsigned char there[PART];
    uintptr_t end = (uintptr_t)p + nbytes;
    for (uintptr_t at = (uintptr_t)p; at < end; at += PART * PAGE) {
        size_t n = (end - at + PAGE - 1) / PAGE, first = 0;
        if (n > PART) n = PART;
        if (mincore((void *)at, n * PAGE, there) != 0) memset(there, 1, n);
        for (size_t i = 1; i <= n; i++) { /* pages that are alike */
            if (i < n && (there[i] & 1) == (there[first] & 1)) continue;
            uintptr_t from = at + first * PAGE, to = at + i * PAGE < end ? at + i * PAGE : end;
            if (there[first] & 1)
                memset((void *)from, 0, to - from);
            else
                give_back(from, to);
            first = i;
        }
    }
}
