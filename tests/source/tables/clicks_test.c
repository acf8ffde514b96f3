/* clicks_test.c - rows of ids, numbers and a click from CSV files. */
#include "source/tables/clicks.h"

#include <math.h>

#include "source/formats/open.h"
#include "source/written.h"

static ls_status open_clicks(const char *path, const char *tree, ls_source **s_p, ls_error *e) {
    ls_clicks_wanted w;
    LS_TRY(ls_clicks_read(tree, "x.yaml", 3, &w, e));
    return ls_source_open(path, &(ls_source_options){.clicks = &w, .cache = folder}, s_p, e);
}

static ls_source *clicks_of(const char *path, const char *tree) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_ok(open_clicks(path, tree, &s, &e), e);
    return s;
}

static const char SMALL[] = "age,job,city,income\n"
                            "20,cook,Rome,<=50K\n"
                            "40,smith,Oslo,>50K\n"
                            "60,cook,Oslo,>50K\n"
                            "-1,clerk,Rome,<=50K\n";

static void test_fields(void **state) {
    (void)state;
    ls_source *s =
        clicks_of(write_text("a.csv", SMALL),
                  "{clicked: income, positive: \">50K\", ids: [job, city], numbers: [age]}");
    assert_int_equal(s->count, 4);
    assert_int_equal(field_of(s, "ids")->ids, 5); /* cook, smith, clerk; Rome, Oslo */
    static const int32_t ids[4][2] = {{0, 3}, {1, 4}, {0, 4}, {2, 3}};
    static const float ages[4] = {20, 40, 60, -1}, clicked[4] = {0, 1, 1, 0};
    for (uint64_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 2; k++) assert_int_equal((int)value_of(s, i, "ids", k), ids[i][k]);
        assert_true(value_of(s, i, "x", 0) == (double)ages[i]);
        assert_true(value_of(s, i, "clicked", 0) == (double)clicked[i]);
    }
    ls_source_close(s);
}

/* An id is the hash of its text alone: the same in a file with other rows before, and in [0, hash)
 * of its column. That of "a" is what a program calls XXH3_128bits() for. */
static void test_hashed(void **state) {
    (void)state;
    static const char tree[] = "{clicked: c, ids: [i, j], hash: 1000}";
    ls_source *s =
        clicks_of(write_text("h.csv", "c,i,j\n1,a,b\n0,b,a\n1,a,18446744073709551615\n"), tree);
    ls_source *t = clicks_of(write_text("g.csv", "c,j,i\n1,z,y\n1,b,a\n"), tree);
    assert_int_equal(field_of(s, "ids")->ids, 2000);
    for (uint64_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            double id = value_of(s, i, "ids", k);
            assert_true(id >= 1000 * (double)k && id < 1000 * (double)(k + 1));
        }
    for (size_t k = 0; k < 2; k++)
        assert_true(value_of(s, 0, "ids", k) == value_of(t, 1, "ids", k));
    assert_int_equal((int)value_of(s, 0, "ids", 0), 719);
    assert_true(value_of(s, 1, "ids", 1) == 1000 + value_of(s, 0, "ids", 0));
    assert_true(value_of(s, 1, "ids", 0) != value_of(s, 0, "ids", 0));
    assert_true(value_of(s, 2, "ids", 0) == value_of(s, 0, "ids", 0));
    ls_source_close(s);
    ls_source_close(t);
    s = clicks_of(write_text("h1.csv", "c,i,j\n1,a,b\n"), "{clicked: c, ids: [i], hash: 1}");
    assert_int_equal(field_of(s, "ids")->ids, 1);
    assert_true(value_of(s, 0, "ids", 0) == 0);
    ls_source_close(s);
}

static void test_scales(void **state) {
    (void)state;
    const char *path = write_text("b.csv", "c,i,x,y\n1,a,0,5\n0,a,3,5\n1,b,9,5\n0,b,-2,5\n");
    ls_source *s = clicks_of(path, "{clicked: c, ids: [i], numbers: [x], scale: log}");
    static const double counts[4] = {0, 3, 9, -2};
    for (uint64_t i = 0; i < 4; i++) {
        double want = counts[i] > 0 ? log(1 + counts[i]) : 0;
        assert_true(fabs(value_of(s, i, "x", 0) - want) < 1e-6);
    }
    ls_source_close(s);
    s = clicks_of(path, "{clicked: c, ids: [i], numbers: [x, y], scale: standard}");
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 4; i++) {
        double x = value_of(s, i, "x", 0);
        sum += x;
        squares += x * x;
        assert_true(value_of(s, i, "x", 1) == 0); /* the same everywhere */
    }
    assert_true(fabs(sum) < 1e-6 && fabs(squares - 4) < 1e-5);
    ls_source_close(s);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *tree, *says;
    } bad[] = {
        {"[x]", "data.clicks is a map"},
        {"{clicked: c}", "ids is missing"},
        {"{ids: [i]}", "clicked is missing"},
        {"{clicked: c, ids: []}", "ids is empty"},
        {"{clicked: c, ids: i}", "ids is a list of columns"},
        {"{clicked: c, ids: [i], scale: max}", "scale is none, log or standard"},
        {"{clicked: c, ids: [i], hash: 0}", "hash is a number of rows for each column"},
        {"{clicked: c, ids: [i], hash: 2147483648}", "hash is a number of rows for each column"},
        {"{clicked: c, ids: [i, x], hash: 2147483647}", "the columns have 4294967294 ids; at most"},
        {"{clicked: c, ids: [i], other: 1}", "other is not a key; choose among clicked"},
        {"{clicked: c, ids: [i], numbers: [z]}", "has no column 'z'"},
        {"{clicked: x, ids: [i]}", "c.csv:3: column 'x' has '3'; it has 1 and 0"},
        {"{clicked: i, ids: [c]}", "c.csv:2: column 'i' has 'a'; it has 1 and 0, or name the text"},
        {"{clicked: i, positive: b, ids: [c]}", "no row has 'b' in the column 'i' (positive in "
                                                "data.clicks); there is 'a'"},
        {"{clicked: c, ids: [i], numbers: [i]}", "c.csv:2: column 'i' has 'a', which is no number"},
    };
    const char *path = write_text("c.csv", "c,i,x\n1,a,0\n0,a,3\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_source *s = NULL;
        ls_error e = {0};
        assert_ls_fails(open_clicks(path, bad[i].tree, &s, &e), LS_EINVAL, bad[i].says, e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_hashed),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
