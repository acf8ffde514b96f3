/* model.h - a model: a table of parameters, and layers over named values.
 *
 * Layer i computes value i from the values of earlier layers (its inputs): a directed graph, in
 * topological order. A value that several layers read gets its gradient as a sum, in the order in
 * which Backward runs these layers: the last one first.
 *
 * The flat buffer of parameters has the trained tensors in the order of the table, each at a
 * multiple of 16 floats; its end is padded to a multiple of LS_BLOCK. Backward fills the gradient
 * from its end. Frozen ones are elsewhere (frozen.h).
 */
#ifndef LS_MODEL_MODEL_H
#define LS_MODEL_MODEL_H

#include "model/layer.h"
#include "model/measure.h"
#include "model/weight.h"
#include "source/source.h"

enum { LS_BLOCK = 1024 }; /* floats; sums of norms and shards begin at multiples of it */
enum { LS_MODEL_MAX_SLOTS = 4096 };

typedef struct ls_model ls_model;
typedef struct ls_draft ls_draft; /* draft.h */

/* Numbers that a layer computes once, when it is added (ls_build_constants()). */
typedef struct ls_constants {
    float *p;
    size_t n;
} ls_constants;

struct ls_model {
    ls_param *params; /* [nparams] */
    int nparams;
    ls_layer *layers; /* [nlayers] */
    int nlayers;
    int nslices;  /* above 1: products are cut into nslices slices (ls_build_slice()) */
    int slice;    /* of the layers that are added next */
    int nchunks;  /* above 1: samples are cut into nchunks chunks (ls_build_chunk()), whose layers
                   * may share parameters */
    int chunk;    /* of the layers that are added next */
    bool gathers; /* slices exchange rows before and behind each product (layers/row_parts.h) */
    int together; /* above 1: a sample of a layer's call is this number of the data's samples, one
                   * after the other; the chunks are divided evenly among them, in order
                   * (ls_build_together()); else 0 */
    int nlate; /* layers behind these that only measures depend on: they run in evaluation alone */
    size_t
        sample_nbytes; /* what layers read of a sample: GPT: its tokens [T + 1]; a multiple of 4 */
    int64_t targets;   /* losses of a sample: GPT: of T tokens; other models: 1, a mean */
    int nlosses;       /* layers that are losses; a sample's loss is their sum ... */
    int nauxiliary;    /* ... without the last ones, which are auxiliary (layer.h) */
    int nnotes;        /* numbers of a sample that a loss notes (measure.h) */
    char notes[LS_NOTES][LS_MEASURE_NAME]; /* [nnotes] their names */
    ls_measure *measures;                  /* [nmeasures] in evaluation */
    int nmeasures;
    ls_weighing weighing; /* how samples count in the step's loss */
    size_t nfloats;       /* size of a flat buffer, padding included */
    size_t frozen_floats; /* size of the buffer of all frozen parameters, padding included */
    size_t count;         /* elements of all parameters, without padding */
    size_t frozen_count;  /* elements of those that are frozen */
    size_t table_floats;  /* } of the tables of which parameters are windows (ls_param.rows) */
    int64_t table_rows;   /* } */
    int64_t sparse_batch; /* above 0: embeddings are windows, for the ids of a batch of this size */
    int nslots;           /* buffers for outputs in a forward alone; at most LS_MODEL_MAX_SLOTS */
    ls_field *inputs;     /* [ninputs] of LS_SOURCE_FIELDS at most: fields that layers read */
    int ninputs;
    int classes[LS_SOURCE_FIELDS]; /* [ninputs] of a field that is a class; 0: it is none */
    bool padded[LS_SOURCE_FIELDS]; /* [ninputs] of such a field: negative numbers stand for none */
    int ignored
        [LS_SOURCE_FIELDS]; /* [ninputs] of these: so does this one, which is above the classes; 0:
                             * no such number */
    ls_draft *draft; /* what is known while the model is being built; NULL: not built by calls */
};

/* A new model is {0}. Appends a layer, which the caller declares and gives its inputs; the pointer
 * is valid until the next layer is added. Parameters are appended to the table and to the layer's;
 * only what a layer declares of the given one is read (param.h). */
ls_layer *ls_model_add_layer(ls_model *, const char *name);
void ls_model_add_param(ls_model *, ls_layer *, const char *name, const ls_param *);

/* A window as the whole table: its shape, and its place in a buffer of tables. */
ls_param ls_param_whole(const ls_param *);

/* Completes a model whose layers have their inputs: places the parameters, and derives what layers
 * know of their inputs (layer.h). Can be called again after a change. LS_EINVAL: a layer reads a
 * value that is not computed before it, a loss, or one of another size; no layer reads a value;
 * there is no loss; more than LS_MODEL_MAX_SLOTS values are needed at the same time; a layer with
 * frozen parameters computes the gradients of all. */
ls_status ls_model_link(ls_model *, ls_error *);
/* Places the parameters anew, after a change of their `whole` or `frozen`. */
void ls_model_place(ls_model *);
void ls_model_free(ls_model *);

/* Sets the elements [first, end) of the flat buffer of trained parameters to their initial weights,
 * a function of the seed alone. */
void ls_model_init(const ls_model *, uint64_t seed, size_t first, size_t end, float *params);
/* Sets x [n] to the initial weights of a parameter, from its element `first` on. */
void ls_model_init_param(const ls_model *, uint64_t seed, int param, size_t first, size_t n,
                         float *x);

/* The values that layers from `layer` on read from earlier layers: returns their number n if there
 * is one value; or one of each slice; or, in a model of chunks, one of each chunk, or of each slice
 * in each chunk, and layers of all chunks with the same parameters are on one side. Each value must
 * be read only by layers of its slice and chunk. Otherwise returns 0. At such a cut, the layers
 * behind can be computed again from these values (plan/recompute.c), or by another stage
 * (share/stages.c). values [n], of at most ls_model_parts(): the layers that have them; NULL: not
 * wanted. */
int ls_model_cut(const ls_model *, int layer, int *values);
/* Slices times chunks. */
int ls_model_parts(const ls_model *);

/* The field of this name that layers read; NULL: there is none. */
const ls_field *ls_model_field(const ls_model *, const char *name);
/* The field in which this place of a sample lies; NULL: none. */
const ls_field *ls_model_field_at(const ls_model *, size_t at);

/* The number of samples of layers' calls that n samples of the data make; the last one may be
 * incomplete. */
static inline int64_t ls_model_samples(const ls_model *m, int64_t n) {
    return m->together > 1 ? (n + m->together - 1) / m->together : n;
}

/* Does the layer of this model join samples in training (layer.h)? */
bool ls_model_joins(const ls_model *, const ls_layer *);
/* The first layer that joins samples; NULL: no layer does. */
const ls_layer *ls_model_find_joining(const ls_model *);

/* A micro-batch is a multiple of this number of samples, or all of a virtual worker's, so that the
 * bits don't depend on its size: 1, or more if layers with few rows a sample sum over rows in
 * bf16. */
int64_t ls_model_unit_samples(const ls_model *, ls_dtype compute);

/* Does the layer compute gradients of its inputs? */
bool ls_model_has_dx(const ls_model *, const ls_layer *);
/* Floating-point operations for one sample: of a layer's backward, without the forward that is part
 * of a loss's, and of the whole model forward and backward. */
double ls_model_backward_flops(const ls_model *, const ls_layer *);
double ls_model_flops(const ls_model *);
/* The first layer whose operations are not known (ls_layer_sizes); NULL: those of all are. */
const ls_layer *ls_model_without_flops(const ls_model *);

/* All of the layers' constants, in their order. */
const ls_constants *ls_model_constants(const ls_model *, int *n_p);
/* What a device holds of the model while it trains: floats of a buffer, in which the frozen
 * parameters are at their offsets, and constants number i after them, at a place of their own. */
size_t ls_model_held_floats(const ls_model *);
size_t ls_model_constants_at(const ls_model *, int i);

/* The largest scratch_floats of its layers. */
size_t ls_model_scratch_floats(const ls_model *);

#endif
