/* dlrm_test.c - the example of a small model whose data, weights and losses Facebook's DLRM prints:
 * the same losses and trained weights.
 *
 * Data and results are those of `dlrm_s_pytorch.py --mini-batch-size=2 --data-size=6 --debug-mode`
 * as github.com/facebookresearch/dlrm documents them: Naumov et al., "Deep learning recommendation
 * model for personalization and recommendation systems", 2019. */
#include <math.h>

#include "exec/trained.h"
#include "model/builder.h"

enum { STEPS = 3, BATCH = 2, LIST = 3, TABLES = 3 };

typedef struct example {
    float x[4], target;
    int32_t ids[TABLES][LIST]; /* -1: none */
} example;

static const example data[STEPS][BATCH] = {
    {{{.69647F, .28614F, .22685F, .55131F}, .55679F, {{1, -1, -1}, {0, -1, -1}, {1, -1, -1}}},
     {{.71947F, .42311F, .98076F, .68483F}, .15896F, {{0, 1, -1}, {1, -1, -1}, {0, -1, -1}}}},
    {{{.36179F, .22826F, .29371F, .63098F}, .15307F, {{1, -1, -1}, {1, -1, -1}, {1, -1, -1}}},
     {{.0921F, .4337F, .43086F, .49369F}, .69553F, {{0, 2, 3}, {1, 2, -1}, {1, -1, -1}}}},
    {{{.60306F, .54507F, .34276F, .30412F}, .31877F, {{2, -1, -1}, {1, -1, -1}, {1, -1, -1}}},
     {{.41702F, .6813F, .87546F, .51042F}, .69197F, {{0, 1, 2}, {2, -1, -1}, {1, -1, -1}}}}};

static const double losses[STEPS] = {.451893, .402002, .275460};

/* A parameter: before and after the three steps. Matrices of layers are [out, in]. */
typedef struct weights {
    const char *name;
    int out, in; /* in 0: it is no matrix of a layer */
    float before[32], after[32];
} weights;

static const weights all[] = {
    {"table0.weight",
     8,
     0,
     {.05438F, -.11105F, .42513F, .34167F, -.1426F, -.45641F, -.19523F, -.10181F},
     {.0543F, -.1112F, .42513F, .34167F, -.14283F, -.45679F, -.19532F, -.10197F}},
    {"table1.weight",
     6,
     0,
     {.23667F, .57199F, -.16638F, .30316F, .10759F, .22136F},
     {.23667F, .57199F, -.1666F, .30285F, .10751F, .22124F}},
    {"table2.weight",
     4,
     0,
     {-.49338F, -.14301F, -.36649F, -.22139F},
     {-.49338F, -.14301F, -.36664F, -.22164F}},
    {"bottom0.weight",
     3,
     4,
     {.51313F, .66662F, .10591F, .13089F, .32198F, .66156F, .84651F, .55326F, .85445F, .38484F,
      .31679F, .35426F},
     {.51313F, .66663F, .10591F, .1309F, .32196F, .66154F, .84649F, .55324F, .85444F, .38482F,
      .31677F, .35425F}},
    {"bottom0.bias", 3, 0, {.17108F, .82911F, .33867F}, {.17109F, .82907F, .33863F}},
    {"bottom1.weight",
     2,
     3,
     {.55237F, .57855F, .52153F, .00269F, .98835F, .90534F},
     {.55238F, .57857F, .52154F, .00265F, .98825F, .90528F}},
    {"bottom1.bias", 2, 0, {.20764F, .29249F}, {.20764F, .29244F}},
    {"top0.weight",
     4,
     8,
     {.52001F, .90191F, .98363F, .25754F, .56436F, .80697F, .39437F, .73107F,
      .16107F, .6007F,  .86586F, .98352F, .07937F, .42835F, .20454F, .45064F,
      .54776F, .09333F, .29686F, .92758F, .569F,   .45741F, .75353F, .74186F,
      .04858F, .7087F,  .83924F, .16594F, .781F,   .28654F, .30647F, .66526F},
     {.51996F, .90184F, .98368F, .25752F, .56436F, .807F,   .39437F, .73107F,
      .16096F, .60055F, .86596F, .98348F, .07938F, .42842F, .20453F, .45064F,
      .5476F,  .0931F,  .29701F, .92752F, .56902F, .45752F, .75351F, .74187F,
      .04849F, .70857F, .83933F, .1659F,  .78101F, .2866F,  .30646F, .66526F}},
    {"top0.bias", 4, 0, {.11139F, .66487F, .88786F, .69631F}, {.11137F, .66482F, .88778F, .69627F}},
    {"top1.weight",
     2,
     4,
     {.44033F, .43821F, .7651F, .56564F, .0849F, .58267F, .81484F, .33707F},
     {.44029F, .43816F, .76502F, .56561F, .08485F, .5826F, .81474F, .33702F}},
    {"top1.bias", 2, 0, {.92758F, .75072F}, {.92754F, .75067F}},
    {"top2.weight", 1, 2, {.57406F, .75164F}, {.57379F, .7514F}},
    {"top2.bias", 1, 0, {.07915F}, {.07908F}},
};
enum { NWEIGHTS = sizeof all / sizeof *all };

static ls_value *add_linear(ls_model *m, ls_value *x, const char *name, int64_t out) {
    return (ls_linear)(m, x, (ls_linear_options){.name = name, .out = out});
}

static void make_model(ls_model *m) {
    static const int64_t rows[TABLES] = {4, 3, 2};
    static const char *const fields[TABLES] = {"ids0", "ids1", "ids2"}, *const tables[TABLES] = {
                                                                            "table0", "table1",
                                                                            "table2"};
    ls_error e = {0};
    ls_values features = {{0}};
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(4)), *ids[TABLES];
    for (int t = 0; t < TABLES; t++) ids[t] = ls_input(m, fields[t], LS_I32, LS_DIMS(LIST));
    ls_value *target = ls_input(m, "target", LS_F32, LS_DIMS(1));
    x = ls_relu(m, add_linear(m, x, "bottom0", 3));
    x = ls_relu(m, add_linear(m, x, "bottom1", 2));
    features.of[0] = ls_reshape(m, x, LS_DIMS(1, 2));
    for (int t = 0; t < TABLES; t++) {
        ls_value *row = ls_embedding_sum(m, ids[t], .name = tables[t], .rows = rows[t], .width = 2);
        features.of[1 + t] = ls_reshape(m, row, LS_DIMS(1, 2));
    }
    ls_value *pairs = ls_interaction(m, (ls_concat)(m, 0, features));
    x = ls_concat(m, 0, x, pairs);
    x = ls_relu(m, add_linear(m, x, "top0", 4));
    x = ls_relu(m, add_linear(m, x, "top1", 2));
    x = ls_sigmoid(m, add_linear(m, x, "top2", 1));
    ls_mean_squared_error(m, x, target, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

static const ls_param *param_of(const ls_model *m, const char *name) {
    for (int i = 0; i < m->nparams; i++)
        if (strcmp(m->params[i].name, name) == 0) return &m->params[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

/* Element i of a printed matrix, where the model has it. */
static size_t place_of(const weights *w, size_t i) {
    if (!w->in) return i;
    return i % (size_t)w->in * (size_t)w->out + i / (size_t)w->in;
}

/* The batch of each step is an epoch. */
static ls_status read_sample(const void *model, const ls_draw *d, size_t nbytes, void *sample,
                             ls_error *e) {
    const ls_model *m = model;
    const example *x = &data[d->epoch % STEPS][d->sample]; /* the loader reads ahead */
    char *to = sample;
    (void)nbytes, (void)e;
    memcpy(to + m->inputs[0].offset, x->x, sizeof x->x);
    for (int t = 0; t < TABLES; t++)
        memcpy(to + m->inputs[1 + t].offset, x->ids[t], sizeof x->ids[t]);
    memcpy(to + m->inputs[1 + TABLES].offset, &x->target, sizeof x->target);
    return LS_OK;
}

static void train(trained *t, int workers) {
    *t = (trained){.read = read_sample,
                   .data = &t->model,
                   .nsamples = BATCH,
                   .steps = STEPS,
                   .lr = 0.01,
                   .loss_scale = 1,
                   .how = {.nworkers = workers, .V = BATCH, .batch = BATCH, .micro_batch = 1}};
    make_model(&t->model);
    float *initial = LS_NEW_ARRAY(float, t->model.nfloats);
    for (size_t k = 0; k < NWEIGHTS; k++) {
        const ls_param *p = param_of(&t->model, all[k].name);
        for (size_t i = 0; i < p->count; i++)
            initial[p->offset + place_of(&all[k], i)] = all[k].before[i];
    }
    t->initial = initial;
    t->how.optim = ls_optim_usual();
    t->how.optim.groups[0].rule = LS_RULE_SGD;
    t->how.optim.groups[0].weight_decay = 0;
    trained_run(t);
    free(initial);
}

/* Data and weights are printed with five digits. */
static void test_printed(void **state) {
    (void)state;
    trained t, two;
    train(&t, 1);
    for (int i = 0; i < STEPS; i++) {
        print_message("loss %.6f, printed %.6f\n", t.out[i].loss, losses[i]);
        assert_true(fabs(t.out[i].loss - losses[i]) < 1e-5);
    }
    for (size_t k = 0; k < NWEIGHTS; k++) {
        const ls_param *p = param_of(&t.model, all[k].name);
        for (size_t i = 0; i < p->count; i++) {
            double is = (double)t.params[p->offset + place_of(&all[k], i)];
            if (fabs(is - (double)all[k].after[i]) > 1.5e-5)
                fail_msg("%s, number %zu: %.6f, printed %.5f", all[k].name, i, is,
                         (double)all[k].after[i]);
        }
    }
    train(&two, 2);
    trained_same(&t, &two);
    trained_free(&t);
    trained_free(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_printed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
