/* data_record.c - see data_record.h. */
#include "dataset/data_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/record_advice.h"
#include "source/formats/open.h"

static const char FORMAT[] = "lockstep data";

ls_data_part ls_data_part_of(const ls_source *s) {
    if (!s) return (ls_data_part){0};
    return (ls_data_part){.samples = s->count,
                          .hash = s->hash,
                          .in_records = ls_source_in_records(s->format),
                          .is_whole = strcmp(s->format, LS_DATA_OWN_LOOP) == 0};
}

ls_hash ls_data_record_identity(const ls_data_record *r) {
    const ls_data_part *parts[] = {&r->training, &r->validation};
    uint64_t words[6];
    for (int i = 0; i < 2; i++) {
        words[3 * i] = parts[i]->samples;
        words[3 * i + 1] = parts[i]->hash.hi;
        words[3 * i + 2] = parts[i]->hash.lo;
    }
    return ls_hash_bytes(words, sizeof words);
}

/* ---- writing ---- */

static ls_json *list_of(const char *lines) {
    ls_json *list = ls_json_new_array();
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        char *one = ls_format("%.*s", (int)n, lines);
        if (n) ls_json_push(list, ls_json_new_path(one));
        free(one);
        lines += n + (lines[n] != 0);
    }
    return list;
}

static ls_json *part_json(const ls_data_given *g) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "format", g->source->format);
    ls_json_set(o, "paths", list_of(g->paths));
    if (*g->labels) ls_json_set(o, "labels", list_of(g->labels));
    ls_json_set_integer(o, "samples", (int64_t)g->source->count);
    ls_json_set_hash(o, "xxh3_128", g->source->hash);
    return o;
}

static ls_json *mix_json(const ls_mix *m) {
    ls_json *list = ls_json_new_array();
    for (int k = 0; k < m->nparts; k++) {
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "samples", (int64_t)(m->begins[k + 1] - m->begins[k]));
        ls_json_set_number(o, "weight", m->weights[k]);
        ls_json_push(list, o);
    }
    return list;
}

static ls_json *fields_json(const ls_source *s) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < s->nfields; i++) {
        const ls_field *f = &s->fields[i];
        ls_json *o = ls_json_new_object(), *shape = ls_json_new_array();
        for (int d = 0; d < f->ndims; d++) ls_json_push(shape, ls_json_new_integer(f->dims[d]));
        ls_json_set_path(o, "name", f->name);
        ls_json_set_text(o, "dtype", ls_dtype_name(f->type));
        ls_json_set(o, "shape", shape);
        ls_json_push(list, o);
    }
    return list;
}

void ls_data_record_write(const ls_data_given *training, const ls_data_given *validation,
                          ls_buf *out) {
    const ls_source *s = training->source;
    ls_json *o = ls_json_new_object(), *classes = ls_json_new_array();
    ls_json_set_text(o, "format", FORMAT);
    ls_json_set_integer(o, "version", 1);
    if (*training->directory) ls_json_set_path(o, "directory", training->directory);
    ls_json_set(o, "training", part_json(training));
    if (training->mix && training->mix->nparts) ls_json_set(o, "mix", mix_json(training->mix));
    if (validation->source) ls_json_set(o, "validation", part_json(validation));
    ls_json_set(o, "fields", fields_json(s));
    for (int i = 0; i < s->nclasses; i++) ls_json_push(classes, ls_json_new_path(s->classes[i]));
    if (s->nclasses)
        ls_json_set(o, "classes", classes);
    else
        ls_json_free(classes);
    ls_json_set(o, "numbering",
                ls_numbering_json(s->numbering ? s->numbering : &(ls_numbering){0}));
    ls_json_write(o, 2, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(o);
}

/* ---- reading ---- */

static bool read_part(const ls_json *o, ls_data_part *p) {
    const char *hash = ls_json_text(ls_json_get(o, "xxh3_128"));
    const char *format = ls_json_text(ls_json_get(o, "format"));
    int64_t n = 0;
    if (!format || !hash || !ls_hash_parse(hash, &p->hash)) return false;
    if (!ls_json_integer(ls_json_get(o, "samples"), &n) || n < 1 || n > INT64_MAX / 4096)
        return false;
    p->samples = (uint64_t)n;
    p->in_records = ls_source_in_records(format);
    p->is_whole = strcmp(format, LS_DATA_OWN_LOOP) == 0;
    return true;
}

static bool read_mix(const ls_json *list, ls_mix *m) {
    m->nparts = list ? (int)ls_json_count(list) : 0;
    if (m->nparts > LS_MIX_PARTS) return false;
    for (int k = 0; k < m->nparts; k++) {
        const ls_json *o = ls_json_at(list, (size_t)k);
        int64_t n = 0;
        if (!ls_json_integer(ls_json_get(o, "samples"), &n) || n < 1 || n > INT64_MAX / 4096 ||
            !ls_json_number(ls_json_get(o, "weight"), &m->weights[k]) ||
            !(m->weights[k] >= 0.001 && m->weights[k] <= 1000))
            return false;
        m->begins[k + 1] = m->begins[k] + (uint64_t)n;
    }
    return true;
}

static ls_status parse(const char *path, const ls_json *o, ls_data_record *r, ls_error *e) {
    const char *format = ls_json_text(ls_json_get(o, "format"));
    const ls_json *validation = ls_json_get(o, "validation");
    int64_t version = 0;
    if (!format || strcmp(format, FORMAT) != 0 ||
        !ls_json_integer(ls_json_get(o, "version"), &version) || version != 1)
        return ls_fail(e, LS_EINVAL, "%s: is not a record of data, version 1", path);
    if (!read_part(ls_json_get(o, "training"), &r->training) ||
        (validation && !read_part(validation, &r->validation)) ||
        !read_mix(ls_json_get(o, "mix"), &r->mix) ||
        (r->mix.nparts && r->mix.begins[r->mix.nparts] != r->training.samples))
        return ls_fail(e, LS_EINVAL, "%s: a hash or a number of samples is missing or invalid",
                       path);
    r->has_numbering = ls_json_get(o, "numbering") != NULL;
    const char *directory = ls_json_text(ls_json_get(o, "directory"));
    if (directory && strlen(directory) < sizeof r->directory)
        snprintf(r->directory, sizeof r->directory, "%s", directory);
    return LS_OK;
}

ls_status ls_data_record_read(const char *dir, ls_data_record *r_p, bool *there_p, ls_error *e) {
    char *path = ls_format("%s/" LS_DATA_RECORD, dir);
    ls_data_record r = {0};
    ls_json *j = NULL;
    ls_status s = ls_json_read(path, LS_DATA_RECORD_NBYTES, &j, e);
    if (j) s = parse(path, j, &r, e);
    if (s == LS_OK) {
        *r_p = r;
        *there_p = j != NULL;
    }
    ls_json_free(j);
    free(path);
    return ls_record_advise(dir, s, e);
}

ls_status ls_data_record_numbering(const char *dir, ls_numbering *c_p, ls_error *e) {
    char *path = ls_format("%s/" LS_DATA_RECORD, dir);
    ls_json *j = NULL;
    ls_status s = ls_json_read(path, LS_DATA_RECORD_NBYTES, &j, e);
    const ls_json *numbering = j ? ls_json_get(j, "numbering") : NULL;
    if (s == LS_OK && !j)
        s = ls_fail(e, LS_EIO, "%s: is missing; resuming the run (--resume) restores it", path);
    else if (s == LS_OK && !numbering)
        s = ls_fail(e, LS_EINVAL,
                    "%s: does not have the numbers of texts, as records of earlier "
                    "versions",
                    path);
    else if (s == LS_OK && !ls_numbering_read(numbering, c_p))
        s = ls_fail(e, LS_EINVAL, "%s: the numbering of texts is damaged", path);
    ls_json_free(j);
    free(path);
    return s;
}

static void add_names(const ls_json *list, ls_classes *c) {
    for (size_t i = 0; list && i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        c->names = ls_grow(c->names, (size_t)c->n, sizeof *c->names);
        c->names[c->n++] = ls_strdup(name ? name : "");
    }
}

ls_status ls_data_record_classes(const char *dir, const char *field, ls_classes *c_p, ls_error *e) {
    char *path = ls_format("%s/" LS_DATA_RECORD, dir);
    ls_numbering numbering = {0};
    ls_json *j = NULL;
    ls_status s = ls_json_read(path, LS_DATA_RECORD_NBYTES, &j, e);
    *c_p = (ls_classes){0};
    if (j && ls_numbering_read(ls_json_get(j, "numbering"), &numbering))
        for (size_t i = 0; i < numbering.n && c_p->n == 0; i++)
            if (numbering.list[i].text && strcmp(numbering.list[i].field, field) == 0)
                *c_p = ls_classes_copy(&numbering.list[i].in);
    if (j && c_p->n == 0 && strcmp(field, "label") == 0) add_names(ls_json_get(j, "classes"), c_p);
    ls_numbering_free(&numbering);
    ls_json_free(j);
    free(path);
    return s;
}
