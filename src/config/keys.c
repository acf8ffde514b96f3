/* keys.c - the table of the keys of a config: everything about a key is in its row (key.h). */
#include "config/key.h"

static const char *const autos[] = {"auto", NULL};

#define FIXED   LS_KEY_FIXED
#define STEERED LS_KEY_STEERED
#define FREE    LS_KEY_FREE
enum { BILLION = 1000000000 };

#define INT(name, field, low, high, usual, may, help)                                              \
    { name, LS_KEY_INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, NULL, may, help }
#define NUM(name, field, low, high, usual, may, help)                                              \
    { name, LS_KEY_REAL, offsetof(ls_config, field), {0}, {low, high, usual}, NULL, may, help }
#define STRING(name, field, may, help)                                                             \
    { name, LS_KEY_TEXT, offsetof(ls_config, field), {0}, {0}, NULL, may, help }
#define STRINGS(name, field, may, help)                                                            \
    { name, LS_KEY_LIST, offsetof(ls_config, field), {0}, {0}, NULL, may, help }
#define MAPS(name, field, may, help)                                                               \
    { name, LS_KEY_MAPS, offsetof(ls_config, field), {0}, {0}, NULL, may, help }
#define TREE(name, field, may, help)                                                               \
    { name, LS_KEY_TREE, offsetof(ls_config, field), {0}, {0}, NULL, may, help }
#define SPAN(name, field, low, high, usual, may, help)                                             \
    { name, LS_KEY_SPAN, offsetof(ls_config, field), {0}, {low, high, usual}, autos, may, help }
#define INT_OR_AUTO(name, field, low, high, usual, may, help)                                      \
    { name, LS_KEY_INTEGER, offsetof(ls_config, field), {low, high, usual}, {0}, autos, may, help }
/* The words of choices.h; it does not compile if the field has another type. */
#define WORDS(field, type)                                                                         \
    _Generic(((const ls_config *)NULL)->field, type                                                \
             : (const char *const[]){type##_words(LS_CHOICE_WORD) NULL})
#define ONE_OF(name, field, type, may, help)                                                       \
    { name, LS_KEY_CHOICE, offsetof(ls_config, field), {0}, {0}, WORDS(field, type), may, help }
#define SWITCH(name, field, usual, may, help)                                                      \
    {                                                                                              \
        name, LS_KEY_CHOICE, offsetof(ls_config, field), {LS_OFF, LS_ON, usual}, {0},              \
            WORDS(field, ls_switch), may, help                                                     \
    }
#define ls_feedback_words(IS)                                                                      \
    IS(LS_FEEDBACK_ERROR, "error") IS(LS_FEEDBACK_EF21, "ef21") IS(LS_FEEDBACK_NONE, "none")

static const ls_config_key keys[] = {
    ONE_OF(
        "model.kind", model.kind, ls_model_kind, FIXED,
        "gpt2, llama: a language model, from text; for samples of data: mlp, layers of neurons; "
        "cnn, "
        "convolutions; resnet, convolutions with shortcuts; vit, a transformer of images; factors, "
        "two_towers: scores of users for items (data.ratings); dlrm, wide_deep: of ids and numbers "
        "(data.clicks); "
        "layers: as model.layers lists them; program: of the program that has the model"),
    STRING(
        "model.from", model.from, FIXED,
        "the file or directory of a published model (GGUF, or Hugging Face's form), of kind llama "
        "or gpt2: its architecture, tokenizer and weights; model.context may be set beside it"),
    STRING(
        "model.adapter", model.adapter, FIXED,
        "an adapter of model.from: a directory as peft or lockstep export --to peft writes it, or "
        "a GGUF file as llama.cpp loads it: training continues with it, and it sets the keys of "
        "lora"),
    INT("model.layers", model.layers, 1, 1000, 6, FIXED, "gpt2, llama, vit: transformer blocks"),
    TREE("model.layers", model.list, FIXED,
         "kind layers: the layers in their order, e.g. [{conv2d: {channels: 32, kernel: 3}}, relu, "
         "mean_pool, {linear: {out: 10}}]; docs/guide/models.md lists them"),
    INT("model.width", model.width, 1, 65536, 256, FIXED,
        "gpt2, llama, vit: width of the residual stream"),
    INT("model.heads", model.heads, 1, 1024, 8, FIXED,
        "gpt2, llama, vit: attention heads; must divide the width"),
    INT("model.context", model.context, 1, 1048576, 256, FIXED, "gpt2, llama: tokens in a sample"),
    INT("model.vocab", model.vocab, 2, 1048576, 2048, FIXED,
        "gpt2, llama: vocabulary size of the tokenizer, which is trained on the text"),
    INT("model.kv_heads", model.kv_heads, 0, 1024, 0, FIXED,
        "llama: heads of keys and values, a divisor of model.heads; 0: as many as model.heads"),
    INT("model.ffn", model.ffn, 0, 1048576, 0, FIXED,
        "llama: width of the feed-forward layer; 0: 8/3 of model.width, in multiples of 64"),
    INT("model.head_dim", model.head_dim, 0, 65536, 0, FIXED,
        "llama: width of a head, even; 0: model.width / model.heads"),
    ONE_OF("model.rope", model.rope, ls_rope_kind, FIXED,
           "llama: frequencies of rotary positions: default; linear: divided by model.rope_factor; "
           "llama3: the low ones are, as in Llama 3.1; yarn: as in Qwen's configs for long texts; "
           "longrope: by lists, as in Phi-3's"),
    NUM("model.rope_base", model.rope_base, 1.5, 1e12, 10000, FIXED,
        "llama: base of the frequencies of rotary positions"),
    NUM("model.rope_factor", model.rope_factor, 1e-3, 1e6, 1, FIXED,
        "llama: divisor of frequencies (model.rope)"),
    NUM("model.rope_low", model.rope_low, 1e-3, 1e6, 1, FIXED,
        "model.rope llama3: low_freq_factor of published configs; yarn: beta_slow (usually 1)"),
    NUM("model.rope_high", model.rope_high, 1e-3, 1e6, 4, FIXED,
        "model.rope llama3: high_freq_factor; yarn: beta_fast (usually 32)"),
    INT("model.rope_original", model.rope_original, 1, 1048576, 8192, FIXED,
        "model.rope llama3, yarn, longrope: original_max_position_embeddings"),
    NUM("model.rope_scale", model.rope_scale, 0, 1e6, 0, FIXED,
        "model.rope yarn, longrope: what multiplies cosines and sines (attention_factor of "
        "published configs); 0: of yarn 0.1 ln(model.rope_factor) + 1, of longrope the root of 1 + "
        "ln(model.rope_factor) / ln(model.rope_original)"),
    STRINGS("model.rope_short", model.rope_short, FIXED,
            "model.rope longrope: divisors of the frequencies (short_factor of published configs) "
            "where model.context is at most model.rope_original"),
    STRINGS("model.rope_long", model.rope_long, FIXED,
            "model.rope longrope: the same (long_factor) where model.context is longer, for all of "
            "its texts"),
    INT("model.rope_dims", model.rope_dims, 0, 65536, 0, FIXED,
        "llama: how many numbers of a head have rotary positions, the first ones, as in "
        "Phi-4-mini (partial_rotary_factor of published configs times the width of a head); 0: "
        "all"),
    SWITCH(
        "model.rope_truncate", model.rope_truncate, LS_ON, FIXED,
        "model.rope yarn: on: the frequencies between which it interpolates are rounded to whole "
        "ones (truncate of published configs)"),
    INT("model.no_rope_every", model.no_rope_every, 0, 10000, 0, FIXED,
        "llama: each n-th layer has no rotary positions, as in SmolLM3 (there 4); 0: all have "
        "them"),
    INT("model.window", model.window, 0, 1048576, 0, FIXED,
        "llama: the most positions that a query sees, its own among them; 0: all before it"),
    INT("model.full_attention_every", model.full_attention_every, 0, 10000, 0, FIXED,
        "llama: each n-th layer attends to all positions, and the others to those of model.window, "
        "as in Gemma 3 (there 6); 0: all layers have the window"),
    NUM("model.rope_local_base", model.rope_local_base, 1.5, 1e12, 10000, FIXED,
        "model.full_attention_every: base of the frequencies in layers with the window"),
    INT("model.query_scalar", model.query_scalar, 0, 1048576, 0, FIXED,
        "llama: attention divides scores by the root of this (query_pre_attn_scalar of published "
        "configs); 0: the width of a head"),
    ONE_OF("model.block", model.block, ls_block_kind, FIXED,
           "llama: llama: two RMS norms, SiLU; gemma3: four RMS norms, which multiply by 1 + their "
           "weights, GELU, and an embedding times the root of model.width"),
    ONE_OF("model.bias", model.bias, ls_bias_kind, FIXED,
           "llama: linear layers with a bias: none, qkv, attention (qkv and its output), mlp, all"),
    SWITCH("model.qk_norm", model.qk_norm, LS_OFF, FIXED,
           "llama: on: each head of queries and keys has an RMS norm before its rotation"),
    INT("model.experts", model.experts, 0, 128, 0, FIXED,
        "llama: experts of a feed-forward layer, each of the width model.ffn; 0: no mixture of "
        "experts"),
    INT("model.experts_per_token", model.experts_per_token, 1, 128, 2, FIXED,
        "model.experts: how many of them compute a token"),
    INT("model.shared_experts", model.shared_experts, 0, 128, 0, FIXED,
        "model.experts: further ones that compute every token"),
    SWITCH(
        "model.norm_topk", model.norm_topk, LS_ON, FIXED,
        "model.experts: on: the weights of a token's experts have the sum 1; off: they are those "
        "of a softmax over all experts (norm_topk_prob of published configs)"),
    NUM("model.router_aux_loss", model.router_aux_loss, 0, 1000, 0.01, FIXED,
        "model.experts: factor of the auxiliary loss for an even load (router_aux_loss_coef of "
        "published configs)"),
    ONE_OF("model.router_aux_scope", model.router_aux_scope, ls_router_scope, FIXED,
           "model.router_aux_loss: layer: the sum of a loss of each layer; model: one loss of the "
           "loads of all layers together, as transformers has it"),
    NUM("model.router_bias_rate", model.router_bias_rate, 0, 1, 0, FIXED,
        "model.experts: above 0: experts are chosen by the router's softmax and a bias, which each "
        "step moves by this much towards an even load (usual: 0.001, with router_aux_loss 0)"),
    NUM("model.expert_capacity", model.expert_capacity, 0, 1000, 0, FIXED,
        "model.experts: above 0: in training an expert computes at most this factor times an even "
        "part of a sample's choices, the first ones; the others go without it"),
    NUM("model.norm_eps", model.norm_eps, 1e-12, 0.1, 1e-5, FIXED,
        "llama: added to the mean square in RMS norms"),
    ONE_OF("model.head", model.head, ls_head_kind, FIXED,
           "llama: tied: the output layer has the weights of the token embedding; own: weights of "
           "its own"),
    STRINGS("model.hidden", model.hidden, FIXED,
            "mlp: widths of the hidden layers, e.g. [512, 256]; empty: [256]; two_towers, dlrm, "
            "wide_deep: the same, empty: [64]"),
    STRINGS("model.bottom", model.bottom, FIXED,
            "dlrm: widths of the layers that read the numbers, before one of model.width; empty: "
            "[64]"),
    STRINGS("model.channels", model.channels, FIXED,
            "cnn, resnet: channels of each stage, which halves the image; empty: [32, 64] (cnn), "
            "[16, 32, 64] (resnet)"),
    ONE_OF("model.norm", model.norm, ls_norm_kind, FIXED,
           "cnn, resnet: the norm after each convolution; batch: over the samples of a virtual "
           "worker, which needs train.micro_batch = train.batch / train.virtual_workers"),
    INT("model.blocks", model.blocks, 1, 1000, 3, FIXED, "resnet: residual blocks of a stage"),
    INT("model.patch", model.patch, 1, 4096, 4, FIXED, "vit: height and width of a patch"),
    NUM("model.dropout", model.dropout, 0, 0.999, 0, STEERED,
        "probability with which a hidden value is set to 0 in training; gpt2, llama: of the "
        "embedding, of attention's probabilities, and of what attention and feed-forward layers "
        "add to the residual stream; mlp, cnn, vit: of hidden layers and residual branches"),
    SWITCH("model.sparse", model.sparse, LS_OFF, FIXED,
           "on: the tables of embeddings are one copy, which hosts divide, and a step reads, sums, "
           "sends "
           "and updates only the rows of its samples"),
    INT("model.filter_freq", model.filter_freq, 0, 1 << 24, 0, FIXED,
        "sparse: a row is trained from the step on in which samples have had its id so often; 0: "
        "all rows are"),
    INT("model.steps_to_live", model.steps_to_live, 0, 1 << 24, 0, FIXED,
        "sparse: a row whose id no sample had in this number of steps begins anew, with its "
        "initial numbers and states of 0; 0: never"),
    TREE("model.input", model.input, FIXED,
         "fields of a sample that the model reads, e.g. {image: [28, 28, 1]}; empty: as the data "
         "have them"),
    INT("model.classes", model.classes, 0, 100000000, 0, FIXED,
        "classes of the label; 0: as the data have them"),
    TREE(
        "model.loss", model.loss, FIXED,
        "e.g. {cross_entropy: {target: label, smoothing: 0.1}} or {mean_squared_error: {target: "
        "price}}, or a list of these, which are added up; empty: cross_entropy of the field label"),
    STRING("model.sample_weight", model.sample_weight, FIXED,
           "field with the weight of a sample in the loss, at least 0; empty: all count the same"),
    TREE("model.metrics", model.metrics, FREE,
         "what evaluations measure beside the loss, e.g. [accuracy, top: 5]: accuracy, auc, "
         "confusion, hr, mae, mse, ndcg, r2, rmse, top; empty: the usual ones of the loss"),
    STRINGS(
        "data.path", data.path, FREE,
        "the data, e.g. a UTF-8 text: a file, a directory of texts, a pattern (books/**/*.md), "
        "or a list of these, read in order; a run saves its tokens, so resuming does not read a "
        "text again"),
    ONE_OF("data.documents", data.documents, ls_documents_kind, FIXED,
           "several files of texts: apart, each a document with an end-of-text token behind it, in "
           "an order drawn with train.seed, whole ones held out; or joined as one text"),
    STRING("data.separator", data.separator, FIXED,
           "of texts: what stands between documents within a file, e.g. \"\\n\\n\\n\" or "
           "\"<|endoftext|>\"; empty: a file is one document"),
    STRING("data.text", data.text, FIXED,
           "of texts in JSON: the member of each object that has its text; empty: text, or else "
           "content"),
    ONE_OF("data.format", data.format, ls_data_kind, FREE,
           "format of the files; auto: a text if the model is GPT-2, else by names and contents; "
           "chat: JSON lines of conversations; tokens: files of token ids, e.g. for GPT-2"),
    STRINGS("data.labels", data.labels, FREE,
            "files with labels, if they are apart from the samples (idx, npy)"),
    STRINGS("data.val_path", data.val_path, FREE,
            "files for validation: of samples, texts or conversations, named as in data.path; "
            "empty: a part of data.path"),
    STRINGS("data.val_labels", data.val_labels, FREE, "files with the labels of data.val_path"),
    NUM("data.val_fraction", data.val_fraction, 0.001, 0.5, 0.05, FIXED,
        "fraction held out for validation: of a text, its end, or whole documents; of samples, "
        "spread "
        "over all of them"),
    INT("data.folds", data.folds, 0, 1000, 0, FIXED,
        "cross-validation: the samples are divided into this many folds, one of which is held "
        "out; 0: data.val_fraction is"),
    INT("data.fold", data.fold, 0, 999, 0, FIXED, "the fold that is held out, counted from 0"),
    ONE_OF("data.damaged", data.damaged, ls_damaged_kind, FREE,
           "damaged samples, conversations and texts: refuse the data, or skip and count them"),
    ONE_OF(
        "data.missing", data.missing, ls_missing, FIXED,
        "missing values in columns of numbers of CSV, in JSON, and NaN in arrays: refuse the data, "
        "drop these rows, or take the mean of the training data's column"),
    TREE("data.missing", data.missing_by, FIXED,
         "the same by column, e.g. {age: mean, income: drop, \"*\": refuse}"),
    STRINGS("data.na", data.na, FIXED,
            "texts that stand for missing values in CSV, beside the usual ones, e.g. [\"-999\", "
            "unknown]"),
    STRINGS("data.columns", data.columns, FIXED,
            "columns of CSV files, or members of JSON, that are read, e.g. [age, income, label]; "
            "empty: all"),
    TREE("data.csv", data.csv, FIXED,
         "the form of CSV files, where it is not found, e.g. {header: no, separator: \";\", quote: "
         "\"'\", decimal: \",\", texts: [zip], skip: 2}"),
    ONE_OF(
        "data.lists", data.lists, ls_lists_kind, FIXED,
        "lists of ids that are longer than the model's input: refuse them, or cut their ends off"),
    STRING("data.template", data.template, FREE,
           "conversations: a file with the chat template (Jinja); empty: the model's own"),
    ONE_OF("data.loss", data.loss, ls_chat_loss, FIXED,
           "conversations: train on the assistant's answers, on all tokens, or on the completion "
           "alone, which is the last answer"),
    SWITCH("data.packing", data.packing, LS_OFF, FIXED,
           "conversations: several in a sample, each of which attends to itself alone; off: a "
           "sample has one, and padding"),
    STRING("data.cache", data.cache, FREE,
           "directory for downloads and indexes of data; empty: ~/.cache/lockstep"),
    NUM("data.cache_gb", data.cache_gb, 0, 1000000, 4, FREE,
        "GB of the cache for pixels of images that are scaled, so that they are decoded once; 0: "
        "they are decoded each time they are read"),
    INT_OR_AUTO("data.threads", data.threads, 1, 64, LS_AUTO, FREE,
                "threads of a worker that read and decode samples ahead of the step; auto: 1, or 4 "
                "for JPEG and PNG images"),
    ONE_OF("data.order", data.order, ls_order_kind, FIXED,
           "order of an epoch's samples: global, a permutation of all; blocks, which keeps reads "
           "of files local; auto: blocks for formats of records (csv, jsonl, webdataset, tfrecord, "
           "mds)"),
    INT("data.block", data.block, 1, BILLION, 256, FIXED,
        "order by blocks: neighbouring samples of a block"),
    INT("data.window", data.window, 1, BILLION, 64, FIXED,
        "order by blocks: blocks whose samples are shuffled together; all, if they are fewer than "
        "twice as many"),
    MAPS(
        "data.mix", data.mix, FREE,
        "instead of data.path: several sources with the same fields, e.g. [{path: a/*.tar, weight: "
        "1}, {path: b.csv, weight: 0.5}]; the weight is how often an epoch takes each sample"),
    STRINGS("data.resize", data.resize, FIXED,
            "images are scaled: 64: the shorter side has 64 pixels, and a square of the centre "
            "stays, unless data.crop says more; 64x48: height and width; empty: images of one size "
            "stay as they are, those of several are scaled to the model's input, or to a square"),
    STRINGS("data.crop", data.crop, FIXED,
            "the centre of images that stays, after data.resize: 56, or 56x48 (height x width)"),
    ONE_OF("data.channels", data.channels, ls_channels_kind, FIXED,
           "channels of images: 1: gray, 3: colour; auto: 3 if any image of the data has colour"),
    SWITCH("data.exif", data.exif, LS_ON, FIXED,
           "on: photographs are turned upright, as EXIF says; off: they stay as the camera was "
           "held"),
    TREE(
        "data.normalize", data.normalize, FIXED,
        "pixels become (x / 255 - mean) / deviation, by channel: auto: as measured on the training "
        "part, {mean: [0.28], deviation: [0.35]}: these; empty: -1 to 1. Columns of numbers become "
        "(x - mean) / deviation: auto, or {age: {mean: 38.2, deviation: 13.6}}; empty: auto, if "
        "model.kind is mlp, and they stay as they are with off, or in a list of layers"),
    MAPS("data.augment", data.augment, FIXED,
         "random changes of images during training, in this order, e.g. [{pad: 2}, {crop: 28}, "
         "{flip: 0.5}, {cutout: 8}]; also resized_crop, brightness, contrast, saturation, hue; for "
         "validation only pad and crops at the centre"),
    TREE(
        "data.ratings", data.ratings, FIXED,
        "the files are CSV with a row for each interaction of a user with an item, e.g. {user: "
        "userId, item: movieId, rating: rating, time: timestamp, at_least: 4, negatives: 4, split: "
        "leave_one_out}; split: ratio holds out data.val_fraction of those of each user"),
    TREE(
        "data.clicks", data.clicks, FIXED,
        "the files are CSV with ids, numbers and a click in each row, e.g. {clicked: income, "
        "positive: \">50K\", ids: [job, city], numbers: [age], scale: standard}; scale: none, log, "
        "or standard; hash: 100000: a column has that number of ids, hashes of its texts"),
    STRING("train.from", train.from, FREE,
           "a run or checkpoint from which a new run takes its initial weights and its "
           "tokenizer, e.g. to fine-tune; empty: weights are random and the tokenizer is trained"),
    STRINGS("train.freeze", train.freeze, FIXED,
            "patterns of parameters that are not trained, e.g. [h.0.*, \"*.bias\"]: they have no "
            "gradient and no optimizer state, and are in memory once a host"),
    ONE_OF("train.loss", train.loss, ls_train_loss, FIXED,
           "auto: the model's own; dpo: of preferences (data.format: chat with prompt, chosen and "
           "rejected), against the model that the run begins with"),
    NUM("train.epochs", train.epochs, 0, 1e6, 0, FREE,
        "instead of train.steps: how often all training samples are taken, e.g. 3; 0: as "
        "train.steps says"),
    INT("train.steps", train.steps, 1, BILLION, 1000, FREE,
        "updates of the weights; with train.epochs as many as these take; left out, an mlp takes "
        "20 to 50 epochs of a table, at most 20000 steps"),
    INT("train.batch", train.batch, 1, 1048576, 16, FIXED, "samples per step"),
    TREE("train.batch", train.phased, FIXED,
         "samples per step, from a step on, e.g. [[0, 64], [2000, 128]]: the batch grows in the "
         "run"),
    INT("train.micro_batch", train.micro_batch, 1, 1048576, 1, FREE,
        "samples that a worker computes at once: more is faster and needs more memory; left out: "
        "2, 4, 8 ... of them, so that products have 256 rows"),
    INT("train.virtual_workers", train.virtual_workers, 1, 4096, 8, FIXED,
        "parts of the batch; they fix the order of summation and limit the number of workers; left "
        "out: 8, or the largest number below 8 that divides train.batch into parts of at least "
        "train.micro_batch"),
    INT("train.seed", train.seed, 0, INT64_MAX, 1, FIXED,
        "seed of the initial weights and of the order of samples"),
    SWITCH("train.noise_scale", train.noise_scale, LS_OFF, FREE,
           "on: each step measures the gradient noise scale, which says how large a batch may be "
           "(docs/guide/batch.md); it does not change the bits"),
    INT("train.eval_every", train.eval_every, 0, BILLION, 100, FREE,
        "steps between evaluations; 0: only at the end"),
    INT("train.eval_samples", train.eval_samples, 1, BILLION, 64, FREE,
        "samples per evaluation; the last evaluation takes all"),
    ONE_OF("train.eval_weights", train.eval_weights, ls_eval_weights, FREE,
           "weights that evaluations use: the last ones, or their average (optim.ema), which needs "
           "memory for one more copy of the parameters"),
    INT("train.patience", train.patience, 0, BILLION, 0, FREE,
        "the run ends early after this many evaluations in a row without a new lowest loss, "
        "and the best checkpoint is retained; 0: never"),
    STRINGS("train.sample_prompts", train.sample_prompts, FREE,
            "texts that the model continues, or as messages answers, at each evaluation: "
            "RUN/samples.jsonl has what it writes"),
    STRING("train.sample_file", train.sample_file, FREE,
           "a file of such prompts, one a line, after those of train.sample_prompts"),
    INT("train.sample_tokens", train.sample_tokens, 1, 4096, 64, FREE,
        "the most tokens of an answer to such a prompt"),
    NUM("train.sample_temperature", train.sample_temperature, 0, 1000, 0, FREE,
        "0: such answers have the likeliest tokens; else they are drawn, below 1 unlikely ones "
        "less "
        "often"),
    ONE_OF("train.compute", train.compute, ls_compute_kind, FIXED,
           "type of parameters and activations; bf16 and f16 keep f32 master weights: less "
           "memory and traffic, but not less time on a CPU"),
    ONE_OF("train.reduce_dtype", train.reduce_dtype, ls_reduce_kind, FIXED,
           "type in which gradients are stored and sent; auto: that of train.compute"),
    INT("lora.rank", lora.rank, 0, 65536, 0, FIXED,
        "llama: rank of the adapters of linear layers, which alone are trained (LoRA), e.g. 8 or "
        "16; "
        "0: none"),
    NUM("lora.alpha", lora.alpha, 1e-6, 1e6, 8, FIXED,
        "an adapter's product counts alpha / rank times"),
    SWITCH("lora.rs", lora.rs, LS_OFF, FIXED,
           "on: it counts alpha / sqrt(rank) times (rsLoRA), for high ranks"),
    SWITCH("lora.dora", lora.dora, LS_OFF, FIXED,
           "on: the norms of the weights' rows are trained apart from their directions (DoRA)"),
    NUM("lora.dropout", lora.dropout, 0, 0.999, 0, STEERED,
        "probability with which a number of an adapter's input is set to 0 in training"),
    STRINGS(
        "lora.targets", lora.targets, FIXED,
        "layers with an adapter: names, ends of names, patterns, or all-linear; empty: [q_proj, "
        "v_proj]"),
    STRINGS(
        "lora.rank_pattern", lora.rank_pattern, FIXED,
        "ranks of layers with another one, by names as in lora.targets, the first that matches, "
        "e.g. [down_proj=4, \"model.layers.0.*=2\"]"),
    STRINGS("lora.alpha_pattern", lora.alpha_pattern, FIXED,
            "the same of lora.alpha, e.g. [down_proj=16]"),
    STRINGS("lora.train", lora.train, FIXED,
            "layers or parameters that are trained whole, beside the adapters, e.g. [embed_tokens, "
            "\"*norm.weight\"]"),
    ONE_OF("dpo.loss", dpo.loss, ls_dpo_loss, FIXED,
           "train.loss dpo: sigmoid (DPO), ipo (of means over an answer's tokens) or hinge"),
    NUM("dpo.beta", dpo.beta, 1e-6, 1e6, 0.1, STEERED,
        "train.loss dpo: the factor of log-probabilities over the reference's: the higher, the "
        "closer the model stays to it"),
    NUM("dpo.label_smoothing", dpo.label_smoothing, 0, 0.5, 0, STEERED,
        "dpo.loss sigmoid: the probability that a pair's answers are exchanged (conservative DPO)"),
    ONE_OF("optim.optimizer", optim.optimizer, ls_optimizer_kind, FIXED,
           "the update of the weights; sgd has momentum where optim.momentum is not 0; muon and "
           "soap are for "
           "matrices, the rest has adamw; rowwise_adagrad is for tables of rows that are read by "
           "ids, the "
           "rest has adagrad; lars and lamb are for weights that decay; onebit_adam and "
           "onebit_lamb send signs of the momentum from optim.freeze_step on; schedule-free "
           "needs optim.schedule=constant, and evaluates and saves the average of its weights"),
    NUM("optim.lr", optim.lr, 0, 1000, 1e-3, STEERED, "learning rate after the warm-up"),
    NUM("optim.min_lr", optim.min_lr, 0, 1000, 1e-4, STEERED,
        "learning rate at the end of the schedules cosine, linear and wsd; not written, and above "
        "optim.lr: a tenth of that"),
    ONE_OF("optim.scale_lr", optim.scale_lr, ls_scale_kind, STEERED,
           "lr and min_lr are multiplied by the step's batch / optim.scale_batch (usual for sgd, "
           "lars), or by its root (for adamw and its kind)"),
    INT("optim.scale_batch", optim.scale_batch, 0, BILLION, 0, STEERED,
        "scale_lr: the batch that lr is meant for"),
    SPAN("optim.warmup", optim.warmup, 0, BILLION, LS_AUTO, STEERED,
         "linear warm-up: a number of steps, or a text such as \"2000 samples\" or \"0.5 epochs\"; "
         "auto: a tenth of train.steps, at most 50"),
    ONE_OF("optim.schedule", optim.schedule, ls_schedule_kind, STEERED,
           "learning rate after the warm-up: cosine and linear fall to min_lr over all steps; "
           "constant; step is multiplied at intervals; wsd is constant, then falls linearly"),
    NUM("optim.decay_fraction", optim.decay_fraction, 0, 1, 0.2, STEERED,
        "wsd: fraction of train.steps, at the end, in which the learning rate falls"),
    INT("optim.step_every", optim.step_every, 1, BILLION, 1000, STEERED,
        "schedule step: steps between changes of the learning rate"),
    NUM("optim.step_factor", optim.step_factor, 0, 1, 0.1, STEERED,
        "schedule step: factor of the learning rate at each change"),
    NUM("optim.beta1", optim.beta1, 0, 0.999999, 0.9, STEERED,
        "adamw, adam, lamb: decay rate of the first moment; lion: weight of the mean in the "
        "update; "
        "schedule-free: of the average"),
    NUM("optim.beta2", optim.beta2, 0, 0.999999, 0.95, STEERED,
        "adamw, adam, lamb, schedule-free: decay rate of the second moment; lion: of its mean "
        "(usually "
        "0.99)"),
    NUM("optim.eps", optim.eps, 1e-30, 1, 1e-8, STEERED,
        "added to the denominator of adamw, adam, adagrad, rowwise_adagrad, "
        "schedule-free, lamb"),
    NUM("optim.momentum", optim.momentum, 0, 0.999999, 0, STEERED,
        "sgd, lars, muon: factor of the velocity; 0: sgd has no momentum, and no state, lars has "
        "0.9, muon 0.95"),
    NUM("optim.lr_decay", optim.lr_decay, 0, 1000, 0, STEERED,
        "adagrad, rowwise_adagrad: update t, from 0, has the rate lr / (1 + t lr_decay)"),
    SWITCH("optim.nesterov", optim.nesterov, LS_OFF, STEERED,
           "on: sgd and lars look ahead by the momentum, as muon always does"),
    NUM("optim.weight_decay", optim.weight_decay, 0, 1000, 0.1, STEERED,
        "decoupled weight decay; adam, sgd, adagrad, rowwise_adagrad, lars: added to the gradient; "
        "norms and biases "
        "have none"),
    INT("optim.freeze_step", optim.freeze_step, 0, BILLION, 0, FIXED,
        "onebit_adam, onebit_lamb: steps with gradients in full; then the second moment stays as "
        "it "
        "is, and workers send signs of the momentum"),
    NUM("optim.ema", optim.ema, 0, 0.999999, 0, FIXED,
        "a moving average of the weights, e.g. 0.999: the factor of its old value in each update; "
        "eval --ema and ckpt export --ema use it; 0: none"),
    MAPS("optim.groups", optim.groups, FIXED,
         "parameters with settings of their own: [{match: \"*.bias\", lr_scale: 2}, ...]; the "
         "first pattern that matches a parameter's name counts; keys: match, lr_scale, optimizer, "
         "beta1, beta2, eps, momentum, nesterov, weight_decay, lr_decay"),
    NUM("optim.clip", optim.clip, 0, 1e9, 1, STEERED,
        "the gradient is scaled down to at most this norm; 0: off"),
    NUM("optim.loss_scale", optim.loss_scale, 1, 1e9, 65536, FIXED,
        "f16: initial factor of the loss, which keeps small gradients from vanishing"),
    INT("optim.loss_scale_window", optim.loss_scale_window, 1, BILLION, 1000, STEERED,
        "f16: the scale doubles after this many steps without overflow"),
    INT("optim.loss_scale_hysteresis", optim.loss_scale_hysteresis, 1, 1000, 2, STEERED,
        "f16: the scale is halved after this many overflows; a step that overflows is skipped"),
    NUM("optim.loss_scale_min", optim.loss_scale_min, 1e-6, 1e9, 1, STEERED,
        "f16: an overflow at this scale ends the run"),
    ONE_OF("parallel.reduce", parallel.reduce, ls_reduce_order, FREE,
           "order of summation: tree gives the same bits for any number of workers; fastest does "
           "not"),
    ONE_OF("parallel.transport", parallel.transport, ls_transport_kind, FREE,
           "shm: processes that share memory; thread: threads; tcp, mpi: processes that send "
           "messages; auto: shm where possible"),
    ONE_OF("parallel.executor", parallel.executor, ls_executor_kind, FREE,
           "lanes: workers run at the same time; sequential: one process plays all workers, as a "
           "check"),
    ONE_OF("parallel.overlap", parallel.overlap, ls_overlap_kind, FREE,
           "a thread per worker that communicates while the worker computes; auto: if cores are "
           "free"),
    INT_OR_AUTO("parallel.threads", parallel.threads, 1, LS_CONFIG_MOST_THREADS, LS_AUTO, FREE,
                "threads per worker; auto: the cores that the program may use, divided among the "
                "workers of the host"),
    ONE_OF("parallel.bind", parallel.bind, ls_bind_kind, FREE,
           "is each thread bound to a core, and each worker to cores that lie together? auto: on a "
           "machine with several NUMA nodes or packages, if the run takes more than half of its "
           "cores; off: "
           "for one that other programs use, too"),
    NUM("parallel.bucket_mb", parallel.bucket_mb, 0.0001, 4096, 25, FREE,
        "megabytes of gradient that are reduced at once"),
    INT("parallel.zero", parallel.zero, 0, 3, 1, FREE,
        "what is sharded among workers: 0 nothing, 1 the optimizer's state, 2 also gradients, "
        "3 also parameters"),
    INT("parallel.shard_group", parallel.shard_group, 0, 4096, 0, FREE,
        "workers among which one copy of the state is sharded, so that each group, e.g. each "
        "host, has a copy (hybrid shard); 0: all workers"),
    INT("parallel.mesh.data", parallel.mesh_data, 0, 4096, 0, FREE,
        "workers that have the same stages and divide the batch; 0: as many as there are"),
    INT("parallel.mesh.pipe", parallel.mesh_pipe, 1, LS_CONFIG_MOST_PIPE, 1, FREE,
        "workers of a pipeline, among which the model's layers are divided"),
    INT("parallel.mesh.tensor", parallel.mesh_tensor, 1, 64, 1, FREE,
        "workers among which the slices of each layer (parallel.tensor_virtual) are divided"),
    INT("parallel.mesh.expert", parallel.mesh_expert, 1, 8, 1, FREE,
        "workers that divide experts and samples: those of parallel.expert_virtual"),
    INT("parallel.expert_virtual", parallel.expert_virtual, 1, 8, 1, FIXED,
        "llama with experts: samples that are computed together, and groups of experts; they fix "
        "the order of summation and limit parallel.mesh.expert"),
    INT("parallel.tensor_virtual", parallel.tensor_virtual, 1, 64, 1, FIXED,
        "gpt2, llama: slices into which the products of a layer are cut; they fix the order of "
        "summation and limit parallel.mesh.tensor"),
    SWITCH("parallel.sequence", parallel.sequence, LS_OFF, FIXED,
           "on: slices (parallel.tensor_virtual) divide norms and residual sums, too: each has as "
           "many rows of a sample; the order of summation is another one"),
    INT("parallel.mesh.context", parallel.mesh_context, 1, 8, 1, FREE,
        "workers among which the chunks of each sequence (parallel.context_virtual) are divided"),
    INT("parallel.context_virtual", parallel.context_virtual, 1, 8, 1, FIXED,
        "gpt2, llama: chunks into which sequences are cut; they fix the order of summation and "
        "limit "
        "parallel.mesh.context"),
    ONE_OF("parallel.mesh", parallel.mesh, ls_mesh_kind, FREE,
           "auto: the mesh whose predicted step is shortest, with the parallel.schedule, chunks, "
           "zero, recompute and train.micro_batch that go with it; given: what these keys say"),
    ONE_OF("parallel.schedule", parallel.schedule, ls_pipe_kind, FREE,
           "the order of a pipeline's micro-batches; 1f1b: one forward, one backward; gpipe: all "
           "forward, then all backward; interleaved: 1f1b with several stages a worker; zb-h1: "
           "1f1b whose gradients of parameters wait until there is nothing else to do; zb-v: the "
           "same with two stages a worker, parallel.chunks 2"),
    INT("parallel.chunks", parallel.chunks, 1, 64, 1, FREE,
        "stages of each worker of a pipeline that is interleaved; 2 with zb-v"),
    STRINGS("parallel.stages", parallel.stages, FREE,
            "the layers that begin the second and later stages, by name; empty: stages of about "
            "the same work"),
    ONE_OF("parallel.accumulate", parallel.accumulate, ls_accumulate_kind, FREE,
           "when a worker with several virtual workers sends gradients; late: after the last one; "
           "early (zero 2 and 3): after each one, with less memory and more traffic"),
    INT("parallel.prefetch", parallel.prefetch, 0, 1000, 1, FREE,
        "zero 3: number of layers by which parameters are gathered in advance"),
    INT_OR_AUTO(
        "parallel.recompute", parallel.recompute, 0, 1000, 0, FREE,
        "layers per segment; only a segment's input is saved for backward, the rest is "
        "computed again; 2: a transformer block; 0: everything is saved; auto: the least that "
        "memory_limit_mb requires"),
    INT("parallel.recompute_layers", parallel.recompute_layers, 0, 2000, 0, FREE,
        "number of layers, from the first on, that are in such segments; 0: all"),
    ONE_OF("parallel.optimizer_state", parallel.optimizer_state, ls_state_kind, FREE,
           "file: moments and master weights are in a mapped file, which may be larger than "
           "memory; device: parallel.device has them and updates them, and a worker that is lost "
           "ends the run"),
    STRING("parallel.state_dir", parallel.state_dir, FREE,
           "directory of that file, on a disk; empty: the run directory"),
    STRING("parallel.device", parallel.device, FREE,
           "what runs the layers: cuda, opencl, or c, which is made of cores and tests the other "
           "two; each worker of a host has a device of its own, but with a number, e.g. cuda:1, "
           "all have this one; auto: cuda or a GPU of OpenCL, where there is one, else the cores; "
           "empty: the cores"),
    ONE_OF(
        "parallel.device_link", parallel.device_link, ls_device_link, FREE,
        "how gradients and parameters go between devices, where these have the optimizer's "
        "states; peers: devices of a host read each other's memory; nccl: GPUs of NVIDIA's on any "
        "hosts send it by NCCL, which does not sum; host: cores sum; auto: peers, where all "
        "workers are started on one host, on devices that can"),
    NUM("parallel.whole_kb", parallel.whole_kb, 0, 1e9, 0, FREE,
        "zero 3: parameters in buckets up to this many kilobytes are not sharded"),
    NUM("parallel.memory_limit_mb", parallel.memory_limit_mb, 0, 1e9, 0, FREE,
        "megabytes that a worker may need, with --listen and --join where there are "
        "survival.min_workers or as many as the settings need; 0: no limit"),
    ONE_OF("parallel.fit", parallel.fit, ls_fit_kind, FREE,
           "auto: if the limit requires it, zero, recompute and micro_batch are chosen"),
    NUM("parallel.timeout_s", parallel.timeout_s, 0.1, 86400, 60, FREE,
        "seconds that a worker waits for another one"),
    ONE_OF(
        "sync.mode", sync.mode, ls_sync_mode, FIXED,
        "how workers share what they learn; all_reduce: they sum their gradients in each step; "
        "local: replicas of the model train apart, and are averaged now and then; diloco: an "
        "outer optimizer takes what they have moved by; "
        "async: each worker pushes its gradients to parameter servers, and waits for no other; "
        "gossip: replicas are mixed with those of their neighbours in a graph; "
        "ssp: gradients are of parameters that are sync.staleness steps old, so workers need not "
        "wait for slow ones"),
    INT("sync.replicas", sync.replicas, 1, 64, 4, FIXED,
        "local, diloco, gossip: replicas of the model, each with as many virtual workers as the "
        "others; "
        "they set the result, the number of workers does not"),
    INT("sync.every", sync.every, 0, 1000000, 0, FIXED,
        "local, diloco, gossip: steps that replicas train apart; 0: 50, with gossip 1"),
    ONE_OF("sync.graph", sync.graph, ls_sync_graph, FIXED,
           "gossip: which replicas mix their parameters in a round; exponential: each with one, at "
           "distances 1, 2, 4 and so on; ring; torus; random: pairs drawn anew by train.seed"),
    ONE_OF("sync.algorithm", sync.algorithm, ls_sync_algorithm, FIXED,
           "gossip: dpsgd: neighbours give each other the same weight; sgp: they push in one "
           "direction, and count what they have by push-sum weights"),
    INT("sync.warmup", sync.warmup, 0, 1000000000, 0, FIXED,
        "local, diloco: first steps, after each of which the replicas are averaged"),
    ONE_OF("sync.outer", sync.outer, ls_outer_kind, FIXED,
           "diloco: the optimizer that takes the mean of what the replicas have moved by"),
    NUM("sync.outer_lr", sync.outer_lr, 0, 100, 0.7, FIXED, "diloco: its learning rate"),
    NUM("sync.outer_momentum", sync.outer_momentum, 0, 1, 0.9, FIXED,
        "diloco: its momentum; with adamw, beta1"),
    INT("sync.fragments", sync.fragments, 1, 64, 1, FIXED,
        "local, diloco: parts of the model that are synchronized one after the other, each every "
        "sync.every steps"),
    INT("sync.delay", sync.delay, 0, 1000000, 0, FIXED,
        "local, diloco: steps between the sum over replicas and its use by them"),
    ONE_OF("sync.deltas", sync.deltas, ls_deltas_kind, FIXED,
           "local, diloco: what replicas have moved by is summed as it is, or rounded: to bf16, or "
           "to 8 or "
           "4 bits with a scale for each block of 256 or 64 elements"),
    NUM("sync.mixing", sync.mixing, 0, 1, 0, FIXED,
        "local, diloco: the part of its own parameters that a replica retains when it takes over "
        "the common ones"),
    INT("sync.servers", sync.servers, 0, 64, 0, FREE,
        "async: processes that each serve a shard of the parameters; 0: each worker serves one"),
    INT("sync.copies", sync.copies, 1, 2, 1, FREE,
        "async: 2: a host with --join and --listen has a copy of the shards, and takes over with "
        "it"),
    SWITCH("sync.delay_aware", sync.delay_aware, LS_OFF, FIXED,
           "async: on: the learning rate of a gradient is divided by its staleness"),
    INT("sync.staleness", sync.staleness, 0, LS_STALENESS_MOST, 1, FIXED,
        "ssp: steps by which the parameters of a gradient are older than those that it changes"),
    SWITCH(
        "sync.staleness_drawn", sync.staleness_drawn, LS_OFF, FIXED,
        "ssp: on: each virtual worker draws its staleness in each step, from 0 to sync.staleness, "
        "by train.seed"),
    ONE_OF(
        "compress.kind", compress.kind, ls_compress_kind, FIXED,
        "code of each virtual worker's gradient, in few bytes, before gradients are summed: topk: "
        "few elements; onebit, int8, int4: few bits of each; powersgd: two factors of low rank of "
        "each matrix; auto: what is predicted to be fastest, or none"),
    NUM("compress.ratio", compress.ratio, 1e-6, 1, 0.01, FIXED,
        "topk: share of the elements that the code has"),
    INT("compress.block", compress.block, 0, 65536, 0, FIXED,
        "onebit, int8, int4: elements with a scale of their own, a multiple of 32; 0: 4096, 256, "
        "64"),
    INT("compress.rank", compress.rank, 1, 64, 4, FIXED, "powersgd: columns of a factor"),
    ONE_OF("compress.feedback", compress.feedback, ls_feedback, FIXED,
           "what a code loses: error, is added to the next gradient; ef21: codes are of changes of "
           "an estimate; none, is dropped"),
    INT("compress.warmup", compress.warmup, 0, BILLION, 0, FIXED,
        "steps before the first that is compressed"),
    INT("compress.min_size", compress.min_size, 0, BILLION, 1024, FIXED,
        "parameters with fewer elements are not compressed"),
    ONE_OF("compress.send", compress.send, ls_compress_send, FREE,
           "what workers send each other: codes, or the values that these hold; auto: codes unless "
           "all workers share memory. It does not change the bits"),
    STRING("compress.machine", compress.machine, FREE,
           "auto: a file of `lockstep bench machine --save`, the same on all hosts"),
    STRING("compress.links", compress.links, FREE,
           "auto: a file of `lockstep bench comm --save`, measured between the hosts"),
    NUM("survival.heartbeat_s", survival.heartbeat_s, 0.3, 3600, 1, FREE,
        "a worker that shows no sign of life for this many seconds is replaced"),
    NUM("survival.stop_s", survival.stop_s, 0, 1e6, 10, FREE,
        "seconds after Ctrl-C or SIGTERM until the step in flight is abandoned; a resumed run "
        "repeats it"),
    NUM("survival.rejoin_s", survival.rejoin_s, 0, 86400, 30, FREE,
        "seconds after which a host that lost its leader and finds no other exits"),
    STRING("survival.membership", survival.membership, FREE,
           "etcd://HOST:PORT,... (etcds: with TLS): hosts elect a leader; empty: the first host "
           "leads"),
    STRING("survival.etcd_run", survival.etcd_run, FREE,
           "the run's name in etcd, different from other runs'; empty: the name of the run "
           "directory"),
    STRING("survival.etcd_ca", survival.etcd_ca, FREE,
           "PEM file with the certificate authorities; empty: the system's"),
    STRING("survival.etcd_cert", survival.etcd_cert, FREE,
           "PEM file with this client's certificate"),
    STRING("survival.etcd_key", survival.etcd_key, FREE,
           "PEM file with the certificate's private key"),
    STRING("survival.etcd_user", survival.etcd_user, FREE,
           "etcd user, whose password is in LOCKSTEP_ETCD_PASSWORD; empty: none"),
    INT("survival.audit", survival.audit, 0, BILLION, 0, FREE,
        "steps between audits: workers compare their parameters, and two of them compute the "
        "gradient of the same virtual worker; 0: never"),
    NUM("survival.slow_limit", survival.slow_limit, 0, 1e6, 10, FREE,
        "a worker that takes this many times as long as the others is replaced; 0: never"),
    INT("survival.backup_workers", survival.backup_workers, 0, 4096, 0, FREE,
        "virtual workers of slow workers that idle workers of the same host compute as well, "
        "per step; the first result counts"),
    INT("survival.copies", survival.copies, 1, 16, 1, FREE,
        "copies of state that is sharded over hosts: with 2, losing a host loses no step"),
    ONE_OF("survival.balance", survival.balance, ls_config_balance, FREE,
           "auto: a worker that is slow for a while gets fewer virtual workers"),
    INT("survival.min_workers", survival.min_workers, 1, 4096, 1, FREE,
        "a worker that leaves is replaced if fewer workers than this would remain"),
    INT("survival.max_workers", survival.max_workers, 0, 4096, 0, FREE,
        "number of workers to which a run may grow; 0: one per virtual worker"),
    INT("checkpoint.every", checkpoint.every, 0, BILLION, 0, FREE,
        "steps between checkpoints, in addition to checkpoint.minutes; 0: only by time, and at "
        "the end"),
    NUM("checkpoint.minutes", checkpoint.minutes, 0, 1e6, 10, FREE,
        "minutes between checkpoints, in addition to checkpoint.every; 0: only by steps, and at "
        "the end"),
    INT("checkpoint.keep", checkpoint.keep, 1, BILLION, 2, FREE,
        "number of newest checkpoints to retain"),
    ONE_OF("checkpoint.best", checkpoint.best, ls_config_best, FREE,
           "on: each evaluation with a new lowest loss writes a checkpoint; the best one is "
           "retained beside the newest, as checkpoints/best; auto: the best one is retained, and "
           "such an evaluation writes one a tenth of checkpoint.minutes after the last"),
    INT("log.every", log.every, 1, BILLION, 10, FREE,
        "steps between lines of progress where the output is not a terminal"),
    ONE_OF(
        "infer.activations", infer.activations, ls_infer_activations, FREE,
        "int8: generate, chat, serve, eval and predict quantize what they multiply with weights in "
        "blocks (Q8_0, Q4_K ...) to 8 bits: faster, with a result of its own; training does not"),
};
_Static_assert(sizeof keys / sizeof *keys == LS_NCONFIG_KEYS, "the number of keys in key.h");

const ls_config_key *const ls_config_keys = keys;
