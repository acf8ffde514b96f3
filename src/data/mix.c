/* mix.c - see mix.h. */
#include "data/mix.h"

#include <math.h>
#include <stddef.h>

#include "base/random.h"

uint64_t ls_mix_count(ls_mix *m) {
    m->firsts[0] = 0;
    for (int k = 0; k < m->nparts; k++) {
        double n = (double)(m->begins[k + 1] - m->begins[k]);
        m->firsts[k + 1] = m->firsts[k] + (uint64_t)floor(n * m->weights[k] + 0.5);
    }
    return m->firsts[m->nparts];
}

/* Blocks stay together, so that a block of the epoch's order reads neighbours. */
static ls_order pass_order(const ls_order *o, int part, uint64_t n) {
    uint32_t key[4];
    ls_random_words(o->seed, LS_STREAM_MIX, (uint64_t)part, 0, key);
    return (ls_order){
        .n = n, .seed = (uint64_t)key[1] << 32 | key[0], .block = o->block, .window = 1};
}

uint64_t ls_mix_at(const ls_mix *m, const ls_order *o, uint64_t epoch, uint64_t i) {
    int k = 0;
    while (i >= m->firsts[k + 1]) k++;
    uint64_t n = m->begins[k + 1] - m->begins[k], taken = m->firsts[k + 1] - m->firsts[k];
    uint64_t at = epoch * taken + (i - m->firsts[k]), place = at % n;
    if (taken % n == 0) return m->begins[k] + place;
    ls_order pass = pass_order(o, k, n);
    return m->begins[k] + ls_order_at(&pass, at / n, place);
}
