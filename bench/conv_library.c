/* conv_library.c - see conv_library.h.
 *
 * The functions of oneDNN 2 are found by name, so that nothing depends on it. Their structs are
 * memory here that is at least as large (a memory descriptor has 696 bytes in version 2.6, a
 * convolution's descriptor 5,976); the numbers are those of dnnl_types.h.
 */
#include "conv_library.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

enum { F32 = 3, ANY = 1, NHWC = 20, CPU = 1, IN_ORDER = 1, DIRECT = 1 };
enum { FORWARD = 64, BACKWARD_DATA = 160, BACKWARD_WEIGHTS = 192 };
enum { ASK_WEIGHTS = 131, ASK_DIFF_WEIGHTS = 132 };
enum { SRC = 1, DST = 17, WEIGHTS = 33, DIFF_SRC = 129, DIFF_DST = 145, DIFF_WEIGHTS = 161 };

typedef union memory_desc {
    char bytes[2048];
    int64_t align;
} memory_desc;
typedef union conv_desc {
    char bytes[16384];
    int64_t align;
} conv_desc;
typedef struct exec_arg {
    int arg;
    void *memory;
} exec_arg;
typedef struct version {
    int major, minor, patch;
} version;

/* Functions of oneDNN, by their names without dnnl_. */
static struct {
    const version *(*version)(void);
    int (*engine_create)(void **engine_p, int kind, size_t index);
    int (*engine_destroy)(void *);
    int (*stream_create)(void **stream_p, void *engine, unsigned flags);
    int (*stream_destroy)(void *);
    int (*memory_desc_init_by_tag)(memory_desc *, int ndims, const int64_t *dims, int type,
                                   int tag);
    size_t (*memory_desc_get_size)(const memory_desc *);
    int (*memory_create)(void **memory_p, const memory_desc *, void *engine, void *data);
    int (*memory_destroy)(void *);
    int (*convolution_forward_desc_init)(conv_desc *, int prop, int algorithm,
                                         const memory_desc *src, const memory_desc *weights,
                                         const memory_desc *bias, const memory_desc *dst,
                                         const int64_t *strides, const int64_t *pad_l,
                                         const int64_t *pad_r);
    int (*convolution_backward_data_desc_init)(conv_desc *, int algorithm,
                                               const memory_desc *diff_src,
                                               const memory_desc *weights,
                                               const memory_desc *diff_dst, const int64_t *strides,
                                               const int64_t *pad_l, const int64_t *pad_r);
    int (*convolution_backward_weights_desc_init)(
        conv_desc *, int algorithm, const memory_desc *src, const memory_desc *diff_weights,
        const memory_desc *diff_bias, const memory_desc *diff_dst, const int64_t *strides,
        const int64_t *pad_l, const int64_t *pad_r);
    int (*primitive_desc_create)(void **desc_p, const conv_desc *, void *attr, void *engine,
                                 void *hint);
    const memory_desc *(*primitive_desc_query_md)(void *desc, int what, int index);
    int (*primitive_desc_destroy)(void *);
    int (*primitive_create)(void **primitive_p, void *desc);
    int (*primitive_execute)(void *primitive, void *stream, int nargs, const exec_arg *args);
    int (*primitive_destroy)(void *);
} dnnl;

#define SYMBOL(name)                                                                               \
    { "dnnl_" #name, offsetof(__typeof__(dnnl), name) }
static const ls_symbol symbols[] = {
    SYMBOL(version),
    SYMBOL(engine_create),
    SYMBOL(engine_destroy),
    SYMBOL(stream_create),
    SYMBOL(stream_destroy),
    SYMBOL(memory_desc_init_by_tag),
    SYMBOL(memory_desc_get_size),
    SYMBOL(memory_create),
    SYMBOL(memory_destroy),
    SYMBOL(convolution_forward_desc_init),
    SYMBOL(convolution_backward_data_desc_init),
    SYMBOL(convolution_backward_weights_desc_init),
    SYMBOL(primitive_desc_create),
    SYMBOL(primitive_desc_query_md),
    SYMBOL(primitive_desc_destroy),
    SYMBOL(primitive_create),
    SYMBOL(primitive_execute),
    SYMBOL(primitive_destroy),
};

ls_status conv_library_open(conv_library *l_p, ls_error *e) {
    conv_library l = {0};
    ls_error why = {0};
    size_t n = sizeof symbols / sizeof *symbols;
    if (ls_library_load("libdnnl.so.2", symbols, n, &dnnl, &why) != LS_OK)
        return ls_fail(e, LS_EINVAL,
                       "--vs: oneDNN 2 is not installed (%s); install Debian's package libdnnl2",
                       why.msg);
    const version *v = dnnl.version();
    if (v->major != 2 || dnnl.engine_create(&l.engine, CPU, 0) != 0 ||
        dnnl.stream_create(&l.stream, l.engine, IN_ORDER) != 0) {
        conv_library_close(&l);
        return ls_fail(e, LS_EINVAL, "--vs: oneDNN %d.%d has no convolutions that can be measured",
                       v->major, v->minor);
    }
    *l_p = l;
    return LS_OK;
}

void conv_library_close(conv_library *l) {
    if (l->stream) dnnl.stream_destroy(l->stream);
    if (l->engine) dnnl.engine_destroy(l->engine);
    *l = (conv_library){0};
}

/* x, weights and y of a convolution. */
typedef struct shapes {
    memory_desc x, w, y;
} shapes;

static void describe(const ls_conv *v, int64_t n, shapes *s) {
    const int64_t x[] = {n, v->in, v->h, v->w}, w[] = {v->out, v->in, v->kernel_h, v->kernel_w};
    const int64_t y[] = {n, v->out, ls_conv_out_h(v), ls_conv_out_w(v)};
    dnnl.memory_desc_init_by_tag(&s->x, 4, x, F32, NHWC);
    dnnl.memory_desc_init_by_tag(&s->w, 4, w, F32, ANY);
    dnnl.memory_desc_init_by_tag(&s->y, 4, y, F32, NHWC);
}

/* The library's description of one product, or NULL. Gradients need the forward's as a hint. */
static void *product_desc(const conv_library *l, const ls_conv *v, const shapes *s, conv_kind kind,
                          void *hint) {
    const int64_t strides[] = {v->stride_h, v->stride_w}, pad[] = {v->pad_h, v->pad_w};
    conv_desc d;
    void *desc = NULL;
    int failed = 0;
    if (kind == CONV_Y)
        failed = dnnl.convolution_forward_desc_init(&d, FORWARD, DIRECT, &s->x, &s->w, NULL, &s->y,
                                                    strides, pad, pad);
    else if (kind == CONV_DX)
        failed = dnnl.convolution_backward_data_desc_init(&d, DIRECT, &s->x, &s->w, &s->y, strides,
                                                          pad, pad);
    else
        failed = dnnl.convolution_backward_weights_desc_init(&d, DIRECT, &s->x, &s->w, NULL, &s->y,
                                                             strides, pad, pad);
    if (!failed) dnnl.primitive_desc_create(&desc, &d, NULL, l->engine, hint);
    return desc;
}

/* The arguments' numbers, and memory for weights in the layout that the library asks for. */
static ls_status open_memories(const conv_library *l, const shapes *s, const ls_conv_job *job,
                               void *desc, conv_kind kind, conv_product *p) {
    static const int args[CONV_KINDS][3] = {
        {SRC, WEIGHTS, DST}, {DIFF_SRC, WEIGHTS, DIFF_DST}, {SRC, DIFF_WEIGHTS, DIFF_DST}};
    const memory_desc *w =
        dnnl.primitive_desc_query_md(desc, kind == CONV_DW ? ASK_DIFF_WEIGHTS : ASK_WEIGHTS, 0);
    p->weights = calloc(1, dnnl.memory_desc_get_size(w));
    void *x = kind == CONV_DX ? job->dx : (void *)(uintptr_t)job->x;
    void *y = kind == CONV_Y ? job->y : (void *)(uintptr_t)job->dy;
    memcpy(p->args, args[kind], sizeof p->args);
    return p->weights && dnnl.memory_create(&p->memories[0], &s->x, l->engine, x) == 0 &&
                   dnnl.memory_create(&p->memories[1], w, l->engine, p->weights) == 0 &&
                   dnnl.memory_create(&p->memories[2], &s->y, l->engine, y) == 0
               ? LS_OK
               : LS_ENOMEM;
}

ls_status conv_product_open(const conv_library *l, const ls_conv *v, const ls_conv_job *job,
                            conv_kind kind, conv_product *p_p, ls_error *e) {
    shapes s;
    conv_product p = {.library = l};
    describe(v, job->n, &s);
    void *forward = product_desc(l, v, &s, CONV_Y, NULL);
    void *desc = product_desc(l, v, &s, kind, kind == CONV_Y ? NULL : forward);
    bool made = desc && open_memories(l, &s, job, desc, kind, &p) == LS_OK &&
                dnnl.primitive_create(&p.primitive, desc) == 0;
    if (desc) dnnl.primitive_desc_destroy(desc);
    if (forward) dnnl.primitive_desc_destroy(forward);
    if (!made) {
        conv_product_close(&p);
        return ls_fail(e, LS_EINVAL, "--vs: oneDNN refuses a convolution");
    }
    *p_p = p;
    return LS_OK;
}

void conv_product_run(const conv_product *p) {
    exec_arg args[3];
    for (int i = 0; i < 3; i++) args[i] = (exec_arg){p->args[i], p->memories[i]};
    dnnl.primitive_execute(p->primitive, p->library->stream, 3, args);
}

void conv_product_close(conv_product *p) {
    for (int i = 0; i < 3; i++)
        if (p->memories[i]) dnnl.memory_destroy(p->memories[i]);
    if (p->primitive) dnnl.primitive_destroy(p->primitive);
    free(p->weights);
    *p = (conv_product){0};
}
