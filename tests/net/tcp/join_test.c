/* join_test.c - groups form over TCP in whatever order workers join, and whatever else connects;
 * strangers don't disturb running workers; workers that are missing, lost or stopped are named.
 */
/* ctest: slow seconds=25 */
#include "net/tcp/join.h"

#include <sched.h>

#include "free_port.h"
#include "net/crew.h"
#include "net/tcp/conn.h"

/* ---- which workers join, and when ---- */

static void test_any_order(void **state) {
    (void)state;
    static const int delays[][4] = {{0}, {300, 0, 0, 0}, {300, 200, 100, 0}, {0, 300, 0, 150}};
    for (int i = 0; i < 8; i++)
        for (int plain = 0; plain < 2; plain++) {
            if (!runs_case(i + plain, 2)) continue;
            crew *c = crew_new(4, once);
            c->plain = plain;
            c->bind_itself = i >= 4;
            for (int k = 0; k < 4; k++) c->workers[k].delay_ms = delays[i % 4][k];
            crew_start(c);
            crew_wait(c);
            check_all_well(c);
            free(c);
        }
}

/* Workers 2 and 4 never join; `last` joins after the other two. False: on a busy machine one of the
 * three has not joined within the time either. */
static bool miss_two(bool plain, int last, double timeout_s) {
    char want[64];
    snprintf(want, sizeof want, "2 of 5 workers did not join within %.1f s: 2 4", timeout_s);
    crew *c = crew_new(5, once);
    c->plain = plain;
    c->o.timeout_s = timeout_s;
    c->workers[2].absent = c->workers[4].absent = true;
    c->workers[last].delay_ms = 300;
    crew_start(c);
    crew_wait(c);
    bool joined = strstr(reports[0].msg, want) || timeout_s > 20;
    for (int i = 0; i < 4 && joined; i++)
        if (i != 2) check_worker(c, i, LS_ETIMEOUT, want);
    free(c);
    return joined;
}

static void test_missing(void **state) {
    (void)state;
    static const int last[] = {0, 1, 3};
    for (int plain = 0; plain < 2; plain++)
        for (int i = 0; i < 3; i++) {
            double timeout_s = 0.8;
            while (!miss_two(plain, last[i], timeout_s)) timeout_s *= 2;
        }
}

static void test_no_worker_0(void **state) {
    (void)state;
    crew *c = crew_new(3, once);
    c->o.timeout_s = 0.5;
    c->bind_itself = true;
    c->workers[0].absent = true;
    crew_start(c);
    crew_wait(c);
    for (int i = 1; i < 3; i++) {
        check_worker(c, i, LS_ETIMEOUT, "worker 0 did not listen at 127.0.0.1:");
        check_worker(c, i, LS_ETIMEOUT, "within 0.5 s");
    }
    free(c);
}

/* Worker 1 is killed after `ms` and joins again. False: on a busy machine it had not joined before,
 * or worker 0 had not noticed its end. */
static bool join_again(int ms) {
    crew *c = crew_new(4, once);
    c->size = 3;
    c->o.timeout_s = 60;
    c->workers[2].waits = true;
    c->workers[3] = (crew_worker){.rank = 1, .waits = true};
    crew_start(c);
    pause_ms(ms);
    kill(c->pids[1], SIGKILL);
    pause_ms(ms);
    atomic_store(over, 1);
    crew_wait(c);
    if (ms <= 10000 && strstr(c->text, "worker 1 has already joined")) {
        free(c);
        return false;
    }
    check_worker(c, 0, LS_OK, NULL);
    check_worker(c, 2, LS_OK, NULL);
    check_worker(c, 3, LS_OK, NULL); /* the second worker 1 */
    bool had_joined = strstr(c->text, "it disconnected");
    if (ms > 10000) check_log(c, "it disconnected");
    free(c);
    return had_joined;
}

/* A worker that has joined dies before the group is complete, and joins again. */
static void test_comes_again(void **state) {
    (void)state;
    int ms = 100;
    while (!join_again(ms)) ms *= 2;
}

/* ---- where workers listen ---- */

static void check_doors(const crew *c, int from, const char *address) {
    for (int i = from; i < c->n; i++) {
        const char *at = reports[i].doors;
        if (strncmp(at, address, strlen(address)) == 0 && strchr(at, ' ') == strrchr(at, ' '))
            continue;
        fail_msg("worker %d listens at %s, not at %s; log:\n%s", i, at, address, c->text);
    }
}

/* Worker 0 listens at the address that it was given, the others where they reach worker 0 from. */
static void test_doors(void **state) {
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost", "127.0.0.2"};
    for (int i = 0; i < 4; i++) {
        crew *c = crew_new(3, once);
        c->looks = true;
        c->bind_itself = i > 0;
        c->host = i ? hosts[i - 1] : NULL;
        c->plain = i == 1;
        crew_start(c);
        crew_wait(c);
        check_all_well(c);
        if (i != 2) check_doors(c, 1, "127.0.0.1:"); /* localhost may be ::1 */
        if (i == 3) check_doors(&(crew){.n = 1}, 0, "127.0.0.2:");
        if (i < 2) check_doors(c, 0, "127.0.0.1:");
        for (int k = 0; k < 3; k++) assert_null(strstr(reports[k].doors, "0.0.0.0:"));
        assert_null(strstr(c->text, "all addresses"));
        free(c);
    }
    /* Workers with LOCKSTEP_LISTEN listen there, and connect from there. */
    crew *c = crew_new(3, once);
    c->looks = c->bind_itself = true;
    setenv("LOCKSTEP_LISTEN", "127.0.0.3", 1);
    c->host = "127.0.0.3";
    crew_start(c);
    crew_wait(c);
    unsetenv("LOCKSTEP_LISTEN");
    check_all_well(c);
    check_doors(c, 0, "127.0.0.3:");
    free(c);
}

/* A host's own name is often a loopback address there (127.0.1.1), and another address elsewhere;
 * an address may be forwarded. Worker 0 can be reached all the same, and logs where it listens. */
static void test_other_addresses(void **state) {
    (void)state;
    crew *c = crew_new(1, nothing);
    c->size = 2;
    c->bind_itself = true;
    c->host = "192.0.2.1"; /* no host has it */
    c->o.timeout_s = 0.2;
    crew_start(c);
    crew_wait(c);
    check_worker(c, 0, LS_ETIMEOUT, "did not join");
    check_log(c, "worker 0 listens at all addresses of this host, port ");
    check_log(c, "'192.0.2.1' is not an address of this host");
    free(c);
    c = crew_new(1, nothing);
    c->size = 2;
    c->bind_itself = true;
    setenv("LOCKSTEP_LISTEN", "192.0.2.1", 1);
    c->o.timeout_s = 0.2;
    crew_start(c);
    crew_wait(c);
    unsetenv("LOCKSTEP_LISTEN");
    check_worker(c, 0, LS_EIO, "can't listen at 192.0.2.1:");
    free(c);
}

/* ---- the ports after torchrun's ---- */

enum { PORTS = 9 }; /* of torchrun's agent, and those after it that worker 0 may take */

/* Binds ports that follow each other, on 127.0.0.1; returns the first. */
static int bind_ports(int fds[PORTS]) {
    for (int tries = 0; tries < 1000; tries++) {
        int first = free_port(), n = 0;
        for (; n < PORTS; n++) {
            struct sockaddr_in a = {.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)(first + n)),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            fds[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (bind(fds[n], (struct sockaddr *)&a, sizeof a) == 0 &&
                (n == 0 || port_reserve(first + n)))
                continue;
            close(fds[n]);
            break;
        }
        if (n == PORTS) return first;
        while (n > 0) close(fds[--n]);
    }
    fail_msg("no %d ports in a row are free", PORTS);
    return 0;
}

/* Only the first `held` ports stay bound. */
static void free_others(crew *c, int fds[PORTS], int held) {
    for (int i = held; i < c->nheld; i++) close(fds[i]);
    c->nheld = held;
}

static crew *torchrun_new(int n, int fds[PORTS]) {
    crew *c = crew_new(n, once);
    c->torchrun = true;
    c->port = bind_ports(fds);
    c->held = fds;
    c->nheld = PORTS;
    assert_int_equal(listen(fds[0], 1024), 0);
    return c;
}

static void torchrun_run(crew *c, int fds[PORTS]) {
    crew_start(c);
    crew_wait(c);
    free_others(c, fds, 0);
}

static void check_port(const crew *c, int i, int port) {
    if (reports[i].port != port)
        fail_msg("worker %d listens at port %d, not at %d; log:\n%s", i, reports[i].port, port,
                 c->text);
}

/* The port after the agent's, or the next one where a connection of another program has that. */
static void test_torchrun(void **state) {
    (void)state;
    for (int taken = 0; taken < 2; taken++)
        for (int plain = 0; plain < 2; plain++) {
            int fds[PORTS];
            crew *c = torchrun_new(3, fds);
            struct sockaddr_in agent = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)c->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            c->plain = plain;
            free_others(c, fds, 1 + taken);
            if (taken)
                assert_int_equal(connect(fds[1], (struct sockaddr *)&agent, sizeof agent), 0);
            torchrun_run(c, fds);
            check_all_well(c);
            check_port(c, 0, c->port + 1 + taken);
            free(c);
        }
}

/* Accepts connections and closes them, until it is killed. */
static pid_t rude_server(int fd) {
    assert_int_equal(listen(fd, 64), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(240);
        for (;;) close(accept(fd, NULL, NULL));
    }
    return pid;
}

static void rude_server_end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Other programs listen at the ports after the agent's: one that closes connections and, with
 * TLS, one that says nothing. */
static void test_torchrun_other_programs(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        int fds[PORTS], held = plain ? 2 : 3;
        crew *c = torchrun_new(3, fds);
        c->plain = plain;
        free_others(c, fds, held);
        pid_t pid = rude_server(fds[1]);
        if (!plain) assert_int_equal(listen(fds[2], 64), 0);
        torchrun_run(c, fds);
        rude_server_end(pid);
        check_all_well(c);
        check_port(c, 0, c->port + held);
        free(c);
    }
}

/* Two torchruns with neighbouring ports, the same size and the same key: a worker of the second
 * reaches the first one's worker 0, which waits for a worker of this rank, and looks further. */
static void test_torchrun_neighbours(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        int fds[PORTS];
        crew *c = torchrun_new(4, fds);
        c->plain = plain;
        c->size = 2;
        c->o.timeout_s = 60;
        free_others(c, fds, 2);
        pid_t pid = rude_server(fds[1]); /* the second agent */
        c->workers[1].waits = true;
        c->workers[2] = (crew_worker){.rank = -1, .further = 1, .delay_ms = 100};
        c->workers[3] = (crew_worker){.rank = 1, .further = 1, .delay_ms = 200};
        crew_start(c);
        await_log(c, "it belongs to another group");
        crew_stop(c);
        rude_server_end(pid);
        free_others(c, fds, 0);
        for (int i = 0; i < 4; i++) check_worker(c, i, LS_OK, NULL);
        free(c);
    }
}

static void test_torchrun_no_port(void **state) {
    (void)state;
    int fds[PORTS];
    char want[128];
    crew *c = torchrun_new(2, fds);
    c->o.timeout_s = 0.5;
    torchrun_run(c, fds);
    snprintf(want, sizeof want, "can't listen at 127.0.0.1:%d, nor at the 7 ports after it",
             c->port + 1);
    check_worker(c, 0, LS_EIO, want);
    snprintf(want, sizeof want, "worker 0 did not listen at 127.0.0.1:%d to %d within 0.5 s",
             c->port + 1, c->port + 8);
    check_worker(c, 1, LS_ETIMEOUT, want);
    c->port = 65535;
    crew_start(c);
    crew_wait(c);
    check_worker(c, 1, LS_EINVAL, "MASTER_PORT is 65535");
    free(c);
}

/* ---- impostors ---- */

typedef struct impostor {
    crew_worker worker;
    bool plain; /* the group */
    ls_status status;
    const char *error, *logged;
} impostor;

static void test_impostors(void **state) {
    (void)state;
    static const impostor tries[] = {
        {{.rank = 1},
         false,
         LS_EPEER,
         "worker 1 has already joined",
         "worker 1 has already joined"},
        {{.rank = 1}, true, LS_EPEER, "worker 1 has already joined", "worker 1 has already joined"},
        {{.rank = 2, .size = 5},
         false,
         LS_EPEER,
         "it belongs to a group of 5 workers, this one has 3",
         "it belongs to a group of 5 workers"},
        {{.rank = 2, .secret = "another secret of enough characters"},
         false,
         LS_EPEER,
         "join key",
         "is dropped: "},
        {{.rank = 2, .plain = true}, false, LS_EPEER, "closed", "is dropped: "},
        {{.rank = 2, .plain = true}, true, LS_EPEER, "join key", "is dropped: "},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        crew *c = crew_new(4, once);
        c->size = 3;
        c->o.timeout_s = 60;
        c->plain = tries[i].plain;
        c->workers[2].waits = true;
        c->workers[3] = tries[i].worker;
        crew_start(c);
        await_log(c, tries[i].logged);
        atomic_store(over, 1);
        crew_wait(c);
        /* The second process that claims to be worker 1 is the impostor. */
        int bad = reports[3].status == LS_OK && tries[i].worker.rank == 1 ? 1 : 3;
        for (int k = 0; k < 4; k++)
            if (k != bad) check_worker(c, k, LS_OK, NULL);
        check_worker(c, bad, tries[i].status, tries[i].error);
        free(c);
    }
}

/* ---- strangers ---- */

enum { IDLE = 200, STRANGERS = IDLE + 16 };

typedef struct crowd {
    int fds[STRANGERS];
    int n, slow;
} crowd;

static int connect_to(crowd *x, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    x->fds[x->n++] = fd;
    return fd;
}

static void say(int fd, const void *data, size_t n) {
    if (send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return; /* it was dropped already */
}

static void say_frame(int fd, int kind, uint64_t nbytes, size_t more) {
    unsigned char b[LS_FRAME_NBYTES + 256] = {0x53, 0x4c};
    b[2] = (unsigned char)kind;
    for (int i = 0; i < 8; i++) b[24 + i] = (unsigned char)(nbytes >> 8 * i);
    memset(b + LS_FRAME_NBYTES, 1, 256);
    say(fd, b, LS_FRAME_NBYTES + more);
}

/* Connects strangers of all kinds to a port. */
static void crowd_comes(crowd *x, int port) {
    static const unsigned char record[] = {0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc};
    unsigned char garbage[5000];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof garbage; i++) {
        seed = seed * 1664525 + 1013904223;
        garbage[i] = (unsigned char)(seed >> 24);
    }
    *x = (crowd){0};
    for (int i = 0; i < IDLE; i++) connect_to(x, port);
    say(connect_to(x, port), garbage, sizeof garbage);
    say(connect_to(x, port), "GET / HTTP/1.1\r\n\r\n", 18);
    say(connect_to(x, port), record, sizeof record); /* a TLS record that never ends */
    for (int kind = 0; kind < 4; kind++)
        say_frame(connect_to(x, port), kind, (uint64_t)1 << 62, 200);
    say_frame(connect_to(x, port), 1, 32, 7); /* a hello, or a greeting, that never ends */
    say_frame(connect_to(x, port), 1, 24, 7);
    say_frame(connect_to(x, port), 1, 32, 32); /* and complete ones without sense */
    say_frame(connect_to(x, port), 1, 24, 24);
    x->slow = connect_to(x, port);
    struct linger hard = {.l_onoff = 1};
    close(connect_to(x, port));
    x->n--;
    setsockopt(connect_to(x, port), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(x->fds[--x->n]); /* with a reset */
}

static void crowd_goes(crowd *x) {
    for (int i = 0; i < x->n; i++) close(x->fds[i]);
}

/* A peer whose hello is impossible is named by its address. */
static void test_odd_hellos(void **state) {
    (void)state;
    static const struct {
        uint32_t hello[8]; /* protocol, rank, size, port (16 bits) and meeting, host (2), pid (2) */
        const char *says;
    } odd[] = {
        {{1, 1, 3, 80, 0, 0, 1}, "it uses version 1 of the protocol, not 2"},
        {{2, 1, 1u << 31, 80, 0, 0, 1},
         "it belongs to a group of 2147483648 workers, this one has 3"},
        {{2, 3, 3, 80, 0, 0, 1}, "it claims to be worker 3 of 3 that listens on port 80"},
        {{2, 0, 3, 80, 0, 0, 1}, "it claims to be worker 0 of 3 that listens on port 80"},
        {{2, 1, 3, 65536 + 80, 0, 0, 1},
         "it belongs to another group, which meets at another port"},
        {{2, UINT32_MAX, 3, 0, 0, 0, 1},
         "it claims to be worker 4294967295 of 3 that listens on port 0"},
        {{2, 1, 3, 80}, "it sent an invalid process id"},
        {{2, 1, 3, 80, 0, 0, 1, 1}, "it sent an invalid process id"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        crew *c = crew_new(3, once);
        unsigned char frame[LS_FRAME_NBYTES + 32] = {0x53, 0x4c, 1};
        crowd x = {.n = 0};
        c->plain = true;
        c->workers[1].waits = true;
        crew_start(c);
        frame[24] = 32;
        memcpy(frame + LS_FRAME_NBYTES, odd[i].hello, sizeof odd[i].hello);
        say(connect_to(&x, c->port), frame, sizeof frame);
        await_log(c, "a connection from 127.0.0.1:");
        await_log(c, odd[i].says);
        atomic_store(over, 1);
        crew_wait(c);
        crowd_goes(&x);
        check_all_well(c);
        free(c);
    }
}

/* One of the strangers sends a byte now and then. */
static void crowd_waits(crowd *x, int ms) {
    for (int64_t end = ls_clock_ns() + (int64_t)ms * 1000000; ls_clock_ns() < end; pause_ms(300))
        say(x->slow, "S", 1);
}

static void test_strangers_while_forming(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        crowd x;
        crew *c = crew_new(4, once);
        c->plain = plain;
        c->workers[1].delay_ms = 300;
        c->workers[2].delay_ms = 600;
        c->workers[3].delay_ms = 1500;
        crew_start(c);
        crowd_comes(&x, c->port);
        crowd_waits(&x, 1300);
        crew_wait(c);
        crowd_goes(&x);
        check_all_well(c);
        check_log(c, "a connection from 127.0.0.1:");
        check_log(c, "is dropped: ");
        free(c);
    }
}

static void test_strangers_at_running_workers(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        crowd x[3];
        crew *c = crew_new(3, many);
        c->plain = plain;
        crew_start(c);
        crew_await(c, 4);
        for (int i = 0; i < 3; i++) crowd_comes(&x[i], reports[i].port);
        int rounds = atomic_load(&reports[0].rounds);
        crowd_waits(&x[1], 1000);
        crew_await(c, rounds + 8);
        crew_stop(c);
        for (int i = 0; i < 3; i++) crowd_goes(&x[i]);
        check_all_well(c);
        check_log(c, " dropped: "); /* for whatever reason */
        free(c);
    }
}

/* The first connections between workers are made while strangers hold connections to all of
 * them. */
static ls_status after_a_while(int rank, ls_group *g, ls_error *e) {
    reports[rank].port = listening_port();
    atomic_store(&reports[rank].rounds, 1);
    while (!atomic_load(over)) pause_ms(5);
    return once(rank, g, e);
}

static void test_strangers_come_first(void **state) {
    (void)state;
    crowd x[3];
    crew *c = crew_new(3, after_a_while);
    crew_start(c);
    crew_await(c, 1);
    for (int i = 0; i < 3; i++) crowd_comes(&x[i], reports[i].port);
    crew_stop(c);
    for (int i = 0; i < 3; i++) crowd_goes(&x[i]);
    check_all_well(c);
    free(c);
}

/* ---- workers that are lost or stopped ---- */

static void kill_one(int n, int victim, const char *algorithm, bool plain) {
    crew *c = crew_new(n, many);
    char name[32];
    c->plain = plain;
    c->o.timeout_s = 60;
    c->o.algorithm = algorithm;
    crew_start(c);
    crew_await(c, 5);
    kill(c->pids[victim], SIGKILL);
    crew_wait(c);
    snprintf(name, sizeof name, "lost worker %d (pid %d", victim, c->pids[victim]);
    for (int i = 0; i < n; i++) {
        if (i != victim) check_worker(c, i, LS_EPEER, name);
    }
    free(c);
}

static void test_killed(void **state) {
    (void)state;
    static const char *const algorithms[] = {NULL, "ring", "double_tree", "halving"};
    for (int plain = 0; plain < 2; plain++)
        for (int a = 0; a < 4; a++) {
            if (!runs_case(a + plain, 2)) continue;
            kill_one(2, 1, algorithms[a], plain);
            kill_one(3, 0, algorithms[a], plain);
            kill_one(8, 3, algorithms[a], plain);
        }
}

static void test_stopped(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        char name[64];
        crew *c = crew_new(3, many);
        c->plain = plain;
        c->o.report_s = 0.3;
        crew_start(c);
        crew_await(c, 5);
        kill(c->pids[1], SIGSTOP);
        snprintf(name, sizeof name, "worker 1 (pid %d) is stopped", c->pids[1]);
        await_log(c, name);
        kill(c->pids[1], SIGCONT);
        crew_stop(c);
        check_all_well(c);
        free(c);
    }
}

/* A worker stays stopped: the time limit ends the others' calls. */
static void test_stays_stopped(void **state) {
    (void)state;
    crew *c = crew_new(3, many);
    c->o.timeout_s = 4; /* the rounds before must not take longer */
    c->o.report_s = 0.3;
    crew_start(c);
    crew_await(c, 5);
    kill(c->pids[1], SIGSTOP);
    for (int i = 0; i < 3; i += 2) {
        for (int ms = 0; ms < 120000 && !reports[i].end; ms++) pause_ms(1);
        assert_true(reports[i].status == LS_ETIMEOUT || reports[i].status == LS_EPEER);
    }
    kill(c->pids[1], SIGKILL);
    crew_wait(c);
    check_log(c, "is stopped");
    free(c);
}

/* ---- how long it takes: printed, not checked ---- */

static void test_time(void **state) {
    (void)state;
    static const int sizes[] = {2, 8, 32, 64};
    for (int plain = 1; plain >= 0; plain--)
        for (int s = 0; s < ncases(3, 4); s++) {
            crew *c = crew_new(sizes[s], nothing);
            int64_t first = INT64_MAX, open = 0, end = 0;
            c->plain = plain;
            crew_start(c);
            crew_wait(c);
            check_all_well(c);
            for (int i = 0; i < c->n; i++) {
                if (reports[i].came < first) first = reports[i].came;
                if (reports[i].open > open) open = reports[i].open;
                if (reports[i].end > end) end = reports[i].end;
            }
            print_message("%2d workers, %s: formed in %4.0f ms, first barrier done at %4.0f ms\n",
                          c->n, plain ? "plain" : "TLS  ", (double)(open - first) / 1e6,
                          (double)(end - first) / 1e6);
            free(c);
        }
}

/* ---- hosts ---- */

/* The host's number as a child process sees it, 0: the child can't have processes of its own. */
static uint64_t number_in_child(bool contained) {
    int ends[2];
    uint64_t number = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        bool made =
            !contained || unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
        if (made && fork() == 0) {
            number = ls_host_number();
            _exit(write(ends[1], &number, sizeof number) != sizeof number);
        }
        wait(NULL);
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &number, sizeof number) != sizeof number) number = 0;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return number;
}

/* A process's number means another process in another container. */
static void test_containers(void **state) {
    (void)state;
    assert_true(number_in_child(false) == ls_host_number());
    uint64_t other = number_in_child(true);
    if (!other) skip_because("hosts: no namespaces of processes");
    assert_true(other != ls_host_number());
}

/* join_test [name]: runs one of the tests. */
int main(int argc, char **argv) {
    if (crew_set_up() != 0) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_no_worker_0),
        cmocka_unit_test(test_comes_again),
        cmocka_unit_test(test_doors),
        cmocka_unit_test(test_other_addresses),
        cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_torchrun_other_programs),
        cmocka_unit_test(test_torchrun_neighbours),
        cmocka_unit_test(test_torchrun_no_port),
        cmocka_unit_test(test_impostors),
        cmocka_unit_test(test_odd_hellos),
        cmocka_unit_test(test_strangers_while_forming),
        cmocka_unit_test(test_strangers_at_running_workers),
        cmocka_unit_test(test_strangers_come_first),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_stays_stopped),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_containers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
