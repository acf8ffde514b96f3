/* shared_net_test.c - messages through shared memory: random messages between threads and between
 * processes; full rings; arenas with little or no room; messages that are forgotten, or whose
 * lengths differ; aborts. */
/* ctest: seconds=12 */
#include "net/local/shared_net.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

enum { MAX_ENDS = 5, MB = 1 << 20 };
#if defined(__SANITIZE_THREAD__)
enum { RANDOM = 60, LATE = 300 };
#else
enum { RANDOM = 400, LATE = 2000 };
#endif
static const ls_patience PATIENCE = {.looks = 1, .yields = 50};
static const int64_t MS = 1000 * 1000;

static uint64_t next_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t x = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Byte i of message k. */
static unsigned char byte_of(int k, size_t i) {
    return (unsigned char)(i * 31 + i / 256 + (size_t)k);
}

static void fill(unsigned char *p, size_t n, int k) {
    for (size_t i = 0; i < n; i++) p[i] = byte_of(k, i);
}
static bool is_filled(const unsigned char *p, size_t n, int k) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte_of(k, i)) return false;
    return true;
}

/* ---- random traffic ---- */

typedef struct letter {
    int from, to;
    size_t nbytes;
} letter;

typedef struct traffic {
    int size, nletters;
    uint64_t seed;
    size_t arena;
    size_t longest;  /* bytes */
    bool late;       /* no receive is posted before all has been sent */
    bool fill_arena; /* no room for copies */
    letter letters[2000];
    atomic_int *sent, *over; /* how many ends are so far; in memory that all share */
} traffic;

static void write_letters(traffic *t) {
    uint64_t s = t->seed;
    for (int k = 0; k < t->nletters; k++) {
        letter *l = &t->letters[k];
        static const size_t edges[] = {0, 1, 191, 192, 193, 4096, 256 * 1024, 256 * 1024 + 1};
        l->from = (int)(next_random(&s) % (uint64_t)t->size);
        l->to = (l->from + 1 + (int)(next_random(&s) % (uint64_t)(t->size - 1))) % t->size;
        uint64_t kind = next_random(&s) % 20;
        l->nbytes = kind < 12   ? next_random(&s) % 300
                    : kind < 16 ? edges[next_random(&s) % 8]
                    : kind < 19 ? next_random(&s) % 20000
                                : next_random(&s) % (t->longest + 1);
        if (l->nbytes > t->longest) l->nbytes = t->longest;
    }
}

typedef struct end {
    const traffic *t;
    ls_commons *c;
    ls_net *net;
    ls_message *messages; /* [nletters] */
    int left;             /* not done */
    uint64_t seed;
    const char *wrong;
} end;

static void post(end *x, int k, bool take_arena) {
    const letter *l = &x->t->letters[k];
    ls_message *m = &x->messages[k];
    bool send = l->from == x->net->rank;
    size_t most = k % 3 ? 0 : l->nbytes + 1 + (size_t)(k % 7) * 100; /* 0: all know the length */
    size_t room = !send && most ? most : l->nbytes;
    unsigned char *p = take_arena ? ls_commons_alloc(x->c, room) : NULL;
    if (!p) p = malloc(room + 1);
    if (send) fill(p, l->nbytes, k);
    *m = (ls_message){.peer = send ? l->to : l->from, .tag = (uint64_t)k * 77, .data = p};
    m->nbytes = room;
    m->most = most;
    m->print = (uint64_t)k + (send ? 5 : 9);
    m->owner = x;
    ls_status s = send ? x->net->ops->send(x->net, m, NULL) : x->net->ops->recv(x->net, m, NULL);
    if (s != LS_OK) x->wrong = "a message was refused";
    x->left++;
}

static void take(end *x, ls_message *done) {
    for (ls_message *m = done, *next; m; m = next) {
        next = m->next;
        int k = (int)(m - x->messages);
        bool sent = x->t->letters[k].from == x->net->rank;
        size_t nbytes = x->t->letters[k].nbytes;
        if (!is_filled(m->data, nbytes, k)) x->wrong = "other bytes";
        if (!sent && (m->their_print != (uint64_t)k + 5 || m->their_nbytes != nbytes))
            x->wrong = "another letter";
        memset(m->data, 0xee, m->nbytes); /* it belongs to this end again */
        if (!ls_commons_free(x->c, m->data)) free(m->data);
        x->left--;
    }
}

static void poll_once(end *x, int64_t timeout_ns) {
    ls_message *done = NULL;
    ls_error e = {0};
    if (x->net->ops->poll(x->net, timeout_ns, &done, &e) != LS_OK) x->wrong = "poll failed";
    take(x, done);
}

/* Posts the letters that this end sends, or receives, or both, in an order of its own. */
static void post_all(end *x, bool sends, bool receives) {
    const traffic *t = x->t;
    int *order = calloc((size_t)t->nletters, sizeof *order), n = 0;
    for (int k = 0; k < t->nletters; k++)
        if ((sends && t->letters[k].from == x->net->rank) ||
            (receives && t->letters[k].to == x->net->rank))
            order[n++] = k;
    for (int i = 0; i < n; i++) {
        int j = i + (int)(next_random(&x->seed) % (uint64_t)(n - i)), k = order[j];
        order[j] = order[i];
        post(x, k, next_random(&x->seed) % 4 == 0);
        if (next_random(&x->seed) % 16 == 0) poll_once(x, 0);
    }
    free(order);
}

static void wait_for_all(end *x, atomic_int *count) {
    int64_t limit = ls_clock_ns() + 120000 * MS;
    atomic_fetch_add(count, 1);
    while (atomic_load(count) < x->t->size && !x->wrong) {
        poll_once(x, MS);
        if (ls_clock_ns() > limit) x->wrong = "the others don't come";
    }
}

static const char *run_end(const traffic *t, ls_commons *c) {
    end x = {.t = t, .c = c, .net = ls_shared_net_open(c, &PATIENCE)};
    int64_t limit = ls_clock_ns() + 120000 * MS;
    void *filler[4096];
    int nfillers = 0;
    x.seed = t->seed * 100 + (uint64_t)c->rank;
    x.messages = calloc((size_t)t->nletters, sizeof *x.messages);
    for (size_t n = t->arena; t->fill_arena && n >= 128; n /= 2)
        while (nfillers < 4096 && (filler[nfillers] = ls_commons_alloc(c, n))) nfillers++;
    if (t->late) {
        post_all(&x, true, false);
        wait_for_all(&x, t->sent);
        post_all(&x, false, true);
    } else {
        post_all(&x, true, true);
    }
    while (x.left && !x.wrong) {
        poll_once(&x, 100 * MS);
        if (ls_clock_ns() > limit) x.wrong = "letters are missing";
    }
    wait_for_all(&x, t->over); /* the others may still wait for answers of this end */
    while (nfillers) ls_commons_free(c, filler[--nfillers]);
    if (!x.wrong) {
        void *all = ls_commons_alloc(c, t->arena); /* no copy was left in the arena */
        if (!all) x.wrong = "the arena is not free again";
        if (all) ls_commons_free(c, all);
    }
    x.net->ops->close(x.net);
    free(x.messages);
    return x.wrong;
}

typedef struct thread_end {
    pthread_t thread;
    const traffic *t;
    ls_commons c;
    const char *wrong;
} thread_end;

static void *thread_main(void *arg) {
    thread_end *x = arg;
    x->wrong = run_end(x->t, &x->c);
    return NULL;
}

static void run_threads(const traffic *t) {
    thread_end ends[MAX_ENDS];
    ls_error e = {0};
    assert_ls_ok(ls_commons_create(t->size, t->arena, true, &ends[0].c, &e), e);
    for (int i = 1; i < t->size; i++) ls_commons_share(&ends[0].c, i, &ends[i].c);
    for (int i = 0; i < t->size; i++) {
        ends[i].t = t;
        assert_int_equal(pthread_create(&ends[i].thread, NULL, thread_main, &ends[i]), 0);
    }
    for (int i = 0; i < t->size; i++) pthread_join(ends[i].thread, NULL);
    for (int i = 0; i < t->size; i++) {
        if (ends[i].wrong) print_error("end %d of %d: %s\n", i, t->size, ends[i].wrong);
        assert_null(ends[i].wrong);
        ls_commons_close(&ends[i].c);
    }
}

static void run_processes(const traffic *t) {
    ls_commons c, mine;
    ls_error e = {0};
    assert_ls_ok(ls_commons_create(t->size, t->arena, false, &c, &e), e);
    for (int i = 0; i < t->size; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid) continue;
        alarm(200);
        if (ls_commons_join(dup(c.fd), i, &mine, NULL) != LS_OK) _exit(2);
        const char *wrong = run_end(t, &mine);
        if (wrong) fprintf(stderr, "end %d of %d: %s\n", i, t->size, wrong);
        ls_commons_close(&mine);
        _exit(wrong ? 1 : 0);
    }
    int bad = 0;
    for (int i = 0, how = 0; i < t->size; i++) bad += wait(&how) <= 0 || how != 0;
    assert_int_equal(bad, 0);
    ls_commons_close(&c);
}

static void run_traffic(traffic *t) {
    atomic_int *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    t->sent = &seen[0];
    t->over = &seen[16];
    write_letters(t);
    for (int processes = 0; processes < 2; processes++) {
        atomic_store(t->sent, 0);
        atomic_store(t->over, 0);
        if (processes)
            run_processes(t);
        else
            run_threads(t);
    }
    munmap(seen, 4096);
}

static const int SIZES[] = {2, 3, 5};

static void test_random(void **state) {
    (void)state;
    static traffic t;
    for (int s = 0; s < 3; s++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            if (!runs_case(s + (int)seed, 3)) continue;
            t = (traffic){.size = SIZES[s], .seed = seed, .nletters = RANDOM, .longest = 2 * MB};
            t.arena = seed == 3 ? MB : 16 * MB;
            run_traffic(&t);
        }
}

/* Hundreds of letters have arrived before the first receive is posted. */
static void test_unexpected(void **state) {
    (void)state;
    static traffic t;
    for (int s = 0; s < 3; s++) {
        t = (traffic){.size = SIZES[s], .seed = 7, .nletters = LATE, .longest = 300000};
        t.arena = s ? MB : 16 * MB;
        t.late = true;
        run_traffic(&t);
    }
}

/* The user has allocated the whole arena: letters get through all the same. */
static void test_no_room(void **state) {
    (void)state;
    static traffic t;
    for (int s = 0; s < 3; s++) {
        t = (traffic){.size = SIZES[s], .seed = 11, .nletters = 100, .longest = 600000};
        t.arena = MB;
        t.fill_arena = true;
        run_traffic(&t);
    }
}

/* ---- two ends in one thread ---- */

typedef struct pair {
    ls_commons c[2];
    ls_net *net[2];
    ls_message *done[2]; /* what polls have returned */
} pair;

static void open_pair(pair *p, bool threads) {
    ls_error e = {0};
    *p = (pair){0};
    assert_ls_ok(ls_commons_create(2, 4 * MB, threads, &p->c[0], &e), e);
    if (threads)
        ls_commons_share(&p->c[0], 1, &p->c[1]);
    else
        assert_ls_ok(ls_commons_join(dup(p->c[0].fd), 1, &p->c[1], &e), e);
    for (int i = 0; i < 2; i++) p->net[i] = ls_shared_net_open(&p->c[i], &PATIENCE);
}

static void close_pair(pair *p) {
    for (int i = 0; i < 2; i++) p->net[i]->ops->close(p->net[i]);
    for (int i = 1; i >= 0; i--) ls_commons_close(&p->c[i]);
}

/* Polls both ends until nothing moves any more; returns how many messages were done. */
static int settle(pair *p) {
    int n = 0;
    for (int idle = 0; idle < 20; idle++)
        for (int i = 0; i < 2; i++) {
            ls_message *done = NULL;
            ls_error e = {0};
            assert_ls_ok(p->net[i]->ops->poll(p->net[i], 0, &done, &e), e);
            while (done) {
                ls_message *next = done->next;
                done->next = p->done[i];
                p->done[i] = done;
                done = next;
                n++;
                idle = 0;
            }
        }
    return n;
}

static ls_message *letter_new(int k, size_t nbytes, const void *owner, bool filled) {
    ls_message *m = calloc(1, sizeof *m);
    *m = (ls_message){.tag = (uint64_t)k, .data = malloc(nbytes + 1), .nbytes = nbytes};
    m->owner = (void *)(uintptr_t)owner;
    if (filled) fill(m->data, nbytes, k);
    return m;
}

static void letter_free(ls_message *m) {
    free(m->data);
    free(m);
}

enum { LETTERS = 60 };
static const size_t LENGTHS[] = {0, 100, 192, 193, 5000, 700000};

/* End `forgetter` (0: the sender) forgets every other batch of the letters in flight; the other
 * letters arrive. when: 0, before the other end has posted its own; 1, after that. What the
 * forgetting end no longer needs is freed at once. */
static void forget_half(bool threads, int forgetter, int when) {
    pair p;
    ls_message *m[2][LETTERS];
    void *announced[LETTERS] = {0};
    int owners[2];
    open_pair(&p, threads);
    for (int k = 0; k < LETTERS; k++)
        for (int i = 0; i < 2; i++) {
            m[i][k] = letter_new(k, LENGTHS[k % 6], &owners[k / 6 % 2], i == 0);
            m[i][k]->peer = 1 - i;
        }
    for (int i = 0; i < 2; i++) {
        int side = forgetter == 0 ? i : 1 - i; /* the end that forgets posts first */
        for (int k = 0; k < LETTERS; k++) {
            /* The receiver does not ask for forgotten letters. */
            bool forgotten = k / 6 % 2 == 0;
            if (i == 1 && forgotten && side == 1) continue;
            ls_net *net = p.net[side];
            ls_status s =
                side == 0 ? net->ops->send(net, m[0][k], NULL) : net->ops->recv(net, m[1][k], NULL);
            assert_int_equal(s, LS_OK);
        }
        if (i == when) {
            if (when && threads) settle(&p);
            p.net[forgetter]->ops->forget(p.net[forgetter], &owners[0]);
            for (int k = 0; k < LETTERS && !p.done[forgetter]; k++) {
                if (k / 6 % 2) continue;
                if (forgetter == 0) /* the receiver may still read its bytes */
                    announced[k] = m[forgetter][k]->data;
                else
                    free(m[forgetter][k]->data);
                free(m[forgetter][k]);
                m[forgetter][k] = NULL;
            }
        }
    }
    settle(&p);
    for (int i = 0; i < 2; i++) {
        int odd = 0;
        for (const ls_message *d = p.done[i]; d; d = d->next) {
            if (d->owner != &owners[1]) continue;
            odd++;
            assert_true(is_filled(d->data, d->nbytes, (int)d->tag));
        }
        assert_int_equal(odd, LETTERS / 2);
    }
    close_pair(&p);
    for (int k = 0; k < LETTERS; k++) {
        free(announced[k]);
        for (int i = 0; i < 2; i++)
            if (m[i][k]) letter_free(m[i][k]);
    }
}

static void test_forget(void **state) {
    (void)state;
    for (int threads = 0; threads < 2; threads++)
        for (int forgetter = 0; forgetter < 2; forgetter++)
            for (int when = 0; when < 2; when++) forget_half(threads, forgetter, when);
}

/* The lengths differ: the receiver learns the sender's, and its buffer is untouched; both messages
 * are done, the sender's memory is free again, and later letters arrive. */
static void test_lengths(void **state) {
    (void)state;
    static const size_t sent[] = {0, 100, 200, 1000, 2 * MB, 2 * MB, 100};
    static const size_t asked[] = {8, 0, 199, 1001, MB, 100, 2 * MB};
    for (int threads = 0; threads < 2; threads++)
        for (int first = 0; first < 2; first++) {
            pair p;
            ls_message *m[2][8];
            open_pair(&p, threads);
            for (int i = 0; i < 2; i++) {
                int side = first ? 1 - i : i;
                for (int k = 0; k < 8; k++) {
                    size_t n = k == 7 ? 3000 : side ? asked[k] : sent[k];
                    m[side][k] = letter_new(k, n, NULL, side == 0);
                    m[side][k]->peer = 1 - side;
                    if (side) memset(m[1][k]->data, 0xaa, n);
                    ls_net *net = p.net[side];
                    if (side)
                        net->ops->recv(net, m[side][k], NULL);
                    else
                        net->ops->send(net, m[side][k], NULL);
                }
            }
            assert_int_equal(settle(&p), 16);
            for (int k = 0; k < 7; k++) {
                assert_int_equal(m[1][k]->their_nbytes, sent[k]);
                for (size_t i = 0; i < asked[k]; i++)
                    assert_int_equal(((unsigned char *)m[1][k]->data)[i], 0xaa);
            }
            assert_true(is_filled(m[1][7]->data, 3000, 7));
            void *all = ls_commons_alloc(&p.c[0], 4 * MB);
            assert_non_null(all);
            close_pair(&p);
            for (int k = 0; k < 8; k++) {
                letter_free(m[0][k]);
                letter_free(m[1][k]);
            }
        }
}

/* ---- a group that is called off ---- */

typedef struct sleeper {
    ls_net *net;
    ls_status status;
} sleeper;

static void *sleeper_main(void *arg) {
    sleeper *s = arg;
    ls_message *done = NULL;
    ls_error e = {0};
    do s->status = s->net->ops->poll(s->net, -1, &done, &e);
    while (s->status == LS_OK);
    return NULL;
}

static void test_called_off(void **state) {
    (void)state;
    for (int stuck = 0; stuck < 2; stuck++) {
        pair p;
        open_pair(&p, true);
        ls_message many[40];
        for (int k = 0; k < 40 && stuck; k++) { /* more than the ring holds */
            many[k] = (ls_message){.peer = 1, .tag = (uint64_t)k};
            p.net[0]->ops->send(p.net[0], &many[k], NULL);
        }
        sleeper s = {.net = p.net[0]};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &s), 0);
        ls_bell *bell = &ls_commons_worker_of(&p.c[0], 0)->bell;
        while (!atomic_load(&bell->sleeping)) usleep(100);
        unsigned rung = atomic_load(&bell->rung);
        ls_commons_call_off(&p.c[0]);
        pthread_join(thread, NULL);
        assert_int_equal(s.status, LS_EABORT);
        if (!stuck) assert_true(atomic_load(&bell->rung) > rung); /* it was woken */
        ls_message *done = NULL;
        ls_error e = {0};
        for (int i = 0; i < 2; i++)
            assert_ls_fails(p.net[i]->ops->poll(p.net[i], -1, &done, &e), LS_EABORT, "ended", e);
        p.net[0]->ops->forget(p.net[0], NULL);
        close_pair(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),  cmocka_unit_test(test_unexpected),
        cmocka_unit_test(test_no_room), cmocka_unit_test(test_forget),
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_called_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
