/* fingerprint.c - see fingerprint.h. */
#include "serve/fingerprint.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/thread.h"
#include "lockstep/lockstep.h"
#include "tensor/stored.h"

/* Bytes between two looks at whether the server ends. */
enum { PART = 16 << 20 };

struct ls_fingerprint {
    const ls_request_model *model;
    ls_kept_type kept;
    const ls_adapter *adapters;
    pthread_t thread;
    atomic_bool ends, known;
    char (*texts)[LS_FINGERPRINT_TEXT]; /* [1 + nadapters] */
};

/* ---- what is hashed: each thing with its length, so that no two sequences of them have the same
 * bytes ---- */

static void add(ls_fingerprint *f, ls_hasher *h, const void *data, size_t nbytes) {
    const uint64_t length = nbytes;
    ls_hasher_add(h, &length, sizeof length);
    for (size_t at = 0; at < nbytes && !f->ends; at += PART)
        ls_hasher_add(h, (const char *)data + at, nbytes - at < PART ? nbytes - at : PART);
}

static void add_text(ls_fingerprint *f, ls_hasher *h, const char *text) {
    add(f, h, text, strlen(text));
}

static void add_number(ls_fingerprint *f, ls_hasher *h, int64_t x) { add(f, h, &x, sizeof x); }

static void add_real(ls_fingerprint *f, ls_hasher *h, double x) { add(f, h, &x, sizeof x); }

static void add_weights(ls_fingerprint *f, ls_hasher *h) {
    const ls_trained *t = f->model->trained;
    for (int i = 0; i < t->model.nparams && !f->ends; i++) {
        const ls_param *p = &t->model.params[i];
        const ls_dtype type = t->infer.dtype;
        add_text(f, h, p->name);
        for (int d = 0; d < p->ndims; d++) add_number(f, h, p->dims[d]);
        if (p->frozen) {
            const ls_frozen_value v = ls_trained_frozen(t)[i];
            add_number(f, h, v.type);
            add(f, h, v.data, ls_block_nbytes(v.type, (int64_t)p->count));
        } else {
            add_number(f, h, ls_block_of_dtype(type));
            add(f, h, ls_flat_at(type, t->params, p->offset), p->count * ls_dtype_size(type));
        }
    }
}

static void add_tokenizer(ls_fingerprint *f, ls_hasher *h) {
    ls_buf text = {0};
    ls_tokenizer_write(f->model->trained->tokenizer, &text);
    add(f, h, text.data, text.len);
    ls_buf_free(&text);
}

/* A template by what it makes of a conversation. */
static void add_template(ls_fingerprint *f, ls_hasher *h) {
    static const char said[] =
        "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\","
        " \"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}]";
    ls_json *messages = NULL;
    ls_buf text = {0};
    ls_error e = {0};
    if (!f->model->format || ls_json_parse(said, sizeof said - 1, "", &messages, &e) != LS_OK)
        return;
    const ls_chat_text chat = {.messages = messages, .n = 3, .prompt = true};
    if (ls_chat_write(f->model->format, &chat, &text, &e) == LS_OK) add(f, h, text.data, text.len);
    ls_buf_free(&text);
    ls_json_free(messages);
}

static void add_drawing(ls_fingerprint *f, ls_hasher *h) {
    const ls_generation *g = &f->model->trained->generation;
    add_number(f, h, g->greedy);
    add_number(f, h, g->top_k);
    add_real(f, h, g->temperature);
    add_real(f, h, g->top_p);
    add_real(f, h, g->min_p);
    add_real(f, h, g->penalty);
}

static void add_adapter(ls_fingerprint *f, ls_hasher *h, const ls_adapter *a) {
    const ls_model *m = &f->model->trained->model;
    for (int i = 0; i < m->nparams; i++) {
        if (!a->of[i].rank) continue;
        add_text(f, h, m->params[i].name);
        add_number(f, h, a->of[i].rank);
        add_real(f, h, (double)a->of[i].scale);
    }
    add(f, h, a->memory, a->nbytes);
}

/* ---- the thread ---- */

static void write_text(ls_hasher *h, char text[LS_FINGERPRINT_TEXT]) {
    snprintf(text, LS_FINGERPRINT_TEXT, "fp_%016llx", (unsigned long long)ls_hasher_finish(h).hi);
}

static void *run(void *arg) {
    ls_fingerprint *f = arg;
    const ls_trained *t = f->model->trained;
    ls_hasher *h = ls_hasher_new();
    add_text(f, h, LS_VERSION);
    add_number(f, h, t->infer.dtype);
    add_number(f, h, t->config.infer.activations);
    add_number(f, h, f->kept);
    add_tokenizer(f, h);
    add_template(f, h);
    add_drawing(f, h);
    add_weights(f, h);
    write_text(h, f->texts[0]);
    for (int i = 0; i < f->model->nadapters && !f->ends; i++) {
        h = ls_hasher_new();
        add_text(f, h, f->texts[0]);
        add_adapter(f, h, &f->adapters[i]);
        write_text(h, f->texts[i + 1]);
    }
    f->known = !f->ends;
    return NULL;
}

ls_fingerprint *ls_fingerprint_open(const ls_request_model *model, ls_kept_type kept,
                                    const ls_adapter *adapters) {
    ls_fingerprint *f = LS_NEW(ls_fingerprint);
    *f = (ls_fingerprint){.model = model, .kept = kept, .adapters = adapters};
    f->texts = ls_alloc(((size_t)model->nadapters + 1) * sizeof *f->texts);
    bool ok = ls_thread_start(&f->thread, run, f) == 0;
    if (ok) return f;
    free(f->texts);
    free(f);
    return NULL;
}

const char *ls_fingerprint_of(const ls_fingerprint *f, int adapter) {
    return f && f->known ? f->texts[adapter] : NULL;
}

void ls_fingerprint_close(ls_fingerprint *f) {
    if (!f) return;
    f->ends = true;
    pthread_join(f->thread, NULL);
    free(f->texts);
    free(f);
}
