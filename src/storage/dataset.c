/* dataset.c - see dataset.h. */
#include "storage/dataset.h"

#include "storage/restore.h"

static int64_t window_of(const ls_dataset *d) {
    return (int64_t)(d->sample_nbytes / sizeof(uint32_t)) - 1;
}

ls_dataset ls_dataset_of_text(const ls_corpus *text, const ls_config *c) {
    return (ls_dataset){.text = *text,
                        .ntrain = text->ntrain,
                        .nval = text->nval,
                        .sample_nbytes = (size_t)(c->model.context + 1) * sizeof(uint32_t)};
}

ls_status ls_dataset_make(ls_dataset *d, const ls_config *c, const ls_model *m, ls_error *e) {
    (void)m;
    ls_corpus text;
    LS_TRY(ls_corpus_make(&text, c, e));
    *d = ls_dataset_of_text(&text, c);
    return LS_OK;
}

ls_status ls_dataset_open(ls_dataset *d, const char *run, const ls_config *c, const ls_model *m,
                          ls_error *e) {
    (void)m;
    ls_corpus text;
    LS_TRY(ls_corpus_open(&text, run, c, e));
    *d = ls_dataset_of_text(&text, c);
    return LS_OK;
}

double ls_dataset_saved_nbytes(const ls_dataset *d) {
    return (double)d->text.tokens.n * sizeof *d->text.tokens.ids;
}

ls_status ls_dataset_save(const ls_dataset *d, const char *run, ls_error *e) {
    return ls_corpus_save(&d->text, run, e);
}

bool ls_dataset_is_saved(const char *run) { return ls_corpus_is_saved(run); }

ls_status ls_dataset_restore(const char *run, const char *checkpoint, const ls_config *c,
                             const ls_model *m, ls_error *e) {
    (void)m;
    return ls_restore_corpus(run, checkpoint, c, e);
}

void ls_dataset_free(ls_dataset *d) {
    ls_corpus_free(&d->text);
    *d = (ls_dataset){0};
}

bool ls_dataset_is_text(const ls_dataset *d) { return d->text.tokens.n > 0; }

ls_status ls_dataset_count(const char *run, const ls_config *c, uint64_t *ntrain_p, ls_error *e) {
    ls_corpus text;
    LS_TRY(ls_corpus_open(&text, run, c, e));
    *ntrain_p = text.ntrain;
    ls_corpus_free(&text);
    return LS_OK;
}

ls_hash ls_dataset_identity(const ls_dataset *d) { return d->text.record.tokens; }

void ls_dataset_describe(const ls_dataset *d, ls_buf *out) {
    ls_buf_printf(out, "%llu training samples of %lld tokens", (unsigned long long)d->ntrain,
                  (long long)window_of(d));
}

void ls_dataset_files(const ls_dataset *d, ls_data_files *f_p) {
    ls_buf tokenizer = {0}, record = {0};
    ls_buf_append(&tokenizer, d->text.tokenizer_json.data, d->text.tokenizer_json.len);
    ls_corpus_record_write(&d->text.record, &record);
    *f_p = (ls_data_files){0};
    ls_data_files_add(f_p, LS_TOKENIZER_FILE, tokenizer);
    ls_data_files_add(f_p, LS_CORPUS_RECORD, record);
}

ls_loader_config ls_dataset_loader(const ls_dataset *d, const ls_config *c) {
    return (ls_loader_config){.read = ls_tokens_window,
                              .data = &d->text.tokens,
                              .sample_nbytes = d->sample_nbytes,
                              .order = {.n = d->ntrain, .seed = (uint64_t)c->train.seed},
                              .batch = (uint64_t)c->train.batch,
                              .V = (int)c->train.virtual_workers};
}

ls_status ls_dataset_val_sample(const ls_dataset *d, uint64_t i, void *out, ls_error *e) {
    return ls_corpus_val_sample(&d->text, window_of(d), i, out, e);
}

double ls_dataset_text_nbytes(const ls_dataset *d, const void *sample) {
    return ls_corpus_sample_bytes(&d->text, sample, window_of(d));
}

ls_status ls_dataset_verify(ls_dataset *d, ls_error *e) {
    return ls_tokens_verify(&d->text.tokens, e);
}
