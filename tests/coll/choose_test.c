/* choose_test.c - the cost model: it counts what programs do, and it chooses what is known to be
 * best where links are of one kind. */
#include "coll/choose.h"

#include <math.h>

#include "test.h"

/* ---- what is counted, beside the programs of all workers ---- */

typedef struct counted {
    double messages, sent, added, most_messages, most_sent, most_added; /* means, and the busiest */
} counted;

static double most(double a, double b) { return a > b ? a : b; }

/* Each message counts half at its sender and half at its receiver. */
static counted count(const ls_algorithm *a, const ls_call *c, int n) {
    counted all = {0};
    for (int rank = 0; rank < n; rank++) {
        ls_coll_program s;
        ls_algorithm_make(a, c, rank, n, (ls_in_place){0}, &s);
        double messages = 0, sent = 0, added = 0, size = (double)ls_dtype_size(c->dtype);
        for (int i = 0; i < s.nsteps; i++) {
            bool moves = s.steps[i].kind == LS_STEP_SEND || s.steps[i].kind == LS_STEP_RECV;
            double bytes = (double)s.steps[i].count * size;
            messages += moves ? 0.5 : 0;
            sent += moves ? bytes / 2 : 0;
            added += s.steps[i].kind == LS_STEP_COMBINE ? bytes : 0;
        }
        ls_coll_program_free(&s);
        all.messages += messages / n;
        all.sent += sent / n;
        all.added += added / n;
        all.most_messages = most(all.most_messages, messages);
        all.most_sent = most(all.most_sent, sent);
        all.most_added = most(all.most_added, added);
    }
    return all;
}

/* Checks that x is between the mean and the busiest worker's, give or take a tenth for what the
 * model leaves out. */
static void assert_between(double x, double low, double high, const char *what,
                           const ls_algorithm *a, const ls_call *c, int n) {
    if (x >= 0.9 * low && x <= 1.1 * high) return;
    print_error("%s %s, %d workers: %s %g is not in %g .. %g\n", a->name,
                ls_collective_name(c->what), n, what, x, low, high);
    fail();
}

static void test_counts(void **state) {
    (void)state;
    for (int i = 0; ls_algorithms[i]; i++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int n = 2; n <= 9; n++) {
                const ls_algorithm *a = ls_algorithms[i];
                ls_call c = {.what = (ls_collective)what, .dtype = LS_F32, .count = 5040 * 8};
                bool free_form = a == &ls_hierarchical || a == &ls_double_tree;
                if (!ls_algorithm_has(a, c.what) || free_form) continue;
                size_t pairs[9];
                for (int k = 0; k < 9; k++) pairs[k] = 5040 * 8;
                if (ls_collective_is_pairwise(c.what))
                    c.sends = c.receives = pairs, c.own = pairs[0], c.count = 0;
                if (what == LS_CALL_BARRIER) c.count = 0;
                ls_cost x = ls_algorithm_cost(a, &c, n);
                counted k = count(a, &c, n);
                assert_between(x.messages, k.messages, k.most_messages, "messages", a, &c, n);
                if (what == LS_CALL_BARRIER) continue; /* its bytes are not looked at */
                assert_between(x.sent, k.sent, k.most_sent, "bytes", a, &c, n);
                assert_between(x.added, k.added, k.most_added, "bytes added", a, &c, n);
            }
}

static void test_uneven(void **state) {
    (void)state;
    size_t counts[4] = {100, 0, 300, 400};
    ls_call v = {.what = LS_CALL_ALL_GATHER, .dtype = LS_F32, .counts = counts};
    ls_call even = {.what = LS_CALL_ALL_GATHER, .dtype = LS_F32, .count = 200};
    assert_true(fabs(ls_algorithm_cost(&ls_ring, &v, 4).sent -
                     ls_algorithm_cost(&ls_ring, &even, 4).sent) < 1e-6);
}

/* ---- what is chosen ---- */

static const ls_link network = {.latency_s = 20e-6,
                                .byte_s = 1e-9,
                                .busy_message_s = 1e-6,
                                .busy_byte_s = 1e-9,
                                .reduce_s = 1e-10};
/* Workers of one host that share its cores: each message costs time, in any order. */
static const ls_link crowd = {.latency_s = 50e-6,
                              .byte_s = 1e-9,
                              .busy_message_s = 100e-6,
                              .busy_byte_s = 6e-9,
                              .reduce_s = 1e-10};

static const char *chosen(ls_collective what, size_t count, int n, const ls_link *l) {
    ls_call c = {.what = what, .dtype = LS_F32, .op = LS_SUM, .count = count};
    return ls_choose(&c, n, l)->name;
}

static void test_choices(void **state) {
    (void)state;
    assert_string_equal(chosen(LS_CALL_ALL_REDUCE, 2, 8, &network), "exchange");
    assert_string_equal(chosen(LS_CALL_ALL_REDUCE, 2, 64, &network), "doubling");
    assert_string_equal(chosen(LS_CALL_ALL_REDUCE, 1 << 22, 5, &network), "direct");
    assert_string_equal(chosen(LS_CALL_ALL_REDUCE, 2, 8, &crowd), "doubling");
    assert_string_equal(chosen(LS_CALL_ALL_REDUCE, 1 << 22, 5, &crowd), "direct");
    assert_string_equal(chosen(LS_CALL_BROADCAST, 2, 8, &network), "binomial");
    assert_string_equal(chosen(LS_CALL_BROADCAST, 1 << 26, 8, &network), "ring");
    assert_string_equal(chosen(LS_CALL_BARRIER, 0, 64, &network), "doubling");
    assert_string_equal(chosen(LS_CALL_ALL_TO_ALL, 1, 8, &network), "direct");
}

/* For any links, what is chosen sums in the order of the tree. */
static void test_order(void **state) {
    (void)state;
    for (int n = 1; n <= 9; n++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int k = 0; k < 4096; k++) {
                double x[5];
                for (int i = 0; i < 5; i++) x[i] = pow(10, -12 + 3 * (k >> (2 * i) & 3));
                ls_link l = {x[0], x[1], x[2], x[3], x[4]};
                ls_call c = {.what = (ls_collective)what, .dtype = LS_F32, .count = (size_t)k};
                const ls_algorithm *a = ls_choose(&c, n, &l);
                assert_true(ls_algorithm_has(a, c.what));
                assert_true(!ls_collective_reduces(c.what) || a->tree_order(c.what, n));
            }
}

/* ---- a new algorithm ---- */

static ls_cost own_cost(const ls_call *c, double nbytes, int n) {
    (void)c;
    return (ls_cost){.chain_messages = n, .chain_sent = nbytes, .messages = n, .sent = nbytes};
}

static double own_seconds(const ls_algorithm *a, const ls_call *c, const ls_hosts *h) {
    ls_cost x = ls_algorithm_cost(a, c, h->nworkers);
    return h->nworkers == h->host_workers ? ls_cost_seconds(&x, &h->inside) : 1e-9;
}

static void never_made(const ls_call *c, ls_coll_program *p) { (void)c, (void)p; }

/* The price of an algorithm, its load on the card and the type in which it sends halves are those
 * of the algorithm's table. */
static void test_made_up(void **state) {
    (void)state;
    ls_algorithm made_up = {.name = "made_up",
                            .collectives = 1u << LS_CALL_ALL_REDUCE,
                            .tree_order = ls_tree_order_always,
                            .make = never_made,
                            .cost = own_cost,
                            .hosts_seconds = own_seconds};
    const ls_algorithm *const all[] = {&ls_direct, &made_up, &ls_ring, NULL};
    ls_call c = {.what = LS_CALL_ALL_REDUCE, .dtype = LS_BF16, .op = LS_SUM, .count = 1000};
    ls_cost x = ls_algorithm_cost(&made_up, &c, 8);
    assert_true(x.messages == 8 && x.sent == 2000 && x.chain_sent == 2000);
    made_up.sends_sums = true;
    x = ls_algorithm_cost(&made_up, &c, 8);
    assert_true(x.messages == 8 && x.sent == 4000 && x.chain_sent == 4000);
    assert_false(ls_algorithm_supports(&made_up, &(ls_call){.what = LS_CALL_ALL_REDUCE, .V = 8}));
    made_up.virtual_workers = true;
    assert_true(ls_algorithm_supports(&made_up, &(ls_call){.what = LS_CALL_ALL_REDUCE, .V = 8}));
    /* On one host it is expensive, over several the cheapest. */
    ls_hosts hosts = {.nworkers = 8, .host_workers = 8, .inside = network, .card_byte_s = 1e-9};
    assert_ptr_equal(ls_choose_among(all, &c, &hosts), &ls_direct);
    hosts.host_workers = 2;
    assert_ptr_equal(ls_choose_among(all, &c, &hosts), &made_up);
    made_up.tree_order = ls_tree_order_up_to_two;
    assert_ptr_equal(ls_choose_among(all, &c, &hosts), &ls_direct);
}

/* No code in src compares algorithms by their address: properties are fields of the table. */
static void test_tables(void **state) {
    (void)state;
    char command[512], line[256] = "";
    size_t at = (size_t)snprintf(command, sizeof command, "grep -rnE '[=!]= *&ls_(");
    for (int i = 0; ls_algorithms[i]; i++)
        at += (size_t)snprintf(command + at, sizeof command - at, "%s%s", i ? "|" : "",
                               ls_algorithms[i]->name);
    snprintf(command + at, sizeof command - at, ")\\b' src");
    FILE *found = popen(command, "r");
    assert_non_null(found);
    if (fgets(line, sizeof line, found)) print_error("%s", line);
    assert_int_equal(pclose(found) >> 8, 1); /* grep found nothing, in files that it could read */
    assert_string_equal(line, "");
}

/* ---- in words ---- */

static void test_explain(void **state) {
    (void)state;
    char text[1024], cut[20];
    ls_call c = {.what = LS_CALL_ALL_REDUCE, .dtype = LS_F32, .op = LS_SUM, .count = 250000};
    ls_choose_explain(NULL, &c, 3, &network, text, sizeof text);
    assert_non_null(strstr(text, "direct, "));
    assert_non_null(
        strstr(text, "messages one after the other x 20 us + 1.33 MB x 1 ns + 667 KB "));
    assert_non_null(strstr(text, "; exchange "));
    assert_non_null(strstr(text, "; in another order of sums ring "));
    ls_choose_explain(&ls_ring, &c, 3, &network, cut, sizeof cut);
    assert_true(strlen(cut) == sizeof cut - 1 && strncmp(cut, "ring, ", 6) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),  cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_choices), cmocka_unit_test(test_order),
        cmocka_unit_test(test_made_up), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
