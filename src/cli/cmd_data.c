/* cmd_data.c - lockstep data FILE...: what is in files of data, and whether they are whole. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "config/config.h"
#include "dataset/samples.h"
#include "report/run_status.h"
#include "report/sheet.h"
#include "source/adapt.h"
#include "source/images/image.h"
#include "source/images/image_tree.h"
#include "source/note.h"
#include "source/real.h"
#include "source/source.h"
#include "source/survey.h"
#include "source/tally.h"

enum {
    FORMAT,
    LABELS,
    WINDOW,
    CHECK,
    SKIP,
    MISSING,
    RESIZE,
    CROP,
    SET,
    SHEET,
    IMAGES,
    SAMPLES,
    JSON
};
enum { LINES = 20, VALUES = 8, DEFAULT_SAMPLES = 3, DEFAULT_IMAGES = 64 };

/* ---- for people ---- */

/* The different texts of a field whose values stand for texts; 0: it has none. */
static int texts_of(const ls_source *s, const char *field) {
    for (size_t i = 0; s->numbering && i < s->numbering->n; i++) {
        const ls_numbered *c = &s->numbering->list[i];
        if (c->text && strcmp(c->field, field) == 0) return c->in.n;
    }
    return 0;
}

static void put_fields(const ls_source *s, ls_buf *b) {
    for (int i = 0; i < s->nfields; i++) {
        ls_buf_printf(b, "field      ");
        ls_buf_escape(b, LS_ESCAPE_LINE, s->fields[i].name, strlen(s->fields[i].name));
        ls_buf_printf(b, ": ");
        ls_field_put_shape(&s->fields[i], b);
        ls_buf_printf(b, ", %zu bytes", s->fields[i].nbytes);
        int n = texts_of(s, s->fields[i].name);
        if (n) ls_buf_printf(b, ", codes of %d text%s", n, ls_plural(n));
        ls_buf_printf(b, "\n");
    }
}

static void put_class(const ls_source *s, int32_t v, ls_buf *b) {
    ls_buf_printf(b, "%d", v);
    if (v < 0 || v >= s->nclasses) return;
    ls_buf_printf(b, " (");
    ls_buf_escape(b, LS_ESCAPE_LINE, s->classes[v], strlen(s->classes[v]));
    ls_buf_printf(b, ")");
}

static void put_numbers(const ls_survey *c, const ls_survey_group *g, ls_buf *b,
                        double (*of)(const ls_survey *, const ls_survey_group *, int)) {
    for (int k = 0; k < (int)c->image->dims[2]; k++) ls_buf_printf(b, " %.3f", of(c, g, k));
}

static void put_pixels(const ls_survey *c, ls_buf *b) {
    if (!c->image || !c->all.n) return;
    ls_buf_printf(b, "pixels     mean");
    put_numbers(c, &c->all, b, ls_survey_mean);
    ls_buf_printf(b, ", deviation");
    put_numbers(c, &c->all, b, ls_survey_deviation);
    ls_buf_printf(b, "%s\n",
                  c->image->dims[2] > 1 ? ", of red, green and blue from 0 to 1"
                                        : ", of values from 0 to 1");
}

static void put_counts(const ls_source *s, const ls_survey *c, ls_buf *b) {
    if (!c->label || c->nlabels == 0) return;
    ls_buf_printf(b, "labels     %d", c->nlabels);
    if (c->nread < s->count)
        ls_buf_printf(b, ", of %llu samples that are spread over all",
                      (unsigned long long)c->nread);
    ls_buf_printf(b, "\n");
    for (int32_t v = 0; v < c->nlabels && v < LINES; v++) {
        const ls_survey_group *g = &c->labels[v];
        ls_buf_printf(b, "  %8llu of ", (unsigned long long)g->n);
        put_class(s, v, b);
        if (c->image && g->n) {
            ls_buf_printf(b, ", mean");
            put_numbers(c, g, b, ls_survey_mean);
        }
        ls_buf_printf(b, "\n");
    }
    if (c->nlabels > LINES) ls_buf_printf(b, "  and %d more labels\n", c->nlabels - LINES);
}

/* An integer, or a real number. */
static void put_value(ls_dtype t, const uint8_t *p, ls_buf *b) {
    uint64_t u64 = 0;
    if (t == LS_U64) memcpy(&u64, p, sizeof u64);
    if (ls_is_real(t))
        ls_buf_printf(b, "%.6g", ls_real_at(t, p));
    else if (t == LS_U64)
        ls_buf_printf(b, "%llu", (unsigned long long)u64);
    else
        ls_buf_printf(b, "%lld", (long long)ls_whole_at(t, p));
}

static void put_field_values(const ls_source *s, const ls_field *f, const uint8_t *sample,
                             ls_buf *b) {
    size_t size = ls_dtype_size(f->type), n = ls_field_count(f, sample);
    int32_t label;
    ls_buf_printf(b, "  ");
    ls_buf_escape(b, LS_ESCAPE_LINE, f->name, strlen(f->name));
    if (f == ls_survey_label(s)) {
        memcpy(&label, sample + f->offset, sizeof label);
        ls_buf_printf(b, " ");
        put_class(s, label, b);
        return;
    }
    for (size_t i = 0; i < n && i < VALUES; i++) {
        ls_buf_printf(b, " ");
        put_value(f->type, sample + f->offset + i * size, b);
    }
    if (n > VALUES) ls_buf_printf(b, " ...");
    if (f->is_list && n == 0) ls_buf_printf(b, " (empty)");
}

/* Some of each label. */
static void put_samples(const ls_survey *c, int64_t n, ls_buf *b) {
    const ls_source *s = c->source;
    size_t npicked = 0;
    uint64_t *picked = ls_survey_pick(c, (size_t)n, &npicked);
    uint8_t *sample = ls_alloc(s->nbytes);
    for (size_t i = 0; i < npicked; i++) {
        ls_buf name = {0};
        ls_buf_printf(b, "sample %llu ", (unsigned long long)picked[i]);
        ls_source_put_name(s, picked[i], &name);
        if (name.len) ls_buf_escape(b, LS_ESCAPE_LINE, name.data, name.len);
        ls_buf_free(&name);
        if (s->read(s, picked[i], sample, NULL) != LS_OK) {
            ls_buf_printf(b, "  is damaged\n");
            continue;
        }
        for (int k = 0; k < s->nfields; k++) put_field_values(s, &s->fields[k], sample, b);
        ls_buf_printf(b, "\n");
    }
    free(picked);
    free(sample);
}

static void print_source(const ls_source *s, const ls_survey *c, int64_t nsamples) {
    char hash[LS_HASH_TEXT];
    ls_buf b = {0};
    ls_hash_text(s->hash, hash);
    ls_buf_printf(&b, "format     %s%s%s\nsamples    %llu of %zu bytes\n", s->format,
                  *s->form ? ": " : "", s->form, (unsigned long long)s->count, s->nbytes);
    ls_buf_printf(&b, "files      %llu, %.3f MB\n", (unsigned long long)s->nfiles,
                  (double)s->file_nbytes / 1e6);
    put_fields(s, &b);
    ls_buf_printf(&b, "hash       %s\n", hash);
    if (s->decodes) ls_buf_printf(&b, "decoders   %s\n", ls_image_decoders());
    if (s->damage.n)
        ls_buf_printf(&b, "damaged    %llu record%s, left out\n", (unsigned long long)s->damage.n,
                      ls_plural((int64_t)s->damage.n));
    if (s->nmissing)
        ls_buf_printf(&b, "missing    %llu row%s without a value, left out\n",
                      (unsigned long long)s->nmissing, ls_plural((int64_t)s->nmissing));
    put_pixels(c, &b);
    put_counts(s, c, &b);
    put_samples(c, nsamples, &b);
    if (c->nread == s->count && c->ndamaged == 0)
        ls_buf_printf(&b, "good       every sample was read\n");
    ls_print_text(b.data, b.len);
    ls_buf_free(&b);
}

/* ---- for programs ---- */

static ls_json *field_json(const ls_field *f) {
    ls_json *o = ls_json_new_object(), *shape = ls_json_new_array();
    for (int i = 0; i < f->ndims; i++) ls_json_push(shape, ls_json_new_integer(f->dims[i]));
    ls_json_set_path(o, "name", f->name);
    ls_json_set_text(o, "dtype", ls_dtype_name(f->type));
    ls_json_set(o, "shape", shape);
    if (f->is_list) ls_json_set_bool(o, "list", true);
    ls_json_set_integer(o, "bytes", (int64_t)f->nbytes);
    return o;
}

static ls_json *numbers_json(const ls_survey *c, const ls_survey_group *g,
                             double (*of)(const ls_survey *, const ls_survey_group *, int)) {
    ls_json *list = ls_json_new_array();
    for (int k = 0; k < (int)c->image->dims[2]; k++)
        ls_json_push(list, ls_json_new_number(of(c, g, k)));
    return list;
}

static ls_json *pixels_json(const ls_survey *c) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "mean", numbers_json(c, &c->all, ls_survey_mean));
    ls_json_set(o, "deviation", numbers_json(c, &c->all, ls_survey_deviation));
    return o;
}

static ls_json *counts_json(const ls_source *s, const ls_survey *c) {
    ls_json *list = ls_json_new_array();
    for (int32_t v = 0; c->label && v < c->nlabels; v++) {
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "label", v);
        ls_json_set(o, "name",
                    v < s->nclasses ? ls_json_new_path(s->classes[v]) : ls_json_new_null());
        ls_json_set_integer(o, "count", (int64_t)c->labels[v].n);
        if (c->image && c->labels[v].n)
            ls_json_set(o, "mean", numbers_json(c, &c->labels[v], ls_survey_mean));
        ls_json_push(list, o);
    }
    return list;
}

static void print_json(const ls_source *s, const ls_survey *c) {
    static const char *const index_uses[] = {"none", "used", "made"};
    ls_json *o = ls_json_new_object(), *fields = ls_json_new_array();
    for (int i = 0; i < s->nfields; i++) ls_json_push(fields, field_json(&s->fields[i]));
    ls_json_set_text(o, "format", s->format);
    if (*s->form) ls_json_set_text(o, "form", s->form);
    ls_json_set_integer(o, "samples", (int64_t)s->count);
    ls_json_set_integer(o, "sample_bytes", (int64_t)s->nbytes);
    ls_json_set_integer(o, "files", (int64_t)s->nfiles);
    ls_json_set_integer(o, "file_bytes", (int64_t)s->file_nbytes);
    ls_json_set_hash(o, "hash", s->hash);
    if (s->decodes) ls_json_set_text(o, "decoders", ls_image_decoders());
    ls_json_set_text(o, "index", index_uses[s->index_use]);
    ls_json_set(o, "fields", fields);
    if (c->image && c->all.n) ls_json_set(o, "pixels", pixels_json(c));
    ls_json_set(o, "labels", counts_json(s, c));
    ls_json_set_integer(o, "read", (int64_t)c->nread);
    ls_json_set_integer(o, "damaged", (int64_t)c->ndamaged);
    ls_json_set_integer(o, "left_out", (int64_t)s->damage.n);
    ls_json_set_integer(o, "missing", (int64_t)s->nmissing);
    ls_print_json(o);
}

/* ---- texts and conversations ---- */

/* The value of data.path: a text, or a list of them. */
static void put_paths(const char *paths, ls_buf *b) {
    bool several = strchr(paths, '\n') != NULL;
    ls_buf_printf(b, several ? "[" : "");
    for (size_t n; *paths; paths += n + (paths[n] != 0)) {
        n = strcspn(paths, "\n");
        ls_buf_printf(b, "\"");
        ls_buf_escape(b, LS_ESCAPE_LINE, paths, n);
        ls_buf_printf(b, paths[n] ? "\", " : "\"");
    }
    ls_buf_printf(b, several ? "]" : "");
}

static void print_chats(const ls_tally *c, const char *paths, ls_buf *b) {
    ls_buf_printf(b, "format     chat: %s in",
                  c->npairs && c->nchats ? "a conversation, or two answers, one preferred,"
                  : c->npairs            ? "two answers, one preferred,"
                                         : "a conversation");
    for (int i = 0; i < c->nkeys; i++)
        ls_buf_printf(b, "%s \"%s\"", !i ? "" : i + 1 < c->nkeys ? "," : " or", c->keys[i]);
    ls_buf_printf(b, " of each object\n");
    if (c->nchats)
        ls_buf_printf(b,
                      "samples    %llu conversation%s of %llu message%s, %llu by the assistant\n",
                      (unsigned long long)c->nchats, ls_plural((int64_t)c->nchats),
                      (unsigned long long)c->nmessages, ls_plural((int64_t)c->nmessages),
                      (unsigned long long)c->nanswers);
    if (c->npairs)
        ls_buf_printf(b, "samples    %llu pair%s of answers\n", (unsigned long long)c->npairs,
                      ls_plural((int64_t)c->npairs));
    if (c->ndamaged) ls_buf_printf(b, "damaged    %llu\n", (unsigned long long)c->ndamaged);
    ls_buf_printf(b, "train on   data: {format: chat, path: ");
    put_paths(paths, b);
    ls_buf_printf(b,
                  "}%s\n           with model.from: MODEL, a published model whose chat template "
                  "writes them (docs/guide/finetune.md)\n",
                  c->npairs ? ", train: {loss: dpo}" : "");
}

static void print_texts(const ls_tally *c, const ls_tally_request *t, ls_buf *b) {
    ls_buf_printf(b, "format     text\nsamples    %llu document%s of %llu bytes in all\n",
                  (unsigned long long)c->ndocuments, ls_plural((int64_t)c->ndocuments),
                  (unsigned long long)c->nbytes);
    if (c->ndamaged)
        ls_buf_printf(b, "damaged    %llu, which are left out\n", (unsigned long long)c->ndamaged);
    ls_buf_printf(b, "train on   data: {path: ");
    put_paths(t->paths, b);
    if (t->column) ls_buf_printf(b, ", text: \"%s\"", t->column);
    ls_buf_printf(b, c->ndamaged ? ", damaged: skip" : "");
    ls_buf_printf(b,
                  "}\n           with model.kind: gpt2 or llama, whose tokenizer is trained on it, "
                  "or model.from: MODEL\n");
}

static void print_tally_json(const ls_tally *c, ls_tally_kind kind) {
    ls_json *o = ls_json_new_object();
    bool chats = kind == LS_TALLY_CHATS;
    ls_json_set_text(o, "format", chats ? "chat" : "text");
    if (chats) ls_json_set(o, "key", c->nkeys ? ls_json_new_text(c->keys[0]) : ls_json_new_null());
    ls_json_set_integer(o, "samples", (int64_t)(chats ? c->nchats + c->npairs : c->ndocuments));
    ls_json_set_integer(o, "files", (int64_t)c->nfiles);
    ls_json_set_integer(o, "file_bytes", (int64_t)c->file_nbytes);
    if (chats) ls_json_set_integer(o, "pairs", (int64_t)c->npairs);
    if (chats) ls_json_set_integer(o, "messages", (int64_t)c->nmessages);
    ls_json_set_integer(o, "damaged", (int64_t)c->ndamaged);
    ls_print_json(o);
}

/* *ndamaged_p: objects that are no conversations; texts are left out as was asked. */
static ls_status print_tally(const ls_tally_request *t, ls_tally_kind kind, bool json,
                             uint64_t *ndamaged_p, ls_error *e) {
    ls_tally c;
    ls_buf b = {0};
    LS_TRY(ls_tally_read(t, kind, &c, e));
    *ndamaged_p = kind == LS_TALLY_CHATS ? c.ndamaged : 0;
    if (json) {
        print_tally_json(&c, kind);
        return LS_OK;
    }
    if (kind == LS_TALLY_CHATS)
        print_chats(&c, t->paths, &b);
    else
        print_texts(&c, t, &b);
    ls_buf_printf(&b, "files      %llu, %.3f MB\n", (unsigned long long)c.nfiles,
                  (double)c.file_nbytes / 1e6);
    ls_print_text(b.data, b.len);
    ls_buf_free(&b);
    return LS_OK;
}

/* ---- the command ---- */

typedef struct wish {
    int64_t window, images, samples;
} wish;

static bool read_numbers(const ls_args *a, wish *w) {
    const ls_command *c = &cmd_data;
    const char *sheet = cli_value(a, SHEET);
    if (sheet && fnmatch("*.png", sheet, 0) == 0) {
        ls_log("data: --sheet writes SVG, and %s is the name of a PNG file", sheet);
        return false;
    }
    return cli_integer(c, a, WINDOW, 1, 1 << 28, &w->window) &&
           cli_integer(c, a, IMAGES, 1, 1000000, &w->images) &&
           cli_integer(c, a, SAMPLES, 0, 1000, &w->samples);
}

/* Options in place of keys. */
static ls_status set_options(const ls_args *a, ls_config *c, ls_error *e) {
    static const struct {
        int option;
        const char *key;
    } keys[] = {{FORMAT, "data.format"},
                {MISSING, "data.missing"},
                {RESIZE, "data.resize"},
                {CROP, "data.crop"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!cli_given(a, keys[i].option)) continue;
        char *set = ls_format("%s=%s", keys[i].key, cli_value(a, keys[i].option));
        ls_status s = ls_config_set(c, set, e);
        free(set);
        LS_TRY(s);
    }
    if (cli_given(a, SKIP)) return ls_config_set(c, "data.damaged=skip", e);
    return LS_OK;
}

/* Keys that say how files are read, whatever the model; the first ones are for CSV alone. */
static const char *const file_keys[] = {
    "data.csv",    "data.columns",  "data.na",     "data.missing", "data.ratings",
    "data.clicks", "data.format",   "data.labels", "data.damaged", "data.resize",
    "data.crop",   "data.channels", "data.exif",   "data.cache",   "data.cache_gb"};
enum { CSV_KEYS = 6, FILE_KEYS = sizeof file_keys / sizeof *file_keys };

/* Is the assignment one of the first n keys? */
static bool is_among(const char *set, int n) {
    bool is = false;
    for (int i = 0; i < n; i++) {
        size_t length = strlen(file_keys[i]);
        is = is || (strncmp(set, file_keys[i], length) == 0 && set[length] == '=');
    }
    return is;
}

static ls_status fail_set(const char *set, ls_error *e) {
    ls_buf b = {0};
    for (int i = 0; i < FILE_KEYS; i++)
        ls_buf_printf(&b, "%s%s", i == 0 ? "" : i + 1 < FILE_KEYS ? ", " : " and ", file_keys[i]);
    ls_status s =
        ls_fail(e, LS_EINVAL, "--set %.60s: lockstep data reads the keys %s", set, b.data);
    ls_buf_free(&b);
    return s;
}

static ls_status make_config(const ls_args *a, const wish *w, ls_config *c, ls_error *e) {
    char *paths = cli_join(a->words, a->nwords);
    char *labels = cli_join(a->options[LABELS].values, a->options[LABELS].n);
    ls_config_defaults(c);
    c->data.path = ls_intern(paths);
    if (labels) c->data.labels = ls_intern(labels);
    c->model.context = w->window ? w->window : 1024;
    free(paths);
    free(labels);
    LS_TRY(set_options(a, c, e));
    for (int i = 0; i < a->options[SET].n; i++) {
        const char *set = a->options[SET].values[i];
        if (!is_among(set, FILE_KEYS)) return fail_set(set, e);
        LS_TRY(ls_config_set(c, set, e));
    }
    if (!ls_config_has_ratings(c) || !ls_config_has_clicks(c)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "data.ratings and data.clicks: choose one of them");
}

static ls_status open_source(const ls_args *a, const wish *w, ls_source **s_p, ls_error *e) {
    ls_config *c = LS_NEW(ls_config);
    ls_status status = make_config(a, w, c, e);
    if (status == LS_OK) status = ls_samples_open_files(c, cli_given(a, CHECK), s_p, e);
    free(c);
    return status;
}

/* Opens a table that a run refuses, since values are missing and data.missing does not say what
 * becomes of them, without the rows that lack one. */
static ls_status open_whole_rows(const ls_args *a, const wish *w, ls_source **s_p) {
    ls_config *c = LS_NEW(ls_config);
    ls_status status = make_config(a, w, c, NULL);
    if (status == LS_OK) status = ls_config_set(c, "data.missing=drop", NULL);
    if (status == LS_OK) status = ls_samples_open_files(c, cli_given(a, CHECK), s_p, NULL);
    free(c);
    return status;
}

/* The member that has the text of JSON objects, as --set data.text says; NULL: it does not. */
static const char *text_column(const ls_args *a) {
    static const char key[] = "data.text=";
    const char *column = NULL;
    for (int i = 0; i < a->options[SET].n; i++)
        if (strncmp(a->options[SET].values[i], key, strlen(key)) == 0)
            column = a->options[SET].values[i] + strlen(key);
    return column;
}

/* Prints how many texts or conversations there are. */
static int run_texts(const ls_args *a, const char *paths, ls_tally_kind kind) {
    ls_error e = {0};
    uint64_t ndamaged = 0;
    const ls_tally_request t = {
        .paths = paths, .column = text_column(a), .skips_damaged = cli_given(a, SKIP)};
    static const int others[] = {LABELS, WINDOW, MISSING, RESIZE, CROP, SHEET, IMAGES, SAMPLES};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (cli_given(a, others[i])) {
            ls_log("data: --%s is for files of samples, and %s is %s",
                   cmd_data.options[others[i]].name, a->words[0],
                   kind == LS_TALLY_CHATS ? "a file of conversations" : "a text");
            return CLI_USAGE;
        }
    if (a->options[SET].n > (t.column != NULL)) {
        ls_log(
            "data: of --set, texts and conversations have data.text alone, and %s is one of them",
            a->words[0]);
        return CLI_USAGE;
    }
    if (print_tally(&t, kind, cli_given(a, JSON), &ndamaged, &e) != LS_OK) return cli_fail(&e);
    return ndamaged ? CLI_FAILED : 0;
}

/* What the words are: as --format says, or by themselves. */
static ls_tally_kind kind_of(const ls_args *a, const char *paths) {
    const char *format = cli_value(a, FORMAT);
    if (text_column(a) || (format && strcmp(format, "text") == 0)) return LS_TALLY_TEXTS;
    if (format && strcmp(format, "chat") == 0) return LS_TALLY_CHATS;
    bool csv = false;
    for (int i = 0; i < a->options[SET].n; i++)
        csv = csv || is_among(a->options[SET].values[i], CSV_KEYS);
    return format || csv ? LS_TALLY_SAMPLES : ls_tally_kind_of(paths);
}

static int run_samples(const ls_args *a, const char *paths) {
    wish w = {.images = DEFAULT_IMAGES, .samples = DEFAULT_SAMPLES};
    ls_error e = {0};
    ls_source *s = NULL;
    int code = 0;
    if (!read_numbers(a, &w)) return CLI_USAGE;
    ls_note_once(); /* where the files are opened twice */
    if (open_source(a, &w, &s, &e) != LS_OK) {
        bool texts = e.code == LS_EINVAL && !cli_given(a, FORMAT) &&
                     !(ls_file_is_dir(paths) && ls_image_tree_is(paths));
        ls_tally_kind kind = texts ? ls_tally_kind_besides(paths) : LS_TALLY_SAMPLES;
        if (kind != LS_TALLY_SAMPLES) return run_texts(a, paths, kind);
        code = cli_fail(&e);
        if (e.code != LS_EINVAL || open_whole_rows(a, &w, &s) != LS_OK) return code;
    }
    for (int i = 0; i < s->nfields; i++)
        if (s->fields[i].trouble) ls_log("%s", s->fields[i].trouble);
    if (!ls_file_is_dir(paths) && ls_tally_kind_besides(paths) == LS_TALLY_TEXTS)
        ls_note(
            "%s: its objects have texts, too: a model of kind gpt2 or llama is trained on these "
            "(--format text)",
            a->words[0]);
    int64_t most = w.images > w.samples ? w.images : w.samples;
    ls_survey c = ls_survey_read(s, cli_given(a, CHECK), (size_t)most);
    /* The picture comes first: whoever reads the text may close it early. */
    if (c.ndamaged) code = CLI_FAILED;
    ls_status drawn = LS_OK;
    if (cli_given(a, SHEET))
        drawn = ls_sheet_of(&c, w.images, cli_value(a, SHEET), ls_output_write, &e);
    if (cli_given(a, JSON))
        print_json(s, &c);
    else
        print_source(s, &c, w.samples);
    if (drawn != LS_OK) code = cli_fail(&e);
    ls_survey_free(&c);
    ls_source_close(s);
    return code;
}

static int run(const ls_args *a) {
    if (a->nwords == 1 && !cli_given(a, FORMAT) && ls_run_status_is_run(a->words[0])) {
        ls_log("data: %s is a run directory; data.* of %s/config.yaml name what it was trained on",
               a->words[0], a->words[0]);
        return CLI_USAGE;
    }
    char *paths = cli_join(a->words, a->nwords);
    ls_tally_kind kind = kind_of(a, paths);
    int code = kind == LS_TALLY_SAMPLES ? run_samples(a, paths) : run_texts(a, paths, kind);
    free(paths);
    return code;
}

const ls_command cmd_data = {
    .name = "data",
    .words = "FILE...",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .summary = "inspect files of data",
    .about =
        "Prints the format of data files, the number of samples, their fields with types and\n"
        "shapes, a hash of the contents, how often each label occurs, mean and deviation of\n"
        "pixels, and some samples of each label, all of 100,000 samples that are spread over the\n"
        "data, or with --check of all. For texts and conversations it prints their number,\n"
        "and which keys of a config train on them.\n"
        "\n"
        "FILE may be a quoted pattern, and packed by gzip or zstd. Images and labels that are in\n"
        "separate files are given together, or the labels by --labels. docs/reference/data.md\n"
        "describes the formats.\n"
        "\n"
        "Each damaged sample is logged with its file and offset; exit code 1 if there are any.",
    .options =
        {[FORMAT] = {"format", 0, "NAME",
                     "the format; otherwise found by the file's name or first bytes"},
         [LABELS] = {"labels", 0, "FILE", "labels of the samples (idx, npy); repeatable"},
         [WINDOW] = {"window", 0, "N", "tokens: inputs in a sample; default 1024"},
         [CHECK] = {"check", 0, NULL, "read all files and all samples"},
         [SKIP] = {"skip-damaged", 0, NULL, "leave damaged records out and count them"},
         [MISSING] = {"missing", 0, "WORD",
                      "missing values (csv, jsonl, npy, idx): drop these rows, or mean "
                      "of the column"},
         [RESIZE] = {"resize", 0, "N", "images are scaled, as data.resize says: 64, or 64x48"},
         [CROP] = {"crop", 0, "N", "the centre of images that stays, as data.crop says"},
         [SET] = {"set", 0, "KEY=VALUE",
                  "how files are read, as a key of a config says, e.g. "
                  "data.csv='{separator: \";\"}'; repeatable"},
         [SHEET] = {"sheet", 0, "FILE", "write some images of each label as one SVG picture"},
         [IMAGES] = {"images", 0, "N", "images on the sheet; default 64"},
         [SAMPLES] = {"samples", 0, "N", "samples to print; default 3"},
         [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/reference/json.md)"}},
    .run = run,
};
