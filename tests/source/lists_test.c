/* lists_test.c - lists of ids of different lengths, in all formats that have them: as they are in
 * the files, as a model reads them, and from several sources. */
#include "source/adapt.h"
#include "source/mixed.h"
#include "source/samples.h"

enum { N = 40, MOST = 4 };

static size_t length_of(uint64_t i) { return i * 7 % 5; }

/* Number k of field "words" of a sample. */
static int64_t word_of(const ls_source *s, const uint8_t *sample, size_t k) {
    const ls_field *f = ls_source_field(s, "words");
    int32_t a = 0;
    int64_t b = 0;
    if (f->type == LS_I32) memcpy(&a, sample + f->offset + k * sizeof a, sizeof a);
    if (f->type == LS_I64) memcpy(&b, sample + f->offset + k * sizeof b, sizeof b);
    return f->type == LS_I32 ? a : b;
}

static void check_lists(const ls_source *s) {
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *sample = sample_of(s, i);
        size_t n = ls_field_count(ls_source_field(s, "words"), sample);
        assert_int_equal(n, length_of(i % N));
        for (size_t k = 0; k < n; k++) assert_int_equal(word_of(s, sample, k), i % N + k);
        free(sample);
    }
}

static void test_formats(void **state) {
    (void)state;
    static const struct {
        const char *path;
        ls_dtype type;
    } sets[] = {{"@lists.csv", LS_I32},
                {"@lists.jsonl", LS_I32},
                {"@lists.tfrecord", LS_I64},
                {"@lists", LS_I32}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        ls_source *s = opened(sets[i].path, NULL);
        assert_int_equal(s->count, N);
        assert_int_equal(s->nfields, 3);
        const ls_field *f = ls_source_field(s, "words");
        assert_true(f->is_list && has_shape(f, "words", sets[i].type, 1, (int64_t[]){MOST}));
        assert_false(ls_source_field(s, "id")->is_list);
        check_lists(s);
        ls_source_close(s);
    }
    ls_source *s = opened("@fewer.jsonl", NULL); /* all have two */
    assert_true(has_shape(ls_source_field(s, "words"), "words", LS_I32, 1, (int64_t[]){2}));
    assert_false(ls_source_field(s, "words")->is_list);
    ls_source_close(s);
}

/* ---- as a model reads them ---- */

static ls_status adapted(const char *path, int64_t room, bool cuts, bool padded, ls_source **s_p,
                         ls_error *e) {
    ls_field f = {.name = "words", .type = LS_I32, .ndims = 1, .dims = {room}};
    int classes = 100;
    f.nbytes = (size_t)room * sizeof(int32_t);
    ls_adapt_wanted w = {.fields = &f,
                         .nfields = 1,
                         .classes = &classes,
                         .padded = &padded,
                         .cuts = cuts,
                         .nbytes = f.nbytes,
                         .what = "a.bin"};
    return ls_adapt(opened(path, NULL), &w, s_p, e);
}

/* The first ids, and -1 behind them. */
static void check_padded(const ls_source *s, size_t room) {
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *sample = sample_of(s, i);
        for (size_t k = 0; k < room; k++)
            assert_int_equal(word_of(s, sample, k), k < length_of(i) ? (int64_t)(i + k) : -1);
        free(sample);
    }
}

static void test_adapted(void **state) {
    (void)state;
    static const char *const paths[] = {"@lists.csv", "@lists.jsonl", "@lists.tfrecord", "@lists"};
    for (int i = 0; i < 4; i++)
        for (int64_t room = 1; room <= MOST + 2; room++) {
            ls_source *s = NULL;
            ls_error e = {0};
            int32_t sample[MOST + 2];
            assert_ls_ok(adapted(paths[i], room, true, true, &s, &e), e);
            check_padded(s, (size_t)room);
            ls_source_close(s);
            assert_ls_ok(adapted(paths[i], room, false, true, &s, &e), e);
            if (room >= MOST) check_padded(s, (size_t)room);
            if (room < MOST) { /* sample 2 has four */
                assert_ls_ok(s->read(s, 0, sample, &e), e);
                assert_ls_fails(s->read(s, 2, sample, &e), LS_EINVAL,
                                "a.bin: sample 2: 'words' has 4 numbers, and the model takes", e);
                assert_non_null(strstr(e.msg, "or set data.lists: cut"));
            }
            ls_source_close(s);
        }
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_fails(adapted("@lists.csv", MOST, true, false, &s, &e), LS_EINVAL,
                    "field 'words' is i32 list of at most 4; the model's input 'words' is i32 [4]",
                    e);
    assert_ls_ok(adapted("@fewer.jsonl", 3, false, true, &s, &e),
                 e); /* two, and one that is none */
    uint8_t *sample = sample_of(s, 7);
    assert_int_equal(word_of(s, sample, 1), 5);
    assert_int_equal(word_of(s, sample, 2), -1);
    free(sample);
    ls_source_close(s);
}

/* ---- several sources ---- */

static void test_mixed(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    ls_source *parts[] = {opened("@lists.jsonl", NULL), opened("@longer.jsonl", NULL),
                          opened("@fewer.jsonl", NULL)};
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_mixed_open(parts, names, 3, &s, &e), e);
    const ls_field *f = ls_source_field(s, "words");
    assert_true(f->is_list && f->dims[0] == N - 1);
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *sample = sample_of(s, i);
        uint64_t k = i % N;
        size_t n = i < N ? length_of(k) : i < 2 * N ? k : 2;
        assert_int_equal(ls_field_count(f, sample), n);
        int64_t last = i < N ? (int64_t)(k + n - 1) : i < 2 * N ? (int64_t)k - 1 : 5;
        if (n) assert_int_equal(word_of(s, sample, n - 1), last);
        int32_t label = 0;
        memcpy(&label, sample + ls_source_field(s, "label")->offset, sizeof label);
        assert_int_equal(label, k % 3);
        free(sample);
    }
    ls_source_close(s);
}

/* ---- what is no list ---- */

static void put_text(const char *name, const char *text) { put_file(name, text, strlen(text)); }

/* Many texts, and two lists: the second one finds no place. */
static void test_crowded(void) {
    enum { TEXTS = LS_SOURCE_FIELDS - 1 };
    ls_buf text = {0};
    for (int i = 0; i < TEXTS; i++) ls_buf_printf(&text, "t%d,", i);
    ls_buf_printf(&text, "h,i\n");
    for (int row = 0; row < 2; row++) {
        for (int i = 0; i < TEXTS; i++) ls_buf_printf(&text, "x,");
        ls_buf_printf(&text, row ? "[],[2]\n" : "[1],[]\n");
    }
    put_text("@many.csv", text.data);
    ls_source *many = opened("@many.csv", NULL);
    assert_int_equal(many->nfields, LS_SOURCE_FIELDS);
    assert_true(ls_source_field(many, "h")->is_list && !ls_source_field(many, "i"));
    ls_source_close(many);
    ls_buf_free(&text);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } bad[] = {
        {"@bad.jsonl", "{\"a\":[1,2]}\n{\"a\":[1.5]}\n", "bad.jsonl:2: 'a' has another shape"},
        {"@bad.jsonl", "{\"a\":[1.5,2]}\n{\"a\":[1]}\n", "bad.jsonl:2: 'a' has another shape"},
        {"@bad.jsonl", "{\"a\":[1,2]}\n{\"a\":[1]}\n{\"a\":[1.5]}\n",
         "bad.jsonl:3: 'a' is no list of integers, but is one in other objects"},
        {"@bad.jsonl", "{\"a\":[1,2]}\n{\"a\":[1]}\n{\"a\":1}\n", "bad.jsonl:3: 'a' has another"},
        {"@bad.jsonl", "{\"a\":[1,2]}\n{\"a\":[-2147483648]}\n", "bad.jsonl:2: 'a' has another"},
        {"@bad.jsonl", "{\"a\":[1,2]}\n{\"a\":[2147483648]}\n", "bad.jsonl:2: 'a' has another"},
        {"@bad.jsonl", "{\"a\":[[1,2]]}\n{\"a\":[[1]]}\n", "bad.jsonl:2: 'a' has another shape"},
        {"@bad.csv", "a\n[1]\n2\n",
         "bad.csv:3: column 1, 'a', has '2', but lists of whole numbers"},
        {"@bad.csv", "a\n[1]\n[2 3]\n[1.5]\n", "has '[1.5]', but lists of another length"},
        {"@bad.csv", "a\n[1]\n[1\n", "has '[1', but lists"},
        {"@bad.csv", "a\n[1]\n[1] 2\n", "has '[1] 2', but lists"},
        {"@bad.csv", "a\n[1]\n[1 x]\n", "has '[1 x]', but lists"},
        {"@bad.csv", "a\n[1]\n\"\"\n", "is empty, but has lists elsewhere"},
        {"@bad.csv", "a\n[1]\n[2147483648]\n[]\n", "has '[2147483648]', but lists"},
        {"@bad.csv", "a\n\"[1,,2]\"\n\"[1,2]\"\n", "bad.csv:2: column 1, 'a', has '[1,,2]'"},
        {"@bad.csv", "a\n\"[1,2,]\"\n", "bad.csv:2: column 1, 'a', has '[1,2,]'"},
        {"@bad.csv", "a\n\"[,1]\"\n", "bad.csv:2: column 1, 'a', has '[,1]'"},
        {"@bad.csv", "a\n\"[[1,2],[3,4]]\"\n", "bad.csv:2: column 1, 'a', has '[[1,2],[3,4]]'"},
        {"@bad.csv", "a\n[0.5]\n\"[1,2]\"\n", "but lists of another length elsewhere; only"},
        {"@bad.csv", "a\n[1e39]\n[1]\n", "bad.csv:2: column 1, 'a', has '[1e39]', but lists"},
        {"@bad.jsonl", "{\"a\":[]}\n{\"a\":[]}\n", "bad.jsonl: no field can be read from it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_text(bad[i].name, bad[i].text);
        refuses(bad[i].name, NULL, bad[i].says);
    }
    test_crowded();
    put_text("@spaces.csv",
             "a,b\n[],x\n\"[ 3   17,5 ]\",[1\n\"[\n7\t]\",y\n"); /* as numpy writes them */
    ls_source *s = opened("@spaces.csv", NULL);
    const ls_field *f = ls_source_field(s, "a");
    uint8_t *sample = sample_of(s, 1);
    int32_t ids[3];
    assert_true(f->is_list && ls_field_count(f, sample) == 3);
    memcpy(ids, sample + f->offset, sizeof ids);
    assert_true(ids[0] == 3 && ids[1] == 17 && ids[2] == 5);
    assert_true(!ls_source_field(s, "b")->is_list); /* a text that begins with a bracket */
    free(sample);
    ls_source_close(s);
}

/* Lists with fractions, or with numbers beyond an i32, are numbers as in JSON lines. */
static void test_reals(void **state) {
    (void)state;
    static const char csv[] =
        "v,w\n\"[0.5, 0.25]\",\"[3000000000, 5]\"\n\"[1 2]\",\"[ -1e3,\t7]\"\n";
    static const char json[] =
        "{\"v\":[0.5,0.25],\"w\":[3000000000,5]}\n{\"v\":[1,2],\"w\":[-1e3,7]}\n";
    put_text("@reals.csv", csv);
    put_text("@reals.jsonl", json);
    ls_source *s = opened("@reals.csv", NULL), *t = opened("@reals.jsonl", NULL);
    assert_true(has_shape(ls_source_field(s, "v"), "v", LS_F32, 1, (int64_t[]){2}));
    assert_true(has_shape(ls_source_field(s, "w"), "w", LS_F32, 1, (int64_t[]){2}));
    assert_int_equal(s->nbytes, t->nbytes);
    for (uint64_t i = 0; i < 2; i++) {
        uint8_t *a = sample_of(s, i), *b = sample_of(t, i);
        for (int k = 0; k < 2; k++) {
            size_t at = s->fields[k].offset;
            assert_memory_equal(a + at, b + at, 2 * sizeof(float));
        }
        free(a);
        free(b);
    }
    ls_source_close(s);
    ls_source_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats), cmocka_unit_test(test_adapted),
        cmocka_unit_test(test_mixed), cmocka_unit_test(test_refused), cmocka_unit_test(test_reals)};
    return cmocka_run_group_tests(tests, write_sets, remove_folder);
}
