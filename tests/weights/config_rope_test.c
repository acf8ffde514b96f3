/* config_rope_test.c - the rotations of config.json, in the forms of transformers 4 and 5; those
 * that are not supported are refused by the name of their key. */
#include "weights/config_rope.h"

#include <math.h>

#include "weights/published_config.h"

static void test_rope(void **state) {
    (void)state;
    assert_true(good_with(smollm, "rope_theta", NULL).rope.base == 10000);
    ls_architecture a =
        good_with(smollm, "rope_scaling", "{\"type\": \"linear\", \"factor\": 2.5}");
    assert_true(a.rope.type == LS_ROPE_LINEAR && a.rope.factor == 2.5 && a.rope.base == 100000);
    /* version 5 */
    static const char five[] = "{\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": "
                               "32, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4, "
                               "\"original_max_position_embeddings\": 8192}";
    char *none = changed(smollm, "rope_theta", NULL);
    a = good_with(none, "rope_parameters", five);
    assert_true(a.rope.type == LS_ROPE_LLAMA3 && a.rope.base == 500000 && a.rope.factor == 32);
    assert_true(good_with(none, "rope_parameters", "{\"rope_type\": \"default\"}").rope.base ==
                1e4);
    free(none);
    a = good_with(smollm, "rope_parameters", "{\"rope_type\": \"default\"}");
    assert_true(a.rope.base == 100000);
    /* yarn, as transformers 5.24 reads it */
    a = good_with(smollm, "rope_scaling",
                  "{\"type\": \"yarn\", \"factor\": 4.0, "
                  "\"original_max_position_embeddings\": 32768}");
    assert_true(a.rope.type == LS_ROPE_YARN && a.rope.low == 1 && a.rope.high == 32);
    assert_true(a.rope.original_context == 32768 && !a.rope.exact);
    assert_true(fabs(a.rope.scale - 1.138629436111989) < 1e-15);
    assert_true(a.context == 8192 && ls_architecture_positions(&a) == 131072);
    a = good_with(smollm, "rope_parameters",
                  "{\"rope_type\": \"yarn\", \"factor\": 3, \"mscale\": 1.0, \"truncate\": false, "
                  "\"mscale_all_dim\": 0.5, \"beta_fast\": 16, \"beta_slow\": 0.5}");
    assert_true(a.rope.low == 0.5 && a.rope.high == 16 && a.rope.exact);
    assert_true(a.rope.original_context == 8192 && ls_architecture_positions(&a) == 24576);
    assert_true(fabs(a.rope.scale - 1.0520703576916368) < 1e-15);
    a = good_with(smollm, "rope_scaling",
                  "{\"type\": \"yarn\", \"factor\": 4.0, \"attention_factor\": 1.5}");
    assert_true(a.rope.scale == 1.5 && a.rope.original_context == 8192);
    /* both */
    a = good_with(smollm, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 1e5}");
    assert_true(a.rope.base == 100000);
    check_refused(smollm, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 1e4}",
                  "rope_parameters differs");
    check_refused(llama3, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 5e5}",
                  "rope_parameters differs");
}

static void test_rope_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\": \"dynamic\", \"factor\": 4}", "rope_scaling: type is \"dynamic\""},
        {"{\"type\": \"yarn\"}", "rope_scaling: factor is missing"},
        {"{\"type\": \"yarn\", \"factor\": 0}", "the rotation's factor 0 is not positive"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": 0}", "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"beta_slow\": 40}", "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"beta_slow\": 31.99999999999}",
         "rope_type yarn needs"}, /* the same in f32 */
        {"{\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": 1e-60}",
         "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": -1}",
         "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"finetuned\": true}", "finetuned is not supported"},
        {"{\"rope_type\": \"dynamic\", \"factor\": 4}", "rope_scaling: rope_type is \"dynamic\""},
        {"{\"rope_type\": \"longrope\"}", "rope_type is \"longrope\""},
        {"{\"rope_type\": 3}", "rope_type is 3"},
        {"{\"rope_type\": \"linear\", \"type\": \"dynamic\", \"factor\": 2}", "differs from"},
        {"{\"rope_type\": \"linear\"}", "rope_scaling: factor is missing"},
        {"{\"rope_type\": \"linear\", \"factor\": \"2\"}", "factor is \"2\""},
        {"{\"rope_type\": \"linear\", \"factor\": 0}", "factor 0 is not positive"},
        {"{\"rope_type\": \"linear\", \"factor\": 2, \"mscale\": 1}", "mscale is not supported"},
        {"{\"rope_type\": \"default\", \"factor\": 2}", "factor is not supported"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
         "\"original_max_position_embeddings\": 8192}",
         "high_freq_factor is missing"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
         "\"high_freq_factor\": 1, \"original_max_position_embeddings\": 8192}",
         "low_freq_factor < high_freq_factor"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
         "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 0}",
         "original_max_position_embeddings"},
        {"{\"full_attention\": {\"rope_type\": \"default\"}}", "full_attention is not supported"},
        {"{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor"},
        {"[]", "rope_scaling must be an object"},
        {"\"linear\"", "rope_scaling must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(smollm, "rope_scaling", cases[i][0], cases[i][1]);
    check_refused(smollm, "rope_theta", "-1", "base -1 is not positive");
    check_refused(smollm, "rope_theta", "\"1e5\"", "rope_theta is \"1e5\"");
    check_refused(smollm, "partial_rotary_factor", "0.25", "partial_rotary_factor is 0.25");
}

/* rope_scaling with another value of a key. */
static char *scaling(const char *key, const char *value) {
    static const char text[] =
        "{\"long_factor\": [" LONGS "], \"short_factor\": [" SHORTS "], \"type\": \"longrope\"}";
    return changed(text, key, value);
}

static ls_architecture phi_with(const char *key, const char *value) {
    char *o = scaling(key, value);
    ls_architecture a = good_with(phi4_mini, "rope_scaling", o);
    free(o);
    return a;
}

static void test_phi3(void **state) {
    (void)state;
    ls_architecture a = good(phi4_mini), b = good(phi3);
    assert_true(a.family == LS_FAMILY_PHI3 && a.rope.type == LS_ROPE_LONGROPE && a.turned == 6);
    assert_true(a.head_dim == 8 && a.window == 262144 && a.tied && a.rope.original_context == 4096);
    assert_true(a.rope.factor == 32 && ls_architecture_pairs(&a) == 3);
    /* the root of 1 + ln 32 / ln 4096, which is that of 17 / 12 */
    assert_true(fabs(a.rope.scale - 1.1902380714238083) < 1e-15);
    assert_true(a.divisors[LS_ROPE_SHORT][2] == 1.1f);
    assert_true(a.divisors[LS_ROPE_LONG][1] == 1.118320672f);
    assert_ptr_equal(ls_architecture_divisors(&a), a.divisors[LS_ROPE_LONG]);
    a.context = 4096; /* as a run with this model.context */
    assert_ptr_equal(ls_architecture_divisors(&a), a.divisors[LS_ROPE_SHORT]);
    assert_true(b.rope.type == LS_ROPE_DEFAULT && b.turned == 0 && b.window == 2047 && !b.tied);
    assert_null(ls_architecture_divisors(&b));
    assert_true(good_with(phi3, "sliding_window", "null").window == 0);
    assert_true(good_with(phi3, "num_key_value_heads", NULL).kv_heads == 32);
    assert_true(good_with(phi4_mini, "original_max_position_embeddings", NULL).rope.factor == 32);
    assert_true(phi_with("type", "\"su\"").rope.type == LS_ROPE_LONGROPE);
    assert_true(phi_with("factor", "8").rope.scale < 1.119); /* sqrt(1 + 3 / 12) */
    assert_true(phi_with("attention_factor", "1.5").rope.scale == 1.5);
    assert_true(good_with(phi3, "partial_rotary_factor", "0.4").turned == 38); /* of 96 */
    static const char *const refused[][3] = {
        {"partial_rotary_factor", "0", "it must be above 0 and at most 1"},
        {"partial_rotary_factor", "1.5", "it must be above 0 and at most 1"},
        {"partial_rotary_factor", "1", "short_factor must be a list of 4 numbers"},
        {"partial_rotary_factor", "1e-9", "it turns no pair of a head's elements"},
        {"original_max_position_embeddings", "1", "it is too small"},
        {"sliding_window", "0", "it must be null or above 0"},
        {"attention_bias", "true", "only false is supported"},
        {"lm_head_bias", "true", "only false is supported"},
        {"full_attn_mod", "2", "only 1 is supported"},

        {"rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 10000.0}",
         "rope_parameters differs from rope_theta and rope_scaling"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(i == 3 ? phi3 : phi4_mini, refused[i][0], refused[i][1], refused[i][2]);
    check_refused(phi3, "head_dim", "16", "32 heads of 16 elements don't make up a width of 3072");
    check_refused(phi3, "partial_rotary_factor", "0.35", "turns 33 of a head's 96 elements");
    static const char *const scalings[][3] = {
        {"type", "\"yarn\"", "default and longrope (su) are supported in the family phi3"},
        {"type", "7", "default and longrope (su) are supported in the family phi3"},
        {"short_factor", "[1, 2]", "short_factor must be a list of 3 numbers"},
        {"short_factor", NULL, "short_factor must be a list of 3 numbers"},
        {"long_factor", "[1, \"2\", 3]", "long_factor must be a list of 3 numbers"},
        {"factor", "1e7", "a factor from 1e-3 to 1e6"},
        {"long_factor", "[1, 0, 3]", "numbers from 1e-6 to 1e6 in short_factor and long_factor"},
        {"attention_factor", "0", "an attention_factor from 0 to 1e6"},
        {"original_max_position_embeddings", "2048", "it differs from that of the whole"},
        {"partial_rotary_factor", "0.5", "it differs from the other one of the file"},
        {"short_mscale", "1.2", "short_mscale is not supported"}};
    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++) {
        char *o = scaling(scalings[i][0], scalings[i][1]);
        check_refused(phi4_mini, "rope_scaling", o, scalings[i][2]);
        free(o);
    }
    check_refused(llama3, "rope_scaling", "{\"type\": \"longrope\"}",
                  "default, linear, llama3 and yarn are supported");
    check_refused(llama3, "partial_rotary_factor", "0.75", "only 1 is supported");
}

static void test_divisors(void **state) {
    (void)state;
    ls_rotation r = good(llama3).rope;
    for (int64_t i = 0; i < 64; i++) {
        double f = pow(500000, -2.0 * (double)i / 128), length = 2 * acos(-1) / f, want = 8;
        if (length < 2048) want = 1;
        double s = (8192 / length - 1) / 3;
        if (length >= 2048 && length <= 8192) want = 1 / ((1 - s) / 8 + s);
        assert_true(fabs(ls_rope_divisor(&r, 128, i) - want) < 1e-9);
    }
    /* transformers 5.24: frequencies without yarn over those with it */
    const ls_rotation yarns[] = {
        {.base = 1e6, .factor = 4, .low = 1, .high = 32, .original_context = 32768},
        {.base = 1e4, .factor = 8, .low = 0.5, .high = 16, .original_context = 64, .exact = true}};
    static const struct {
        int rotation, head_dim, i;
        double want;
    } recorded[] = {{0, 128, 20, 1},        {0, 128, 24, 1.046154}, {0, 128, 28, 1.283019},
                    {0, 128, 32, 1.658537}, {0, 128, 36, 2.344827}, {0, 128, 40, 4},
                    {0, 128, 63, 4},        {1, 16, 0, 1},          {1, 16, 1, 1.501991},
                    {1, 16, 2, 3.015990},   {1, 16, 3, 8}};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        r = yarns[recorded[i].rotation];
        r.type = LS_ROPE_YARN;
        double got = ls_rope_divisor(&r, recorded[i].head_dim, recorded[i].i);
        assert_true(fabs(got - recorded[i].want) < 2e-6);
    }
    r = good(llama3).rope;
    r.type = LS_ROPE_LINEAR;
    assert_true(ls_rope_divisor(&r, 128, 63) == 8);
    r.type = LS_ROPE_DEFAULT;
    assert_true(ls_rope_divisor(&r, 128, 63) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_rope_refused),
        cmocka_unit_test(test_phi3),
        cmocka_unit_test(test_divisors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
