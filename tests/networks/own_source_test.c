/* own_source_test.c - a program's data as a source: fields, order of calls, errors, what is
 * refused. */
#include "networks/own_source.h"

#include "dataset/samples.h"
#include "networks/network.h"
#include "networks/program_model.h"
#include "test.h"

enum { COUNT = 50, WIDTH = 3 };

static ls_status read_sample(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    float *x = ls_sample_field(s, "x");
    int32_t *label = ls_sample_field(s, "label");
    const int *scale = own;
    if (i == 7) {
        snprintf(e->msg, sizeof e->msg, "row 7 has no label");
        return LS_EINVAL;
    }
    if (i == 8) return LS_EIO;
    assert_null(ls_sample_field(s, "none"));
    assert_true(x[WIDTH - 1] == 0); /* all bytes are 0 before */
    for (int k = 0; k < WIDTH - 1; k++) x[k] = (float)(*scale * (int)i + k);
    *label = i == 9 ? 2 : (int32_t)(i % 2);
    return LS_OK;
}

static int scale = 3;
static ls_own_source source = {.count = COUNT, .read = read_sample, .own = &scale, .hash = 5};
static bool fails;

static void build(ls_model *m, const ls_keys *k) {
    (void)k;
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(WIDTH));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_cross_entropy(m, ls_linear(m, x, .out = 2), label, LS_DEFAULTS);
}

static ls_status open_source(const ls_keys *k, ls_own_source *source_p, ls_error *e) {
    *source_p = source;
    source_p->hash += (uint64_t)ls_key_int(k, "seed");
    if (!fails) return LS_OK;
    snprintf(e->msg, sizeof e->msg, "the table is locked");
    return LS_EIO;
}

static const ls_key_spec keys[] = {{.name = "seed", .type = LS_KEY_INT, .usual = "4"}, {0}};

static ls_status open_samples(const ls_program *p, ls_samples **s_p, ls_error *e) {
    ls_config c;
    ls_model m;
    assert_ls_ok(ls_program_use(p, e), *e);
    assert_true(ls_program_has_data());
    ls_config_defaults(&c);
    assert_ls_ok(ls_network_create(&c, &m, e), *e);
    ls_status s = ls_samples_open(&c, &m, NULL, NULL, s_p, e);
    ls_model_free(&m);
    return s;
}

static void test_samples(void **state) {
    (void)state;
    static const ls_program p = {.name = "mine", .build = build, .source = &source};
    ls_samples *s = NULL;
    ls_error e = {0};
    assert_ls_ok(open_samples(&p, &s, &e), e);
    assert_int_equal(s->source->count, COUNT);
    assert_int_equal(s->split.ntrain + s->nval, COUNT);
    unsigned char sample[256];
    assert_true(s->source->nbytes <= sizeof sample);
    memset(sample, 0xff, sizeof sample);
    assert_ls_ok(s->source->read(s->source, 11, sample, &e), e);
    const float *x = (const float *)(const void *)sample;
    assert_true(x[0] == 33 && x[1] == 34 && x[2] == 0);
    assert_int_equal(*(const int32_t *)(const void *)(sample + s->source->fields[1].offset), 1);
    assert_int_equal(s->source->read(s->source, 7, sample, &e), LS_EINVAL);
    assert_string_equal(e.msg, "sample 7 of the program's data: row 7 has no label");
    assert_int_equal(s->source->read(s->source, 8, sample, &e), LS_EIO);
    assert_int_equal(s->source->read(s->source, 9, sample, &e), LS_EINVAL); /* class 2 of 2 */
    assert_non_null(strstr(e.msg, "label"));
    ls_samples_close(s);
}

static void test_open(void **state) {
    (void)state;
    static const ls_program p = {.name = "mine", .keys = keys, .build = build, .open = open_source};
    static const ls_program unknown = {.name = "mine", .build = build, .open = open_source};
    ls_samples *s = NULL;
    ls_error e = {0};
    assert_ls_ok(open_samples(&p, &s, &e), e);
    assert_int_equal(s->record.training.hash.lo, 9);
    ls_samples_close(s);
    assert_int_equal(open_samples(&unknown, &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "the program has no key 'seed' that is a whole number"));
    fails = true;
    assert_int_equal(open_samples(&p, &s, &e), LS_EIO);
    assert_string_equal(e.msg, "the program's data: the table is locked");
    fails = false;
    source.count = 0;
    assert_int_equal(open_samples(&p, &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "have no samples"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples), cmocka_unit_test(test_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
