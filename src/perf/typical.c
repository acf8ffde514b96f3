/* typical.c - see typical.h. */
#include "perf/typical.h"

#include <stdio.h>

const double ls_typical_latency_s = 20e-6, ls_typical_byte_s = 8 / 25e9;

/* A core's products, in floating-point operations a second; its passes over memory, in elements. */
static const double products = 50e9, passes = 1e9;

/* A product with a side of 16 has this part of the speed, for each such side; sides from 128 on are
 * long. */
static const double thin = 0.6;

static void fill(ls_speeds *t, double speed) {
    int points = t->n[0] * t->n[1] * t->n[2];
    for (int i = 0; i < points; i++) {
        double x = speed;
        for (int a = 0, rest = i; a < 3 && t->n[a] > 1; a++, rest /= 2) x *= rest % 2 ? 1 : thin;
        t->points[i] = (ls_speed){x, x};
    }
}

void ls_machine_typical(int n, ls_machine *m_p) {
    static const int two[3] = {2, 2, 2}, one[3] = {1, 1, 1};
    static const double sides[] = {16, 128};
    const double *const axes[] = {sides, sides, sides};
    *m_p = (ls_machine){.cores = n,
                        .action_s = 0.2e-6,
                        .call_s = 0.1e-6,
                        .shared_start_s = 2e-6,
                        .shared_sum_byte_s = 0.1e-9,
                        .shared_copy_byte_s = 0.15e-9,
                        .link = {.latency_s = 20e-6,
                                 .byte_s = 1e-9,
                                 .busy_message_s = 8e-6,
                                 .busy_byte_s = 1e-9,
                                 .reduce_s = 0.1e-9}};
    snprintf(m_p->name, sizeof m_p->name, "a typical host");
    for (int k = 0; k < LS_NWORK_KINDS; k++) {
        bool product = k < LS_NPRODUCTS;
        ls_speeds_make(&m_p->speeds[k], product ? 3 : 1, product ? two : one, axes);
        fill(&m_p->speeds[k], product ? products : passes);
    }
}
