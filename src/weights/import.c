/* import.c - see import.h. */
#include "weights/import.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/fresh.h"
#include "base/guard.h"
#include "weights/blocks.h"
#include "weights/model_text.h"
#include "weights/write_model.h"

/* ---- the files ---- */

static ls_status put_file(const char *folder, const char *name, const void *data, size_t nbytes,
                          ls_error *e) {
    char *path = ls_format("%s/%s", folder, name);
    ls_status s = ls_file_write(path, data, nbytes, e);
    free(path);
    return s == LS_OK ? ls_guard_check(e) : s;
}

static ls_status copy_file(const char *from, const char *folder, ls_error *e) {
    ls_mapped m;
    LS_TRY(ls_file_map(from, &m, e));
    ls_status s = put_file(folder, ls_file_name(from), m.data, m.nbytes, e);
    ls_file_unmap(&m);
    return s;
}

/* The weights' files as they are. */
static ls_status copy_weights(const ls_weights *w, const char *folder, ls_error *e) {
    if (w->is_gguf) return put_file(folder, LS_WEIGHTS_GGUF, w->gguf.data, w->gguf.nbytes, e);
    char *index = ls_format("%s/" LS_SHARDS_INDEX, w->path);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < w->shards.nfiles; i++)
        s = copy_file(w->shards.paths[i], folder, e);
    if (s == LS_OK && ls_file_exists(index)) s = copy_file(index, folder, e);
    free(index);
    return s;
}

/* The tokenizer is beside it. */
static ls_status write_blocks(const ls_weights *w, ls_block_type type, const char *folder,
                              ls_error *e) {
    ls_model_source source = ls_source_of_weights(w);
    ls_gguf_writer writer = {0};
    char *path = ls_format("%s/" LS_WEIGHTS_GGUF, folder);
    ls_status s = ls_write_gguf(&source, path, type, &writer, e);
    ls_gguf_writer_free(&writer);
    free(path);
    return s;
}

static ls_status write_weights(const ls_weights *w, ls_block_type type, const char *folder,
                               ls_error *e) {
    if (type == LS_NBLOCK_TYPES) {
        LS_TRY(ls_write_config(&w->arch, folder, w->list[0].type, e));
        return copy_weights(w, folder, e);
    }
    ls_model_source source = ls_source_of_weights(w);
    LS_TRY(ls_write_config(&w->arch, folder, type, e));
    if (ls_block_of(type)->elements > 1) return write_blocks(w, type, folder, e);
    return ls_write_safetensors(&source, folder, type, 0, e);
}

/* ---- the whole ---- */

typedef struct parts {
    ls_weights w;
    ls_hash hash;
    ls_model_text text;
} parts;

static ls_status read_parts(const char *from, parts *p, ls_error *e) {
    LS_TRY(ls_weights_open(from, &p->w, e));
    LS_TRY(ls_model_text_read(&p->w, &p->text, e));
    return ls_weights_hash(&p->w, &p->hash, e);
}

static ls_status write_parts(const parts *p, ls_block_type type, const char *folder, ls_imported *i,
                             ls_error *e) {
    LS_TRY(write_weights(&p->w, type, folder, e));
    LS_TRY(ls_model_text_write(&p->w.arch, &p->text, folder, e));
    LS_TRY(ls_written_read(folder, &i->written, e));
    if (type == LS_NBLOCK_TYPES && !ls_hash_same(i->written.hash, p->hash))
        return ls_fail(e, LS_EIO, "%s: reads with other numbers than were written", folder);
    return LS_OK;
}

static ls_status import(const parts *p, const char *to, ls_block_type type, ls_imported *i,
                        ls_error *e) {
    ls_fresh f = {0};
    LS_TRY(ls_fresh_begin(to, LS_FRESH_DIRECTORY, &f, e));
    ls_status s = write_parts(p, type, f.at, i, e);
    if (s == LS_OK) return ls_fresh_end(&f, e);
    ls_fresh_discard(&f);
    return s;
}

ls_status ls_model_import(const char *from, const char *to, ls_block_type type, ls_imported *i_p,
                          ls_error *e) {
    parts p = {0};
    ls_imported i = {0};
    ls_status s = ls_file_check_new(to, "directory", e);
    if (s == LS_OK) s = read_parts(from, &p, e);
    if (s == LS_OK) s = import(&p, to, type, &i, e);
    if (s == LS_OK) {
        i.kind = ls_tokenizer_kind(p.text.tokenizer);
        i.ntokens = ls_tokenizer_vocab(p.text.tokenizer);
        i.has_template = p.text.templates.main.len > 0;
        *i_p = i;
    } else {
        ls_imported_free(&i);
    }
    ls_weights_close(&p.w);
    ls_model_text_free(&p.text);
    return s;
}

void ls_imported_free(ls_imported *i) { ls_written_free(&i->written); }
