/* partition_test.c - which hosts are left out, and when two hosts that are cut try again. */
#include "cluster/partition.h"

#include <string.h>

#include "test.h"

static const int64_t S = 1000000000;

static void cut(ls_partitions *k, uint64_t a, uint64_t b) {
    const uint64_t by_of[2] = {a, b};
    ls_partitions_blame(k, by_of, "why", S, 5 * S);
}

/* Hosts 1 to n, of which the first leads, with these workers; pairs of digits are cut; "N" marks
 * hosts with the newest state. Returns the hosts that are left out, as digits. */
static const char *choose(const char *workers, const char *cuts, const char *newest) {
    static char out[64];
    ls_partitions k = {0};
    ls_partition_host hosts[64] = {0};
    int n = (int)strlen(workers), at = 0;
    for (; *cuts; cuts += 2) cut(&k, (uint64_t)(cuts[0] - '0'), (uint64_t)(cuts[1] - '0'));
    for (int i = 0; i < n; i++)
        hosts[i] = (ls_partition_host){
            .host = (uint64_t)i + 1, .workers = workers[i] - '0', .newest = newest[i] == 'N'};
    ls_partitions_choose(&k, hosts, n);
    for (int i = 0; i < n; i++)
        if (hosts[i].out) out[at++] = (char)('1' + i);
    out[at] = 0;
    return out;
}

static void test_choice(void **state) {
    (void)state;
    assert_string_equal(choose("222", "", "NNN"), "");
    assert_string_equal(choose("222", "23", "NNN"), "3"); /* the last one */
    assert_string_equal(choose("212", "23", "NNN"), "2"); /* the most workers stay */
    assert_string_equal(choose("229", "31", "NNN"), "3"); /* the leader stays */
    assert_string_equal(choose("22222", "2345", "NNNNN"), "35");
    assert_string_equal(choose("22222", "232425", "NNNNN"), "2"); /* one for three */
    assert_string_equal(choose("29222", "232425", "NNNNN"), "345");
    assert_string_equal(choose("22222", "233445", "NNNNN"), "35");
    assert_string_equal(choose("222", "23", "--N"), "2"); /* only the third has the state */
    assert_string_equal(choose("223", "23", "-N-"), "3");
    assert_string_equal(choose("222", "23", "N-N"), "2"); /* all the same, one with the state */
    assert_string_equal(choose("22223", "12344525", "NNNNN"), "24"); /* 2 is cut from the leader */
}

/* With very many cuts, what is left has none, and the leader stays. */
static void test_many(void **state) {
    (void)state;
    ls_partitions k = {0};
    ls_partition_host hosts[40];
    for (int i = 0; i < 40; i++)
        hosts[i] = (ls_partition_host){.host = (uint64_t)i + 1, .workers = 1};
    for (int i = 1; i < 31; i++) cut(&k, (uint64_t)i + 1, (uint64_t)i + 2);
    ls_partitions_choose(&k, hosts, 40);
    int left = 0;
    for (int i = 0; i < 40; i++) {
        left += !hosts[i].out;
        for (int j = 0; j < i; j++)
            if (!hosts[i].out && !hosts[j].out)
                assert_null(ls_partitions_find(&k, hosts[i].host, hosts[j].host));
    }
    assert_false(hosts[0].out);
    assert_true(left >= 20);
}

/* Each blame doubles the time until the next attempt; both have to reach each other. */
static void test_again(void **state) {
    (void)state;
    ls_partitions k = {0};
    const uint64_t by_of[2] = {7, 9};
    int64_t now = S, pause = 5 * S;
    for (int i = 0; i < 4; i++, pause *= 2) {
        ls_partitions_blame(&k, by_of, "why", now, 5 * S);
        ls_partitions_blame(&k, (const uint64_t[2]){9, 7}, "as well", now, 5 * S);
        assert_non_null(ls_partitions_find(&k, 9, 7));
        assert_null(ls_partitions_due(&k, now + pause - 1, 5 * S));
        const ls_partition *c = ls_partitions_due(&k, now += pause, 5 * S);
        assert_non_null(c);
        assert_int_equal(c->blames, i + 1);
        assert_null(ls_partitions_due(&k, now, 5 * S));
        assert_false(ls_partitions_reached(&k, c->number + 1, 7));
        assert_false(ls_partitions_reached(&k, c->number, 7));
        assert_false(ls_partitions_reached(&k, c->number, 8));
        assert_true(ls_partitions_reached(&k, c->number, 9));
        assert_null(ls_partitions_find(&k, 7, 9));
        assert_null(ls_partitions_due(&k, now + 1000 * S, 5 * S));
    }
    ls_partitions_blame(&k, by_of, "why", now + 100000 * S, 5 * S); /* long after */
    assert_int_equal(k.all[0].blames, 1);
    assert_int_equal(k.n, 1);
    for (uint64_t i = 10; i < 200; i++) cut(&k, i, i + 1000);
    assert_int_equal(k.n, LS_PARTITIONS_MAX);
    assert_non_null(ls_partitions_find(&k, 7, 9)); /* the newest ones remain */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
