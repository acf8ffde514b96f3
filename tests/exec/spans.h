/* spans.h - checks spans against their plan. */
#ifndef LS_TEST_SPANS_H
#define LS_TEST_SPANS_H

#include "exec/span.h"
#include "test.h"

/* spans [n] of one worker in one step, lane by lane: all its actions, each once, in the order of
 * its lanes, each after those of both lanes that it waits for and the messages that it needs. */
static inline void assert_spans(const ls_plan *p, int worker, const ls_span *spans, int n) {
    ls_lanes lanes;
    ls_plan_project(p, worker, &lanes);
    assert_int_equal(n, lanes.n[LS_LANE_COMPUTE] + lanes.n[LS_LANE_COMM]);
    const ls_span *rows[LS_NLANES] = {spans, spans + lanes.n[LS_LANE_COMPUTE]};
    for (int lane = 0; lane < LS_NLANES; lane++)
        for (int i = 0; i < lanes.n[lane]; i++) {
            const ls_span *s = &rows[lane][i];
            int wait = lanes.steps[lane][i].wait;
            assert_int_equal(s->action, lanes.steps[lane][i].action);
            assert_int_equal(s->worker, worker);
            assert_int_equal(s->lane, lane);
            assert_true(s->begin_ns >= 0 && s->begin_ns <= s->end_ns);
            int own = lanes.steps[lane][i].own;
            if (own) assert_true(rows[lane][own - 1].end_ns <= s->begin_ns);
            if (wait) assert_true(rows[!lane][wait - 1].end_ns <= s->begin_ns);
            int after = lanes.steps[lane][i].after;
            if (after >= 0) assert_true(rows[lane][after].begin_ns <= s->begin_ns);
            for (int k = lanes.steps[lane][i].first_need; k < lanes.steps[lane][i].end_need; k++)
                assert_true(rows[LS_LANE_COMM][lanes.needs[k]].end_ns <= s->begin_ns);
        }
    ls_lanes_free(&lanes);
}

#endif
