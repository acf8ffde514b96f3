/* layer.h - a layer: its parameters, what it saves for backward, its cost, forward and backward.
 *
 * The author of a layer sets the contract, the first ten members of ls_layer, and writes forward
 * and backward. Their operands are in ls_layer_call; ls_layer_param(), ls_layer_grad() and
 * ls_layer_trains() give their parameters. The other members are for the code that runs models.
 *
 * Parameters and gradients are in one flat buffer each; a layer knows the offsets of its own. The
 * caller provides all memory, of the sizes that the layer declares; a layer allocates nothing. One
 * call computes a micro-batch of whole samples.
 *
 * The promise: the result for a sample does not depend on the other samples of the call, and a
 * gradient is a chain over samples in order, continued from call to call. So the bits don't depend
 * on the size of a micro-batch. A layer that joins samples (batch norm) breaks this in training; it
 * gets all samples of a virtual worker in one call.
 *
 * Shapes: n samples, T positions, rows = n * T, C width, V vocabulary.
 */
#ifndef LS_MODEL_LAYER_H
#define LS_MODEL_LAYER_H

#include <assert.h>
#include <stdbool.h>

#include "base/round_up.h"
#include "model/facts.h"
#include "model/param.h"
#include "model/row_adapter.h"
#include "model/work.h"
#include "tensor/compute.h"
#include "tensor/stored.h"

enum { LS_LAYER_MAX_PARAMS = 6, LS_LAYER_MAX_INPUTS = 8 };
enum { LS_LAYER_FIELDS = 4, LS_LAYER_OWN = 160 };

/* The values of a frozen parameter, which have their own type, e.g. in a mapped file. The type has
 * blocks only if all layers of the parameter read it as it is stored (reads_stored). */
typedef ls_stored ls_frozen_value;

/* The tables of parameters that are windows (ls_param.window), in a call. */
typedef struct ls_layer_rows {
    const float *values; /* [table_floats] */
    /* [table_rows] where a row is in its window, for backward; ls_row_dropped() of that: the row's
     * gradient is dropped; -1: it has no slot */
    const int32_t *slots;
    /* [nfloats] rows of windows, each at its slot, in place of `values`; NULL: these have all
     * rows */
    const float *fetched;
} ls_layer_rows;

/* Converts a slot to the negative number that marks a row whose gradient is dropped, and back. */
static inline int32_t ls_row_dropped(int32_t slot) { return -2 - slot; }

typedef struct ls_layer ls_layer;

/* A text that a call continues among others. */
typedef struct ls_past_text {
    int64_t first; /* its first row in the call; they end where those of the next text begin */
    int64_t n;     /* positions that earlier calls have computed */
    float *kept;   /* what layers keep of positions: pages of LS_KEPT_PAGE of them, each with a part
                    * for each layer */
    /* On a device: the numbers of its pages, which begin at `kept`, the same for all texts. Cores
     * find a text's pages one after the other, and don't read this. */
    const int *pages;
} ls_past_text;

/* Where the rows of a call with several texts are, for a device; its addresses. */
typedef struct ls_past_rows {
    const int32_t *places; /* [rows] the position of each in its text */
    const int32_t *slots;  /* [rows] LS_KEPT_PAGE * its page + its place there */
    /* [nfew][4] rows one by one; [nblocks][4] up to 64 rows of a text: the first row, how many, the
     * first's position, where in `tables` its text's pages begin. Each row is in one of both. */
    const int32_t *few, *blocks;
    int64_t nfew, nblocks;
    const int32_t *tables; /* the numbers of texts' pages */
    float *kept;           /* where pages begin */
} ls_past_rows;

/* Generating token by token: a call of one sample continues earlier ones; or its rows are those of
 * several texts, one text after the other. */
typedef struct ls_past {
    int64_t n;   /* positions that they have computed: the call's first one is position n */
    float *kept; /* [past_floats of the layer] what it keeps of them; NULL: the call stands alone */
    const ls_past_text *texts; /* [ntexts] instead; NULL: one text */
    int ntexts;
    const ls_past_rows *rows; /* with `texts`, on a device */
    size_t at, page;          /* floats: where the layer's part is in a page, and the size of one */
    ls_kept_type type;        /* of texts' keys and values; F32 of one text */
} ls_past;

/* The text of row r of a call with several. */
static inline int ls_past_text_of(const ls_past *p, int64_t r) {
    int i = 0;
    while (i + 1 < p->ntexts && p->texts[i + 1].first <= r) i++;
    return i;
}

/* The position of row r in its text. */
static inline int64_t ls_past_place(const ls_past *p, int64_t r) {
    if (!p->texts) return p->n + r;
    const ls_past_text *t = &p->texts[ls_past_text_of(p, r)];
    return t->n + r - t->first;
}

/* One call of a layer, with operands in f32 or in 16 bits, for ls_mixed_forward() and
 * ls_mixed_backward() (mixed.h). These pass it on to the layer's own functions with all operands
 * in f32. Not every layer uses all fields: see each layer's file. */
typedef struct ls_layer_call {
    const ls_compute *compute;
    int64_t n, T;
    int64_t ndata; /* of a layer that spans: the data's samples, of which the last of n may have too
                    * few; else 0 */
    const void *samples; /* [n][sample_nbytes] e.g. tokens [T + 1]: position t reads token t and
                          * predicts token t + 1 (ls_layer_tokens()) */
    size_t sample_nbytes;
    ls_dtype type; /* type of params, x, y, saved, dy and dx: LS_F32, LS_BF16 or LS_F16 */
    ls_dtype grads_type;
    const void *params;            /* flat */
    const ls_frozen_value *frozen; /* [nparams of the model] by number in its table; of a model
                                    * without frozen parameters NULL */
    const ls_layer_rows *rows;     /* of a model without windows NULL */
    /* Of a call on a device: where it has the model's constants (ls_layer_constants()), and the
     * samples as the host has them. */
    const float *const *constants;
    const void *host_samples;
    void *grads;      /* flat */
    float *wide;      /* flat: with gradients in 16 bits, chains in f32 from the first to the last
                       * micro-batch of a virtual worker; NULL where it has only one */
    bool first, last; /* the call computes the virtual worker's first, or last, micro-batch */
    bool grads_start; /* gradient chains start at 0 with this call */
    const void *x[LS_LAYER_MAX_INPUTS]; /* [ninputs] e.g. [rows, C] */
    void *y;        /* [rows, C] output; of a loss without losses: logits [rows, V], in f32 */
    void *saved;    /* [ls_mixed_saved_nbytes()] written by forward, read by backward */
    float *work;    /* [ls_mixed_work_nbytes()] within one call */
    const void *dy; /* [rows, C] */
    void *dx[LS_LAYER_MAX_INPUTS]; /* [ninputs] the gradients of the inputs; NULL: not wanted */
    unsigned begun; /* bit k, for a layer's own function that adds itself: dx[k] has a gradient, to
                     * which it adds; else it writes all of it */
    float loss_scale; /* gradient of the step's loss with respect to one token's loss; of other
                       * models: to a sample's loss, without its weight */
    bool training;    /* false: no layer does anything at random, and the next three are not read */
    uint64_t seed;    /* the run's */
    int64_t step;
    uint64_t first_sample; /* the place of the call's first sample in the step's batch */
    double *losses; /* [n] sum of the losses of a sample's tokens, nats; of other models' losses:
                     * factor times the mean over a sample's targets, without its weight; of a
                     * measure: its values [n][nvalues] */
    float *hidden;  /* [rows, C] of a layer that `norms`: gets what its logits are made of, the
                     * normalized input, and y gets nothing; NULL: it is not wanted */
    double *notes;  /* of a loss that notes numbers of each sample (measure.h): number k of sample i
                     * at [k * notes_stride + i] */
    int64_t notes_stride;
    const double *weights; /* [n] of the samples (model/weight.h); NULL: 1 each */

    float
        *logits;  /* of a layer that has logits: it writes these instead of y [n * T, V]; NULL: y */
    ls_past past; /* positions before the call's, in a forward without losses */
    const ls_row_adapters *adapters; /* that the model does not have; NULL: none */

    /* For a layer's own functions: its parameters in f32, without tables; NULL: the parameter is in
     * `params` as f32, or only products read it. */
    const float *held[LS_LAYER_MAX_PARAMS];
    bool in_bf16; /* its products are in bf16 (tensor/gemm.h) */
    /* Set for a layer's own functions if any operand was in 16 bits: */
    const struct ls_layer_call *given; /* the original call; NULL: all operands were in f32 */
    float *room;     /* [room_floats + n * room_each] within one call; NULL: none is needed */
    size_t grads_at; /* offset in the flat buffer at which `grads` begins: this layer's gradients
                      * without tables (ls_layer_grad()) */
} ls_layer_call;

/* Operands of a layer's own functions. */
enum {
    LS_OPERAND_X = 1 << 0,
    LS_OPERAND_Y = 1 << 1,
    LS_OPERAND_SAVED = 1 << 2, /* the numbers that may be rounded (saved_rough) */
    LS_OPERAND_DY = 1 << 3,
    LS_OPERAND_DX = 1 << 4,
    LS_OPERAND_ALL = (1 << 5) - 1
};

/* What a layer computes. */
typedef struct ls_layer_ops {
    const char *kind;
    void (*forward)(const ls_layer *, const ls_layer_call *);
    void (*backward)(const ls_layer *, const ls_layer_call *);
    void (*describe)(const ls_layer *, ls_facts *); /* sets some of its members; NULL: none */
} ls_layer_ops;

/* How the layer differs from most layers. All false: y and the gradients of a sample depend on that
 * sample alone. */
typedef struct ls_layer_traits {
    /* of a loss */
    bool loss : 1; /* it has losses instead of y; backward computes them, too, so training needs no
                    * forward */
    bool auxiliary : 1;  /* a loss that is trained, and in no loss that is reported */
    bool norms : 1;      /* a loss that normalizes its input itself (ls_layer_call.hidden) */
    bool has_logits : 1; /* of classes [first_logit, first_logit + V), where the call wants them: a
                          * slice of a vocabulary */
    /* of backward */
    bool backward_alone : 1; /* it reads no parameters */
    bool backward_whole : 1; /* it runs once for all samples of a virtual worker, not once a
                              * micro-batch, so that its chains come after another layer's */
    bool
        only_first_reads : 1; /* it reads the inputs only for the gradient of the first parameter */
    bool
        adds_itself : 1; /* it adds to gradients that are begun where ls_layer_call.begun says so */
    bool trains_all : 1; /* it can't leave out the gradients of frozen parameters */
    bool on_device : 1;  /* it runs where its call's device is, in f32 (ls_compute.device) */
    /* of samples */
    bool joins_samples : 1; /* in training, results depend on the other samples of the call, which
                             * has all samples of a virtual worker: the plan has one micro-batch */
} ls_layer_traits;

/* Floats of memory that a call gets. A layer with block_floats computes block_rows rows at a
 * time. */
typedef struct ls_layer_memory {
    size_t saved;        /* } for each sample */
    size_t work;         /* } */
    size_t there;        /* on a device, for each sample, where that is more than `work` */
    size_t block_floats; /* further work memory, per row that is computed at a time */
    int64_t block_rows;  /* the most rows that are computed at a time; 0: all */
    size_t scratch;      /* per thread */
    size_t past;         /* what it keeps of all positions of a text, for generating (ls_past) */
    size_t past_factors; /* where that has fewer bits: further floats of LS_KEPT_PAGE positions */
} ls_layer_memory;

/* What calls of the layer cost, for plans and prices. */
typedef struct ls_layer_cost {
    double flops; /* of forward, per sample; backward: twice as many, for a loss three times */
    bool unknown; /* of a program's own layer that does not say them */
    ls_works forward, backward; /* the same in detail */
    ls_conversions forward_converts, backward_converts;
} ls_layer_cost;

/* y = scale x + shift. A scale of 0: there is none. */
typedef struct ls_layer_scale {
    float scale, shift;
} ls_layer_scale;

/* What the layer can do with operands, parameters and gradients in 16 bits; all 0: it sees only f32
 * (mixed.h). */
typedef struct ls_layer_half {
    unsigned as_stored; /* operands that its own functions take as they are stored if that is in
                         * bf16 (LS_OPERAND_X ...); all others are converted for it */
    bool
        reads_stored[LS_LAYER_MAX_PARAMS]; /* if the parameter is frozen, it reads the values of any
                                            * type (ls_layer_stored()), as of tables; else they are
                                            * widened for it */
    bool in_products[LS_LAYER_MAX_PARAMS]; /* if the parameter is trained, only products read it:
                                            * those in bf16 as it is stored (ls_layer_stored()) */
    unsigned rounds; /* of LS_OPERAND_Y and, with one input, LS_OPERAND_DX: those that one product
                      * computes, and rounds to where ls_layer_rounded() says */
    bool rounds_grads[LS_LAYER_MAX_PARAMS]; /* if the parameter is trained, one product computes its
                                             * gradient, and rounds it to where
                                             * ls_layer_rounded_grad() says */
    int ntables; /* the last `ntables` parameters are tables, read row by row (stored_table.h) */
    size_t saved_rough; /* per position: the first floats of `saved`, which may be in 16 bits */
    /* To sum gradients of tables that are stored in 16 bits, for any number of samples, and per
     * sample. Where `wide` has the sums, only a layer that ignores it needs them (room_always). */
    size_t room_floats, room_each;
    bool room_always;
    /* What the layer computes, whose output is not rounded: in 16 bits its input is stored in its
     * place, and each reader computes the output, in f32. */
    ls_layer_scale later;
    /* Above 0: the floats of room for the chains of a whole table. With it, rows are computed a
     * block at a time although gradients are rounded. */
    size_t chain_floats;
} ls_layer_half;

/* Further facts about a loss, or a slice of one. */
typedef struct ls_layer_loss {
    int predicts; /* what its input is (ls_output_kind, lockstep/infer.h); or where it has a table,
                   * what the logits are that its forward without losses writes. 0: nothing that is
                   * of use without the targets */
    int fixed_input; /* the number of an input that must be constant; 0: none */
    int64_t first_logit;
} ls_layer_loss;

/* An output of which other layers need only some rows: each row chooses experts, and rows that have
 * chosen none of [first, end) are zeros, or are not read, in the output and in its gradient. So
 * workers send only the other rows. */
typedef struct ls_chosen_rows {
    int64_t width;      /* numbers of a row; 0: all rows are needed */
    int scores;         /* the layer whose output [rows, experts] chooses */
    int64_t experts, k; /* a row chooses the k with the greatest scores (layers/routing.h) */
    int64_t first, end;
    bool gradient; /* the gradient's other rows are not read, the output's are zeros; false: the
                    * other way round */
} ls_chosen_rows;

/* What ls_model_link() derives from the model's graph, for the code that runs it. */
typedef struct ls_layer_link {
    bool adds[LS_LAYER_MAX_INPUTS]; /* backward adds to the gradient that a later layer has begun */
    size_t added_floats;            /* numbers of these inputs, per sample */
    bool is_constant; /* its output depends on no trained parameter: there is no backward */
    int last_reader;  /* the last layer that reads its output; -1: none */
    int slot;         /* buffer of ls_model.nslots: without backward, layers whose outputs are never
                       * needed at the same time share a slot */
    int loss_at;      /* which one of the model's losses */
    bool frozen[LS_LAYER_MAX_PARAMS];    /* its parameters that are not trained */
    size_t offsets[LS_LAYER_MAX_PARAMS]; /* of its parameters (ls_param) */
} ls_layer_link;

struct ls_layer {
    /* The contract: set by the author of the layer. All but ops may stay 0: */
    const ls_layer_ops *ops;
    int64_t T, C, V; /* rows of a sample (the most positions), their width, classes */
    ls_layer_traits traits;
    ls_layer_memory memory;
    ls_layer_cost cost;
    ls_layer_half half;
    ls_layer_loss end; /* of a loss */
    _Alignas(16) unsigned char own
        [LS_LAYER_OWN]; /* what only this layer's file knows (LS_LAYER_OWN_AS) */

    /* The place of the layer in the model, by calls of builder.h: */
    char name[LS_NAME]; /* e.g. "h.3.attn" */
    int ninputs;
    int inputs[LS_LAYER_MAX_INPUTS];            /* the layers whose outputs it reads */
    size_t input_floats[LS_LAYER_MAX_INPUTS];   /* per sample */
    bool unread[LS_LAYER_MAX_INPUTS];           /* backward does not read it: it is not retained */
    ls_layer_scale scales[LS_LAYER_MAX_INPUTS]; /* that these layers leave to it (half.later) */
    unsigned rowless; /* bit k: input k has no rows: a call reads all of it, at any positions */
    size_t field_at[LS_LAYER_FIELDS]; /* [nfields] fields of a sample that it reads itself */
    int nfields;
    int nparams;
    int params[LS_LAYER_MAX_PARAMS];    /* indices into the model's table */
    size_t counts[LS_LAYER_MAX_PARAMS]; /* their numbers of elements */
    size_t y_floats;                    /* of its output, per sample */
    int64_t y_dims[LS_PARAM_DIMS]; /* shape of the output for people, ended by 0; all 0: none */
    int y_parts; /* above 1: a number of y is the sum of y_parts floats, and so is its gradient
                  * (layers/vocabulary_slices.h) */
    int slice;   /* of ls_model.nslices: workers of a tensor group divide the slices */
    int chunk;   /* of ls_model.nchunks: workers of a context group divide the chunks */
    int spans;   /* in a model that computes samples together: the number of samples, all of them,
                  * that one sample of the layer spans; 0: the chunk's own alone */
    ls_chosen_rows chosen; /* of its output */

    ls_layer_link link;
};

/* n samples are computed in groups of `together`: the number of them that are the k-th of their
 * group. */
static inline int64_t ls_chunk_samples(int64_t n, int together, int k) {
    return (n - k + together - 1) / together;
}

/* What the layer computes. */
static inline ls_facts ls_layer_facts(const ls_layer *l) {
    ls_facts f = {0};
    if (l->ops->describe) l->ops->describe(l, &f);
    return f;
}

/* The tokens [T + 1] of a sample. */
static inline const uint32_t *ls_layer_tokens(const ls_layer_call *c, int64_t sample) {
    const char *samples = c->samples;
    return (const uint32_t *)(const void *)(samples + (size_t)sample * c->sample_nbytes);
}

/* Constants of the model (ls_build_constants()), of which the host has those at `host`. */
static inline const float *ls_layer_constants(const ls_layer_call *c, int number,
                                              const float *host) {
    return c->compute->device ? c->constants[number] : host;
}

/* The distance of samples' tokens, in tokens. */
static inline int64_t ls_layer_tokens_row(const ls_layer_call *c) {
    assert(c->sample_nbytes % sizeof(uint32_t) == 0);
    return (int64_t)(c->sample_nbytes / sizeof(uint32_t));
}

/* A parameter of the layer that is not a table, and its gradient; NULL: it is frozen, and has none.
 */
static inline const float *ls_layer_param(const ls_layer *l, const ls_layer_call *c, int i) {
    return c->held[i] ? c->held[i] : (const float *)c->params + l->link.offsets[i];
}
static inline bool ls_layer_trains(const ls_layer *l, int i) { return !l->link.frozen[i]; }
/* Are products of the call in bf16 (tensor/gemm.h)? */
static inline bool ls_layer_in_bf16(const ls_layer_call *c) { return c->in_bf16; }
/* Are the operands of the given call in bf16? On a device none is (mixed.h). */
static inline bool ls_layer_given_bf16(const ls_layer_call *c) {
    return c->given && c->given->type == LS_BF16;
}
/* The samples of T rows whose rows are one unit of a sum over rows in bf16 (tensor/gemm.h): the
 * fewest, as a power of two, that have a block's rows. */
static inline int64_t ls_layer_unit_samples(int64_t T) {
    int64_t n = 1;
    while (n < LS_SUM_BLOCK && n * T < LS_SUM_BLOCK) n *= 2;
    return n;
}
/* Is the operand in bf16 as the layer's own functions see it? */
static inline bool ls_layer_has_bf16(const ls_layer *l, const ls_layer_call *c, unsigned operand) {
    return l->half.as_stored & operand && ls_layer_given_bf16(c);
}
/* Bytes of n numbers that a layer saves rounded to 16 bits, with the padding behind them. */
static inline size_t ls_layer_rounded_nbytes(size_t n) { return ls_round_up(n * 2, 64); }
/* What the layer saves in f32, after the numbers that may be rounded. */
static inline float *ls_layer_saved_exact(const ls_layer *l, const ls_layer_call *c) {
    size_t rough = (size_t)(c->n * c->T) * l->half.saved_rough;
    bool half = ls_layer_has_bf16(l, c, LS_OPERAND_SAVED);
    size_t nbytes = half ? ls_layer_rounded_nbytes(rough) : rough * sizeof(float);
    return (float *)(void *)((char *)c->saved + nbytes);
}
/* Parameter i in the type that it is stored in, for a matrix that the layer reads as it is. */
static inline ls_stored ls_layer_stored(const ls_layer *l, const ls_layer_call *c, int i) {
    if (l->link.frozen[i]) return c->frozen[l->params[i]];
    if (l->half.in_products[i] && ls_layer_given_bf16(c))
        return (ls_stored){.data = (const uint16_t *)c->given->params + l->link.offsets[i],
                           .type = LS_BLOCK_BF16};
    return (ls_stored){.data = ls_layer_param(l, c, i), .type = LS_BLOCK_F32};
}
static inline float *ls_layer_grad(const ls_layer *l, const ls_layer_call *c, int i) {
    return l->link.frozen[i] ? NULL : (float *)c->grads + (l->link.offsets[i] - c->grads_at);
}

/* Where a product in bf16 rounds all of y or dx[0]; NULL: it doesn't. */
static inline uint16_t *ls_layer_rounded(const ls_layer *l, const ls_layer_call *c,
                                         unsigned operand) {
    bool one_row = c->n * c->T == 1, more = l->link.adds[0] || l->scales[0].scale != 0;
    if (!(l->half.rounds & operand) || !ls_layer_given_bf16(c) || c->compute->device) return NULL;
    if (operand == LS_OPERAND_Y) return one_row || c->adapters ? NULL : c->given->y;
    return more ? NULL : c->given->dx[0];
}
/* Are gradients stored in bf16 that products in bf16 of this call complete? They round them. */
static inline bool ls_layer_products_round(const ls_layer_call *c) {
    return c->given && c->given->grads_type == LS_BF16 && !c->given->wide && c->given->last &&
           c->in_bf16 && !c->compute->device;
}
/* Where a product rounds the gradient of parameter i; NULL: it doesn't. */
static inline uint16_t *ls_layer_rounded_grad(const ls_layer *l, const ls_layer_call *c, int i) {
    if (l->link.frozen[i] || !l->half.rounds_grads[i] || !ls_layer_products_round(c)) return NULL;
    return (uint16_t *)c->given->grads + l->link.offsets[i];
}

/* Gradients are rounded to 16 bits in the call that computes them, and a chain must be rounded only
 * once: so all rows are computed at once, or the chains of the whole table are in memory. Do the
 * chains take less memory? */
static inline bool ls_layer_has_chains(const ls_layer *l, int64_t rows) {
    size_t more = rows > l->memory.block_rows
                      ? (size_t)(rows - l->memory.block_rows) * l->memory.block_floats
                      : 0;
    return l->half.chain_floats > 0 && more > 0 &&
           more + l->half.room_floats > l->half.chain_floats;
}
/* The number of rows that a layer with block_rows computes at a time. rounds: as above. */
static inline int64_t ls_layer_block(const ls_layer *l, int64_t rows, bool rounds) {
    bool all = rounds && !ls_layer_has_chains(l, rows);
    return rows < l->memory.block_rows || all ? rows : l->memory.block_rows;
}
static inline size_t ls_layer_work_floats(const ls_layer *l, int64_t n, bool rounds) {
    size_t block = (size_t)ls_layer_block(l, n * l->T, rounds);
    return (size_t)n * l->memory.work + block * l->memory.block_floats;
}

/* The layer's own options, of a type that its file defines. */
#define LS_LAYER_OWN_AS(type, layer)                                                               \
    (*(type *)(void *)((layer)->own + 0 * sizeof(char[sizeof(type) <= LS_LAYER_OWN ? 1 : -1])))
#define LS_LAYER_OWN_OF(type, layer)                                                               \
    (*(const type *)(const void *)((layer)->own +                                                  \
                                   0 * sizeof(char[sizeof(type) <= LS_LAYER_OWN ? 1 : -1])))

/* A field of a sample: number i of those that the layer reads itself. */
static inline const void *ls_layer_field(const ls_layer *l, const ls_layer_call *c, int i,
                                         int64_t sample) {
    return (const char *)c->samples + (size_t)sample * c->sample_nbytes + l->field_at[i];
}

#endif
