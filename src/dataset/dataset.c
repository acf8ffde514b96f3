/* dataset.c - see dataset.h. */
#include "dataset/dataset.h"

#include <stdlib.h>

#include "base/file.h"
#include "dataset/data_files.h"
#include "dataset/data_paths.h"
#include "dataset/reference.h"
#include "dataset/restore.h"

/* ---- which data ---- */

bool ls_dataset_is_text(const ls_dataset *d) { return !d->samples && !d->text.has_chats; }

static bool is_corpus(const ls_dataset *d) { return !d->samples; }

static int64_t window_of(const ls_dataset *d) {
    return (int64_t)(d->sample_nbytes / sizeof(uint32_t)) - 1;
}

ls_dataset ls_dataset_of_text(const ls_corpus *text, const ls_config *c) {
    return (ls_dataset){.text = *text,
                        .ntrain = text->ntrain,
                        .nval = text->nval,
                        .sample_nbytes = text->has_chats
                                             ? ls_chats_sample_nbytes(c)
                                             : (size_t)(c->model.context + 1) * sizeof(uint32_t)};
}

/* Takes the samples over. */
static ls_dataset of_samples(ls_samples *s) {
    return (ls_dataset){
        .samples = s, .ntrain = s->order.n, .nval = s->nval, .sample_nbytes = s->source->nbytes};
}

ls_dataset ls_dataset_of_source(ls_source *source, const ls_config *c) {
    return of_samples(ls_samples_of(source, (uint64_t)c->train.seed));
}

/* run and r: of one that has begun; NULL: a new one. */
static ls_status open_samples(ls_dataset *d, const ls_config *c, const ls_model *m, const char *run,
                              const ls_data_record *r, ls_error *e) {
    ls_samples *s = NULL;
    LS_TRY(ls_samples_open(c, m, run, r, &s, e));
    *d = of_samples(s);
    return LS_OK;
}

ls_status ls_dataset_make(ls_dataset *d, const ls_config *c, const ls_model *m, ls_error *e) {
    LS_TRY(ls_data_paths_check(c, e));
    if (!ls_config_has_corpus(c)) return open_samples(d, c, m, NULL, NULL, e);
    ls_corpus text;
    LS_TRY(ls_corpus_make(&text, c, e));
    *d = ls_dataset_of_text(&text, c);
    return LS_OK;
}

void ls_dataset_free(ls_dataset *d) {
    ls_samples_close(d->samples);
    ls_corpus_free(&d->text);
    *d = (ls_dataset){0};
}

/* ---- in a run directory ---- */

static ls_status read_record(const char *run, ls_data_record *r_p, ls_error *e) {
    bool there = false;
    LS_TRY(ls_data_record_read(run, r_p, &there, e));
    if (there) return LS_OK;
    return ls_fail(e, LS_EIO,
                   "%s/" LS_DATA_RECORD ": is missing; resuming the run (--resume) restores it",
                   run);
}

/* other: the validation part may be another one than the run's. */
static ls_status open_recorded(ls_dataset *d, const char *run, const ls_config *c,
                               const ls_model *m, bool other, ls_error *e) {
    ls_data_record r;
    LS_TRY(read_record(run, &r, e));
    LS_TRY(open_samples(d, c, m, run, &r, e));
    if (other) r.validation = d->samples->record.validation;
    ls_status s = ls_samples_check(d->samples, c, &r, run, e);
    if (s != LS_OK) ls_dataset_free(d);
    return s;
}

ls_status ls_dataset_open(ls_dataset *d, const char *run, const ls_config *c, const ls_model *m,
                          ls_error *e) {
    if (!ls_config_has_corpus(c)) return open_recorded(d, run, c, m, false, e);
    ls_corpus text;
    LS_TRY(ls_corpus_open(&text, run, c, e));
    *d = ls_dataset_of_text(&text, c);
    return LS_OK;
}

/* Takes the numbering over. */
static ls_status open_numbered(ls_dataset *d, const ls_config *c, const ls_model *m,
                               ls_numbering *numbering, const ls_other_samples *other,
                               ls_error *e) {
    ls_samples *samples = NULL;
    ls_status s = ls_samples_open_other(c, m, numbering, other, &samples, e);
    ls_numbering_free(numbering);
    if (s == LS_OK) *d = of_samples(samples);
    return s;
}

ls_status ls_dataset_open_files(ls_dataset *d, const ls_config *c, const ls_model *m,
                                const ls_other_samples *other, ls_error *e) {
    ls_numbering numbering = {0};
    LS_TRY(ls_data_record_numbering(other->dir, &numbering, e));
    return open_numbered(d, c, m, &numbering, other, e);
}

ls_status ls_dataset_open_other(ls_dataset *d, const char *run, const ls_config *c,
                                const ls_model *m, ls_error *e) {
    ls_numbering numbering = {0};
    ls_error own = {0};
    const ls_other_samples val = {
        .paths = c->data.val_path, .labels = c->data.val_labels, .dir = run};
    ls_status s = open_recorded(d, run, c, m, true, &own);
    if (s == LS_EIO && ls_data_record_numbering(run, &numbering, NULL) == LS_OK)
        s = open_numbered(d, c, m, &numbering, &val, &own);
    if (s != LS_OK && e) *e = own;
    return s;
}

double ls_dataset_saved_nbytes(const ls_dataset *d) {
    return (double)d->text.tokens.n * sizeof *d->text.tokens.ids;
}

/* Writes a small file, if the run has not the same. */
static ls_status save_text(const char *run, const char *name, const ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", run, name);
    bool same = ls_file_is(path, text->data, text->len);
    ls_status s = same ? LS_OK : ls_file_replace(path, text->data, text->len, e);
    free(path);
    return s;
}

ls_status ls_dataset_save(const ls_dataset *d, const char *run, ls_error *e) {
    if (is_corpus(d)) return ls_corpus_save(&d->text, run, e);
    LS_TRY(save_text(run, LS_DATA_RECORD, &d->samples->record_text, e));
    return d->samples->ids_text.len ? save_text(run, LS_IDS_FILE, &d->samples->ids_text, e) : LS_OK;
}

bool ls_dataset_is_saved(const char *run, const ls_config *c) {
    if (ls_config_has_corpus(c)) return ls_corpus_is_saved(run);
    return ls_file_exists_in(run, LS_DATA_RECORD);
}

static ls_status restore_record(const char *run, const char *checkpoint, const ls_config *c,
                                const ls_model *m, ls_error *e) {
    ls_dataset d;
    bool copied = false;
    LS_TRY(ls_data_file_copy(run, checkpoint, LS_IDS_FILE, &copied, e));
    if (ls_dataset_is_saved(run, c)) return LS_OK;
    LS_TRY(ls_data_file_copy(run, checkpoint, LS_DATA_RECORD, &copied, e));
    if (copied) return LS_OK;
    LS_TRY(open_samples(&d, c, m, NULL, NULL, e)); /* nothing has been trained */
    ls_status s = ls_dataset_save(&d, run, e);
    ls_dataset_free(&d);
    return s;
}

ls_status ls_dataset_restore(const char *run, const char *checkpoint, const ls_config *c,
                             const ls_model *m, ls_error *e) {
    if (ls_config_has_corpus(c)) return ls_restore_corpus(run, checkpoint, c, e);
    return restore_record(run, checkpoint, c, m, e);
}

/* A text is in one file of tokens; its order is by blocks only where the config says so. */
static ls_order text_order(uint64_t ntrain, const ls_config *c) {
    ls_order o = {.n = ntrain, .seed = (uint64_t)c->train.seed};
    if (c->data.order != LS_ORDER_BLOCKS) return o;
    o.block = (uint64_t)c->data.block;
    o.window = (uint64_t)c->data.window;
    return o;
}

static ls_order order_of(const ls_dataset *d, const ls_config *c) {
    return is_corpus(d) ? text_order(d->ntrain, c) : d->samples->order;
}

ls_status ls_dataset_order_of(const char *run, const ls_config *c, ls_order *o_p, ls_error *e) {
    if (!ls_config_has_corpus(c)) {
        ls_data_record r;
        LS_TRY(read_record(run, &r, e));
        return ls_samples_order(c, &r, o_p, e);
    }
    ls_corpus text;
    LS_TRY(ls_corpus_open(&text, run, c, e));
    *o_p = text_order(text.ntrain, c);
    ls_corpus_free(&text);
    return LS_OK;
}

static ls_buf copy_of(const ls_buf *b) {
    ls_buf copy = {0};
    ls_buf_append(&copy, b->data, b->len);
    return copy;
}

void ls_dataset_files(const ls_dataset *d, ls_data_files *f_p) {
    ls_buf record = {0};
    *f_p = (ls_data_files){0};
    if (!is_corpus(d)) {
        ls_data_files_add(f_p, LS_DATA_RECORD, copy_of(&d->samples->record_text));
        if (d->samples->ids_text.len)
            ls_data_files_add(f_p, LS_IDS_FILE, copy_of(&d->samples->ids_text));
        return;
    }
    ls_corpus_record_write(&d->text.record, &record);
    ls_data_files_add(f_p, LS_TOKENIZER_FILE, copy_of(&d->text.tokenizer_json));
    ls_data_files_add(f_p, LS_CORPUS_RECORD, record);
    if (!d->text.chats.has_reference) return;
    ls_buf reference = {0};
    ls_reference_write(&d->text.chats, d->text.record.tokens, &reference);
    ls_data_files_add(f_p, LS_REFERENCE_FILE, reference);
}

/* ---- what it is ---- */

ls_hash ls_dataset_identity(const ls_dataset *d) {
    return is_corpus(d) ? d->text.record.tokens : ls_data_record_identity(&d->samples->record);
}

ls_status ls_dataset_fail_changed(const ls_dataset *d, const char *run, ls_error *e) {
    if (is_corpus(d))
        return ls_fail(e, LS_EINVAL,
                       "%s/tokens.bin: has other tokens than those this run was trained on; was "
                       "it made again from a text that has changed? Restore it and continue "
                       "with --resume",
                       run);
    return ls_fail(e, LS_EINVAL,
                   "%s: its files of data are not those that this run was trained on; restore "
                   "them and continue with --resume",
                   run);
}

void ls_dataset_describe(const ls_dataset *d, ls_buf *out) {
    ls_buf_printf(out, "%llu training samples of ", (unsigned long long)d->ntrain);
    if (d->text.has_chats)
        ls_buf_printf(out, "%s, up to %lld tokens%s",
                      d->text.chats.texts == 2 ? "a pair of answers"
                      : d->text.chats.packed   ? "several conversations"
                                               : "a conversation",
                      (long long)(d->text.chats.T / d->text.chats.texts),
                      d->text.chats.texts == 2 ? " each" : "");
    else if (is_corpus(d))
        ls_buf_printf(out, "%lld tokens", (long long)window_of(d));
    else
        ls_samples_describe(d->samples, out);
}

/* ---- samples ---- */

/* Threads that read training samples. With 4 of them a small model trained fastest on JPEG images
 * of 64 x 64; 1, 2 and 8 were slower (docs/measured/speed.md). */
static int threads_of(const ls_dataset *d, const ls_config *c) {
    enum { FOR_IMAGES = 4 };
    if (c->data.threads != LS_AUTO) return (int)c->data.threads;
    return d->samples && d->samples->source->decodes ? FOR_IMAGES : 1;
}

ls_loader_config ls_dataset_loader(const ls_dataset *d, const ls_config *c) {
    ls_loader_config l = {.read = ls_tokens_window,
                          .data = &d->text.tokens,
                          .sample_nbytes = d->sample_nbytes,
                          .threads = threads_of(d, c),
                          .order = order_of(d, c),
                          .batch = (uint64_t)c->train.batch,
                          .batches = ls_batches_of(c),
                          .V = (int)c->train.virtual_workers};
    if (d->text.has_chats) {
        l.read = ls_corpus_chat_train;
        l.data = &d->text;
        l.waits = d->text.chats.texts == 2; /* for the reference */
    }
    if (is_corpus(d)) return l;
    l.read = ls_samples_train;
    l.data = d->samples;
    return l;
}

ls_status ls_dataset_val_sample(const ls_dataset *d, uint64_t i, void *out, ls_error *e) {
    if (!is_corpus(d)) return ls_samples_val(d->samples, i, out, e);
    if (d->text.has_chats) return ls_corpus_chat_row(&d->text, 1, i, out, e);
    return ls_corpus_val_sample(&d->text, window_of(d), i, out, e);
}

double ls_dataset_text_nbytes(const ls_dataset *d, const void *sample) {
    return ls_corpus_sample_bytes(&d->text, sample, window_of(d));
}

ls_status ls_dataset_verify(ls_dataset *d, ls_error *e) {
    if (!is_corpus(d)) return ls_samples_verify(d->samples, e);
    return ls_tokens_verify(&d->text.tokens, e);
}
