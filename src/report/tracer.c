/* tracer.c - see tracer.h.
 *
 * A worker's report consists of 64-bit words: its host, its steps' origins, and the action, begin
 * and end of each span. Reports differ in length; all are sent at the length of the longest.
 */
#include "report/tracer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/output.h"
#include "coll/virtual.h"

enum { SPAN_WORDS = 3, HOST = 0, ORIGINS = 1 };

ls_status ls_tracer_check(const ls_trace_request *q, ls_group *g, ls_error *e) {
    if (!q->path) return LS_OK;
    return ls_agree(g, ls_group_rank(g) == 0 ? ls_output_check(q->path, e) : LS_OK, e);
}

static int worker_of(const ls_tracer *t, int i) {
    return t->w.nexecs > 1 ? i : ls_group_rank(t->w.group);
}

void ls_tracer_open(ls_tracer *t, const ls_trace_request *q, const ls_traced_workers *w,
                    int64_t first, int64_t end) {
    if (!q->path || first >= end) return;
    int64_t steps = q->steps ? q->steps : LS_TRACE_STEPS;
    *t = (ls_tracer){.path = q->path, .w = *w, .first = first + 1, .end = end};
    if (t->first >= end) t->first = end - 1;
    if (t->first + steps < end) t->end = t->first + steps;
    t->traces = LS_NEW_ARRAY(ls_trace, (size_t)w->nexecs);
    for (int i = 0; i < w->nexecs; i++)
        ls_trace_open(&t->traces[i], w->plan, worker_of(t, i), (int)(t->end - t->first));
}

static bool is_traced(const ls_tracer *t, int64_t step) {
    return t->path && step >= t->first && step < t->end;
}

ls_status ls_tracer_before(ls_tracer *t, int64_t step, ls_error *e) {
    if (!is_traced(t, step)) return LS_OK;
    LS_TRY(ls_barrier(t->w.group, e));
    for (int i = 0; i < t->w.nexecs; i++) {
        ls_trace_begin_step(&t->traces[i]);
        ls_exec_trace(t->w.execs[i], &t->traces[i]);
    }
    return LS_OK;
}

ls_status ls_tracer_after(ls_tracer *t, int64_t step, ls_error *e) {
    if (!is_traced(t, step)) return LS_OK;
    for (int i = 0; i < t->w.nexecs; i++) ls_exec_trace(t->w.execs[i], NULL);
    return step + 1 == t->end ? ls_tracer_finish(t, e) : LS_OK;
}

/* ---- all workers' reports, on worker 0 ---- */

static size_t report_nwords(const ls_trace *t) {
    size_t nspans = (size_t)t->nsteps * (size_t)ls_trace_nspans(t);
    return ORIGINS + (size_t)t->nsteps + SPAN_WORDS * nspans;
}

static void write_report(const ls_trace *t, int64_t *words) {
    int n = ls_trace_nspans(t);
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)n);
    words[HOST] = (int64_t)ls_clock_number();
    memcpy(words + ORIGINS, t->origins_ns, (size_t)t->nsteps * sizeof *words);
    int64_t *to = words + ORIGINS + t->nsteps;
    for (int step = 0; step < t->nsteps; step++) {
        ls_trace_spans(t, step, spans);
        for (int i = 0; i < n; i++) {
            *to++ = spans[i].action;
            *to++ = spans[i].begin_ns;
            *to++ = spans[i].end_ns;
        }
    }
    free(spans);
}

/* Reports [nworkers of the plan][*nwords_p], on worker 0; NULL elsewhere. */
static ls_status gather(const ls_tracer *t, int64_t **all_p, size_t *nwords_p, ls_error *e) {
    const ls_traced_workers *m = &t->w;
    int nworkers = ls_group_size(m->group), worker = ls_group_rank(m->group);
    int64_t most = 0;
    for (int i = 0; i < m->nexecs; i++)
        if ((int64_t)report_nwords(&t->traces[i]) > most)
            most = (int64_t)report_nwords(&t->traces[i]);
    LS_TRY(ls_all_reduce(m->group, &most, &most, 1, LS_I64, LS_MAX, e));
    size_t n = (size_t)most;
    int64_t *own = LS_NEW_ARRAY(int64_t, n * (size_t)m->nexecs), *all = NULL;
    for (int i = 0; i < m->nexecs; i++) write_report(&t->traces[i], own + (size_t)i * n);
    *nwords_p = n;
    if (nworkers == 1) {
        *all_p = own;
        return LS_OK;
    }
    if (worker == 0) all = LS_NEW_ARRAY(int64_t, n * (size_t)nworkers);
    ls_status s = ls_gather(m->group, own, all, n, LS_I64, 0, e);
    free(own);
    if (s == LS_OK)
        *all_p = all;
    else
        free(all);
    return s;
}

/* When a step began on the host of `worker`: when the first of its workers left the barrier. */
static int64_t origin_of(const int64_t *all, size_t nwords, int n, int worker, int step) {
    const int64_t *own = all + (size_t)worker * nwords;
    int64_t origin = own[ORIGINS + step];
    for (int w = 0; w < n; w++) {
        const int64_t *other = all + (size_t)w * nwords;
        if (other[HOST] == own[HOST] && other[ORIGINS + step] < origin)
            origin = other[ORIGINS + step];
    }
    return origin;
}

/* The spans of all workers in one step. */
static void add_step(ls_timeline *to, const ls_tracer *t, const int64_t *all, size_t nwords,
                     int step) {
    const ls_plan *p = t->w.plan;
    int n = p->share.nworkers, nsteps = t->traces[0].nsteps;
    size_t nspans = 0;
    ls_span *spans = LS_NEW_ARRAY(ls_span, (size_t)n * (size_t)p->nactions);
    for (int w = 0; w < n; w++) {
        const int64_t *words = all + (size_t)w * nwords;
        size_t count = 0;
        for (int i = 0; i < p->nactions; i++) count += ls_action_concerns(&p->actions[i], w);
        int64_t late = words[ORIGINS + step] - origin_of(all, nwords, n, w, step);
        words += ORIGINS + (size_t)nsteps + SPAN_WORDS * count * (size_t)step;
        for (size_t i = 0; i < count; i++, words += SPAN_WORDS) {
            ls_lane lane = ls_plan_lane(p, &p->actions[words[0]]);
            spans[nspans++] = (ls_span){(int)words[0], w, lane, words[1] + late, words[2] + late};
        }
    }
    int64_t begin = origin_of(all, nwords, n, 0, step) - origin_of(all, nwords, n, 0, 0);
    ls_timeline_add(to, p, begin, spans, nspans);
    free(spans);
}

/* "AMD EPYC 7B13, 2 cores", and the number of hosts. */
static void name_machine(const int64_t *all, size_t nwords, int n, char *text, size_t nbytes) {
    char line[256], model[96] = "unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %95[ -~]", model) == 1) break;
    if (f) fclose(f);
    int hosts = 0;
    for (int w = 0; w < n; w++) {
        bool seen = false;
        for (int v = 0; v < w; v++)
            seen = seen || all[(size_t)v * nwords + HOST] == all[(size_t)w * nwords + HOST];
        hosts += !seen;
    }
    int cores = ls_cores_among(n);
    snprintf(text, nbytes, "%s, %d core%s%s", model, cores, cores == 1 ? "" : "s",
             hosts > 1 ? " on each host" : "");
    if (hosts > 1) snprintf(text + strlen(text), nbytes - strlen(text), ", %d hosts", hosts);
}

static ls_status write_timeline(const ls_tracer *t, const int64_t *all, size_t nwords,
                                ls_error *e) {
    const ls_plan *p = t->w.plan;
    char machine[160];
    int nsteps = t->traces[0].nsteps;
    ls_timeline to;
    name_machine(all, nwords, p->share.nworkers, machine, sizeof machine);
    ls_timeline_open(&to, p, "measured", machine, t->first + 1);
    for (int step = 0; step < nsteps; step++) add_step(&to, t, all, nwords, step);
    ls_status s = ls_timeline_write(&to, t->path, e);
    if (s == LS_OK && nsteps == 1)
        ls_log("timeline of step %lld: %s", (long long)t->first + 1, t->path);
    if (s == LS_OK && nsteps > 1)
        ls_log("timeline of steps %lld to %lld: %s", (long long)t->first + 1,
               (long long)t->first + nsteps, t->path);
    ls_timeline_free(&to);
    return s;
}

/* Other workers wait without a limit while worker 0 writes. */
static ls_status agree_when_written(const ls_traced_workers *w, ls_status own, ls_error *e) {
    ls_group_set_patience(w->group, -1, -1);
    ls_status s = ls_agree(w->group, own, e);
    ls_group_set_patience(w->group, w->timeout_s, 0);
    return s;
}

ls_status ls_tracer_finish(ls_tracer *t, ls_error *e) {
    if (!t->path) return LS_OK;
    bool first = ls_group_rank(t->w.group) == 0;
    if (t->traces[0].nsteps == 0) {
        if (first) ls_log("%s: no step was traced", t->path);
        t->path = NULL;
        return LS_OK;
    }
    int64_t *all = NULL;
    size_t nwords = 0;
    LS_TRY(gather(t, &all, &nwords, e));
    ls_status s = first ? write_timeline(t, all, nwords, e) : LS_OK;
    free(all);
    t->path = NULL;
    return agree_when_written(&t->w, s, e);
}

void ls_tracer_close(ls_tracer *t) {
    for (int i = 0; t->traces && i < t->w.nexecs; i++) {
        if (t->w.execs && t->w.execs[i]) ls_exec_trace(t->w.execs[i], NULL);
        ls_trace_free(&t->traces[i]);
    }
    free(t->traces);
    *t = (ls_tracer){0};
}
