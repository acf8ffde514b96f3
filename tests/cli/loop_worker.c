/* loop_worker.c - a program that owns its loop, for loop_test.c: a worker of it is lost.
 *
 *     loop_worker DIR HOW RANK STEP
 *
 * Trains 12 steps, with a checkpoint in DIR/run after every third, and writes DIR/weights. Where
 * DIR/lost does not exist yet, worker RANK makes it before it has its step STEP, and then is killed
 * (HOW "kill"), fails ("exit"), or hangs ("hang"). A worker whose call fails writes the status and
 * the message into DIR/error.RANK, and exits with 3.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/train.h"

enum { COUNT = 40, STEPS = 12 };

static const char *dir;

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_value *y = ls_input(m, "y", LS_F32, LS_DIMS(1));
    (void)k;
    x = ls_tanh(m, ls_linear(m, x, .name = "first", .out = 8));
    ls_mean_squared_error(m, ls_linear(m, x, .name = "head", .out = 1), y, LS_DEFAULTS);
}

static void fill(ls_sample *s, uint64_t number) {
    float *x = ls_sample_field(s, "x"), *y = ls_sample_field(s, "y");
    for (int i = 0; i < 3; i++) x[i] = (float)((number * (uint64_t)(7 + i)) % 11) / 5 - 1;
    *y = x[0] * x[1] - x[2];
}

static void path_of(const char *name, char path[512]) { snprintf(path, 512, "%s/%s", dir, name); }

/* Is it this worker's turn? Once for all starts. */
static void be_lost(char **argv, const ls_trainer *t) {
    char path[512];
    path_of("lost", path);
    if (ls_trainer_rank(t) != atoi(argv[3]) || ls_trainer_steps(t) + 1 != atoi(argv[4])) return;
    if (open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) < 0) return;
    if (strcmp(argv[2], "exit") == 0) exit(4);
    if (strcmp(argv[2], "hang") == 0)
        for (;;) pause();
    raise(SIGKILL);
}

static ls_status train(ls_trainer *t, char **argv, ls_error *e) {
    char path[512];
    path_of("weights", path);
    while (ls_trainer_steps(t) < STEPS) {
        ls_trainer_result out;
        be_lost(argv, t);
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
            fill(ls_trainer_sample(t, i), ls_trainer_number(t, i));
        ls_status s = ls_trainer_step(t, &out, e);
        if (s == LS_OK && out.step % 3 == 0) s = ls_trainer_checkpoint(t, e);
        if (s != LS_OK) return s;
    }
    return ls_trainer_save(t, path, e);
}

static void report(int rank, ls_status s, const ls_error *e) {
    char name[32], path[512];
    snprintf(name, sizeof name, "error.%d", rank);
    path_of(name, path);
    FILE *f = fopen(path, "w");
    if (f) fprintf(f, "%s: %s\n", ls_status_name(s), e->msg);
    if (f) fclose(f);
    fprintf(stderr, "worker %d: %s: %s\n", rank, ls_status_name(s), e->msg);
}

int main(int argc, char **argv) {
    static const ls_program program = {.name = "loop", .build = build};
    if (argc != 5) return 2;
    /* Where nobody hangs, a worker is waited for that a busy machine lets wait. */
    const char *limit =
        strcmp(argv[2], "hang") == 0 ? "parallel.timeout_s=4" : "parallel.timeout_s=60";
    const char *const sets[] = {"train.batch=12",
                                "train.virtual_workers=6",
                                "train.steps=12",
                                "optim.warmup=0",
                                limit,
                                NULL};
    dir = argv[1];
    char run[512];
    path_of("run", run);
    ls_trainer_options o = {
        .program = &program, .sets = sets, .count = COUNT, .run = run, .resume = 1};
    ls_trainer *t = NULL;
    ls_error e = {0};
    ls_status s = ls_trainer_open(&o, &t, &e);
    int rank = s == LS_OK ? ls_trainer_rank(t) : 99;
    if (s == LS_OK) s = train(t, argv, &e);
    if (s != LS_OK) report(rank, s, &e);
    ls_trainer_close(t);
    return s == LS_OK ? 0 : 3;
}
