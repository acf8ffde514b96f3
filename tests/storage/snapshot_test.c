/* snapshot_test.c - every transition of the snapshot's states (storage/snapshot.h), with real
 * writer processes that write, fail, or are killed before or after they have copied; on one host,
 * and on two that write the same files. */
#include "storage/snapshot.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "small_plan.h"
#include "storage/checkpoint.h"
#include "test.h"

enum { MOST_HOSTS = 2, PAGE = 4096 };

static ls_model model;
static ls_config config;
static ls_buf config_text;

/* The state of the process that starts a host's workers. */
typedef struct host {
    ls_plan plan;
    ls_store *store;
    struct carried {
        ls_snapshot_state state;
        ls_best_state best, on_disk;
    } * carried;
    ls_snapshot_run run;
    ls_snapshot snapshot;
} host;

static int set_up(void **state) {
    (void)state;
    small_model(&model);
    ls_config_defaults(&config);
    ls_buf_append(&config_text, "{}\n", 3);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ls_model_free(&model);
    ls_buf_free(&config_text);
    return 0;
}

static int make_run(void **state) {
    ls_error e = {0};
    if (make_folder(state) != 0) return -1;
    char *path = ls_format("%s/tokenizer.json", folder);
    assert_ls_ok(ls_file_write(path, "{}\n", 3, &e), e);
    free(path);
    return 0;
}

/* The state of each of its workers after `steps` steps. */
static void fill(host *h, int64_t steps) {
    ls_scaler scaler = {0};
    for (int w = h->run.first; w < h->run.first + h->run.n; w++) {
        float *params = ls_store_params(h->store, 0);
        for (size_t i = 0; i < model.nfloats; i++) params[i] = (float)(i % 97) + (float)steps;
        ls_store_place(h->store, w, 0);
        ls_store_mark_filled(h->store, &h->plan.share, w, steps);
    }
    ls_store_begin(h->store, steps, &scaler);
}

/* Has workers first to first + n - 1 of `nworkers`, which share the state. */
static void open_host(host *h, int first, int n, int nworkers) {
    ls_error e = {0};
    *h = (host){.run = {.dir = folder, .config = &config, .config_text = &config_text}};
    h->plan = small_plan(&model, nworkers, nworkers > 1, 0);
    assert_ls_ok(ls_store_make(&h->plan.share,
                               &(ls_store_config){.most = nworkers,
                                                  .threads = 1,
                                                  .carried_nbytes = sizeof *h->carried},
                               &h->store, &e),
                 e);
    h->carried = ls_store_carried(h->store);
    h->run.plan = &h->plan;
    h->run.store = h->store;
    h->run.state = &h->carried->state;
    h->run.best = &h->carried->best;
    h->run.on_disk = &h->carried->on_disk;
    h->run.first = first;
    h->run.n = n;
    fill(h, 0);
}

static void close_host(host *h) {
    ls_snapshot_close(&h->snapshot, &h->run);
    ls_store_free(h->store);
    ls_plan_free(&h->plan);
}

static ls_snapshot_mark mark(const host *h) { return atomic_load(&h->run.state->mark); }

static bool is_pending(const host *h) {
    return mark(h).phase == LS_SNAPSHOT_WANTED || mark(h).phase == LS_SNAPSHOT_COPIED;
}

static void assert_mark(const host *h, ls_snapshot_phase phase, int64_t steps) {
    assert_int_equal(mark(h).phase, phase);
    assert_int_equal(mark(h).steps, steps);
}

/* Does the work of the process that starts workers, until no writer runs. */
static void attend(host *h) {
    do {
        ls_snapshot_attend(&h->snapshot, &h->run);
        usleep(1000);
    } while (h->snapshot.writer.pid || is_pending(h));
}

/* Starts the writer, which copies, and then waits for other hosts. */
static void attend_until_copied(host *h) {
    ls_snapshot_attend(&h->snapshot, &h->run);
    assert_true(h->snapshot.writer.pid > 0);
    while (mark(h).phase != LS_SNAPSHOT_COPIED) usleep(1000);
}

static bool is_good(int64_t steps) {
    ls_checkpoint_info i;
    char *path = ls_checkpoint_path(folder, steps);
    bool good = ls_checkpoint_verify(path, &i, NULL) == LS_OK && i.step == steps;
    free(path);
    return good;
}

/* Nothing half written is left. */
static void assert_tidy(void) {
    char line[128];
    snprintf(line, sizeof line, "test -z \"$(ls -A %s/checkpoints 2>/dev/null | grep '^.step-')\"",
             folder);
    assert_int_equal(system(line), 0);
}

/* ---- one host ---- */

/* IDLE, WANTED, COPIED, WRITTEN, and WANTED for another step. */
static void test_written(void **state) {
    (void)state;
    host h;
    ls_error e = {0};
    open_host(&h, 0, 1, 1);
    assert_mark(&h, LS_SNAPSHOT_IDLE, 0);
    assert_true(ls_snapshot_is_copied(h.run.state));
    assert_false(ls_snapshot_is_written(h.run.state, 0));
    assert_ls_ok(ls_snapshot_wait_written(h.run.state, &e), e);
    ls_snapshot_attend(&h.snapshot, &h.run);
    assert_int_equal(h.snapshot.writer.pid, 0); /* no snapshot was requested */

    assert_true(ls_snapshot_ask(h.run.state, 0));
    assert_mark(&h, LS_SNAPSHOT_WANTED, 0);
    assert_false(ls_snapshot_is_copied(h.run.state));
    assert_true(ls_snapshot_ask(h.run.state, 0));  /* already requested */
    assert_false(ls_snapshot_ask(h.run.state, 1)); /* busy */
    assert_mark(&h, LS_SNAPSHOT_WANTED, 0);
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 0);
    assert_true(ls_snapshot_is_written(h.run.state, 0));
    assert_false(ls_snapshot_is_written(h.run.state, 1));
    assert_true(is_good(0));
    assert_true(ls_snapshot_ask(h.run.state, 0)); /* already written */
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 0);

    fill(&h, 5);
    assert_true(ls_snapshot_ask(h.run.state, 5));
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 5);
    fill(&h, 3); /* a run that continues from an older state */
    assert_true(ls_snapshot_ask(h.run.state, 3));
    assert_mark(&h, LS_SNAPSHOT_WANTED, 3);
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 3);
    assert_true(is_good(3) && is_good(5));
    close_host(&h);
    assert_tidy();
}

/* A write that fails, before or after the copy, ends in FAILED and can be requested again. */
static void test_failed(void **state) {
    (void)state;
    host h;
    ls_error e = {0};
    char *tokenizer = ls_format("%s/tokenizer.json", folder);
    open_host(&h, 0, 1, 1);
    assert_true(ls_snapshot_ask(h.run.state, 9)); /* steps that the state does not have */
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_FAILED, 9);
    assert_true(ls_snapshot_is_copied(h.run.state)); /* no worker waits for it */

    assert_int_equal(unlink(tokenizer), 0);
    assert_true(ls_snapshot_ask(h.run.state, 0));
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_FAILED, 0);
    assert_ls_fails(ls_snapshot_wait_written(h.run.state, &e), LS_EIO,
                    "the checkpoint of step 0 could not be written", e);
    assert_ls_ok(ls_file_write(tokenizer, "{}\n", 3, &e), e);
    assert_true(ls_snapshot_ask(h.run.state, 0));
    assert_mark(&h, LS_SNAPSHOT_WANTED, 0);
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 0);
    assert_true(is_good(0));
    free(tokenizer);
    close_host(&h);
}

/* A writer that is killed before it has copied is replaced, but not for ever. */
static void test_killed_before_copy(void **state) {
    (void)state;
    host h;
    open_host(&h, 0, 1, 1);
    signal(SIGSEGV, SIG_DFL); /* cmocka, or a sanitizer, would keep the writer alive */
    void *page = ls_store_params(h.store, 0);
    assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0); /* a writer that reads it is killed */
    assert_true(ls_snapshot_ask(h.run.state, 0));
    while (h.snapshot.tries < 3) ls_snapshot_attend(&h.snapshot, &h.run);
    assert_mark(&h, LS_SNAPSHOT_WANTED, 0);
    assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 0);
    assert_true(is_good(0));

    fill(&h, 1);
    assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
    assert_true(ls_snapshot_ask(h.run.state, 1));
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_FAILED, 1);
    assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
    close_host(&h);
}

static void remove_checkpoints(void) {
    char *line = ls_format("rm -r '%s/checkpoints'", folder);
    assert_int_equal(system(line), 0);
    free(line);
}

static ls_buf weights(int64_t steps) {
    ls_buf b = {0};
    ls_error e = {0};
    char *path = ls_format("%s/checkpoints/step-%lld/model.safetensors", folder, (long long)steps);
    assert_ls_ok(ls_file_read(path, SIZE_MAX, &b, &e), e);
    free(path);
    return b;
}

/* A writer that is killed after it has copied is replaced, also by one that writes the copy when
 * the state has changed. Once the view has ended, none follows. */
static void test_killed_while_writing(void **state) {
    (void)state;
    host h;
    open_host(&h, 0, 1, 1);
    signal(SIGSEGV, SIG_DFL);
    ls_best_state *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    h.run.on_disk = page; /* which a writer reads once it has copied */
    fill(&h, 5);
    assert_true(ls_snapshot_ask(h.run.state, 5));
    attend(&h);
    ls_buf undisturbed = weights(5);
    remove_checkpoints();

    assert_true(ls_snapshot_ask(h.run.state, 4)); /* fails: the state has other steps */
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_FAILED, 4);
    assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
    assert_true(ls_snapshot_ask(h.run.state, 5));
    while (h.snapshot.tries < 3) ls_snapshot_attend(&h.snapshot, &h.run);
    assert_mark(&h, LS_SNAPSHOT_COPIED, 5);
    fill(&h, 6);
    assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_WRITTEN, 5);
    assert_true(is_good(5));
    ls_buf again = weights(5);
    assert_int_equal(again.len, undisturbed.len);
    assert_memory_equal(again.data, undisturbed.data, again.len);
    ls_buf_free(&again);
    ls_buf_free(&undisturbed);

    assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
    assert_true(ls_snapshot_ask(h.run.state, 6));
    attend_until_copied(&h);
    assert_false(ls_snapshot_end_view(&h.snapshot, &h.run, false));
    attend(&h);
    assert_mark(&h, LS_SNAPSHOT_FAILED, 6);
    close_host(&h);
    munmap(page, PAGE);
}

/* A worker that is about to change the state waits for the copy; the delay is noted. */
static void test_worker_waits(void **state) {
    (void)state;
    host h;
    int how = 0;
    ls_error e = {0};
    open_host(&h, 0, 1, 1);
    assert_true(ls_snapshot_ask(h.run.state, 0));
    pid_t worker = fork();
    if (worker == 0) {
        ls_snapshot_wait_copied(h.run.state);
        if (!ls_snapshot_is_copied(h.run.state)) _exit(1);
        _exit(ls_snapshot_wait_written(h.run.state, &e) == LS_OK ? 0 : 1);
    }
    attend(&h);
    assert_int_equal(waitpid(worker, &how, 0), worker);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    ls_snapshot_note_held(h.run.state, 1000);
    long long held = atomic_load(&h.run.state->held_ns);
    ls_snapshot_note_held(h.run.state, 1); /* the longest counts */
    assert_true(held >= 1000 && atomic_load(&h.run.state->held_ns) == held);
    close_host(&h);
}

/* Without workers, the process itself writes, and leaves the mark alone. */
static void test_now(void **state) {
    (void)state;
    host h;
    ls_error e = {0};
    int64_t newest = -1;
    open_host(&h, 0, 1, 1);
    fill(&h, 4);
    assert_ls_ok(ls_snapshot_now(&h.snapshot, &h.run, 4, &newest, &e), e);
    assert_int_equal(newest, 4);
    assert_true(is_good(4));
    assert_mark(&h, LS_SNAPSHOT_IDLE, 0);
    fill(&h, 3);
    assert_ls_ok(ls_snapshot_now(&h.snapshot, &h.run, 3, &newest, &e), e);
    assert_int_equal(newest, 4); /* there is a newer one */
    close_host(&h);
}

/* Memory for a copy is touched beside training; a snapshot requested at the end is written. */
static void test_close(void **state) {
    (void)state;
    host h;
    open_host(&h, 0, 1, 1);
    ls_snapshot_prepare(&h.snapshot, &h.run);
    assert_int_equal(h.snapshot.warmer.pid, 0); /* no checkpoint is due before the last */
    config.checkpoint.every = 10;
    ls_snapshot_prepare(&h.snapshot, &h.run);
    config.checkpoint.every = 0;
    assert_true(h.snapshot.warmer.pid > 0);
    assert_true(ls_snapshot_ask(h.run.state, 0));
    close_host(&h);
    assert_true(is_good(0));
}

/* ---- the best loss, for later views ---- */

/* Workers that are killed while they note it leave the old note or the new one. */
static void test_best(void **state) {
    (void)state;
    ls_best_state *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s, MAP_FAILED);
    ls_best b = {0};
    ls_best_load(&b, s);
    assert_int_equal(b.step, 0);
    for (int i = 0; i < 20; i++) {
        pid_t worker = fork();
        if (worker == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            for (int64_t k = b.step + 1;; k++) {
                ls_best next = {k, (double)k / 3, k, (double)k / 3, k};
                ls_best_save(&next, s);
            }
        int64_t from = b.step;
        while (ls_best_load(&b, s), b.step < from + 100) usleep(100);
        kill(worker, SIGKILL);
        assert_int_equal(waitpid(worker, NULL, 0), worker);
        ls_best_load(&b, s);
        double loss = (double)b.step / 3;
        assert_int_equal(b.val_step, b.step);
        assert_int_equal(b.nsamples, b.step);
        assert_memory_equal(&b.loss, &loss, sizeof loss);
        assert_memory_equal(&b.val_loss, &loss, sizeof loss);
    }
    /* Another worker that notes the same writes nothing. */
    int latest = atomic_load(&s->latest);
    ls_best_save(&b, s);
    assert_int_equal(atomic_load(&s->latest), latest);
    munmap(s, sizeof *s);
}

/* ---- two hosts ---- */

/* The workers exchange their words, as after a step. */
static void exchange_words(host *hosts, const int64_t *asked) {
    int32_t all[LS_SNAPSHOT_WORDS] = {0}, words[LS_SNAPSHOT_WORDS];
    for (int i = 0; i < MOST_HOSTS; i++) {
        ls_snapshot_say(&hosts[i].run, hosts[i].run.first, asked[i], words);
        for (int k = 0; k < LS_SNAPSHOT_WORDS; k++)
            if (words[k] > all[k]) all[k] = words[k];
    }
    for (int i = 0; i < MOST_HOSTS; i++)
        ls_snapshot_hear(&hosts[i].run, hosts[i].run.first, asked[i], all);
}

static void open_hosts(host *hosts, int64_t *asked, int64_t steps) {
    for (int i = 0; i < MOST_HOSTS; i++) {
        asked[i] = -1;
        open_host(&hosts[i], i, 1, MOST_HOSTS);
        assert_true(ls_snapshot_is_shared(&hosts[i].plan, 1));
        fill(&hosts[i], steps);
        ls_snapshot_ask_share(&hosts[i].run, i, steps, &asked[i]);
        assert_int_equal(asked[i], steps);
        assert_mark(&hosts[i], LS_SNAPSHOT_WANTED, steps);
        assert_int_equal(atomic_load(&hosts[i].run.state->peers), LS_PEERS_SILENT);
    }
}

static void close_hosts(host *hosts) {
    for (int i = 0; i < MOST_HOSTS; i++) close_host(&hosts[i]);
    assert_tidy();
}

static void attend_all(host *hosts, const int64_t *asked) {
    while (is_pending(&hosts[0]) || is_pending(&hosts[1])) {
        for (int i = 0; i < MOST_HOSTS; i++) ls_snapshot_attend(&hosts[i].snapshot, &hosts[i].run);
        exchange_words(hosts, asked);
        usleep(1000);
    }
}

static void test_two_hosts(void **state) {
    (void)state;
    host hosts[MOST_HOSTS];
    int64_t asked[MOST_HOSTS];
    open_hosts(hosts, asked, 6);
    attend_all(hosts, asked);
    for (int i = 0; i < MOST_HOSTS; i++) assert_mark(&hosts[i], LS_SNAPSHOT_WRITTEN, 6);
    assert_int_equal(atomic_load(&hosts[0].run.state->peers), LS_PEERS_WRITTEN);
    assert_int_equal(atomic_load(&hosts[1].run.state->peers), LS_PEERS_OPENED);
    assert_true(is_good(6));
    close_hosts(hosts);
}

/* One host can't write its part: the other one is informed. */
static void test_peer_fails(void **state) {
    (void)state;
    for (int bad = 0; bad < MOST_HOSTS; bad++) {
        host hosts[MOST_HOSTS];
        int64_t asked[MOST_HOSTS];
        open_hosts(hosts, asked, 6);
        ls_store_mark_filled(hosts[bad].store, &hosts[bad].plan.share, bad,
                             7); /* it has another state */
        attend_all(hosts, asked);
        for (int i = 0; i < MOST_HOSTS; i++) assert_mark(&hosts[i], LS_SNAPSHOT_FAILED, 6);
        assert_int_equal(atomic_load(&hosts[!bad].run.state->peers), LS_PEERS_FAILED);
        assert_false(is_good(6));
        close_hosts(hosts);
    }
}

/* The view ends before the writer has begun, while it waits for others, and when all have
 * written. */
static void test_view_ends(void **state) {
    (void)state;
    host hosts[MOST_HOSTS];
    int64_t asked[MOST_HOSTS];
    open_hosts(hosts, asked, 6);
    assert_true(ls_snapshot_end_view(&hosts[1].snapshot, &hosts[1].run, false));
    assert_mark(&hosts[1], LS_SNAPSHOT_FAILED, 6);
    assert_false(ls_snapshot_end_view(&hosts[1].snapshot, &hosts[1].run, false));

    attend_until_copied(&hosts[0]);
    assert_true(ls_snapshot_end_view(&hosts[0].snapshot, &hosts[0].run, false));
    assert_int_equal(atomic_load(&hosts[0].run.state->peers), LS_PEERS_GONE);
    attend(&hosts[0]);
    assert_mark(&hosts[0], LS_SNAPSHOT_FAILED, 6);
    assert_tidy();

    /* The next view asks again, and its peers are silent at first. */
    for (int i = 0; i < MOST_HOSTS; i++) {
        ls_snapshot_ask_share(&hosts[i].run, i, 6, &asked[i]);
        assert_mark(&hosts[i], LS_SNAPSHOT_WANTED, 6);
        assert_int_equal(atomic_load(&hosts[i].run.state->peers), LS_PEERS_SILENT);
        assert_int_equal(atomic_load(&hosts[i].run.state->attempt), 0);
    }
    while (atomic_load(&hosts[0].run.state->peers) != LS_PEERS_WRITTEN) {
        for (int i = 0; i < MOST_HOSTS; i++) ls_snapshot_attend(&hosts[i].snapshot, &hosts[i].run);
        exchange_words(hosts, asked);
        usleep(1000);
    }
    assert_false(ls_snapshot_end_view(&hosts[0].snapshot, &hosts[0].run, false));
    attend(&hosts[0]); /* all parts are written: it waits for no host */
    assert_mark(&hosts[0], LS_SNAPSHOT_WRITTEN, 6);
    assert_true(is_good(6));
    close_hosts(hosts);
}

/* A writer that is killed after it has copied, while it waits for others, is not replaced. If the
 * next view reads an older checkpoint, the end of the view kills the writer. */
static void test_killed_after_copy(void **state) {
    (void)state;
    for (int stateless = 0; stateless < 2; stateless++) {
        host hosts[MOST_HOSTS];
        int64_t asked[MOST_HOSTS];
        open_hosts(hosts, asked, 6);
        for (int i = 0; i < MOST_HOSTS; i++) {
            attend_until_copied(&hosts[i]);
            assert_true(ls_snapshot_is_copied(hosts[i].run.state));
            if (stateless)
                assert_true(ls_snapshot_end_view(&hosts[i].snapshot, &hosts[i].run, true));
            else
                kill(hosts[i].snapshot.writer.pid, SIGKILL);
            attend(&hosts[i]);
            assert_mark(&hosts[i], LS_SNAPSHOT_FAILED, 6);
            assert_int_equal(hosts[i].snapshot.tries, 1);
            /* All workers hear of it, and may ask again. */
            int32_t words[LS_SNAPSHOT_WORDS];
            ls_snapshot_say(&hosts[i].run, i, asked[i], words);
            assert_int_equal(words[LS_SNAPSHOT_FAILURE],
                             1 + i + (stateless ? 0 : LS_SNAPSHOT_WAS_KILLED));
        }
        for (int i = 0; i < MOST_HOSTS; i++) /* the next writer removes what the killed one left */
            close_host(&hosts[i]);
        host h;
        open_host(&h, 0, 1, 1);
        assert_true(ls_snapshot_ask(h.run.state, 0));
        attend(&h);
        assert_mark(&h, LS_SNAPSHOT_WRITTEN, 0);
        close_host(&h);
        assert_tidy();
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_run, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_written),
                                       TEST(test_failed),
                                       TEST(test_killed_before_copy),
                                       TEST(test_killed_while_writing),
                                       TEST(test_worker_waits),
                                       TEST(test_now),
                                       TEST(test_close),
                                       TEST(test_best),
                                       TEST(test_two_hosts),
                                       TEST(test_peer_fails),
                                       TEST(test_view_ends),
                                       TEST(test_killed_after_copy)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
