/* ids.c - see ids.h. */
#include "source/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char FORMAT[] = "lockstep ids";

ls_id_column *ls_ids_add_column(ls_ids *s, const char *name) {
    s->columns = ls_grow(s->columns, s->n, sizeof *s->columns);
    s->columns[s->n] = (ls_id_column){.name = ls_strdup(name)};
    return &s->columns[s->n++];
}

void ls_ids_add_number(ls_ids *s, const char *name, double mean, double times) {
    s->numbers = ls_grow(s->numbers, s->nnumbers, sizeof *s->numbers);
    s->numbers[s->nnumbers++] = (ls_id_scale){ls_strdup(name), mean, times};
}

void ls_ids_free(ls_ids *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->columns[i].name);
        ls_id_names_free(&s->columns[i].ids);
    }
    for (size_t i = 0; i < s->nnumbers; i++) free(s->numbers[i].name);
    free(s->columns);
    free(s->numbers);
    *s = (ls_ids){0};
}

/* ---- writing ---- */

static ls_json *column_json(const ls_id_column *c) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    ls_json_set_path(o, "name", c->name);
    for (int32_t i = 0; i < c->ids.n; i++)
        ls_json_push(list, ls_json_new_path(ls_id_name(&c->ids, i)));
    ls_json_set(o, "ids", list);
    return o;
}

/* A number to its last bit. */
static void set_exact(ls_json *o, const char *key, double x) {
    char text[40];
    snprintf(text, sizeof text, "%a", x);
    ls_json_set_text(o, key, text);
}

void ls_ids_write(const ls_ids *s, ls_buf *out) {
    ls_json *o = ls_json_new_object(), *columns = ls_json_new_array(),
            *numbers = ls_json_new_array();
    ls_json_set_text(o, "format", FORMAT);
    ls_json_set_integer(o, "version", 1);
    for (size_t i = 0; i < s->n; i++) ls_json_push(columns, column_json(&s->columns[i]));
    for (size_t i = 0; i < s->nnumbers; i++) {
        ls_json *one = ls_json_new_object();
        ls_json_set_path(one, "name", s->numbers[i].name);
        set_exact(one, "mean", s->numbers[i].mean);
        set_exact(one, "times", s->numbers[i].times);
        ls_json_push(numbers, one);
    }
    ls_json_set(o, "columns", columns);
    ls_json_set(o, "numbers", numbers);
    ls_json_write(o, 0, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(o);
}

/* ---- reading ---- */

static bool read_column(const ls_json *o, ls_ids *s) {
    const char *name = ls_json_text(ls_json_get(o, "name"));
    const ls_json *ids = ls_json_get(o, "ids");
    if (!name || !ls_json_is_array(ids)) return false;
    ls_id_column *c = ls_ids_add_column(s, name);
    for (size_t i = 0; i < ls_json_count(ids); i++) {
        const char *text = ls_json_text(ls_json_at(ids, i));
        if (!text || ls_id_of(&c->ids, text, strlen(text)) != (int32_t)i) return false;
    }
    return true;
}

static bool read_exact(const ls_json *o, const char *key, double *x_p) {
    const char *text = ls_json_text(ls_json_get(o, key));
    char *end = NULL;
    if (!text || !*text) return false;
    *x_p = strtod(text, &end);
    return *end == 0;
}

static bool read_number(const ls_json *o, ls_ids *s) {
    const char *name = ls_json_text(ls_json_get(o, "name"));
    double mean = 0, times = 0;
    if (!name || !read_exact(o, "mean", &mean) || !read_exact(o, "times", &times)) return false;
    ls_ids_add_number(s, name, mean, times);
    return true;
}

static bool parse(const ls_json *o, ls_ids *s) {
    const char *format = ls_json_text(ls_json_get(o, "format"));
    const ls_json *columns = ls_json_get(o, "columns"), *numbers = ls_json_get(o, "numbers");
    if (!format || strcmp(format, FORMAT) != 0 || !columns || !numbers) return false;
    for (size_t i = 0; i < ls_json_count(columns); i++)
        if (!read_column(ls_json_at(columns, i), s)) return false;
    for (size_t i = 0; i < ls_json_count(numbers); i++)
        if (!read_number(ls_json_at(numbers, i), s)) return false;
    return true;
}

ls_status ls_ids_read(const char *dir, ls_ids *i_p, ls_error *e) {
    char *path = ls_format("%s/" LS_IDS_FILE, dir);
    ls_json *j = NULL;
    ls_ids ids = {0};
    ls_status s = ls_json_read(path, LS_IDS_NBYTES, &j, e);
    if (s == LS_OK && !j)
        s = ls_fail(e, LS_EIO,
                    "%s: is missing; runs of earlier versions do not have it, and resuming the run "
                    "(--resume) restores it",
                    path);
    else if (s == LS_OK && !parse(j, &ids))
        s = ls_fail(e, LS_EINVAL, "%s: is damaged; resuming the run (--resume) restores it", path);
    if (s == LS_OK)
        *i_p = ids;
    else
        ls_ids_free(&ids);
    ls_json_free(j);
    free(path);
    return s;
}
