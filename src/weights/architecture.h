/* architecture.h - what a decoder-only language model is made of, as its files say it.
 *
 * Read from config.json (config_json.h) or from GGUF's metadata (gguf_model.h). What is not in this
 * struct is not supported, and is refused by the name of its key.
 *
 * A block of all families but GPT-2:
 *     x += o(attention(rope(norm(q(y))), rope(norm(k(y))), v(y)))  with y = RMS norm of x
 *     x += down(silu(gate(y)) * up(y))                             with y = RMS norm of x
 * with `heads` heads of q, `kv_heads` of k and v, each of head_dim; the norms of q and k only where
 * qk_norm. With experts, each has gate, up and down of its own, and a position's result is the sum
 * of those of its experts_per_token best ones, by weights that are a softmax over all of them, or
 * over these (norm_topk). Then an RMS norm and the product with the embedding (tied) or lm_head.
 * Gemma 3: the embedding times the root of the width, and a block
 *     x += norm(o(attention(rope(norm(q(y))), rope(norm(k(y))), v(y))))  with y = RMS norm of x
 *     x += norm(down(gelu(gate(y)) * up(y)))                             with y = RMS norm of x
 * with GELU in its tanh form; its norms multiply by 1 + their weights.
 * Phi-3: the rotation may turn the first elements of a head alone.
 * GPT-2: learned positions, layer norms, one product for q, k and v, GELU in its tanh form, biases
 * everywhere.
 */
#ifndef LS_WEIGHTS_ARCHITECTURE_H
#define LS_WEIGHTS_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

typedef enum ls_family {
    LS_FAMILY_LLAMA,
    LS_FAMILY_MISTRAL,
    LS_FAMILY_QWEN2,
    LS_FAMILY_QWEN3,
    LS_FAMILY_GPT2,
    LS_FAMILY_MIXTRAL,
    LS_FAMILY_QWEN3_MOE,
    LS_FAMILY_GEMMA3,
    LS_FAMILY_SMOLLM3,
    LS_FAMILY_PHI3,
    LS_NFAMILIES
} ls_family;

/* Positions turn pairs of elements (i, i + D / 2) of q and k by position * f[i], with
 * f[i] = base^(-2 i / D), divided by ls_rope_divisor(), for D = head_dim, or `turned`. longrope:
 * f[i] is divided by an element of one of two lists (`divisors`). */
typedef enum ls_rope_type {
    LS_ROPE_NONE, /* GPT-2, and some layers of SmolLM3 */
    LS_ROPE_DEFAULT,
    LS_ROPE_LINEAR,
    LS_ROPE_LLAMA3,
    LS_ROPE_YARN,
    LS_ROPE_LONGROPE, /* of Phi-3 */
    LS_NROPE_TYPES
} ls_rope_type;

typedef struct ls_rotation {
    ls_rope_type type;
    double base;
    double factor;            /* all but default */
    double low, high;         /* llama3: low_freq_factor < high_freq_factor; yarn: beta_slow,
                               * beta_fast */
    int64_t original_context; /* llama3, yarn, longrope: original_max_position_embeddings */
    double scale;             /* yarn, longrope: attention_factor, which multiplies cosines and
                               * sines */
    bool exact;               /* yarn: "truncate" is false */
} ls_rotation;

/* longrope: the list of contexts up to the original one, and that of longer ones. */
enum { LS_ROPE_SHORT, LS_ROPE_LONG, LS_NROPE_LISTS, LS_ROPE_PAIRS = 64 };

enum { LS_MAX_EOS = 16, LS_TOKEN_NONE = -1, LS_EXPERTS_IN_A_MODEL = 128 };

/* How its makers want its text drawn; 0: they don't say. */
typedef struct ls_generation {
    bool greedy; /* always the likeliest token */
    double temperature, top_p, min_p, penalty;
    int64_t top_k;
} ls_generation;

/* Tokens of the model: ids, or LS_TOKEN_NONE. */
typedef struct ls_token_ids {
    int64_t bos, pad;
    int64_t eos[LS_MAX_EOS];
    int neos;
} ls_token_ids;

typedef struct ls_architecture {
    ls_family family;
    int64_t layers, width, ffn, heads, kv_heads, head_dim, vocab, context;
    double norm_eps;
    ls_rotation rope;
    int64_t turned; /* the rotation turns so many elements of a head, the first ones; 0: all */
    float divisors[LS_NROPE_LISTS][LS_ROPE_PAIRS]; /* longrope: of each pair; else 0 */
    int64_t no_rope_every; /* each n-th layer has no rotation; 0: all have it */
    int64_t window;        /* positions that a query sees, its own among them; 0: all */
    /* With a window: each n-th layer attends to all positions; the rotation of the others is the
     * default one with base local_base. 0: all layers are alike. */
    int64_t full_every;
    double local_base;
    int64_t query_scalar; /* scores are divided by its root; 0: head_dim */
    bool gemma;           /* a block as in Gemma 3 */
    bool qkv_bias;        /* of q, k and v */
    bool o_bias;          /* of attention's output */
    bool mlp_bias;        /* of gate, up and down */
    bool qk_norm;         /* RMS norm of each head of q and k, before their rotation */
    int64_t experts;      /* of each block; 0: one feed-forward layer */
    int64_t experts_per_token;
    bool norm_topk;         /* the weights of a position's experts have the sum 1 */
    double router_aux_loss; /* factor of the loss for an even load */
    bool adds_aux_loss;     /* training adds that loss */
    bool tied;              /* the embedding is also the matrix of the logits */
    int64_t bos, pad;       /* token ids, or LS_TOKEN_NONE: as text is written with them */
    int64_t eos[LS_MAX_EOS];
    int neos;
    ls_token_ids config_ids; /* what config.json has, where generation_config.json has others */
    bool has_config_ids;
    ls_generation generation;
} ls_architecture;

/* Hugging Face's model_type: "llama". */
const char *ls_family_name(ls_family);
bool ls_family_named(const char *name, ls_family *f_p);
/* "LlamaForCausalLM" */
const char *ls_family_class(ls_family);
bool ls_family_has_experts(ls_family);
/* Has layer i the window? */
bool ls_architecture_is_local(const ls_architecture *, int64_t i);
/* Of `every` layers the last one sees all positions, and `window` is that of the others, whose
 * rotation has base local_base. Where no layer differs from the others, full_every is 0. */
void ls_architecture_set_windows(ls_architecture *, int64_t every, double local_base);
/* How many layers there are from one that sees all positions to the next: full_every; 1: all do;
 * beyond `layers`: none does. */
int64_t ls_architecture_every(const ls_architecture *);
/* Of each `every` layers the last has no rotation; with fewer layers, all have one. */
void ls_architecture_set_no_rope(ls_architecture *, int64_t every);
/* The rotation of layer i. */
ls_rotation ls_architecture_rope(const ls_architecture *, int64_t i);
/* The token ids that config.json has. */
ls_token_ids ls_architecture_config_ids(const ls_architecture *);
const char *ls_rope_type_name(ls_rope_type); /* rope_type of config.json: "default" */

/* Checks the relations of all numbers, and that sizes are within limits which no product of two or
 * three overflows. `what` (a file) begins the message. LS_EINVAL. */
ls_status ls_architecture_check(const ls_architecture *, const char *what, ls_error *);

/* NULL if both describe the same computation, else what differs: "layers is 30, not 24". Families
 * mistral and llama, and token ids, are not compared. The caller frees it. */
char *ls_architecture_difference(const ls_architecture *a, const ls_architecture *b);

/* Appends one line: "llama: 30 layers, width 576, ..." */
void ls_architecture_describe(const ls_architecture *, ls_buf *);

/* The part s of frequency i < head_dim / 2 that the factor does not divide, 0 to 1.
 * llama3: (original / L - low) / (high - low) for the wavelength L = 2 pi / f.
 * yarn: 1 - (i - a) / (b - a), in f32, where wave a turns high times, and b low times, in the
 * original context; unless `exact`, a is rounded down, and b up.
 * Source: transformers, modeling_rope_utils.py. */
double ls_rope_kept(const ls_rotation *, int64_t head_dim, int64_t i);
/* What divides frequency i: 1 / ((1 - s) / factor + s). */
double ls_rope_divisor(const ls_rotation *, int64_t head_dim, int64_t i);
/* yarn's `scale` where a config has none. */
double ls_rope_scale(double factor);
/* longrope's `scale` where a config has none: the root of 1 + ln(factor) / ln(original_context). */
double ls_longrope_scale(const ls_rotation *);
/* Pairs that the rotation turns in each head. */
int64_t ls_architecture_pairs(const ls_architecture *);
/* longrope: the list [pairs] of a model whose context is that of the architecture, however short a
 * text is. NULL: of another rotation. */
const float *ls_architecture_divisors(const ls_architecture *);
/* The most positions: more than `context` where yarn stretches the original one beyond it, as where
 * it was added to a published config. */
int64_t ls_architecture_positions(const ls_architecture *);

/* The decimal number with the fewest digits that is this one when rounded to f32: what a person had
 * written before it was rounded, such as 1e-05 or 1000000. */
double ls_shortest_f32(float);

#endif
