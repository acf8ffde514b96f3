/* factors.c - ratings of items by users, predicted by the product of a row of each: a table of rows
 * that all workers read and update. The rows are the same, bit for bit, for any number of workers.
 *
 *     cc factors.c -o factors $(pkg-config --cflags --libs lockstep)
 *     ./factors                      # alone
 *     lockstep run -n 3 ./factors    # three workers: the same hash
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/table.h>

/* A step takes BATCH ratings; each of V virtual workers has BATCH / V of them. */
enum { USERS = 500, ITEMS = 200, WIDTH = 4, V = 8, BATCH = 512, STEPS = 600 };

static void stop_if(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "factors: %s: %s\n", ls_status_name(s), e->msg);
    exit(1);
}

/* The i-th rating of a step: who, what, and how much they like it. */
static double rating(int step, int i, int64_t *user, int64_t *item) {
    uint64_t x = (uint64_t)(step * BATCH + i) * 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    *user = (int64_t)(x % USERS);
    *item = (int64_t)(x / USERS % ITEMS);
    double a = (double)(*user % 7) / 7, b = (double)(*item % 5) / 5;
    return a * b + (1 - a) * (1 - b);
}

/* One step on this worker's virtual workers [first, end); returns the sum of the squared errors.
 * The ids of items begin after those of users, so that one table has both. */
static double one_step(ls_table *t, int step, int first, int end) {
    static int64_t ids[2 * BATCH];
    static float rows[2 * BATCH * WIDTH], gradients[2 * BATCH * WIDTH];
    double wanted[BATCH], sum = 0;
    int each = BATCH / V, n = (end - first) * each;
    ls_error e;

    for (int i = 0; i < n; i++) {
        wanted[i] = rating(step, first * each + i, &ids[2 * i], &ids[2 * i + 1]);
        ids[2 * i + 1] += USERS;
    }
    stop_if(ls_table_read(t, ids, 2 * (size_t)n, rows, &e), &e);
    for (int i = 0; i < n; i++) {
        const float *user = rows + 2 * i * WIDTH, *item = user + WIDTH;
        float *to_user = gradients + 2 * i * WIDTH, *to_item = to_user + WIDTH,
              error = -(float)wanted[i];
        for (int k = 0; k < WIDTH; k++) error += user[k] * item[k];
        for (int k = 0; k < WIDTH; k++) {
            to_user[k] = error * item[k];
            to_item[k] = error * user[k];
        }
        sum += (double)error * (double)error;
    }
    for (int v = first; v < end; v++) {
        size_t at = (size_t)(v - first) * 2 * (size_t)each;
        stop_if(ls_table_add(t, v, ids + at, 2 * (size_t)each, gradients + at * WIDTH, &e), &e);
    }
    stop_if(ls_table_update(t, 0.05, &e), &e);
    return sum;
}

int main(void) {
    ls_table_config config = {.name = "factors",
                              .width = WIDTH,
                              .rows = USERS + ITEMS,
                              .virtual_workers = V,
                              .optimizer = LS_ROW_ADAGRAD,
                              .bound = 0.5,
                              .seed = 1};
    ls_group *g;
    ls_table *t;
    ls_error e;
    char hash[33];
    int first, end;

    stop_if(ls_group_open(NULL, &g, &e), &e);
    stop_if(ls_table_open(g, &config, &t, &e), &e);
    ls_table_virtual_workers(t, &first, &end);
    for (int step = 0; step < STEPS; step++) {
        double sum = one_step(t, step, first, end);
        if ((step + 1) % 200) continue;
        stop_if(ls_all_reduce(g, &sum, &sum, 1, LS_F64, LS_SUM, &e), &e);
        if (ls_group_rank(g) == 0)
            printf("step %d: mean squared error %.4f\n", step + 1, sum / (double)BATCH);
    }
    stop_if(ls_table_hash(t, hash, &e), &e);
    if (ls_group_rank(g) == 0) printf("rows %s\n", hash);
    ls_table_close(t);
    ls_group_close(g);
    return 0;
}
