/* hello.c - the smallest group: every worker adds its rank to a sum, and prints the result.
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs lockstep)
 *     ./hello                      # alone: a group of one
 *     lockstep run -n 4 ./hello    # four workers
 */
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/group.h>

/* An error ends the worker; the message says what happened and where. `lockstep run` then ends the
 * other workers. */
static void check(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "hello: %s: %s\n", ls_status_name(s), e->msg);
    exit(1);
}

int main(void) {
    ls_group *g;
    ls_error e;
    /* The environment names this worker and the others. Default options. */
    check(ls_group_open(NULL, &g, &e), &e);
    int rank = ls_group_rank(g), size = ls_group_size(g);

    /* One element of type i64. `in` and `out` are the same pointer: in place. Returns when this
     * worker has its result; all workers get the same. */
    int64_t sum = rank;
    check(ls_all_reduce(g, &sum, &sum, 1, LS_I64, LS_SUM, &e), &e);
    printf("worker %d of %d: the ranks add up to %lld\n", rank, size, (long long)sum);

    ls_group_close(g);
    return 0;
}
