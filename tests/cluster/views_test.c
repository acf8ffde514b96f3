/* views_test.c - hosts that have the key, but lie or stall: impossible messages are refused, and no
 * host waits for them for ever. The simulation (tests/sim) tests honest hosts. */
#include <limits.h>
#include <math.h>

#include "test.h"

#define VIEWS_CHECK(condition) assert_true(condition)
#include "cluster/views_host.h"

enum { MOST = 8, STEPS = 100, LIAR = 1, HONEST = 2 };
static const int64_t S = 1000000000;

static ls_views *host(views_host *x, bool leads, int hosts) {
    *x = (views_host){.most = MOST, .steps = STEPS, .dropped = -2};
    ls_views_config c = {.host = 99,
                         .nworkers = 2,
                         .least = 1,
                         .most = MOST,
                         .hosts = hosts,
                         .silence_ns = 3 * S,
                         .gather_ns = 3 * S,
                         .end_ns = 30 * S,
                         .finish_ns = 60 * S,
                         .retry_ns = 5 * S,
                         .steps = STEPS,
                         .ops = &views_host_ops,
                         .arg = x};
    ls_views *v = ls_views_new(&c);
    ls_views_tick(v, S);
    ls_views_lead(v, 1, leads);
    if (!leads) ls_views_linked(v);
    return v;
}

static ls_host_message from(int peer, ls_host_message_kind what) {
    ls_host_message s = {.what = what, .term = 1, .host = (uint64_t)peer, .nworkers = 2};
    s.state.steps = -1;
    return s;
}

static void receive(ls_views *v, int peer, ls_host_message s) { ls_views_receive(v, peer, &s); }

/* ---- lies to the leader ---- */

typedef void lie(ls_host_message *);

static void late_view(ls_host_message *s) { s->state.view = (ls_view_id){1, INT64_MAX}; }
static void later_view(ls_host_message *s) { s->state.view = (ls_view_id){1, ((int64_t)1 << 41)}; }
static void later_from(ls_host_message *s) { s->state.from = (ls_view_id){1, ((int64_t)1 << 62)}; }
static void no_view(ls_host_message *s) { s->state.view = (ls_view_id){1, INT64_MIN}; }
static void many_steps(ls_host_message *s) { s->state.steps = STEPS + 1; }
static void most_steps(ls_host_message *s) { s->state.steps = INT64_MAX; }
static void few_steps(ls_host_message *s) { s->state.steps = -2; }
static void late_note(ls_host_message *s) { s->state.decided.note.steps = INT64_MAX; }
static void no_note(ls_host_message *s) { s->state.decided.note.steps = -1; }
static void late_island(ls_host_message *s) { s->state.decided.islands[7] = STEPS + 1; }
static void no_last(ls_host_message *s) { s->state.last.steps = INT64_MIN; }
static void no_scale(ls_host_message *s) { s->state.scaler.scale = (double)NAN; }
static void odd_bool(ls_host_message *s) { memset(&s->state.decided.note.out.skipped, 2, 1); }
static void many_workers(ls_host_message *s) { s->nworkers = INT_MAX; }
static void no_workers(ls_host_message *s) { s->nworkers = INT_MIN; }
static void half_done(ls_host_message *s) { s->state.unfinished = INT_MAX; }
static void no_worker(ls_host_message *s) { s->about = INT_MAX; }
static void no_blame(ls_host_message *s) { s->about = -2; }
static void long_place(ls_host_message *s) { memset(s->view.address, '1', sizeof s->view.address); }
static void odd_end(ls_host_message *s) { s->how = UINT32_MAX; }
static void odd_kind(ls_host_message *s) { s->what = 4711; }
static void no_kind(ls_host_message *s) { s->what = 0; }
static void as_leader(ls_host_message *s) { s->what = LS_HOST_BEGIN; }
static void long_text(ls_host_message *s) { memset(s->text, 'x', sizeof s->text); }

static lie *const lies[] = {late_view,   later_view, later_from, no_view,      many_steps,
                            most_steps,  few_steps,  late_note,  no_note,      no_last,
                            late_island, no_scale,   odd_bool,   many_workers, no_workers,
                            half_done,   odd_end,    odd_kind,   no_kind,      as_leader,
                            long_text,   no_worker,  no_blame,   long_place};

static void test_lies(void **state) {
    (void)state;
    views_host x;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (int joined = 0; joined < 2; joined++) {
            ls_views *v = host(&x, true, 2);
            if (joined) receive(v, LIAR, from(LIAR, LS_HOST_JOIN));
            assert_int_equal(x.begins, joined);
            ls_host_message s = from(LIAR, joined ? LS_HOST_ENDED : LS_HOST_JOIN);
            lies[i](&s);
            ls_views_receive(v, LIAR, &s);
            if (x.drops != 1 || x.dropped != LIAR) print_error("lie %zu is accepted\n", i);
            assert_int_equal(x.drops, 1);
            assert_int_equal(x.dropped, LIAR);
            /* The view with the liar ends; the next one is without it, and has the next number. */
            if (joined) assert_int_equal(x.ends, 1);
            ls_host_state kept = {.steps = 0, .whole = 1};
            if (joined) {
                views_host_ended(&x, v, LS_VIEW_ORDERED, &kept, 2);
                views_host_finished(&x, v, &kept);
            }
            receive(v, HONEST, from(HONEST, LS_HOST_JOIN));
            ls_views_tick(v, 2 * S);
            assert_true(x.begins >= 1 + joined);
            assert_int_equal(x.view.id.number, 1 + joined);
            assert_true(x.view.size >= 2 && x.view.size <= 4);
            ls_views_free(v);
        }
}

/* The peer stays alive from `now` for this many seconds. Returns the time. */
static int64_t live(ls_views *v, int peer, int64_t now, int seconds) {
    for (int i = 0; i < seconds; i++) {
        receive(v, peer, from(peer, LS_HOST_ALIVE));
        ls_views_tick(v, now += S);
    }
    return now;
}

/* A host that trained before may join with a view that a new leader does not know. */
static void test_late_numbers(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    ls_host_message s = from(HONEST, LS_HOST_JOIN);
    s.state.view = s.state.from = (ls_view_id){1, 70000};
    s.state.steps = 40;
    ls_views_receive(v, HONEST, &s);
    live(v, HONEST, S, 4); /* the leader waits for hosts that may have more steps */
    assert_int_equal(x.drops, 0);
    assert_int_equal(x.view.id.number, 70001);
    assert_int_equal(x.view.steps, 40);
    ls_views_free(v);
}

/* Views have a multiple of three workers: of two hosts with two each, one has one worker less. */
static void test_groups(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    x.group = 3;
    receive(v, HONEST, from(HONEST, LS_HOST_JOIN));
    assert_int_equal(x.begins, 1);
    assert_int_equal(x.view.size, 3);
    assert_int_equal(x.view.nhosts, 2);
    assert_string_equal(x.line, "3 workers instead of 4, among whom the model can't be divided");
    ls_views_free(v);
}

/* A host that runs can't report that it rests. */
static void test_rest_without_end(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    receive(v, LIAR, from(LIAR, LS_HOST_JOIN));
    assert_int_equal(x.begins, 1);
    receive(v, LIAR, from(LIAR, LS_HOST_REST));
    receive(v, LIAR, from(LIAR, LS_HOST_LEAVE));
    assert_int_equal(x.said[LIAR][LS_HOST_BEGIN], 1);
    assert_int_equal(x.said[LIAR][LS_HOST_OVER], 0);
    ls_views_free(v);
}

/* ---- hosts that fail ---- */

/* The second host ends its part of the view so; then this host does what it was told to, and the
 * next view begins. known: it has taken up the state of an earlier view. Returns the views it was
 * in. */
static int fail_views(views_host *x, ls_views *v, ls_view_end how, bool known, int most) {
    ls_host_state own = {.steps = 5, .whole = 1};
    int n = 0;
    while (x->runs && x->view.nhosts == 2 && n++ < most) {
        ls_host_message s = from(HONEST, LS_HOST_ENDED);
        s.how = how;
        s.state = (ls_host_state){.steps = known ? 5 : -1, .view = x->view.id, .unfinished = 1};
        if (known) s.state.from = (ls_view_id){1, 1};
        snprintf(s.text, sizeof s.text, "no such directory");
        receive(v, HONEST, s);
        assert_int_equal(x->ends, n);
        views_host_ended(x, v, LS_VIEW_ORDERED, &own, 2);
        if (x->overs) return n;
        s.what = LS_HOST_REST;
        s.state.unfinished = 0;
        views_host_finished(x, v, &own);
        if (!x->said[HONEST][LS_HOST_OVER]) receive(v, HONEST, s);
    }
    return n;
}

/* A new host that fails is sent away alone; one that crashes or is lost, if it does so again and
 * again. One that has a part of the state ends the run. */
static void test_new_host(void **state) {
    (void)state;
    static const struct {
        ls_view_end how;
        bool known;
        int views;
    } cases[] = {{LS_VIEW_FAILED, false, 1},
                 {LS_VIEW_CRASHED, false, 3},
                 {LS_VIEW_LOST, false, 10},
                 {LS_VIEW_FAILED, true, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        views_host x;
        ls_views *v = host(&x, true, 2);
        receive(v, HONEST, from(HONEST, LS_HOST_JOIN));
        assert_int_equal(x.view.nhosts, 2);
        assert_int_equal(fail_views(&x, v, cases[i].how, cases[i].known, 20), cases[i].views);
        assert_int_equal(x.overs, cases[i].known);
        assert_int_equal(x.said[HONEST][LS_HOST_OVER], 1);
        if (!cases[i].known) {
            assert_int_equal(x.last[HONEST].how, LS_VIEW_FAILED);
            assert_string_equal(x.last[HONEST].text, "no such directory");
            assert_true(x.runs && x.view.nhosts == 1 && x.view.steps == 5);
        }
        ls_views_free(v);
    }
}

/* ---- hosts that are alive, and do nothing ---- */

static void test_stalls(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    receive(v, LIAR, from(LIAR, LS_HOST_JOIN));
    ls_host_state kept = {.steps = 0, .whole = 1};
    int64_t now = live(v, LIAR, S, 200);
    assert_int_equal(x.drops, 0); /* a view may take any time */
    views_host_ended(&x, v, LS_VIEW_LOST, &kept, 2);
    assert_int_equal(x.said[LIAR][LS_HOST_END], 1);
    now = live(v, LIAR, now, 29);
    assert_int_equal(x.drops, 0);
    now = live(v, LIAR, now, 3);
    assert_int_equal(x.drops, 1);
    assert_int_equal(x.finishings, 1); /* this host continues without it */
    views_host_finished(&x, v, &kept);
    assert_int_equal(x.begins, 2);
    /* Another host ends its view, and does not finish the step. */
    ls_host_message s = from(HONEST, LS_HOST_JOIN);
    s.state.unfinished = 1;
    ls_views_receive(v, HONEST, &s);
    views_host_ended(&x, v, LS_VIEW_RENEWED, &kept, 2);
    views_host_finished(&x, v, &kept);
    assert_int_equal(x.said[HONEST][LS_HOST_FINISH], 1);
    now = live(v, HONEST, now, 59);
    assert_int_equal(x.drops, 1);
    live(v, HONEST, now, 3);
    assert_int_equal(x.drops, 2);
    assert_int_equal(x.begins, 3);
    ls_views_free(v);
}

/* What the workers of an island have decided on one host is finished on all. */
static void test_islands(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    receive(v, HONEST, from(HONEST, LS_HOST_JOIN));
    ls_host_state own = {.steps = 3, .whole = 1, .decided.islands = {8, 2}};
    views_host_ended(&x, v, LS_VIEW_LOST, &own, 2);
    ls_host_message s = from(HONEST, LS_HOST_ENDED);
    s.state = (ls_host_state){.steps = 3, .view = x.view.id, .unfinished = 1};
    s.state.decided.islands[1] = 5;
    ls_views_receive(v, HONEST, &s);
    assert_int_equal(x.last[HONEST].what, LS_HOST_FINISH);
    assert_int_equal(x.last[HONEST].decided.islands[0], 8);
    assert_int_equal(x.last[HONEST].decided.islands[1], 5);
    assert_int_equal(x.decided.islands[0], 8);
    assert_int_equal(x.decided.islands[1], 5);
    views_host_finished(&x, v, &own);
    ls_views_free(v);
}

/* A host that was lost returns before the next view, with more than was finished without it. */
static void test_islands_late(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 2);
    receive(v, HONEST, from(HONEST, LS_HOST_JOIN));
    ls_host_state own = {.steps = 3, .whole = 1, .decided.islands = {8, 2}};
    ls_views_lost(v, HONEST);
    views_host_ended(&x, v, LS_VIEW_ORDERED, &own, 2);
    assert_int_equal(x.finishings, 1);
    assert_int_equal(x.decided.islands[1], 2);
    ls_host_message s = from(HONEST, LS_HOST_JOIN);
    s.state = (ls_host_state){.steps = 3, .view = x.view.id, .unfinished = 1};
    s.state.decided.islands[1] = 5;
    ls_views_receive(v, HONEST, &s);
    views_host_finished(&x, v, &own);
    assert_int_equal(x.finishings, 2);
    assert_int_equal(x.decided.islands[1], 5);
    assert_int_equal(x.begins, 1);
    ls_views_free(v);
}

/* ---- hosts that are cut from each other ---- */

enum { A = 1, B = 2 };

/* Both hosts are alive from `now` for this many seconds. Returns the time. */
static int64_t live_both(ls_views *v, int64_t now, int seconds) {
    for (int i = 0; i < seconds; i++) {
        receive(v, A, from(A, LS_HOST_ALIVE));
        receive(v, B, from(B, LS_HOST_ALIVE));
        ls_views_tick(v, now += S);
    }
    return now;
}

/* A host's part of the view ends by order, or it blames `blames`; then it finishes its step. */
static void end_part(views_host *x, ls_views *v, int peer, int blames) {
    ls_host_message s = from(peer, LS_HOST_ENDED);
    s.how = blames ? LS_VIEW_LOST : LS_VIEW_ORDERED;
    s.about = blames;
    s.state = (ls_host_state){.steps = 5, .view = x->view.id, .from = x->view.id, .unfinished = 1};
    snprintf(s.text, sizeof s.text, "%s", "worker 2 lost worker 4: no connection");
    receive(v, peer, s);
}

static void rest(views_host *x, ls_views *v, int peer) {
    ls_host_message s = from(peer, LS_HOST_REST);
    s.state = (ls_host_state){.steps = 5, .view = x->view.id, .from = x->view.id};
    receive(v, peer, s);
}

static void end_own(views_host *x, ls_views *v, ls_view_end how, int64_t steps) {
    ls_host_state own = {.steps = steps, .whole = 1};
    views_host_ended(x, v, how, &own, 2);
}

/* Workers of A (2 and 3) can't reach those of B (4 and 5): B is left out, is told why, is asked to
 * try, and joins when both have reached each other. */
static void test_cut(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 3);
    const ls_host_state own = {.steps = 5, .whole = 1};
    receive(v, A, from(A, LS_HOST_JOIN));
    receive(v, B, from(B, LS_HOST_JOIN));
    assert_int_equal(x.view.nhosts, 3);
    end_part(&x, v, A, 1 + 4);
    assert_int_equal(x.said[B][LS_HOST_END], 1);
    end_part(&x, v, B, 0);
    end_own(&x, v, LS_VIEW_ORDERED, 5);
    views_host_finished(&x, v, &own);
    rest(&x, v, A);
    rest(&x, v, B);
    assert_int_equal(x.view.nhosts, 2);
    assert_int_equal(x.view.size, 4);
    assert_int_equal(x.said[B][LS_HOST_OUT], 1);
    assert_string_equal(x.last[B].text,
                        "this host is left out until its workers and those of the host at "
                        "10.0.0.1:7000 reach each other (see firewalls; LOCKSTEP_LISTEN sets "
                        "another address): worker 2 "
                        "lost worker 4: no connection");
    assert_memory_equal(x.line, "the host at 10.0.0.2:7000 is left out", 37);
    /* A good view goes on, and both are asked to try. */
    int64_t now = live_both(v, S, 20);
    assert_true(x.runs && x.said[A][LS_HOST_TRY] > 0);
    assert_int_equal(x.said[A][LS_HOST_TRY], x.said[B][LS_HOST_TRY]);
    assert_string_equal(x.last[B].view.address, "10.0.2.1:7000");
    ls_host_message s = from(A, LS_HOST_TRIED);
    s.about = x.last[B].about;
    receive(v, A, s);
    s.host = B;
    s.how = LS_VIEW_LOST;
    receive(v, B, s);
    assert_int_equal(x.asks, 0); /* only A reaches B */
    live_both(v, now, 1);
    s.how = LS_VIEW_DONE;
    receive(v, B, s);
    assert_int_equal(x.asks, 1);
    end_part(&x, v, A, 0);
    end_own(&x, v, LS_VIEW_RENEWED, 9);
    views_host_finished(&x, v, &(ls_host_state){.steps = 9});
    rest(&x, v, A);
    assert_int_equal(x.view.nhosts, 3);
    assert_int_equal(x.said[B][LS_HOST_OUT], 1);
    ls_views_free(v);
}

/* A worker of B was killed there: that A lost it says nothing about their connection. */
static void test_no_cut(void **state) {
    (void)state;
    views_host x;
    ls_views *v = host(&x, true, 3);
    const ls_host_state own = {.steps = 5, .whole = 1};
    receive(v, A, from(A, LS_HOST_JOIN));
    receive(v, B, from(B, LS_HOST_JOIN));
    end_part(&x, v, A, 1 + 4);
    ls_host_message s = from(B, LS_HOST_ENDED);
    s.how = LS_VIEW_LOST;
    s.state = (ls_host_state){.steps = 5, .view = x.view.id, .from = x.view.id, .unfinished = 1};
    receive(v, B, s);
    end_own(&x, v, LS_VIEW_ORDERED, 5);
    views_host_finished(&x, v, &own);
    rest(&x, v, A);
    rest(&x, v, B);
    assert_int_equal(x.view.nhosts, 3);
    ls_views_free(v);
}

/* ---- lies by the leader ---- */

static ls_host_message good_view(void) {
    ls_host_message s = {.what = LS_HOST_BEGIN, .term = 1, .host = 7};
    s.view = (ls_view){.id = {1, 1}, .steps = -1, .nhosts = 2, .size = 4, .first = 2, .n = 2};
    return s;
}

static void huge_view(ls_host_message *s) { s->view.size = s->view.n = 65535; }
static void large_view(ls_host_message *s) {
    s->view.n = s->view.size = MOST + 1, s->view.first = 0;
}
static void outside(ls_host_message *s) { s->view.first = 3; }
static void far_outside(ls_host_message *s) { s->view.first = INT_MAX; }
static void before(ls_host_message *s) { s->view.first = -1; }
static void no_rank(ls_host_message *s) { s->view.n = 0; }
static void fewer(ls_host_message *s) { s->view.n = INT_MIN; }
static void no_hosts(ls_host_message *s) { s->view.nhosts = 0; }
static void many_hosts(ls_host_message *s) { s->view.nhosts = LS_HOSTS_MAX + 1; }
static void no_number(ls_host_message *s) { s->view.id.number = 0; }
static void last_number(ls_host_message *s) { s->view.id.number = INT64_MAX; }
static void beyond(ls_host_message *s) { s->view.steps = STEPS + 1; }
static void no_address(ls_host_message *s) { memset(s->view.address, '1', sizeof s->view.address); }
static void odd_last(ls_host_message *s) { s->view.last.steps = -5; }
static void as_host(ls_host_message *s) { s->what = LS_HOST_JOIN; }
static void odd_step(ls_host_message *s) {
    s->what = LS_HOST_FINISH, s->decided.note.steps = INT64_MIN;
}
static void long_try(ls_host_message *s) {
    s->what = LS_HOST_TRY;
    memset(s->view.address, '1', sizeof s->view.address);
}
static void odd_over(ls_host_message *s) { s->what = LS_HOST_OVER, s->how = 77; }

static lie *const orders[] = {huge_view, large_view, outside,    far_outside, before,   no_rank,
                              fewer,     no_hosts,   many_hosts, no_number,   odd_over, last_number,
                              beyond,    no_address, odd_last,   as_host,     odd_step, long_try};

static void test_orders(void **state) {
    (void)state;
    views_host x;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        ls_views *v = host(&x, false, 1);
        assert_int_equal(x.said[0][LS_HOST_JOIN], 1);
        ls_host_message s = good_view();
        orders[i](&s);
        ls_views_receive(v, LS_TO_LEADER, &s);
        if (x.begins + x.finishings + x.overs) print_error("order %zu is carried out\n", i);
        assert_int_equal(x.begins + x.finishings + x.overs, 0);
        assert_int_equal(x.drops, 1);
        assert_int_equal(x.dropped, LS_TO_LEADER);
        assert_false(ls_views_is_linked(v));
        /* The host connects again, and gets a correct order. */
        ls_views_linked(v);
        receive(v, LS_TO_LEADER, good_view());
        assert_int_equal(x.begins, 1);
        assert_int_equal(x.view.n, 2);
        ls_views_free(v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies),         cmocka_unit_test(test_late_numbers),
        cmocka_unit_test(test_groups),       cmocka_unit_test(test_rest_without_end),
        cmocka_unit_test(test_stalls),       cmocka_unit_test(test_islands),
        cmocka_unit_test(test_islands_late), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_new_host),     cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
