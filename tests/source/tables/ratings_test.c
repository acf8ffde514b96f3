/* ratings_test.c - interactions from CSV files: which count, which are held out, what is drawn. */
#include "source/formats/open.h"
#include "source/id_names.h"
#include "source/tables/ratings.h"
#include "source/written.h"

static ls_ratings_wanted wanted_of(const char *tree) {
    ls_ratings_wanted w;
    ls_error e = {0};
    assert_ls_ok(ls_ratings_read(tree, "x.yaml", 3, 0.25, &w, &e), e);
    return w;
}

static ls_status open_ratings(const char *path, const char *tree, ls_source **s_p, ls_error *e) {
    ls_ratings_wanted w = wanted_of(tree);
    return ls_source_open(path, &(ls_source_options){.ratings = &w, .cache = folder}, s_p, e);
}

static ls_source *ratings_source_of(const char *path, const char *tree) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_ok(open_ratings(path, tree, &s, &e), e);
    return s;
}

static ls_source *held_out_of(const ls_source *s) {
    ls_source *v = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_ratings_held_out(s, "x.csv", &v, &e), e);
    return v;
}

static const char SMALL[] = "who,note,what,stars,when\n"
                            "ann,a,tea,5,10\n"
                            "bob,b,tea,4,11\n"
                            "ann,c,\"a \"\"b\"\"\",4,12\n"
                            "ann,d,rum,1,13\n"
                            "ann,e,tea,3,14\n"
                            "bob,f,gin,5,9\n";

/* ann and tea have two rows: the later one counts. */
static void test_rows(void **state) {
    (void)state;
    const char *path = write_text("a.csv", SMALL);
    ls_source *s = ratings_source_of(
        path, "{user: who, item: what, rating: stars, time: when, split: leave_one_out}");
    const ls_ratings *r = ls_ratings_of(s);
    assert_int_equal(r->nusers, 2);
    assert_int_equal(r->nitems, 4); /* tea, a "b", rum, gin */
    assert_int_equal(s->count, 3);
    ls_source *v = held_out_of(s);
    assert_int_equal(v->count, 2);
    assert_int_equal(field_of(s, "user")->ids, 2);
    assert_int_equal(field_of(s, "items")->ids, 4);
    assert_int_equal((int)value_of(v, 0, "user", 0), 0);
    assert_int_equal((int)value_of(v, 0, "items", 0), 0); /* tea at 14 */
    assert_float_equal(value_of(v, 0, "rating", 0), 3, 0);
    assert_int_equal((int)value_of(v, 1, "items", 0), 0); /* bob's tea at 11 */
    assert_int_equal((int)value_of(s, 0, "items", 0), 1);
    assert_int_equal((int)value_of(s, 1, "items", 0), 2);
    assert_int_equal((int)value_of(s, 2, "user", 0), 1);
    assert_int_equal((int)value_of(s, 2, "items", 0), 3);
    ls_source_close(s); /* the other one still reads */
    assert_float_equal(value_of(v, 1, "rating", 0), 4, 0);
    ls_source_close(v);
    s = ratings_source_of(path, "{user: who, item: what, rating: stars, at_least: 4}");
    assert_int_equal(s->count, 4); /* the tea of 5 stars: that of 3 does not count */
    assert_int_equal(ls_ratings_of(s)->nitems, 3);
    ls_source_close(s);
}

/* Without a header the columns have numbers. */
static void test_columns(void **state) {
    (void)state;
    ls_error e = {0};
    ls_source *s = ratings_source_of(write_text("b.csv", "7,x,1\n7,y,2\n8,x,3\n"),
                                     "{user: column1, item: column2, rating: column3}");
    assert_int_equal(s->count, 3);
    assert_int_equal(ls_ratings_of(s)->nusers, 2);
    ls_source_close(s);
    const char *path = write_text("c.csv", "u,i,r\n1,2,3\n1,,3\n1,4,x\n");
    assert_ls_fails(open_ratings(path, "{user: u, item: film}", &s, &e), LS_EINVAL,
                    "c.csv: has no column 'film'; its first line is u, i, r", e);
    assert_ls_fails(open_ratings(path, "{user: u, item: i}", &s, &e), LS_EINVAL,
                    "c.csv:3: column 'i' is empty", e);
    path = write_text("d.csv", "u,i,r\n1,2,3\n1,4,x\n");
    assert_ls_fails(open_ratings(path, "{user: u, item: i, rating: r}", &s, &e), LS_EINVAL,
                    "d.csv:3: column 'r' has 'x', which is no number", e);
    ls_ratings_wanted w = wanted_of("{user: u, item: i, rating: r}");
    assert_ls_ok(
        ls_source_open(path,
                       &(ls_source_options){.ratings = &w, .cache = folder, .skip_damaged = true},
                       &s, &e),
        e);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->damage.n, 1);
    ls_source_close(s);
}

static void test_options(void **state) {
    (void)state;
    static const struct {
        const char *tree, *says;
    } bad[] = {
        {"[user]", "x.yaml:3: data.ratings is a map"},
        {"{user: u}", "item is missing"},
        {"{user: u, item: i, split: half}", "split is leave_one_out or ratio"},
        {"{user: u, item: i, negatives: 1.5}", "negatives is a whole number from 0 to 1024"},
        {"{user: u, item: i, at_least: 4}", "at_least needs rating"},
        {"{user: u, item: i, stars: r}", "there is no 'stars'; choose among user, item"},
        {"{user: u, item: [i]}", "item is a column's name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_ratings_wanted w;
        ls_error e = {0};
        assert_ls_fails(ls_ratings_read(bad[i].tree, "x.yaml", 3, 0.25, &w, &e), LS_EINVAL,
                        bad[i].says, e);
    }
}

/* 40 users, each with 12 of 60 items: number (7 u + 5 k) mod 60. */
static const char *write_many(void) {
    ls_buf b = {0};
    ls_buf_printf(&b, "u,i\n");
    for (int i = 0; i < 60; i++) ls_buf_printf(&b, "last,%d\n", i); /* the numbers of items */
    for (int u = 0; u < 40; u++)
        for (int k = 0; k < 12; k++) ls_buf_printf(&b, "%d,%d\n", u, (7 * u + 5 * k) % 60);
    for (int i = 60; i < 70; i++) ls_buf_printf(&b, "other,%d\n", i);
    const char *path = write_bytes("many.csv", b.data, b.len);
    ls_buf_free(&b);
    return path;
}

static bool has_chosen(const ls_ratings *r, int32_t user, int32_t item, bool held_out) {
    const ls_ratings_part *p = held_out ? &r->held_out : &r->training;
    for (uint64_t i = p->begins[user]; i < p->begins[user + 1]; i++)
        if (p->items[i] == item) return true;
    return false;
}

static void test_split(void **state) {
    (void)state;
    ls_source *s = ratings_source_of(write_many(), "{user: u, item: i}");
    const ls_ratings *r = ls_ratings_of(s);
    assert_int_equal(r->nusers, 42);
    uint64_t places = 0;
    for (int32_t u = 1; u < 41; u++) { /* a quarter of 12 each, none of which is trained on */
        assert_int_equal(r->held_out.begins[u + 1] - r->held_out.begins[u], 3);
        assert_int_equal(r->training.begins[u + 1] - r->training.begins[u], 9);
        for (uint64_t i = r->held_out.begins[u]; i < r->held_out.begins[u + 1]; i++) {
            assert_false(has_chosen(r, u, r->held_out.items[i], false));
            places |= (uint64_t)1 << ((r->held_out.items[i] - 7 * (u - 1) % 60 + 60) % 60 / 5);
        }
    }
    assert_int_equal(places, 0xfff); /* not always the same ones */
    ls_source *again = ratings_source_of(path_of("many.csv"), "{user: u, item: i}");
    assert_memory_equal(ls_ratings_of(again)->held_out.items, r->held_out.items,
                        r->held_out.n * sizeof *r->held_out.items);
    ls_source_close(again);
    ls_source_close(s);
}

/* items of a drawn sample; the caller frees them. */
static int32_t *drawn(const ls_source *s, uint64_t i, uint64_t seed, uint64_t epoch) {
    ls_draw d = {.seed = seed, .epoch = epoch, .sample = i};
    ls_error e = {0};
    char *sample = ls_alloc(s->nbytes);
    assert_ls_ok(ls_source_draw(s, i, &d, sample, &e), e);
    const ls_field *f = field_of(s, "items");
    int32_t *items = ls_alloc(f->nbytes);
    memcpy(items, sample + f->offset, f->nbytes);
    free(sample);
    return items;
}

static void test_negatives(void **state) {
    (void)state;
    enum { K = 20 };
    ls_source *s =
        ratings_source_of(write_many(), "{user: u, item: i, negatives: 20, split: leave_one_out}");
    const ls_ratings *r = ls_ratings_of(s);
    ls_source *v = held_out_of(s);
    int seen[70] = {0}, held = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        int32_t user = r->training.users[i];
        int32_t *a = drawn(s, i, 1, 2), *b = drawn(s, i, 1, 2), *c = drawn(s, i, 1, 3),
                *d = drawn(s, i, 2, 2);
        assert_int_equal(a[0], r->training.items[i]);
        assert_memory_equal(a, b, (K + 1) * sizeof *a);
        assert_memory_not_equal(a, c, (K + 1) * sizeof *a);
        assert_memory_not_equal(a, d, (K + 1) * sizeof *a);
        for (int k = 1; k <= K; k++) {
            assert_true(a[k] >= 0 && a[k] < 70);
            assert_false(has_chosen(r, user, a[k], false));
            held += has_chosen(r, user, a[k], true);
            seen[a[k]]++;
        }
        free(a), free(b), free(c), free(d);
    }
    assert_true(held > 0); /* training does not know what is held out */
    for (int i = 60; i < 70; i++) assert_in_range(seen[i], 40, 400); /* about 150 each */
    for (uint64_t i = 0; i < v->count; i++)
        for (size_t k = 0; k <= K; k++) {
            int32_t user = r->held_out.users[i];
            int32_t item = (int32_t)value_of(v, i, "items", k);
            assert_float_equal(value_of(v, i, "clicked", k), k == 0, 0);
            assert_true(has_chosen(r, user, item, true) == (k == 0));
            assert_false(has_chosen(r, user, item, false));
        }
    ls_source_close(v);
    ls_source_close(s);
}

static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_source *s = NULL, *v = NULL;
    const char *path = write_text("e.csv", "u,i\n1,2\n1,3\n2,3\n");
    assert_ls_fails(open_ratings(path, "{user: u, item: i, negatives: 1}", &s, &e), LS_EINVAL,
                    "user '1' has all 2 items: there are no negatives", e);
    s = ratings_source_of(path, "{user: u, item: i}");
    assert_ls_fails(ls_ratings_held_out(s, path, &v, &e), LS_EINVAL,
                    "holds no interaction out for validation", e);
    ls_source_close(s);
}

static void test_names(void **state) {
    (void)state;
    ls_id_names names = {0};
    char text[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            int n = snprintf(text, sizeof text, "%d", i * 7);
            assert_int_equal(ls_id_of(&names, text, (size_t)n), i);
        }
    assert_int_equal(names.n, 5000);
    assert_string_equal(ls_id_name(&names, 4999), "34993");
    ls_id_names_free(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_columns),
        cmocka_unit_test(test_options),   cmocka_unit_test(test_split),
        cmocka_unit_test(test_negatives), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
