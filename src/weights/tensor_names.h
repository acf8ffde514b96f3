/* tensor_names.h - the tensors of a model: their names, shapes and order of rows in both kinds of
 * files.
 *
 * A tensor's own (canonical) name, shape and order are those of Hugging Face's files. GPT-2's names
 * are those of its published file, without the prefix "transformer.". In a mixture of experts each
 * expert's matrices are tensors; in a model here they are parts of one parameter. In files of Phi-3
 * the matrices of q, k and v are the rows of one tensor, and so are gate and up: here each is a
 * tensor.
 */
#ifndef LS_WEIGHTS_TENSOR_NAMES_H
#define LS_WEIGHTS_TENSOR_NAMES_H

#include "weights/architecture.h"

enum { LS_NAME_MOST = 96 };

/* How a GGUF file orders a tensor's elements. */
typedef enum ls_row_order {
    LS_ROWS_SAME,
    /* Rows of each head are permuted, so that the pairs of the rotation are adjacent: row
     * h d + 2 i + s of GGUF is row h d + s d / 2 + i, for d = head_dim, i < d / 2, s < 2. */
    LS_ROWS_PAIRS,
    /* Transposed: [out, in] in GGUF, [in, out] in GPT-2's Conv1D. */
    LS_ROWS_TRANSPOSED,
    /* GGUF has 1 + each element: the norms of Gemma 3. */
    LS_ROWS_PLUS_ONE
} ls_row_order;

typedef struct ls_name {
    char name[LS_NAME_MOST]; /* "model.layers.0.self_attn.q_proj.weight" */
    char file
        [LS_NAME_MOST]; /* the tensor of Hugging Face's files that has it: but of Phi-3 the name */
    char gguf[LS_NAME_MOST];  /* "blk.0.attn_q.weight"; an expert's is a part of this tensor */
    char param[LS_NAME_MOST]; /* the parameter of a model here: the name, but of mixtures */
    int expert;               /* the part of the parameter; -1: all of it */
    int ndims;                /* 1 or 2 */
    int64_t dims[2];
    int64_t first, rows; /* its first row in the file's tensor, which has so many rows */
    ls_row_order order;
} ls_name;

/* Tensor i = 0, 1 ... in the order of the forward pass; false: there are no more. */
bool ls_name_at(const ls_architecture *, int i, ls_name *n_p);
/* The k-th part of the tensor of this name in Hugging Face's files: the name itself, but in Phi-3.
 * False: there are no more. */
bool ls_name_part(const ls_architecture *, const char *file, int k, char name[LS_NAME_MOST]);
/* An expert's tensor and that of the next expert are so far apart. */
int ls_name_expert_step(const ls_architecture *);
/* How many there are. */
int ls_name_count(const ls_architecture *);
/* Elements of all of them: the model's parameters. */
int64_t ls_architecture_count(const ls_architecture *);

/* A tensor of Hugging Face's files that follows from the architecture: rotary_emb.inv_freq, GPT-2's
 * masks attn.bias and attn.masked_bias. It is not read. */
bool ls_name_is_derived(const ls_architecture *, const char *name);
/* A name in Hugging Face's files, without GPT-2's prefix "transformer.". */
const char *ls_name_canonical(const ls_architecture *, const char *name);

/* The row of the file where row i of a tensor of LS_ROWS_PAIRS is. */
int64_t ls_name_pair_row(int64_t head_dim, int64_t i);

#endif
