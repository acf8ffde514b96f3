/* store_backup.c - see store_backup.h. */
#include "state/store_backup.h"

#include "state/store_inside.h"

enum { PLACES = 1 << 16 };

void *ls_store_backup_grads(ls_store *s, int place) {
    return s->backups + (size_t)place * s->backup_nbytes;
}

double *ls_store_backup_parts(ls_store *s, int place) {
    unsigned char *end = s->backups + ((size_t)place + 1) * s->backup_nbytes;
    return (double *)(void *)(end - s->sums_nbytes);
}

/* The next place in this step, or -1. */
static int take_place(ls_store *s, int64_t step, int most) {
    long long was = atomic_load(&s->head->places), next;
    do {
        if (was / PLACES > step) return -1; /* the step is over */
        next = was / PLACES == step ? was + 1 : step * PLACES + 1;
        if (next % PLACES > most) return -1;
    } while (!atomic_compare_exchange_weak(&s->head->places, &was, next));
    return (int)(next % PLACES) - 1;
}

/* If another worker claims vw meanwhile, the place stays empty. */
int ls_store_backup_claim(ls_store *s, int vw, int64_t step, int most) {
    long long mark = 2 * step + 1, was = atomic_load(&s->claims[vw].mark);
    int place = was >= mark ? -1 : take_place(s, step, most < s->V ? most : s->V);
    if (place < 0 || !atomic_compare_exchange_strong(&s->claims[vw].mark, &was, mark)) return -1;
    atomic_store(&s->claims[vw].place, place);
    return place;
}

bool ls_store_backup_is_claimed(const ls_store *s, int vw, int64_t step) {
    return atomic_load(&s->claims[vw].mark) > 2 * step;
}

void ls_store_backup_finish(ls_store *s, int vw, int64_t step) {
    atomic_store(&s->claims[vw].mark, 2 * step + 2);
    atomic_fetch_add(&s->head->nbacked, 1);
}

int64_t ls_store_nbackups(const ls_store *s) { return atomic_load(&s->head->nbacked); }

int ls_store_backup_find(const ls_store *s, int vw, int64_t step) {
    if (atomic_load(&s->claims[vw].mark) != 2 * step + 2) return -1;
    return atomic_load(&s->claims[vw].place);
}
