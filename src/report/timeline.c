/* timeline.c - see timeline.h: makes, names and writes timelines. */
#include "report/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"

/* Copies a text, cut to fit, but not within a UTF-8 character. */
static void copy_text(char *to, size_t nbytes, const char *from) {
    size_t n = strnlen(from, nbytes);
    if (n == nbytes)
        for (n--; n > 0 && (from[n] & 0xc0) == 0x80;) n--;
    memcpy(to, from, n);
    to[n] = 0;
}

void ls_timeline_open(ls_timeline *t, const ls_plan *p, const char *label, const char *machine,
                      int64_t first_step) {
    *t = (ls_timeline){
        .nworkers = p->share.nworkers, .nbuckets = p->share.nbuckets, .first_step = first_step};
    copy_text(t->label, sizeof t->label, label);
    copy_text(t->machine, sizeof t->machine, machine);
    ls_hash_text(ls_plan_hash(p), t->plan);
    t->nlayers = p->share.model->nlayers;
    t->layers = LS_NEW_ARRAY(char *, (size_t)t->nlayers);
    for (int i = 0; i < t->nlayers; i++) t->layers[i] = ls_strdup(p->share.model->layers[i].name);
}

/* The fields of an action that have a meaning for its kind. */
static ls_timeline_event event_of(const ls_plan *p, const ls_span *s, int step) {
    const ls_action *a = &p->actions[s->action];
    ls_timeline_event v = {*s, step, a->kind, -1, -1, -1, -1, 0};
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD:
        v.vw = a->vw;
        v.micro = a->micro;
        v.layer = a->layer;
        break;
    case LS_SQUARES:
    case LS_ENCODE:
    case LS_ADD:
        v.vw = a->vw;
        v.bucket = a->bucket;
        break;
    case LS_DECODE:
    case LS_UPDATE: v.bucket = a->bucket; break;
    case LS_EXCHANGE:
    case LS_SUM_FACTORS:
    case LS_REPLICA_NORM:
    case LS_DECIDE:
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE:
    case LS_ALL_GATHER:
        v.bucket = a->bucket;
        v.nbytes = a->comm.nbytes;
        break;
    default: break;
    }
    return v;
}

void ls_timeline_add(ls_timeline *t, const ls_plan *p, int64_t begin_ns, const ls_span *spans,
                     size_t n) {
    if (t->nevents + n > t->capacity) {
        t->capacity = t->nevents + n;
        t->events = ls_realloc(t->events, t->capacity * sizeof *t->events);
    }
    for (size_t i = 0; i < n; i++) t->events[t->nevents++] = event_of(p, &spans[i], t->nsteps);
    t->begins_ns = ls_grow(t->begins_ns, (size_t)t->nsteps, sizeof *t->begins_ns);
    t->begins_ns[t->nsteps++] = begin_ns;
}

void ls_timeline_free(ls_timeline *t) {
    for (int i = 0; i < t->nlayers; i++) free(t->layers[i]);
    free(t->layers);
    free(t->begins_ns);
    free(t->events);
    *t = (ls_timeline){0};
}

void ls_timeline_event_name(const ls_timeline *t, const ls_timeline_event *v, char *text,
                            size_t nbytes) {
    const char *kind = ls_action_kind_name(v->kind);
    if (v->layer >= 0)
        snprintf(text, nbytes, "%s %s", kind, t->layers[v->layer]);
    else if (v->bucket >= 0)
        snprintf(text, nbytes, "%s bucket %d", kind, v->bucket);
    else
        snprintf(text, nbytes, "%s", kind);
}

int64_t ls_timeline_step_ns(const ls_timeline *t, int step) {
    int64_t end = 0;
    for (size_t i = 0; i < t->nevents; i++)
        if (t->events[i].step == step && t->events[i].span.end_ns > end)
            end = t->events[i].span.end_ns;
    return end;
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

ls_status ls_timeline_check_path(const char *path, ls_error *e) {
    if (ends_in(path, ".json") || ends_in(path, ".svg")) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: a timeline is written as FILE.json (for Perfetto) or FILE.svg", path);
}

ls_status ls_timeline_write(const ls_timeline *t, const char *path, ls_error *e) {
    LS_TRY(ls_timeline_check_path(path, e));
    ls_buf text = {0};
    if (ends_in(path, ".svg"))
        ls_timeline_svg(t, &text);
    else
        ls_timeline_json(t, &text);
    ls_status s = ls_output_write(path, text.data, text.len, e);
    ls_buf_free(&text);
    return s;
}
