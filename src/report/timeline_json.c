/* timeline_json.c - a timeline as Chrome trace JSON, and back.
 *
 * The format: "Trace Event Format" of Chromium, a JSON object with traceEvents. Complete events (ph
 * "X"), a process for a worker and a thread for a lane; times in microseconds, written with three
 * decimals, so that nanoseconds come back as they were. Fields that the format lacks are in
 * otherData. One event per line: files are large, and people compare them.
 *
 * Reading trusts nothing: every number is checked against the limits in otherData.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "report/timeline.h"
#include "share/config.h"

enum { VERSION = 1, MAX_WORKERS = 4096, MAX_LAYERS = 1 << 16, MAX_STEPS = 10000 };
static const size_t MAX_FILE = (size_t)1 << 30;
static const double MAX_US = 1e12; /* 11 days: exact to the nanosecond in a double */

static const char *const lane_names[LS_NLANES] = {"compute", "communication"};

/* ---- writing ---- */

static void put_text(ls_buf *out, const char *text) {
    ls_json *j = ls_json_new_text(text);
    ls_json_write(j, 0, out);
    ls_json_free(j);
}

static void put_us(ls_buf *out, const char *key, int64_t ns) {
    const char *sign = ns < 0 ? "-" : "";
    int64_t n = ns < 0 ? -ns : ns;
    ls_buf_printf(out, ",\"%s\":%s%" PRId64 ".%03d", key, sign, n / 1000, (int)(n % 1000));
}

static void put_other(const ls_timeline *t, ls_buf *out) {
    ls_buf_printf(out, "\"otherData\": {\"format\": \"lockstep timeline\", \"version\": %d,\n",
                  VERSION);
    ls_buf_printf(out, "  \"label\": ");
    put_text(out, t->label);
    ls_buf_printf(out, ", \"machine\": ");
    put_text(out, t->machine);
    ls_buf_printf(out, ",\n  \"plan\": \"%s\", \"nworkers\": %d, \"nbuckets\": %d,\n", t->plan,
                  t->nworkers, t->nbuckets);
    ls_buf_printf(out, "  \"first_step\": %" PRId64 ", \"begins_ns\": [", t->first_step);
    for (int i = 0; i < t->nsteps; i++)
        ls_buf_printf(out, "%s%" PRId64, i ? ", " : "", t->begins_ns[i]);
    ls_buf_printf(out, "],\n  \"layers\": [");
    for (int i = 0; i < t->nlayers; i++) {
        if (i) ls_buf_printf(out, ", ");
        put_text(out, t->layers[i]);
    }
    ls_buf_printf(out, "]},\n");
}

static void put_rows(const ls_timeline *t, ls_buf *out) {
    for (int w = 0; w < t->nworkers; w++) {
        ls_buf_printf(out,
                      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                      "\"worker %d\"}},\n"
                      "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":"
                      "{\"sort_index\":%d}},\n",
                      w, w, w, w);
        for (int lane = 0; lane < LS_NLANES; lane++)
            ls_buf_printf(out,
                          "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":"
                          "{\"name\":\"%s\"}}%s\n",
                          w, lane, lane_names[lane],
                          t->nevents || w + 1 < t->nworkers || !lane ? "," : "");
    }
}

static void put_event(const ls_timeline *t, const ls_timeline_event *v, ls_buf *out) {
    char name[160];
    ls_timeline_event_name(t, v, name, sizeof name);
    ls_buf_printf(out, "{\"name\":");
    put_text(out, name);
    ls_buf_printf(out, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d",
                  ls_action_kind_name(v->kind), v->span.worker, (int)v->span.lane);
    put_us(out, "ts", t->begins_ns[v->step] + v->span.begin_ns);
    put_us(out, "dur", v->span.end_ns - v->span.begin_ns);
    ls_buf_printf(out, ",\"args\":{\"action\":%d,\"step\":%" PRId64, v->span.action,
                  t->first_step + v->step);
    if (v->vw >= 0) ls_buf_printf(out, ",\"vw\":%d", v->vw);
    if (v->micro >= 0) ls_buf_printf(out, ",\"micro\":%d", v->micro);
    if (v->layer >= 0) ls_buf_printf(out, ",\"layer\":%d", v->layer);
    if (v->bucket >= 0) ls_buf_printf(out, ",\"bucket\":%d", v->bucket);
    if (v->nbytes > 0) ls_buf_printf(out, ",\"bytes\":%" PRId64, v->nbytes);
    ls_buf_printf(out, "}}");
}

void ls_timeline_json(const ls_timeline *t, ls_buf *out) {
    ls_buf_printf(out, "{\"displayTimeUnit\": \"ms\",\n");
    put_other(t, out);
    ls_buf_printf(out, "\"traceEvents\": [\n");
    put_rows(t, out);
    for (size_t i = 0; i < t->nevents; i++) {
        put_event(t, &t->events[i], out);
        ls_buf_printf(out, "%s\n", i + 1 < t->nevents ? "," : "");
    }
    ls_buf_printf(out, "]}\n");
}

/* ---- reading ---- */

typedef struct reader {
    const char *what; /* names the text */
    size_t event;
    ls_timeline *t;
    ls_error *e;
} reader;

static ls_status bad(const reader *r, const char *key) {
    return ls_fail(r->e, LS_EINVAL, "%s: is not a lockstep timeline: bad otherData.%s", r->what,
                   key);
}

static ls_status bad_event(const reader *r, const char *key) {
    return ls_fail(r->e, LS_EINVAL, "%s: event %zu of the timeline: bad %s", r->what, r->event,
                   key);
}

static bool whole(const ls_json *object, const char *key, int64_t low, int64_t high,
                  int64_t *value_p) {
    return ls_json_integer(ls_json_get(object, key), value_p) && *value_p >= low &&
           *value_p <= high;
}

/* Is it free of characters that a terminal could take for a command? */
static bool is_printable(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) return false;
    return true;
}

/* Copies a text if it exists and fits. */
static bool text(const ls_json *object, const char *key, char *to, size_t nbytes) {
    const char *s = ls_json_text(ls_json_get(object, key));
    if (!s || strlen(s) >= nbytes || !is_printable(s)) return false;
    memcpy(to, s, strlen(s) + 1);
    return true;
}

static ls_status read_layers(reader *r, const ls_json *other) {
    const ls_json *layers = ls_json_get(other, "layers");
    size_t n = ls_json_count(layers);
    if (!ls_json_is_array(layers) || n > MAX_LAYERS) return bad(r, "layers");
    r->t->layers = LS_NEW_ARRAY(char *, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = ls_json_text(ls_json_at(layers, i));
        if (!name || strlen(name) >= 100 || !is_printable(name)) return bad(r, "layers");
        r->t->layers[r->t->nlayers++] = ls_strdup(name);
    }
    return LS_OK;
}

static ls_status read_steps(reader *r, const ls_json *other) {
    const ls_json *begins = ls_json_get(other, "begins_ns");
    size_t n = ls_json_count(begins);
    if (!whole(other, "first_step", 0, INT64_MAX / 2, &r->t->first_step))
        return bad(r, "first_step");
    if (!ls_json_is_array(begins) || n > MAX_STEPS) return bad(r, "begins_ns");
    r->t->begins_ns = LS_NEW_ARRAY(int64_t, n);
    for (size_t i = 0; i < n; i++) {
        int64_t *ns = &r->t->begins_ns[i];
        if (!ls_json_integer(ls_json_at(begins, i), ns) || *ns < 0 || (double)*ns > MAX_US * 1e3)
            return bad(r, "begins_ns");
    }
    r->t->nsteps = (int)n;
    return LS_OK;
}

static ls_status read_other(reader *r, const ls_json *other) {
    ls_timeline *t = r->t;
    char format[32];
    int64_t version = 0, workers = 0, buckets = 0;
    if (!text(other, "format", format, sizeof format) || strcmp(format, "lockstep timeline") != 0)
        return bad(r, "format");
    if (!whole(other, "version", VERSION, VERSION, &version)) return bad(r, "version");
    if (!text(other, "label", t->label, sizeof t->label)) return bad(r, "label");
    if (!text(other, "machine", t->machine, sizeof t->machine)) return bad(r, "machine");
    if (!text(other, "plan", t->plan, sizeof t->plan) ||
        strspn(t->plan, "0123456789abcdef") != LS_HASH_TEXT - 1)
        return bad(r, "plan");
    if (!whole(other, "nworkers", 1, MAX_WORKERS, &workers)) return bad(r, "nworkers");
    if (!whole(other, "nbuckets", 0, LS_PLAN_MAX_BUCKETS, &buckets)) return bad(r, "nbuckets");
    t->nworkers = (int)workers;
    t->nbuckets = (int)buckets;
    LS_TRY(read_steps(r, other));
    return read_layers(r, other);
}

static bool read_kind(const ls_json *event, ls_action_kind *kind_p) {
    const char *name = ls_json_text(ls_json_get(event, "cat"));
    for (int k = 0; name && k < LS_NACTION_KINDS; k++)
        if (strcmp(name, ls_action_kind_name((ls_action_kind)k)) == 0) {
            *kind_p = (ls_action_kind)k;
            return true;
        }
    return false;
}

static bool read_us(const ls_json *event, const char *key, double low, int64_t *ns_p) {
    double us = 0;
    if (!ls_json_number(ls_json_get(event, key), &us) || !(us >= low && us <= MAX_US)) return false;
    *ns_p = llround(us * 1e3);
    return true;
}

/* A number that not all actions have: -1 if it is absent. */
static bool optional(const ls_json *args, const char *key, int64_t end, int *value_p) {
    int64_t v = -1;
    if (ls_json_get(args, key) && !whole(args, key, 0, end - 1, &v)) return false;
    *value_p = (int)v;
    return true;
}

static ls_status read_args(const reader *r, const ls_json *args, ls_timeline_event *v) {
    const ls_timeline *t = r->t;
    int64_t action = 0, step = 0;
    if (!whole(args, "action", 0, INT32_MAX, &action)) return bad_event(r, "args.action");
    if (!whole(args, "step", t->first_step, t->first_step + t->nsteps - 1, &step))
        return bad_event(r, "args.step");
    if (!optional(args, "vw", INT32_MAX, &v->vw)) return bad_event(r, "args.vw");
    if (!optional(args, "micro", INT32_MAX, &v->micro)) return bad_event(r, "args.micro");
    if (!optional(args, "layer", t->nlayers, &v->layer)) return bad_event(r, "args.layer");
    if (!optional(args, "bucket", t->nbuckets, &v->bucket)) return bad_event(r, "args.bucket");
    if (ls_json_get(args, "bytes") && !whole(args, "bytes", 0, INT64_MAX, &v->nbytes))
        return bad_event(r, "args.bytes");
    v->span.action = (int)action;
    v->step = (int)(step - t->first_step);
    return LS_OK;
}

static ls_status read_event(const reader *r, const ls_json *event) {
    ls_timeline_event v = {0};
    int64_t worker = 0, lane = 0, ts = 0, dur = 0;
    if (!read_kind(event, &v.kind)) return bad_event(r, "cat");
    if (!whole(event, "pid", 0, r->t->nworkers - 1, &worker)) return bad_event(r, "pid");
    if (!whole(event, "tid", 0, LS_NLANES - 1, &lane)) return bad_event(r, "tid");
    if (!read_us(event, "ts", -MAX_US, &ts)) return bad_event(r, "ts");
    if (!read_us(event, "dur", 0, &dur)) return bad_event(r, "dur");
    LS_TRY(read_args(r, ls_json_get(event, "args"), &v));
    v.span.worker = (int)worker;
    v.span.lane = (ls_lane)lane;
    v.span.begin_ns = ts - r->t->begins_ns[v.step];
    v.span.end_ns = v.span.begin_ns + dur;
    r->t->events[r->t->nevents++] = v;
    return LS_OK;
}

static ls_status read_all(reader *r, const ls_json *j) {
    const ls_json *other = ls_json_get(j, "otherData"), *events = ls_json_get(j, "traceEvents");
    if (!ls_json_is_object(other) || !ls_json_is_array(events))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: is not a lockstep timeline: no otherData, or no traceEvents", r->what);
    LS_TRY(read_other(r, other));
    size_t n = ls_json_count(events);
    r->t->events = LS_NEW_ARRAY(ls_timeline_event, n);
    r->t->capacity = n;
    for (r->event = 0; r->event < n; r->event++) {
        const ls_json *event = ls_json_at(events, r->event);
        const char *ph = ls_json_text(ls_json_get(event, "ph"));
        if (!ph) return bad_event(r, "ph");
        if (strcmp(ph, "X") == 0) LS_TRY(read_event(r, event));
    }
    return LS_OK;
}

ls_status ls_timeline_parse(const char *json, size_t nbytes, const char *what, ls_timeline *t_p,
                            ls_error *e) {
    ls_json *j = NULL;
    ls_timeline t = {0};
    reader r = {.what = what, .t = &t, .e = e};
    LS_TRY(ls_json_parse(json, nbytes, what, &j, e));
    ls_status s = read_all(&r, j);
    ls_json_free(j);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_timeline_free(&t);
    return s;
}

ls_status ls_timeline_read(const char *path, ls_timeline *t_p, ls_error *e) {
    ls_buf b = {0};
    ls_status s = ls_file_read(path, MAX_FILE, &b, e);
    if (s == LS_OK) s = ls_timeline_parse(b.data ? b.data : "", b.len, path, t_p, e);
    ls_buf_free(&b);
    return s;
}
