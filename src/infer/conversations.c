/* conversations.c - see conversations.h. */
#include "infer/conversations.h"

#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/intern.h"
#include "config/relations.h"
#include "dataset/published_record.h"
#include "layers/layers.h"

ls_status ls_trained_chat_format(const ls_trained *t, const char *template, ls_chat_format *f_p,
                                 ls_error *e) {
    return t->is_published
               ? ls_chat_format_of_model(t->path, t->tokenizer, template, f_p, e)
               : ls_chat_format_of_run(t->path, &t->config, t->tokenizer, template, f_p, e);
}

static ls_status check_model(const ls_trained *t, ls_error *e) {
    if (t->config.model.kind != LS_MODEL_LLAMA)
        return ls_fail(e, LS_EINVAL, "%s: conversations need a model of kind llama", t->path);
    if (ls_config_fits_tokens(&t->config, ls_tokenizer_vocab(t->tokenizer))) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: its tokenizer has %u tokens, the model %lld", t->path,
                   ls_tokenizer_vocab(t->tokenizer), (long long)t->config.model.vocab);
}

ls_status ls_trained_chats(ls_trained *t, const char *path, const char *template, ls_dataset *d_p,
                           ls_error *e) {
    ls_config c = t->config;
    ls_chat_format f = {0};
    ls_corpus corpus;
    size_t n = strlen(path) + 1;
    LS_TRY(check_model(t, e));
    if (n > LS_CONFIG_TEXT)
        return ls_fail(e, LS_EINVAL, "--chat: a path of %zu bytes; at most %d are possible", n - 1,
                       LS_CONFIG_TEXT - 1);
    c.data.path = "";
    c.data.val_path = ls_intern(path);
    LS_TRY(ls_trained_chat_format(t, template, &f, e));
    ls_status s = ls_corpus_of_chats(&corpus, &c, &f, e);
    ls_chat_format_free(&f);
    if (s != LS_OK) return s;
    c.model.context = ls_chats_shorten(&corpus.chats, 1);
    *d_p = ls_dataset_of_text(&corpus, &c);
    s = ls_trained_shorten(t, c.model.context, e);
    if (s != LS_OK) ls_dataset_free(d_p);
    return s;
}

ls_status ls_trained_refer(const ls_trained *t, ls_dataset *d, ls_error *e) {
    ls_chats *c = &d->text.chats;
    double *record = LS_NEW_ARRAY(double, ls_record_size(&t->model));
    char *sample = ls_alloc(d->sample_nbytes);
    ls_status s = LS_OK;
    ls_bar bar = ls_bar_begin("computing the reference", d->nval);
    for (uint64_t i = 0; s == LS_OK && i < d->nval; i++) {
        s = ls_dataset_val_sample(d, i, sample, e);
        if (s == LS_OK) s = ls_infer_records(&t->infer, 1, sample, record, e);
        float *to = c->reference + 2 * ls_chats_pair(c, 1, i);
        for (int side = 0; s == LS_OK && side < 2; side++)
            to[side] = (float)record[LS_RECORD_VALUES + LS_DPO_LOGP + side];
        ls_bar_at(&bar, i + 1);
    }
    ls_bar_end(&bar);
    c->has_reference = s == LS_OK;
    free(record);
    free(sample);
    return s;
}
