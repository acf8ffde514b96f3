/* data_files.c - see data_files.h. */
#include "dataset/data_files.h"

#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "dataset/corpus_record.h"
#include "dataset/data_record.h"
#include "dataset/published_record.h"
#include "dataset/reference.h"
#include "source/ids.h"

enum { LONGEST = 1 << 30 };

void ls_data_files_add(ls_data_files *f, const char *name, ls_buf text) {
    assert(f->n < LS_DATA_FILES);
    f->names[f->n] = name;
    f->texts[f->n++] = text;
}

/* record: NULL: there is none. */
static ls_status read_tokenizer(const char *run, const ls_corpus_record *record, ls_buf *text,
                                ls_error *e) {
    char *path = ls_format("%s/" LS_TOKENIZER_FILE, run);
    ls_status s = ls_file_read(path, LS_TOKENIZER_NBYTES, text, e);
    if (s == LS_OK && record &&
        !ls_hash_same(ls_hash_bytes(text->data, text->len), record->tokenizer))
        s = ls_fail(e, LS_EINVAL, "%s: is not the one that this run was trained with", path);
    free(path);
    return s;
}

/* Adds a file that not each run has. */
static ls_status add_file(ls_data_files *f, const char *run, const char *name, size_t most,
                          ls_error *e) {
    char *path = ls_format("%s/%s", run, name);
    ls_buf text = {0};
    bool there = ls_file_exists(path);
    ls_status s = there ? ls_file_read(path, most, &text, e) : LS_OK;
    if (there && s == LS_OK)
        ls_data_files_add(f, name, text);
    else
        ls_buf_free(&text);
    free(path);
    return s;
}

static ls_status read_text_files(const char *run, ls_data_files *f_p, ls_error *e) {
    ls_data_files f = {0};
    ls_corpus_record record;
    ls_buf tokenizer = {0}, text = {0};
    bool there = false;
    LS_TRY(ls_corpus_record_read(run, &record, &there, e));
    ls_status s = read_tokenizer(run, there ? &record : NULL, &tokenizer, e);
    if (s != LS_OK) {
        ls_buf_free(&tokenizer);
        return s;
    }
    ls_data_files_add(&f, LS_TOKENIZER_FILE, tokenizer);
    if (there) ls_corpus_record_write(&record, &text);
    if (there) ls_data_files_add(&f, LS_CORPUS_RECORD, text);
    *f_p = f;
    s = add_file(f_p, run, LS_REFERENCE_FILE, LS_REFERENCE_NBYTES, e); /* of pairs */
    if (s != LS_OK) ls_data_files_free(f_p);
    return s;
}

ls_status ls_data_files_add_published(ls_data_files *f, const char *run, ls_error *e) {
    return add_file(f, run, LS_PUBLISHED_RECORD, LS_TOKENIZER_NBYTES, e);
}

static ls_status read_data_files(const char *run, ls_data_files *f_p, ls_error *e) {
    ls_data_record record;
    ls_buf text = {0};
    bool there = false;
    LS_TRY(ls_data_record_read(run, &record, &there, e));
    if (!there) return read_text_files(run, f_p, e);
    char *path = ls_format("%s/" LS_DATA_RECORD, run);
    ls_status s = ls_file_read(path, LS_DATA_RECORD_NBYTES, &text, e);
    free(path);
    *f_p = (ls_data_files){0};
    if (s != LS_OK) {
        ls_buf_free(&text);
        return s;
    }
    ls_data_files_add(f_p, LS_DATA_RECORD, text);
    s = add_file(f_p, run, LS_IDS_FILE, LS_IDS_NBYTES, e);
    if (s != LS_OK) ls_data_files_free(f_p);
    return s;
}

ls_status ls_data_files_read(const char *run, ls_data_files *f_p, ls_error *e) {
    LS_TRY(read_data_files(run, f_p, e));
    ls_status s = ls_data_files_add_published(f_p, run, e);
    if (s != LS_OK) ls_data_files_free(f_p);
    return s;
}

void ls_data_files_free(ls_data_files *f) {
    for (int i = 0; i < f->n; i++) ls_buf_free(&f->texts[i]);
    *f = (ls_data_files){0};
}

ls_status ls_data_file_copy(const char *run, const char *checkpoint, const char *name, bool *done_p,
                            ls_error *e) {
    char *from = ls_format("%s/%s", checkpoint ? checkpoint : "", name);
    char *to = ls_format("%s/%s", run, name);
    ls_buf text = {0};
    ls_status s = LS_OK;
    *done_p = checkpoint && ls_file_exists(from) && !ls_file_exists(to);
    if (*done_p) s = ls_file_read(from, LONGEST, &text, e);
    if (*done_p && s == LS_OK) s = ls_file_replace(to, text.data, text.len, e);
    if (*done_p && s == LS_OK) ls_log("%s: was missing; restored from %s", to, checkpoint);
    ls_buf_free(&text);
    free(from);
    free(to);
    return s;
}

ls_status ls_data_file_write(const char *run, const char *name, const ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", run, name);
    bool there = ls_file_exists(path);
    bool same = there && ls_file_is(path, text->data, text->len);
    if (there && !same) ls_log("%s: differs from the run's; writing it again", path);
    ls_status s = same ? LS_OK : ls_file_replace(path, text->data, text->len, e);
    free(path);
    return s;
}
