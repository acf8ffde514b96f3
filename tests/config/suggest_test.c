/* suggest_test.c - which key an unknown one may stand for. */
#include "config/suggest.h"

#include "config/config.h"
#include "test.h"

static const char *const keys[] = {"model.layers",    "train.steps",      "train.batch",
                                   "optim.lr",        "optim.min_lr",     "optim.warmup",
                                   "log.every",       "checkpoint.every", "optim.loss_scale",
                                   "optim.optimizer", "optim.schedule",   "optim.beta1"};
enum { NKEYS = sizeof keys / sizeof *keys };

static void means(const char *name, const char *key) {
    const char *meant = ls_config_suggest(name, keys, NKEYS);
    if (!key) {
        assert_null(meant);
        return;
    }
    assert_non_null(meant);
    assert_string_equal(meant, key);
}

static void test_ways(void **state) {
    (void)state;
    means("optim.learning_rate", "optim.lr"); /* another system's name */
    means("learning_rate", "optim.lr");
    means("iters", "train.steps");
    means("optimizer.type", "optim.optimizer"); /* other systems' whole names */
    means("scheduler.type", "optim.schedule");
    means("optimizer.params.betas", "optim.beta1");
    means("model.type", NULL);
    means("model.vocab_size", NULL);     /* its key is not among these */
    means("model.steps", "train.steps"); /* another group */
    means("checkpont.every", "checkpoint.every");
    means("lgo.every", "log.every");
    means("train.bacth", "train.batch"); /* a typing error */
    means("optim.warm", "optim.warmup"); /* a beginning */
    means("optim.loss", "optim.loss_scale");
    means("optim.lr_schedule", "optim.schedule");
    means("model.dropout", NULL);
    means("", NULL);
    means(".", NULL);
    means(" ", NULL);
    means("model.", NULL);
}

/* The names of other systems lead to keys that exist. */
static void test_aliases(void **state) {
    (void)state;
    static const char *const names[] = {"n_layer",
                                        "hidden_size",
                                        "n_head",
                                        "block_size",
                                        "vocab_size",
                                        "dataset",
                                        "val_split",
                                        "max_steps",
                                        "batch_size",
                                        "micro_batch_size",
                                        "random_seed",
                                        "eval_interval",
                                        "eval_iters",
                                        "dtype",
                                        "grad_dtype",
                                        "learning_rate",
                                        "eta_min",
                                        "warmup_steps",
                                        "adam_beta1",
                                        "adam_beta2",
                                        "epsilon",
                                        "wd",
                                        "max_grad_norm",
                                        "init_scale",
                                        "min_loss_scale",
                                        "scale_window",
                                        "hysteresis",
                                        "backend",
                                        "num_threads",
                                        "bucket_cap_mb",
                                        "zero_stage",
                                        "hybrid_shard",
                                        "gradient_checkpointing",
                                        "timeout",
                                        "memory",
                                        "save_steps",
                                        "save_total_limit",
                                        "log_interval",
                                        "lr_scheduler",
                                        "optimizer.type",
                                        "betas",
                                        "gamma",
                                        "step_size",
                                        "param_groups",
                                        "use_nesterov",
                                        "ema_decay",
                                        "model_name_or_path",
                                        "lora_r",
                                        "lora_alpha",
                                        "target_modules"};
    ls_config c;
    ls_error e;
    char assignment[64];
    ls_config_defaults(&c);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(assignment, sizeof assignment, "%s=1", names[i]);
        assert_ls_fails(ls_config_set(&c, assignment, &e), LS_EINVAL, "did you mean '", e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_aliases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
