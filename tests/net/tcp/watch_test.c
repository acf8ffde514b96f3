/* watch_test.c - workers answer whatever they do: what they have published, and what news they have
 * of a group. One worker does not answer, and one is gone. */
#include "net/tcp/watch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

/* ABSENT is gone. MUTE accepts connections and does not answer. */
enum { WORKERS = 5, ABSENT = 3, MUTE = 4 };
static const ls_key KEY = {"one key of thirty-two characters"};
static const int64_t LONG_NS = (int64_t)120 * 1000000000, SHORT_NS = 1000000000;

typedef struct crew {
    ls_roster_entry members[WORKERS];
    int fds[WORKERS];
    ls_watch *w[WORKERS];
} crew;

static void crew_start(crew *c, const ls_key *key) {
    *c = (crew){0};
    for (int i = 0; i < WORKERS; i++) {
        struct sockaddr_in *a = (struct sockaddr_in *)&c->members[i].address;
        socklen_t n = sizeof *a;
        *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        c->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(c->fds[i], (struct sockaddr *)a, n), 0);
        if (i != ABSENT) assert_int_equal(listen(c->fds[i], 64), 0);
        assert_int_equal(getsockname(c->fds[i], (struct sockaddr *)a, &n), 0);
        c->members[i].pid = 1000 + i;
        c->members[i].host = i < 3 ? 7 : 8;
    }
    for (int i = 0; i < ABSENT; i++) {
        ls_error e = {0};
        ls_roster r = {.size = WORKERS, .members = c->members, .nonce = {11, 22}};
        r.listen_fd = c->fds[i];
        assert_ls_ok(ls_watch_start(&r, i, key, &c->w[i], &e), e);
    }
}

static void crew_stop(crew *c) {
    for (int i = 0; i < ABSENT; i++) ls_watch_stop(c->w[i]);
    for (int i = ABSENT; i < WORKERS; i++) close(c->fds[i]);
}

/* Asks, and gives the others more time while one that is not MUTE has not answered. */
static void ask_all_but_mute(ls_watch *w, int group, const ls_news *news, ls_inquiry *q, int n) {
    bool late = true;
    for (int64_t ns = SHORT_NS; late && ns < LONG_NS; ns *= 2) {
        ls_watch_ask(w, group, news, q, n, ns);
        late = false;
        for (int i = 0; i < n; i++)
            late = late || (q[i].rank != MUTE && q[i].status == LS_ETIMEOUT);
    }
}

static void test_ask(void **state) {
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        crew c;
        crew_start(&c, keyed ? &KEY : NULL);
        ls_inquiry q[] = {{.rank = 1}, {.rank = ABSENT}, {.rank = 2}};
        ls_watch_publish(c.w[1], 5, 0, "of five", 8);
        ls_watch_publish(c.w[1], 6, 0, "of six", 7);
        ls_watch_ask(c.w[0], 5, NULL, q, 3, LONG_NS);
        assert_int_equal(q[0].status, LS_OK);
        assert_string_equal((char *)q[0].data, "of five");
        assert_int_equal(ls_watch_pid(c.w[0], 1), 1001);
        assert_true(ls_watch_is_here(c.w[0], 1));
        assert_int_equal(q[1].status, LS_EPEER);
        assert_false(ls_watch_is_here(c.w[0], ABSENT));
        assert_int_equal(q[2].status, LS_OK);
        assert_int_equal(q[2].data[0], 0);
        crew_stop(&c);
    }
}

/* A worker that does not answer does not delay the others' answers. */
static void test_mute(void **state) {
    (void)state;
    crew c;
    crew_start(&c, &KEY);
    ls_inquiry q[] = {{.rank = MUTE}, {.rank = 1}, {.rank = MUTE}, {.rank = 2}};
    ask_all_but_mute(c.w[0], 0, NULL, q, 4);
    assert_int_equal(q[0].status, LS_ETIMEOUT);
    assert_int_equal(q[1].status, LS_OK);
    assert_int_equal(q[2].status, LS_ETIMEOUT);
    assert_int_equal(q[3].status, LS_OK);
    crew_stop(&c);
}

static void test_news(void **state) {
    (void)state;
    crew c;
    crew_start(&c, &KEY);
    ls_news news = {.group = 77, .text = "it can't go on"}, found = {0};
    ls_inquiry q[] = {{.rank = 1}, {.rank = ABSENT}, {.rank = MUTE}};
    assert_false(ls_watch_find_news(c.w[1], 9, 77, &found));
    ask_all_but_mute(c.w[0], 9, &news, q, 3);
    assert_int_equal(q[0].status, LS_OK);
    assert_true(ls_watch_find_news(c.w[1], 9, 77, &found));
    assert_string_equal(found.text, "it can't go on");
    /* Another group that had this number. */
    assert_false(ls_watch_find_news(c.w[1], 9, 78, &found));
    assert_false(ls_watch_find_news(c.w[1], 8, 77, &found));
    assert_false(ls_watch_find_news(c.w[0], 9, 77, &found));
    /* A worker that asks gets the news, too. */
    ls_watch_ask(c.w[2], 9, NULL, q, 1, LONG_NS);
    assert_int_equal(q[0].status, LS_OK);
    assert_int_equal(q[0].news.group, 77);
    assert_string_equal(q[0].news.text, "it can't go on");
    ls_watch_store_news(c.w[0], 9, &news);
    assert_true(ls_watch_find_news(c.w[0], 9, 77, &found));
    crew_stop(&c);
}

/* More workers than are asked at a time. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 150 };
    crew c;
    static ls_inquiry q[MANY];
    crew_start(&c, NULL);
    for (int i = 0; i < MANY; i++) q[i] = (ls_inquiry){.rank = i % 2 ? ABSENT : 1 + i / 2 % 2};
    ls_watch_publish(c.w[2], 0, 0, "two", 4);
    ls_watch_ask(c.w[0], 0, NULL, q, MANY, LONG_NS);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(q[i].status, i % 2 ? LS_EPEER : LS_OK);
        if (q[i].rank == 2) assert_string_equal((char *)q[i].data, "two");
    }
    crew_stop(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_mute),
        cmocka_unit_test(test_news),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
