/* joining_test.c - hosts that join a run with something wrong, in each sync.mode: each one ends at
 * once with a line that names it, and the run goes on without it, to its bits. */
/* ctest: busy seconds=40 */
/* ctest: long-asan: net/tcp, cluster and storage run the same code */

#include "cli/hosts.h"

enum { STEPS = 60 };

static const char SETTINGS[] = SMALLER "--set train.steps=%d --set train.virtual_workers=8 "
                                       "--set train.eval_every=0 --set checkpoint.every=20 "
                                       "--set log.every=1000 --set survival.heartbeat_s=1 "
                                       "--set survival.balance=off %s";

static host start(int workers, const char *run, const char *how, const char *more) {
    char settings[1024];
    snprintf(settings, sizeof settings, SETTINGS, STEPS, more);
    return host_train(workers, run, how, settings);
}

static void shell(const char *line, const char *run) {
    shellf("cd '%s' && R=%s && %s", folder, run, line);
}

/* ---- what may be wrong ---- */

typedef struct kind {
    const char *name;
    const char *prepare; /* a shell command that makes its run directory; NULL: that of the run */
    const char *more;    /* its settings, beside those of the run */
    const char *says;    /* the host; and the run's, if it gets to know */
    bool together; /* with all_reduce alone: hosts of the other modes only read the directory */
} kind;

/* A copy of the run directory, in which something is damaged. */
#define COPY "rm -rf bad; cp -r $R bad 2>/dev/null; rm -rf bad/.lockstep* bad/control; "

static const kind kinds[] = {
    {"no directory", "rm -rf bad", "", "bad: does not exist on this host; name the directory",
     false},
    {"an empty directory", "rm -rf bad && mkdir bad", "", "bad: has no run; name the directory",
     false},
    {"another run", "rm -rf bad && cp -r other bad", "",
     "this host has another run than the leading host", false},
    {"other data", "rm -rf bad && cp -r other bad && cp $R/lock bad/lock", "",
     "this host has another data than the leading host", false},
    {"a copy", COPY "true", "", "is another directory than that of worker 0", true},
    {"damaged tokens",
     COPY "printf x | dd of=bad/tokens.bin bs=1 seek=999 conv=notrunc status=none", "",
     "tokens.bin: is damaged", false},
    {"fewer tokens", COPY "truncate -s 1000 bad/tokens.bin", "", "tokens.bin: ", false},
    {"no tokens", COPY "rm bad/tokens.bin", "", "tokens.bin: ", false},
    {"another tokenizer", COPY "sed -i s/e/a/ bad/tokenizer.json", "", "tokenizer.json", false},
    {"a damaged record", COPY "truncate -s 50 bad/corpus.json", "", "corpus.json", false},
    {"no record", COPY "rm bad/corpus.json", "", "bad/corpus.json: is missing", false},
    {"no lock", COPY "rm bad/lock", "", "bad: has no run; name the directory", false},
    {"a linked lock", COPY "mv bad/lock bad/other && ln -s other bad/lock", "", "lock: is a link",
     false},
    {"another seed", NULL, "--set train.seed=2", "this host has train.seed 2, the leading host",
     false},
    {"another model", NULL, "--set model.layers=3", "this host has model.layers 3, the leading",
     false},
    {"another batch", NULL, "--set train.batch=32", "this host has train.batch 32, the leading",
     false},
    {"another mode", NULL, "OTHER", "this host has sync.mode ", false},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static const char *const modes[] = {"all_reduce", "ssp", "async"};

/* ---- the run, and those that join it ---- */

static void join(const pair *p, int mode, const kind *k) {
    char more[256];
    bool other = strcmp(k->more, "OTHER") == 0;
    snprintf(more, sizeof more, "%s --set sync.mode=%s", other ? "" : k->more,
             modes[other ? (mode + 1) % 3 : mode]);
    if (k->prepare) shell(k->prepare, p->run);
    host b = start(1, k->prepare ? "bad" : p->run, p->join, more);
    print_message("%s: %s\n", modes[mode], k->name);
    host_expect(&b, 1, k->says);
    if (host_is_over(&p->a)) host_fail(&p->a, "the run has ended");
}

static void undisturbed(int mode) {
    char more[64];
    snprintf(more, sizeof more, "--set sync.mode=%s", modes[mode]);
    host h = start(1, modes[mode], "", more);
    host_expect(&h, 0, NULL);
}

static void test_kinds(void **arg) {
    (void)arg;
    host other = start(1, "other", "",
                       "--set data.val_fraction=0.2 --set train.steps=9 "
                       "--set data.path=README.md");
    host_expect(&other, 0, NULL);
    for (int mode = 0; mode < 3; mode++) {
        char run[32], more[64];
        snprintf(run, sizeof run, "joined-%d", mode);
        snprintf(more, sizeof more, "--set sync.mode=%s", modes[mode]);
        pace_long(run, 5);
        pair p = pair_of(start, run, more);
        p.a = pair_listen(&p, 1, "");
        await_step(run, 5, &p.a);
        for (int i = 0; i < NKINDS; i++)
            if (runs_case(i + mode, 3) && !(mode && kinds[i].together)) join(&p, mode, &kinds[i]);
        let_go(run);
        host_expect(&p.a, 0, NULL);
        if (mode == 2) continue; /* its bits depend on time */
        undisturbed(mode);
        check_run(modes[mode], run, &p.a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds)};
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
