/* graph.h - an ONNX graph while it is made, and its file: the one place that knows the format.
 *
 * Tensors are their names, which belong to the graph and live as long as it does. A node's name is
 * that of its scope and its operator: "block.0.attn/MatMul", "block.0.attn/MatMul_2". Nodes are in
 * the order in which they are added, so a node's inputs must have been added before it.
 *
 * Numbers of initializers are not copied: they stay where they are until the graph is freed.
 */
#ifndef LS_ONNX_GRAPH_H
#define LS_ONNX_GRAPH_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"
#include "tensor/dtype.h"

/* The versions of the operators and of the file. ONNX 1.12 (2022) has both. */
enum { LS_ONNX_OPSET = 17, LS_ONNX_IR = 8 };

typedef struct ls_onnx_graph ls_onnx_graph;

ls_onnx_graph *ls_onnx_graph_new(void);
void ls_onnx_graph_free(ls_onnx_graph *); /* NULL is fine */

/* A shape; free dimensions have names. */
enum { LS_ONNX_DIMS = 6, LS_ONNX_SAMPLES = -1, LS_ONNX_ROWS = -2 };
typedef struct ls_onnx_shape {
    int n;
    int64_t of[LS_ONNX_DIMS]; /* LS_ONNX_SAMPLES: "N"; LS_ONNX_ROWS: "T" */
} ls_onnx_shape;

/* ---- nodes ---- */

void ls_onnx_scope(ls_onnx_graph *, const char *name);

/* Adds a node; inputs are ended by NULL. Returns the name of its output. */
const char *ls_onnx_add(ls_onnx_graph *, const char *op, const char *const *inputs);
#define LS_ONNX_ADD(g, op, ...) ls_onnx_add(g, op, (const char *const[]){__VA_ARGS__, NULL})
/* Adds a second output to the latest node. */
const char *ls_onnx_second_output(ls_onnx_graph *);

/* Attributes of the latest node. */
void ls_onnx_set_int(ls_onnx_graph *, const char *name, int64_t);
void ls_onnx_set_real(ls_onnx_graph *, const char *name, float);
void ls_onnx_set_ints(ls_onnx_graph *, const char *name, int n, const int64_t *);

/* ---- constants ---- */

/* x [product of the shape]. Names differ. */
const char *ls_onnx_numbers(ls_onnx_graph *, const char *name, ls_onnx_shape, const float *x);
/* As ls_onnx_numbers(); the graph frees x. */
const char *ls_onnx_own_numbers(ls_onnx_graph *, const char *name, ls_onnx_shape, float *x);
/* x [n], which is copied; named by the scope and what it is. */
const char *ls_onnx_vector(ls_onnx_graph *, const char *what, int64_t n, const float *x);
/* Few numbers, which are copied; equal ones are one tensor. */
const char *ls_onnx_number(ls_onnx_graph *, float);
const char *ls_onnx_integers(ls_onnx_graph *, int n, const int64_t *); /* [n] */
const char *ls_onnx_integer(ls_onnx_graph *, int64_t);                 /* a scalar */
/* 0, 1 .. n - 1 */
const char *ls_onnx_places(ls_onnx_graph *, int64_t n);

/* ---- ends, and the file ---- */

/* type: LS_U8, LS_I32 or LS_F32. Returns the name. */
const char *ls_onnx_input(ls_onnx_graph *, const char *name, ls_dtype type, ls_onnx_shape);
/* The tensor gets this name, too. */
void ls_onnx_output(ls_onnx_graph *, const char *from, const char *name, ls_onnx_shape);
/* What the model says of itself: a key and a value. */
void ls_onnx_note(ls_onnx_graph *, const char *key, const char *value);

typedef struct ls_onnx_written {
    size_t nnodes, nbytes; /* bytes of both files */
    char *data; /* the file of the numbers, in the directory of the graph's; NULL: they are in it */
} ls_onnx_written;

/* A message of the format has less than 2 GB. Numbers of a larger model are in a file of their own,
 * PATH.data; `most`: bytes from which on that is so; 0: the format's. Neither may exist:
 * LS_EINVAL. */
ls_status ls_onnx_write(ls_onnx_graph *, const char *path, size_t most, ls_onnx_written *w_p,
                        ls_error *);

#endif
