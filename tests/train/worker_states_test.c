/* worker_states_test.c - workers.json, beside a board that the test fills in. */
#include "train/worker_states.h"

#include <unistd.h>

#include "base/json.h"
#include "folder.h"
#include "test.h"

static ls_json *read_states(void) {
    char path[300];
    ls_buf text = {0};
    ls_json *j = NULL;
    ls_error e = {0};
    snprintf(path, sizeof path, "%s/" LS_WORKER_STATES_FILE, folder);
    if (ls_file_read(path, 1 << 20, &text, NULL) == LS_OK)
        assert_ls_ok(ls_json_parse(text.data, text.len, path, &j, &e), e);
    ls_buf_free(&text);
    return j;
}

static int64_t integer(const ls_json *o, const char *key) {
    int64_t x = -12345;
    assert_true(ls_json_integer(ls_json_get(o, key), &x));
    return x;
}

static double number(const ls_json *o, const char *key) {
    double x = -12345;
    assert_true(ls_json_number(ls_json_get(o, key), &x));
    return x;
}

/* An action of this lane. */
static int find_action(const ls_plan *p, ls_lane lane) {
    int i = 0;
    while (ls_plan_lane(p, &p->actions[i]) != lane) i++;
    return i;
}

static void test_states(void **state) {
    ls_config c;
    ls_layout l;
    ls_board *board = NULL;
    ls_error e = {0};
    ls_worker_states s = {0};
    (void)state;
    ls_config_defaults(&c);
    assert_ls_ok(ls_layout_make(&c, 2, NULL, &l, &e), e);
    assert_ls_ok(ls_board_open(2, &board, &e), e);
    ls_worker_states_view v = {folder, &c, &l, board, 1, 0, 2};
    ls_worker_states_look(&s, &v);
    assert_null(read_states()); /* no step has begun */
    atomic_store(&board->slots[0].pid, (int)getpid());
    atomic_store(&board->slots[0].action, find_action(&l.plan, LS_LANE_COMPUTE));
    atomic_store(&board->slots[1].action, find_action(&l.plan, LS_LANE_COMM));
    atomic_store(&board->slots[1].step, 41);
    ls_worker_states_look(&s, &v);
    ls_json *j = read_states();
    assert_int_equal(integer(j, "view"), 1);
    assert_int_equal(integer(j, "of"), 2);
    assert_true(integer(j, "planned_bytes") > 1000);
    const ls_json *list = ls_json_get(j, "workers");
    assert_int_equal(ls_json_count(list), 2);
    const ls_json *a = ls_json_at(list, 0), *b = ls_json_at(list, 1);
    assert_string_equal(ls_json_text(ls_json_get(a, "kind")), "compute");
    assert_string_equal(ls_json_text(ls_json_get(b, "kind")), "communicate");
    assert_int_equal(integer(b, "step"), 42);
    assert_true(number(a, "compute") == 1 && number(b, "communicate") == 1);
    assert_true(number(a, "cpu_s") >= 0 && integer(a, "memory_bytes") > 1000);
    assert_int_equal(integer(a, "virtual") + integer(b, "virtual"), c.train.virtual_workers);
    ls_json_free(j);
    /* The next view, and the run's end. */
    s.written_ns = 0;
    v.number = 2;
    ls_worker_states_look(&s, &v);
    j = read_states();
    assert_int_equal(integer(j, "view"), 2);
    ls_json_free(j);
    ls_worker_states_end(&s, folder);
    assert_null(read_states());
    ls_board_close(board);
    ls_layout_free(&l);
}

static void test_doing(void **state) {
    ls_config c;
    ls_layout l;
    ls_error e = {0};
    char text[128], want[128];
    (void)state;
    ls_config_defaults(&c);
    assert_ls_ok(ls_layout_make(&c, 1, NULL, &l, &e), e);
    ls_worker_states_doing(&l, -1, text, sizeof text);
    assert_string_equal(text, "between steps");
    int i = 0;
    while (l.plan.actions[i].kind != LS_FORWARD) i++;
    ls_worker_states_doing(&l, i, text, sizeof text);
    snprintf(want, sizeof want, "Forward %s", l.model.layers[l.plan.actions[i].layer].name);
    assert_string_equal(text, want);
    ls_layout_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_states, make_folder, remove_folder),
        cmocka_unit_test(test_doing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
