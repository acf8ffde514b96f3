/* read_tokens.c - files of token ids, in windows: those of llm.c, for GPT-2 and for Llama 3, and
 * nanoGPT's.
 *
 * llm.c: a header of 256 int32 (magic, version, number of tokens), then the tokens, u16 for GPT-2
 * (magic 20240520, version 1), u32 for Llama 3 (20240801, 7). nanoGPT: u16 without a header. All
 * are little-endian. Source: llm.c, dev/data/data_common.py; nanoGPT, data/openwebtext/prepare.py.
 *
 * Sample i of a file has the T + 1 tokens from iT on: T inputs, and each one's successor. The last
 * ones, which fill no window, are not used; no window spans two files.
 */
#include <stdlib.h>
#include <string.h>

#include "source/format.h"

enum { HEADER = 1024, GPT2_MAGIC = 20240520, LLAMA3_MAGIC = 20240801, WINDOW = 1024 };

typedef struct tokens {
    ls_source source;
    ls_plain *files;  /* [n] */
    size_t *at;       /* [n] of the first token in each file */
    uint64_t *begins; /* [n + 1] of each file's samples */
    size_t n;
    uint64_t window; /* T */
    size_t size;     /* bytes of a token */
} tokens;

static void close_tokens(ls_source *s) {
    tokens *t = (tokens *)s;
    ls_plain_close_all(t->files, t->n);
    free(t->at);
    free(t->begins);
    free(t);
}

static ls_status read_tokens(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    const tokens *t = (const tokens *)s;
    size_t file = ls_source_part(t->begins, t->n, i);
    uint64_t first = (i - t->begins[file]) * t->window;
    memcpy(sample, t->files[file].data + t->at[file] + first * t->size, s->nbytes);
    return LS_OK;
}

static uint32_t word_at(const uint8_t *p, size_t i) {
    uint32_t v;
    memcpy(&v, p + 4 * i, sizeof v);
    return v;
}

static bool has_header(const uint8_t *p, size_t nbytes) {
    if (nbytes < 8) return false;
    return (word_at(p, 0) == GPT2_MAGIC && word_at(p, 1) == 1) ||
           (word_at(p, 0) == LLAMA3_MAGIC && word_at(p, 1) == 7);
}

/* Finds the tokens in a file. */
static ls_status read_header(const ls_plain *f, size_t *at_p, size_t *size_p, uint64_t *n_p,
                             ls_error *e) {
    bool with_header = has_header(f->data, f->nbytes);
    size_t at = with_header ? HEADER : 0;
    if (f->nbytes < at)
        return ls_fail(e, LS_EINVAL, "%s: is truncated: it ends at offset %zu, in its header",
                       f->path, f->nbytes);
    size_t size = with_header && word_at(f->data, 0) == LLAMA3_MAGIC ? 4 : 2;
    uint64_t room = f->nbytes - at, n = with_header ? word_at(f->data, 2) : room / size;
    if (n * size > room || (!with_header && room % size))
        return ls_fail(
            e, LS_EINVAL,
            "%s: is truncated: it ends at offset %zu, in token %llu; copy or download it "
            "again",
            f->path, f->nbytes, (unsigned long long)(room / size));
    if (n * size < room)
        return ls_fail(e, LS_EINVAL,
                       "%s: %llu bytes follow the %llu tokens that its header announces, from "
                       "offset %llu; the header or the file is wrong",
                       f->path, (unsigned long long)(room - n * size), (unsigned long long)n,
                       (unsigned long long)(at + n * size));
    *at_p = at;
    *size_p = size;
    *n_p = n;
    return LS_OK;
}

static ls_status index_files(tokens *t, ls_error *e) {
    uint64_t all = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t size = 0;
        uint64_t n = 0;
        LS_TRY(read_header(&t->files[i], &t->at[i], &size, &n, e));
        if (i && size != t->size)
            return ls_fail(e, LS_EINVAL, "%s: its tokens have %zu bytes, those of %s have %zu",
                           t->files[i].path, size, t->files[0].path, t->size);
        t->size = size;
        all += n;
        t->begins[i + 1] = t->begins[i] + (n ? (n - 1) / t->window : 0);
    }
    t->source.count = t->begins[t->n];
    if (t->source.count == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %llu tokens, fewer than a window of %llu and one more; choose a "
                       "shorter window",
                       t->files[0].path, (unsigned long long)all, (unsigned long long)t->window);
    ls_field f = {.name = "tokens",
                  .type = t->size == 2 ? LS_U16 : LS_U32,
                  .ndims = 1,
                  .dims = {(int64_t)t->window + 1}};
    return ls_source_add_field(&t->source, t->files[0].path, &f, e);
}

static ls_status open_tokens(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                             ls_error *e) {
    ls_plain *list = NULL;
    if (o->window < 0 || o->window >= (int64_t)(LS_SAMPLE_NBYTES / 4))
        return ls_fail(e, LS_EINVAL, "a window of %lld tokens is not possible; 1 to %zu are",
                       (long long)o->window, LS_SAMPLE_NBYTES / 4 - 1);
    LS_TRY(ls_plain_open_all(files, o, LS_HOLES_ALLOWED, &list, e));
    tokens *t = LS_NEW(tokens);
    t->source.read = read_tokens;
    t->source.close = close_tokens;
    t->files = list;
    t->n = files->n;
    t->at = LS_NEW_ARRAY(size_t, t->n);
    t->begins = LS_NEW_ARRAY(uint64_t, t->n + 1);
    t->window = o->window ? (uint64_t)o->window : WINDOW;
    ls_plain_describe(list, t->n, &t->source);
    ls_status s = index_files(t, e);
    if (s == LS_OK)
        *s_p = &t->source;
    else
        close_tokens(&t->source);
    return s;
}

/* Without a header, only nanoGPT's own names are taken for tokens. */
static bool recognizes(const ls_first_file *f) {
    if (f->is_dir) return false;
    return has_header(f->bytes, f->nbytes) || strcmp(f->name, "train.bin") == 0 ||
           strcmp(f->name, "val.bin") == 0;
}

const ls_data_format ls_format_tokens = {
    .name = "tokens",
    .suffixes = {".bin"},
    .recognizes = recognizes,
    .open = open_tokens,
};
