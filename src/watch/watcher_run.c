/* watcher_run.c - see watcher_run.h. */
#include "watch/watcher_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "config/choices.h"

ls_watcher_run *ls_watcher_run_open(const char *path) {
    ls_watcher_run *r = LS_NEW(ls_watcher_run);
    ls_watched_open(&r->lines, path);
    ls_run_status_unread(path, &r->status);
    return r;
}

void ls_watcher_run_close(ls_watcher_run *r) {
    ls_watched_close(&r->lines);
    ls_run_status_free(&r->status);
    free(r->config);
    free(r->why);
    free(r->name);
    free(r);
}

/* ---- the config ---- */

static const char *const kinds[] = {ls_model_kind_words(LS_CHOICE_WORD)};

const char *ls_watcher_run_model(const ls_watcher_run *r) {
    return r->config ? kinds[r->config->model.kind] : "";
}

static void parse_config(ls_watcher_run *r, const char *path) {
    enum { MOST = 1 << 20 };
    ls_buf text = {0};
    ls_error e = {0};
    ls_config *c = LS_NEW(ls_config);
    r->hash[0] = 0;
    if (ls_file_read(path, MOST, &text, NULL) == LS_OK)
        ls_hash_text(ls_hash_bytes(text.data, text.len), r->hash);
    free(r->config);
    free(r->why);
    bool ok = ls_config_read(path, c, &e) == LS_OK;
    if (!ok) free(c);
    r->config = ok ? c : NULL;
    r->why = ok ? NULL : ls_strdup(e.msg);
    ls_buf_free(&text);
}

/* It is parsed once, and again when the file has changed: that takes longer than all else of a
 * status. */
static void read_config(ls_watcher_run *r) {
    struct stat st = {0};
    char *path = ls_format("%s/config.yaml", r->lines.path);
    bool there = stat(path, &st) == 0;
    int64_t changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    bool known = (r->config || r->why) && there && r->config_inode == st.st_ino &&
                 r->config_nbytes == (uint64_t)st.st_size && r->config_ns == changed_ns;
    r->config_inode = st.st_ino;
    r->config_nbytes = (uint64_t)st.st_size;
    r->config_ns = changed_ns;
    if (!known) parse_config(r, path);
    free(path);
}

/* ---- the status ---- */

static bool differ(double a, double b) { return !(a == b || (isnan(a) && isnan(b))); }

static bool has_changed(const ls_run_status *a, const ls_run_status *b) {
    bool notes = (a->note == NULL) != (b->note == NULL) || (a->note && strcmp(a->note, b->note));
    return a->state != b->state || a->pid != b->pid || a->step != b->step || a->steps != b->steps ||
           a->checkpoint != b->checkpoint || a->workers != b->workers || a->nbytes != b->nbytes ||
           differ(a->left_s, b->left_s) || notes;
}

static const ls_json *last_start(const ls_watched *w) {
    for (size_t i = w->nmarks; i-- > 0;)
        if (strcmp(w->marks[i].kind, "started") == 0) return w->marks[i].line;
    return NULL;
}

/* The last evaluation may be further from the end than the status looks. */
static void add_evaluation(const ls_watched *w, ls_run_status *s) {
    for (size_t i = w->npoints; i-- > 0 && !s->val_step;)
        if (strcmp(w->names[w->points[i].series], "val_loss") == 0) {
            s->val_step = (int64_t)w->points[i].x[LS_X_STEP];
            s->val_loss = w->points[i].value;
        }
}

static uint64_t metrics_size(const ls_watcher_run *r) {
    struct stat st;
    return stat(r->lines.file.path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

bool ls_watcher_run_know(ls_watcher_run *r, double now_s) {
    ls_run_status s;
    bool has_lines = r->stage == LS_RUN_READ, first = r->read_s <= 0;
    read_config(r);
    if (first) r->metrics_nbytes = metrics_size(r);
    ls_run_status_read_end(r->lines.path, has_lines ? last_start(&r->lines) : NULL, r->config,
                           r->why, &s);
    if (has_lines) add_evaluation(&r->lines, &s);
    bool changed = first || has_changed(&s, &r->status);
    ls_run_status_free(&r->status);
    r->status = s;
    r->read_s = now_s;
    return changed;
}

/* ---- JSON ---- */

static ls_json *name_json(const char *name) { return ls_json_new_bytes(name, strlen(name)); }

static void set_lines(const ls_watched *w, ls_json *o) {
    ls_json *series = ls_json_new_array(), *evaluations = ls_json_new_array();
    for (int i = LS_NX; i < w->nseries; i++) ls_json_push(series, name_json(w->series[i]->name));
    for (int i = 0; i < w->nnames; i++) ls_json_push(evaluations, name_json(w->names[i]));
    ls_json_set_integer(o, "rows", w->nrows);
    ls_json_set_integer(o, "generation", (int64_t)w->generation);
    ls_json_set_number(o, "units", w->x[LS_X_UNITS]);
    ls_json_set_number(o, "hours", w->x[LS_X_HOURS]);
    ls_json_set_number(o, "step_s", ls_watched_last(w, "seconds"));
    ls_json_set(o, "series", series);
    ls_json_set(o, "evaluations", evaluations);
}

void ls_watcher_run_write(const ls_watcher_run *r, int id, ls_buf *out) {
    static const ls_watched none;
    bool is_known = r->stage != LS_RUN_FOUND, is_read = r->stage == LS_RUN_READ;
    ls_run_status unread;
    ls_run_status_unread(r->lines.path, &unread);
    const ls_run_status *s = is_known ? &r->status : &unread;
    ls_json *o = ls_run_status_json(s);
    ls_json_set_integer(o, "id", id);
    ls_json_set_path(o, "name", r->name);
    set_lines(is_read ? &r->lines : &none, o);
    /* The page counts on from here, by its own clock. */
    ls_json_set_number(o, "age_s", is_known ? s->age_s + (ls_clock_wall_s() - r->read_s) : NAN);
    double nread = (double)__atomic_load_n(&r->nread, __ATOMIC_RELAXED);
    double part = is_known && r->metrics_nbytes ? nread / (double)r->metrics_nbytes : 0;
    ls_json_set_number(o, "reading", is_read ? NAN : fmin(part, 1));
    ls_json_write(o, 0, out);
    ls_json_free(o);
    ls_run_status_free(&unread);
}
