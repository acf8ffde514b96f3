/* loop.c - a program that owns its training loop: it fits z = sin(3 x) cos(2 y).
 *
 *     cc loop.c -o loop $(pkg-config --cflags --libs lockstep) -lm
 *     ./loop                              # one worker
 *     ./loop 4                            # four threads
 *     lockstep run -n 4 ./loop            # four processes; also mpirun, srun
 *     LOOP_RUN=runs/loop lockstep run -n 4 --restarts 3 ./loop   # with checkpoints, and survives
 *
 * Every way writes loop.safetensors with the same bits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/train.h>

#define POINTS     5000
#define VALIDATION 1000 /* points that are not trained on */
#define STEPS      300

static const char *const sets[] = {"train.batch=48", "train.steps=300", "optim.lr=0.01", NULL};

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "point", LS_F32, LS_DIMS(2));
    ls_value *z = ls_input(m, "height", LS_F32, LS_DIMS(1));
    (void)k;
    x = ls_tanh(m, ls_linear(m, x, .name = "first", .out = 48));
    x = ls_tanh(m, ls_linear(m, x, .name = "second", .out = 48));
    ls_mean_squared_error(m, ls_linear(m, x, .name = "head", .out = 1), z, LS_DEFAULTS);
}

static const ls_program program = {.name = "loop", .build = build};

/* Writes a sample: any program's data come from anywhere. */
static void fill(ls_sample *s, uint64_t number) {
    float *point = (float *)ls_sample_field(s, "point");
    float *height = (float *)ls_sample_field(s, "height");
    point[0] = (float)(number % 71) / 35.0f - 1;
    point[1] = (float)(number % 73) / 36.0f - 1;
    height[0] = sinf(3 * point[0]) * cosf(2 * point[1]);
}

/* A sample to evaluate the model on. */
static ls_status read_sample(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    (void)own, (void)e;
    fill(s, POINTS + i);
    return LS_OK;
}

static const ls_own_source validation = {.count = VALIDATION, .read = read_sample};

static ls_status evaluate(ls_trainer *t, ls_error *e) {
    ls_trainer_score score;
    ls_status s = ls_trainer_evaluate(t, &validation, &score, e);
    if (s == LS_OK && ls_trainer_rank(t) == 0) printf("validation loss %.4f\n", score.loss);
    return s;
}

static ls_status train(ls_trainer *t, int has_run, ls_error *e) {
    ls_trainer_result r;
    while (ls_trainer_steps(t) < STEPS) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
            fill(ls_trainer_sample(t, i), ls_trainer_number(t, i));
        ls_status s = ls_trainer_step(t, &r, e);
        if (s != LS_OK) return s;
        if (ls_trainer_rank(t) == 0 && r.step % 100 == 0)
            printf("step %3d  loss %.4f\n", (int)r.step, r.loss);
        if (r.step % 100 == 0) s = evaluate(t, e);
        if (s == LS_OK && has_run && r.step % 100 == 0) s = ls_trainer_checkpoint(t, e);
        if (s != LS_OK) return s;
    }
    return ls_trainer_save(t, "loop.safetensors", e);
}

/* A worker. The group is NULL for those that a launcher has started, and for a single one. */
static ls_status work(ls_group *g, void *arg, ls_error *e) {
    ls_trainer_options o = {.program = &program, .sets = sets, .count = POINTS, .group = g};
    ls_trainer *t = NULL;
    o.run = getenv("LOOP_RUN");
    o.resume = 1;
    ls_status s = ls_trainer_open(&o, &t, e);
    (void)arg;
    if (s == LS_OK) s = train(t, o.run != NULL, e);
    ls_trainer_close(t);
    return s;
}

int main(int argc, char **argv) {
    ls_error e;
    ls_status s = argc > 1 ? ls_run_threads(atoi(argv[1]), work, NULL, &e) : work(NULL, NULL, &e);
    if (s != LS_OK && e.msg[0]) fprintf(stderr, "loop: %s\n", e.msg);
    return s == LS_OK ? 0 : 1;
}
