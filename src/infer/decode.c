/* decode.c - see decode.h.
 *
 * On cores GPT's fused layers have a decoder of their own. Other models run their layers on the new
 * positions alone; memory: what layers keep of all positions | ls_infer's.
 */
#include "infer/decode.h"

#include "base/round_up.h"
#include "infer/decode_gpt.h"
#include "layers/moe.h"
#include "tensor/dtype.h"

static bool is_gpt(const ls_model *m) { return ls_layer_facts(&m->layers[0]).is_gpt; }

/* On a device all layers continue a text themselves. */
static bool by_decoder(const ls_decode *d) { return is_gpt(d->model) && !d->compute->device; }

/* The last layer has logits of all tokens, at all positions. */
static const ls_layer *head_of(const ls_decode *d) {
    return &d->model->layers[d->model->nlayers - 1];
}

static size_t kept_floats(const ls_model *m) {
    size_t floats = 0;
    for (int i = 0; i < m->nlayers; i++) floats += ls_round_up(m->layers[i].memory.past, 16);
    return floats;
}

/* Layers that continue a text: what they keep of it, and their operands. */
static size_t continued_nbytes(const ls_model *m, ls_dtype dtype) {
    return kept_floats(m) * sizeof(float) + ls_infer_nbytes(m, dtype, 1);
}

size_t ls_decode_nbytes(const ls_model *m, ls_dtype dtype) {
    return is_gpt(m) ? ls_decode_gpt_nbytes(m, dtype) : continued_nbytes(m, dtype);
}

ls_status ls_decode_open(const ls_infer *f, ls_decode *d_p, ls_error *e) {
    bool there = f->compute->device;
    size_t nbytes = there ? continued_nbytes(f->model, LS_F32) /* model/mixed_device.h */
                          : ls_decode_nbytes(f->model, f->dtype);
    ls_decode d = {.model = f->model,
                   .compute = f->compute,
                   .dtype = f->dtype,
                   .params = f->params,
                   .frozen = f->frozen,
                   .constants = f->constants,
                   .samples = f->samples,
                   .logits = f->logits};
    if (there)
        LS_TRY(ls_device_alloc(f->compute->device, nbytes, "keys and values", &d.memory, e));
    else
        LS_TRY(ls_map(nbytes, "keys and values", &d.memory, e));
    *d_p = d;
    return LS_OK;
}

void ls_decode_close(ls_decode *d) {
    if (d->memory && d->compute->device)
        ls_device_free(d->compute->device, d->memory);
    else if (d->memory)
        ls_unmap(d->memory, ls_decode_nbytes(d->model, d->dtype));
    *d = (ls_decode){0};
}

/* The same by the layers, without the decoder. */
static const float *continued(ls_decode *d, const uint32_t *tokens, int64_t T) {
    float *kept = d->memory;
    ls_infer f = {.model = d->model,
                  .compute = d->compute,
                  .dtype = d->dtype,
                  .params = d->params,
                  .memory = kept + kept_floats(d->model),
                  .n = 1,
                  .frozen = d->frozen,
                  .constants = d->constants,
                  .samples = d->samples,
                  .logits = d->logits};
    return ls_infer_continued(&f, tokens, T, (ls_past){.n = d->npositions, .kept = kept});
}

const float *ls_decode_prompt(ls_decode *d, const uint32_t *tokens, int64_t T) {
    d->npositions = 0;
    const float *logits =
        by_decoder(d) ? ls_decode_gpt_prompt(d, tokens, T) : continued(d, tokens, T);
    d->npositions = T;
    return logits;
}

const float *ls_decode_next(ls_decode *d, uint32_t token) {
    const float *logits = by_decoder(d) ? ls_decode_gpt_next(d, token) : continued(d, &token, 1);
    d->npositions++;
    return logits;
}

/* The logits after T more tokens; 1 <= T <= context - npositions. */
static const float *decode_more(ls_decode *d, const uint32_t *tokens, int64_t T) {
    const float *logits = NULL;
    for (int64_t i = 0; (by_decoder(d) || T == 1) && i < T; i++)
        logits = ls_decode_next(d, tokens[i]);
    if (logits) return logits;
    logits = continued(d, tokens, T);
    d->npositions += T;
    return logits;
}

const float *ls_decode_text(ls_decode *d, const uint32_t *text, int64_t n) {
    int64_t T = head_of(d)->T, ntokens = n < T ? n : T, more = n - d->ntext;
    d->ntext = n;
    if (d->npositions > 0 && d->npositions + more <= T)
        return decode_more(d, text + n - more, more);
    if (d->npositions > 0) ntokens = T / 2 > 1 ? T / 2 : 1;
    return ls_decode_prompt(d, text + n - ntokens, ntokens);
}

/* Bytes of n elements of parameter i as it is stored. */
static size_t stored_nbytes(const ls_decode *d, int i, size_t n) {
    if (!d->model->params[i].frozen) return n * ls_dtype_size(d->dtype);
    return ls_block_nbytes(d->frozen[i].type, (int64_t)n);
}

/* What a token does not read of the parameters of experts. */
static size_t unread_nbytes(const ls_decode *d) {
    size_t nbytes = 0;
    for (int i = 0; i < d->model->nlayers; i++) {
        const ls_layer *l = &d->model->layers[i];
        for (int k = 0; k < l->nparams; k++)
            nbytes += stored_nbytes(d, l->params[k], l->counts[k] - ls_layers_read_by_row(l, k));
    }
    return nbytes;
}

/* Is a table that an embedding reads row by row read as a whole at the end, since it is tied? */
static bool is_tied(const ls_model *m, int param) {
    for (int i = 0; i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        bool ends = l->traits.has_logits || l->traits.loss;
        if (ends && l->nparams && l->params[l->nparams - 1] == param) return true;
    }
    return false;
}

/* An embedding, which reads no layer, reads one row of its table. */
size_t ls_decode_weights_read(const ls_decode *d) {
    size_t nbytes = 0;
    for (int i = 0; i < d->model->nparams; i++)
        nbytes += stored_nbytes(d, i, d->model->params[i].count);
    for (int i = 0; i < d->model->nlayers && d->model->layers[i].ninputs == 0; i++) {
        const ls_layer *l = &d->model->layers[i];
        for (int k = 0; k < l->nparams; k++) {
            nbytes += stored_nbytes(d, l->params[k], (size_t)l->C);
            if (!is_tied(d->model, l->params[k]))
                nbytes -= stored_nbytes(d, l->params[k], l->counts[k]);
        }
    }
    return nbytes - unread_nbytes(d);
}

size_t ls_decode_cache_read(const ls_decode *d) {
    size_t T = (size_t)head_of(d)->T, n = (size_t)d->npositions + 1;
    if (is_gpt(d->model)) return ls_decode_gpt_kept(d->model) * n * sizeof(float);
    return kept_floats(d->model) / T * n * sizeof(float);
}
