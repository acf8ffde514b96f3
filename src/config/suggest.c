/* suggest.c - see suggest.h. */
#include "config/suggest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/nearest.h"

/* Names of the settings in nanoGPT, Hugging Face's Trainer and configs, PyTorch, DeepSpeed and
 * Megatron-LM. */
static const struct {
    const char *key;
    const char *others; /* words, with a space on both sides of each */
} aliases[] = {
    {"model.layers", " n_layer n_layers num_layers num_hidden_layers depth blocks n_blocks "},
    {"model.width", " n_embd n_embed hidden_size hidden_dim d_model dim model_dim embed_dim "
                    "embedding_size embedding_dim "},
    {"model.heads", " n_head n_heads num_heads num_attention_heads attention_heads "},
    {"model.context", " block_size seq_len seq_length sequence_length max_seq_len max_seq_length "
                      "context_length context_size context_window n_ctx n_positions "
                      "max_position_embeddings max_length "},
    {"model.vocab", " vocab_size n_vocab vocabulary vocabulary_size padded_vocab_size "},
    {"model.norm", " norm_layer norm_type normalization batch_norm use_batch_norm use_bn "},
    {"model.from", " pretrained model_name model_name_or_path base_model checkpoint_path "
                   "pretrained_model_name_or_path "},
    {"lora.rank", " r lora_r lora_rank "},
    {"lora.alpha", " lora_alpha "},
    {"lora.targets", " target_modules lora_target_modules lora_target "},
    {"lora.dropout", " lora_dropout "},
    {"data.path", " dataset dataset_path data_path train_file train_data text file input corpus "},
    {"data.val_fraction", " val_split validation_split val_ratio test_size eval_fraction "},
    {"train.steps", " max_steps num_steps n_steps total_steps num_train_steps max_iters "
                    "train_iters iters iterations num_iterations "},
    {"train.epochs", " num_epochs n_epochs max_epochs num_train_epochs "},
    {"train.batch", " batch_size global_batch_size train_batch_size total_batch_size bs "},
    {"train.micro_batch", " micro_batch_size train_micro_batch_size_per_gpu mbs "
                          "per_device_train_batch_size per_device_batch_size device_batch_size "
                          "gradient_accumulation_steps grad_accum_steps accumulation_steps "
                          "accumulate_grad_batches "},
    {"train.seed", " random_seed rng_seed manual_seed data_seed "},
    {"train.eval_every", " eval_interval eval_steps eval_freq val_every val_interval "
                         "val_check_interval "},
    {"train.eval_samples", " eval_iters eval_batches val_batches eval_size max_eval_samples "},
    {"train.compute", " dtype torch_dtype precision mixed_precision bf16 fp16 amp autocast "},
    {"train.reduce_dtype", " grad_dtype gradient_dtype communication_data_type "},
    {"optim.lr", " learning_rate max_lr base_lr peak_lr initial_lr max_learning_rate "},
    {"optim.min_lr", " min_learning_rate lr_min lr_end final_lr eta_min "},
    {"optim.warmup", " warmup_steps warmup_iters num_warmup_steps lr_warmup_iters "
                     "lr_warmup_steps warmup_num_steps "},
    {"optim.optimizer",
     " optim optimizer_type optimizer_name optim_name algorithm solver optimizer.type "
     "optimizer.name optim.type optim.name "},
    {"optim.schedule", " lr_scheduler lr_scheduler_type scheduler lr_schedule lr_decay_style "
                       "decay_lr scheduler_type scheduler.type scheduler.name lr_scheduler.type "},
    {"optim.decay_fraction", " lr_wsd_decay_iters wsd_decay_fraction cooldown_fraction "},
    {"optim.step_every", " step_size lr_step_size decay_steps "},
    {"optim.step_factor", " gamma lr_gamma decay_rate lr_decay_rate "},
    {"optim.momentum", " sgd_momentum mom mu "},
    {"optim.nesterov", " use_nesterov nesterov_momentum "},
    {"optim.groups", " param_groups parameter_groups layerwise_lr no_decay "},
    {"optim.ema", " ema_decay use_ema model_ema model_ema_decay ema_beta swa "},
    {"optim.beta1", " adam_beta1 b1 betas lion_beta1 "},
    {"optim.beta2", " adam_beta2 b2 lion_beta2 "},
    {"optim.eps", " epsilon adam_epsilon adam_eps "},
    {"optim.lr_decay", " learning_rate_decay lrd "},
    {"model.filter_freq", " admit admission min_count min_frequency enter_threshold "},
    {"model.steps_to_live", " keep evict eviction ttl "},
    {"optim.weight_decay", " wd decay l2 adam_weight_decay "},
    {"optim.clip", " grad_clip max_grad_norm gradient_clipping gradient_clip_val clip_grad "
                   "clip_grad_norm clip_norm grad_norm "},
    {"optim.loss_scale", " init_scale initial_loss_scale "},
    {"optim.loss_scale_min", " min_loss_scale min_scale "},
    {"optim.loss_scale_window", " growth_interval scale_window "},
    {"optim.loss_scale_hysteresis", " hysteresis "},
    {"parallel.transport", " backend dist_backend ddp_backend "},
    {"parallel.threads", " num_threads n_threads nthreads omp_num_threads "},
    {"parallel.bucket_mb", " bucket_cap_mb bucket_size reduce_bucket_size ddp_bucket_size "},
    {"parallel.zero", " zero_stage stage zero_optimization fsdp sharding_strategy "},
    {"parallel.shard_group", " hybrid_shard shard_size zero_hpz_partition_size "},
    {"parallel.recompute", " gradient_checkpointing activation_checkpointing "
                           "checkpoint_activations recompute_granularity "},
    {"parallel.timeout_s", " timeout ddp_timeout nccl_timeout distributed_timeout_minutes "},
    {"parallel.memory_limit_mb", " memory_limit max_memory memory "},
    {"checkpoint.every", " save_interval save_every save_steps save_freq checkpoint_interval "
                         "ckpt_every checkpoint_every "},
    {"checkpoint.keep", " save_total_limit keep_last max_to_keep keep_checkpoints save_top_k "},
    {"log.every", " log_interval logging_steps log_every print_every log_every_n_steps "},
};

static const char *last_word(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* True if `list` contains the word with a space on both sides. */
static bool lists(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; n && (at = strstr(at, word)); at++)
        if (at > list && at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

static const char *by_alias(const char *word, const char *const *names, int n) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (!lists(aliases[i].others, word)) continue;
        for (int k = 0; k < n; k++)
            if (strcmp(names[k], aliases[i].key) == 0) return names[k];
    }
    return NULL;
}

typedef bool meant_by(const char *word, const char *key);

static bool is_same(const char *word, const char *key) { return strcmp(word, key) == 0; }

static bool is_beginning(const char *word, const char *key) {
    size_t n = strlen(word), m = strlen(key);
    return n >= 3 && m >= 3 && strncmp(word, key, n < m ? n : m) == 0;
}

/* The key whose last word fits; if several do, the one whose whole name is nearest. */
static const char *by_word(const char *name, meant_by *fits, const char *const *names, int n) {
    const char *best = NULL, *word = last_word(name);
    int least = 0;
    for (int k = 0; k < n; k++) {
        if (!fits(word, last_word(names[k]))) continue;
        const char *whole = strchr(name, '.') ? names[k] : last_word(names[k]);
        int d = ls_edit_distance(name, whole);
        if (best && d >= least) continue;
        best = names[k];
        least = d;
    }
    return best;
}

const char *ls_config_suggest(const char *name, const char *const *names, int n) {
    static meant_by *const ways[] = {is_same, ls_is_near, is_beginning};
    const char *meant = by_alias(name, names, n);
    if (!meant) meant = by_alias(last_word(name), names, n);
    for (size_t i = 0; !meant && i < sizeof ways / sizeof *ways; i++)
        meant = by_word(name, ways[i], names, n);
    return meant;
}
