/* start_test.c - concurrent starts: races for a run directory, another user's locks and
 * directories, starts that fail or are killed, disks without room.
 *
 * A process without the lock changes nothing, and no process removes files that it did not make.
 */
/* ctest: slow seconds=20 */
#include <sys/stat.h>

#include "cli/program.h"
#include "free_port.h"

#ifdef __SANITIZE_ADDRESS__ /* many times slower */
enum { RACES = 12, FEW_RACES = 12, STEPS = 40 };
#else
enum { RACES = 50, FEW_RACES = 8, STEPS = 40 };
#endif

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=%d "
                            "--set checkpoint.every=0 --set train.eval_every=0 "
                            "--set log.every=1000 --set survival.balance=off%s";

static uint64_t state_of_draw = 7;

static unsigned draw(unsigned below) {
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_draw >> 33) % below;
}

static program start(int workers, const char *run, const char *more) {
    return startf(START, workers, run, STEPS, more);
}

/* A start that ends by itself with this exit code and this message. */
static void start_ends(const char *run, const char *more, int code, const char *says) {
    expectf(code, says, START, 2, run, STEPS, more);
}

/* The shell's exit code for a line in the test's folder. */
static int shell(const char *format, ...) {
    char what[512], line[640];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cd %s && { %s; }", folder, what);
    int how = system(line);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

/* Runs a start as the arguments of other words; free() *output_p. */
static int start_behind(const char *words, const char *run, const char *more, char **output_p) {
    char line[2048], args[512];
    size_t n = 0;
    snprintf(args, sizeof args, START, 2, run, STEPS, more);
    char *at = strstr(args, "@/");
    assert_non_null(at);
    snprintf(line, sizeof line, "%s %s %.*s%s%s 2>&1", words, LOCKSTEP_PROGRAM, (int)(at - args),
             args, folder, at + 1);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    *output_p = calloc(1, MAX_OUTPUT + 1);
    while (n < MAX_OUTPUT && !feof(f)) n += fread(*output_p + n, 1, MAX_OUTPUT - n, f);
    int how = pclose(f);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static char undisturbed[256];

static void is_whole(const char *run) {
    expectf(0, ": clean: 40 steps", "ckpt ledger @/%s", run);
    assert_hash(run, undisturbed);
}

static int make_undisturbed(void **state) {
    char *output = NULL;
    if (folder_make(state) != 0 || chmod(folder, 0755) != 0) return -1;
    char held[128];
    snprintf(held, sizeof held, "%s/held", folder);
    setenv("LOCKSTEP_HELD", held, 1);
    program p = start(2, "undisturbed", "");
    int code = program_end(&p, &output);
    free(output);
    if (code == 0) hash_of("undisturbed", undisturbed);
    return code;
}

/* ---- races ---- */

static bool has_ended(const program *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* Two starts at once, one later by late_ms. The winner is slow until the other one has ended, so
 * they always overlap. */
static void race(int i, unsigned late_ms) {
    static const char *const how[] = {"", " --resume"};
    char run[32], config[64], precious[64], loser[96];
    snprintf(run, sizeof run, "race-%d", i);
    snprintf(config, sizeof config, "%s/config.yaml", run);
    snprintf(precious, sizeof precious, "%s/precious.txt", run);
    pace_long(run, 0);
    program p[2];
    for (int k = 0; k < 2; k++) {
        p[k] = start(1 + i % 2, run, how[i >> k & 1]);
        if (k == 0) sleep_ms(late_ms);
    }
    int lost = 0;
    while (!has_ended(&p[lost])) {
        sleep_ms(1);
        lost = !lost;
    }
    snprintf(loser, sizeof loser, "%s: is in use by another lockstep: process %d on ", run,
             (int)p[!lost].pid);
    program_expect(&p[lost], 1, loser);
    wait_for_file(config);
    write_file(precious, "mine", 4);
    let_go(run);
    program_expect(&p[!lost], 0, NULL);
    assert_true(file_exists(precious));
    if (i % 5 == 0) is_whole(run);
}

static void test_races(void **state) {
    (void)state;
    for (int i = 0; i < ncases(FEW_RACES, RACES); i++) race(i, i % 4 ? draw(120) : 0);
}

/* ---- workers that are killed while the text becomes tokens ---- */

/* Kills the workers, one of which is held. The supervisor is stopped meanwhile, so that no new
 * worker is held before the file that marks it is removed. */
static void kill_workers(const program *p) {
    pid_t pids[8];
    wait_for_children(p->pid, 2, pids, 8);
    assert_int_equal(kill(p->pid, SIGSTOP), 0);
    int n = children_of(p->pid, pids, 8);
    for (int i = 0; i < n; i++) kill(pids[i], SIGKILL);
    assert_int_equal(shell("rm held"), 0);
    assert_int_equal(kill(p->pid, SIGCONT), 0);
}

static void test_killed_while_tokenizing(void **state) {
    (void)state;
    char in_use[96];
    setenv("LOCKSTEP_FAULTS", "fsync tokens.bin HOLD 0", 1);
    program p = start(2, "killed", "");
    unsetenv("LOCKSTEP_FAULTS");
    for (int round = 0; round < 2; round++) {
        wait_for_file("held");
        snprintf(in_use, sizeof in_use, "in use by another lockstep: process %d on ", (int)p.pid);
        start_ends("killed", "", 1, in_use);
        start_ends("killed", " --resume", 1, in_use);
        write_file("killed/precious.txt", "mine", 4);
        kill_workers(&p);
    }
    wait_for_file("held");
    assert_int_equal(shell("rm held"), 0);
    program_expect(&p, 0, "was killed by signal 9");
    assert_true(file_exists("killed/precious.txt"));
    is_whole("killed");
}

/* Worker 0 opens the directory: on a first host, and under a launcher. */
static void meets(const char *run, const char *first, const char *second, const char *fault) {
    char precious[64];
    setenv("LOCKSTEP_FAULTS", fault, 1);
    program p = program_start(first, 0);
    unsetenv("LOCKSTEP_FAULTS");
    wait_for_file("held");
    expect(second, 1, "is in use by another lockstep: process ");
    snprintf(precious, sizeof precious, "%s/precious.txt", run);
    write_file(precious, "mine", 4);
    if (strstr(first, "--listen")) { /* others take the place of its workers */
        kill_workers(&p);
        wait_for_file("held");
    }
    assert_int_equal(shell("rm held"), 0);
    program_expect(&p, 0, NULL);
    assert_true(file_exists(precious));
    is_whole(run);
}

static void test_other_starters(void **state) {
    (void)state;
    char first[640], second[640], train[512], more[64];
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef", 1);
    snprintf(more, sizeof more, " --listen 127.0.0.1:%d", free_port());
    snprintf(first, sizeof first, START, 2, "host", STEPS, more);
    snprintf(more, sizeof more, " --resume --listen 127.0.0.1:%d", free_port());
    snprintf(second, sizeof second, START, 2, "host", STEPS, more);
    meets("host", first, second, "fsync -config.yaml HOLD 0-1");
    unsetenv("LOCKSTEP_KEY");
    snprintf(train, sizeof train, START, 2, "launched", STEPS, "");
    snprintf(first, sizeof first, "run -n 2 %s %s", LOCKSTEP_PROGRAM, train);
    snprintf(second, sizeof second, "run -n 2 %s %s --resume", LOCKSTEP_PROGRAM, train);
    meets("launched", first, second, "fsync tokens.bin HOLD 0");
}

/* The remains of a killed start: the next one begins there with --resume, or without it if there is
 * no config yet. */
static void test_killed_starts(void **state) {
    (void)state;
    static const char *const faults[][3] = {{"early", "fsync config.yaml HOLD 0", ""},
                                            {"late", "fsync tokens.bin HOLD 0", " --resume"}};
    for (int i = 0; i < 2; i++) {
        setenv("LOCKSTEP_FAULTS", faults[i][1], 1);
        program p = start(2, faults[i][0], "");
        unsetenv("LOCKSTEP_FAULTS");
        wait_for_file("held");
        kill(p.pid, SIGKILL);
        program_expect(&p, 128 + SIGKILL, NULL);
        assert_int_equal(shell("rm -f held"), 0);
        start_ends(faults[i][0], faults[i][2], 0, NULL);
        is_whole(faults[i][0]);
    }
}

/* ---- starts that fail ---- */

/* Fails when workers have the text and allocate memory. */
static const char NOWHERE[] = " --set parallel.optimizer_state=file --set "
                              "parallel.state_dir=@/nowhere";

static void test_failed_starts(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {NOWHERE, "a file can't be created here"},
        {" --set data.path=@/no-text", "no-text: is not there"},
        {" --set data.path=@/no-text --resume", "no-text: is not there"},
        {" --set data.path=@/no-text --set parallel.transport=thread", "is not there"},
        {" --set model.context=30000 --set model.width=3", "use a longer text or a shorter"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        start_ends("above/failed", bad[i][0], 1, bad[i][1]);
        assert_false(file_exists("above"));
        assert_int_equal(shell("mkdir empty"), 0);
        start_ends("empty", bad[i][0], 1, bad[i][1]);
        assert_int_equal(shell("rmdir empty"), 0); /* it is there, and empty */
    }
    setenv("LOCKSTEP_FAULTS", "fsync tokens.bin HOLD 0", 1);
    program p = start(2, "shared", NOWHERE);
    unsetenv("LOCKSTEP_FAULTS");
    wait_for_file("held");
    write_file("shared/precious.txt", "mine", 4);
    assert_int_equal(shell("rm held"), 0);
    program_expect(&p, 1, "a file can't be created here");
    assert_int_equal(shell("test \"$(ls -A shared)\" = precious.txt"), 0);
    assert_int_equal(shell("mkdir empty"), 0);
    start_ends("empty", "", 0, NULL);
    is_whole("empty");
}

/* Without memory for the workers' private or shared data. */
static void test_no_memory(void **state) {
    (void)state;
#ifndef __SANITIZE_ADDRESS__
    static const char large[] = " --set model.width=768 --set model.heads=12";
    char *output = NULL;
    for (int mb = 50; mb <= 350; mb += 100) {
        char words[64];
        snprintf(words, sizeof words, "ulimit -v %d && ", mb * 1024);
        int code = start_behind(words, "memory", large, &output);
        if (code != 1) fail_msg("%d MB: exit code %d:\n%s", mb, code, output);
        assert_false(file_exists("memory"));
        free(output);
    }
#endif
}

/* Workers that a launcher has started. */
static void test_failed_launch(void **state) {
    (void)state;
    expectf(1, "no-text: is not there",
            "run -n 2 %s train configs/tiny.yaml -o @/failing/failed --set data.path=@/no-text",
            LOCKSTEP_PROGRAM);
    assert_false(file_exists("failing"));
}

/* ---- directories of others ---- */

static void test_strangers_directory(void **state) {
    (void)state;
    static const char *const made[] = {"echo mine > $d/thesis.tex",
                                       "mkdir $d/checkpoints && echo mine > $d/checkpoints/model",
                                       "echo 'a: 1' > $d/config.yaml",
                                       "echo mine > $d/lock && echo mine > $d/notes",
                                       "echo mine > $d/lock",
                                       "ln -s nothing $d/lock",
                                       "mkdir $d/lock"};
    static const char *const with[] = {"", " --resume"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        assert_int_equal(shell("rm -rf theirs copy; mkdir theirs && d=theirs && %s", made[i]), 0);
        assert_int_equal(shell("cp -a theirs copy"), 0);
        for (int k = 0; k < 2; k++) {
            start_ends("theirs", with[k], 1, "theirs");
            assert_int_equal(shell("diff -r --no-dereference theirs copy && "
                                   "test $(find theirs | wc -l) = $(find copy | wc -l)"),
                             0);
        }
    }
}

/* Runs of versions that locked the directory itself have no lock file. */
static void test_older_run(void **state) {
    (void)state;
    assert_int_equal(shell("cp -r undisturbed older && rm older/lock"), 0);
    start_ends("older", " --resume --set train.steps=41", 0, "continuing from");
    assert_true(file_exists("older/lock"));
    start_ends("older", "", 1, "exists already; continue it with --resume");
}

/* A umask removes permissions and adds none. */
static void test_modes(void **state) {
    (void)state;
    mode_t mask = umask(0);
    start_ends("above/modes", "", 0, NULL);
    umask(077);
    start_ends("above/closed", "", 0, NULL);
    umask(mask);
    assert_int_equal(shell("test -z \"$(find above ! -type l -perm /022)\""), 0);
    assert_int_equal(shell("test -z \"$(find above/closed ! -type l -perm /077)\""), 0);
    assert_int_equal(shell("test \"$(stat -c %%a above/modes/lock)\" = 600"), 0);
    assert_int_equal(shell("test \"$(stat -c %%a above/modes)\" = 755"), 0);
}

/* ---- another user ---- */

static const char NOBODY[] = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/* Skips the test where no other user can be had. */
static void need_nobody(void) {
    if (geteuid() == 0 && shell("%s flock -n . true", NOBODY) == 0) return;
    skip_because("another user needs root, setpriv and flock");
}

/* A user who may read the directory can lock it, but not the lock file; the run continues, view
 * after view, and can be resumed. */
static void test_other_users_lock(void **state) {
    (void)state;
    need_nobody();
    pace("open", 0);
    program p = start(2, "open", "");
    wait_for_file("open/control/socket");
    pid_t holder = fork();
    if (holder == 0) {
        char dir[128];
        snprintf(dir, sizeof dir, "%s/open", folder);
        execlp("setpriv", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
               "flock", "--no-fork", dir, "sleep", "600", NULL);
        _exit(127);
    }
    while (shell("flock -n open true") == 0) { /* until it has the directory's */
        assert_int_equal(waitpid(holder, NULL, WNOHANG), 0);
        sleep_ms(10);
    }
    assert_int_not_equal(shell("%s flock -n open/lock true 2> /dev/null", NOBODY), 0);
    pid_t pids[8];
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[0], SIGKILL);
    expect("scale @/open 3", 0, "from 2 to 3 workers");
    let_go("open");
    program_expect(&p, 0, "view 2: ");
    is_whole("open");
    start_ends("open", " --resume --set train.steps=41", 0, "continuing from");
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
}

/* As another user, for whom modes count. */
static void as_nobody(const char *run, const char *more, const char *what) {
    char *output = NULL;
    int code = start_behind(NOBODY, run, more, &output);
    if (code != 1) fail_msg("%s: exit code %d:\n%s", run, code, output);
    assert_output_has(output, what);
    assert_null(strstr(output, "parameters")); /* no worker has begun */
    free(output);
}

static void test_read_only(void **state) {
    (void)state;
    need_nobody();
    if (shell("%s %s help > /dev/null", NOBODY, LOCKSTEP_PROGRAM) != 0)
        skip_because("another user can't run %s", LOCKSTEP_PROGRAM);
    assert_int_equal(shell("mkdir closed closed/empty && cp -r undisturbed closed/run && "
                           "chown -R 65534 closed/run closed/empty && chmod 555 closed/empty && "
                           "chmod 555 closed/run"),
                     0);
    as_nobody("closed/new", "", "closed/new: can't be created: Permission denied");
    as_nobody("closed/empty", "", "can't be created: Permission denied");
    as_nobody("closed/run", " --resume --set train.steps=41",
              "closed/run: can't be written: Permission denied");
    assert_int_equal(shell("chmod 755 closed/run && chmod 555 closed/run/checkpoints"), 0);
    as_nobody("closed/run", " --resume --set train.steps=41",
              "closed/run/checkpoints: can't be written: Permission denied");
    as_nobody("undisturbed", " --resume --set train.steps=41",
              "the run belongs to the user with number");
}

/* ---- room ---- */

/* Runs in a file system of this size, after the commands `before`; the output ends with the
 * contents of the file system. */
static char *in_room(const char *size, const char *before, const char *run, const char *more) {
    char words[1024], *output = NULL;
    snprintf(words, sizeof words,
             "unshare -m %s sh -c 'mkdir -p %s/mnt && mount -t tmpfs -o size=%s none %s/mnt && "
             "(cd %s && %s) && \"$0\" \"$@\"; echo left: $(ls -A %s/mnt)'",
             geteuid() ? "-r" : "", folder, size, folder, folder, before, folder);
    (void)start_behind(words, run, more, &output);
    return output;
}

static void room(const char *size, const char *before, const char *more, const char *what,
                 const char *left) {
    char *output = in_room(size, before, "mnt/run", more);
    assert_output_has(output, what);
    assert_output_has(output, left);
    free(output);
}

static const char FILLED[] = "cp -r undisturbed mnt/run && head -c 300k /dev/zero > mnt/fill";

static void test_room(void **state) {
    (void)state;
    if (shell("unshare -m %s sh -c 'mkdir -p mnt && mount -t tmpfs none mnt'",
              geteuid() ? "-r" : "") != 0)
        skip_because("no file system can be mounted here");
    room("200k", "true", "",
         "mnt/run: has room for 0.2 MB, and a checkpoint takes 0.3 MB: make room there", "left:\n");
    room("310k", "true", "", "and the tokens of the text 0.", "left:\n");
    room("800k", FILLED, " --resume --set train.steps=41", "and a checkpoint takes 0.3 MB",
         "left: fill run\n");
    room("800k", FILLED, " --resume", "is complete: step 40 of 40", "left: fill run\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_killed_while_tokenizing),
        cmocka_unit_test(test_other_starters),
        cmocka_unit_test(test_killed_starts),
        cmocka_unit_test(test_failed_starts),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_failed_launch),
        cmocka_unit_test(test_strangers_directory),
        cmocka_unit_test(test_older_run),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_other_users_lock),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, make_undisturbed, folder_remove);
}
