/* applications_read.c - reads RUN/applications.jsonl, and checks that it is complete. */
#include <stdlib.h>
#include <string.h>

#include "async/applications.h"
#include "base/json.h"
#include "base/lines.h"

typedef struct reader {
    char *path;
    int64_t line;
    const ls_applications_run *run;
    ls_applications_read *out;
} reader;

static ls_status fault(const reader *r, const char *what, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s:%lld: %s; the run can't be replayed", r->path,
                   (long long)r->line, what);
}

/* numbers [n] of an array of n integers from 0 on. */
static bool read_numbers(const ls_json *array, int n, int64_t *numbers) {
    if (!ls_json_is_array(array) || ls_json_count(array) != (size_t)n) return false;
    for (int i = 0; i < n; i++)
        if (!ls_json_integer(ls_json_at(array, (size_t)i), &numbers[i]) || numbers[i] < 0)
            return false;
    return true;
}

/* Other orders of summation give other bits, which is no fault of the run. */
static ls_status check_order(const reader *r, const ls_json *j, ls_error *e) {
    const char *was = ls_json_text(ls_json_get(j, "sum")), *now = r->run->sum;
    if (was && now ? strcmp(was, now) == 0 : was == now) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s:%lld: the steps from here on summed products in bf16 in %s%.40s%s, and this "
                   "version does in %s: a replay by it can't have their bits; use the version that "
                   "trained them",
                   r->path, (long long)r->line, was ? "the order '" : "an older order",
                   was ? was : "", was ? "'" : "", now ? now : "none");
}

static ls_status read_part(reader *r, const ls_json *j, int64_t begins, ls_error *e) {
    const ls_json *shards = ls_json_get(j, "shards");
    int64_t ends[LS_ASYNC_SHARDS], of = 0;
    LS_TRY(check_order(r, j, e));
    size_t n = ls_json_count(shards), from = 0;
    if (!ls_json_integer(ls_json_get(j, "of"), &of) || of <= begins)
        return fault(r, "does not say of how many steps the run is", e);
    if (n < 1 || n > LS_ASYNC_SHARDS || !read_numbers(shards, (int)n, ends))
        return fault(r, "does not say where the shards end", e);
    ls_applications_read *out = r->out;
    out->parts = realloc(out->parts, (out->n + 1) * sizeof *out->parts);
    if (!out->parts) abort();
    ls_applications_part *p = &out->parts[out->n++];
    *p = (ls_applications_part){.begins = begins, .of = of, .nshards = (int)n};
    for (size_t i = 0; i < n; from = p->ends[i++]) {
        p->ends[i] = (size_t)ends[i];
        if (p->ends[i] < from || p->ends[i] % LS_BLOCK || p->ends[i] > r->run->nfloats)
            return fault(r, "the shards are not those of the model", e);
    }
    return from == r->run->nfloats ? LS_OK : fault(r, "the shards are not those of the model", e);
}

static ls_status read_step(reader *r, const ls_json *j, int64_t step, ls_error *e) {
    ls_application a = {.step = step - 1};
    if (step > r->run->steps) return LS_OK;
    if (!r->out->n) return fault(r, "comes before the line about shards", e);
    ls_applications_part *p = &r->out->parts[r->out->n - 1];
    if (!read_numbers(ls_json_get(j, "base"), p->nshards, a.base) ||
        !read_numbers(ls_json_get(j, "at"), p->nshards, a.at))
        return fault(r, "does not name the versions of all shards", e);
    for (int i = 0; i < p->nshards; i++)
        if (a.base[i] < p->begins || a.base[i] > a.at[i] || a.at[i] >= r->run->steps)
            return fault(r, "names a version that is not possible", e);
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 1024;
        p->list = realloc(p->list, p->room * sizeof *p->list);
        if (!p->list) abort();
    }
    p->list[p->n++] = a;
    return LS_OK;
}

static ls_status read_line(reader *r, const ls_line *line, ls_error *e) {
    ls_json *j = NULL;
    int64_t number = 0;
    r->line = line->number;
    if (!line->whole) return LS_OK; /* torn: the run was killed, or goes on */
    if (line->too_long || ls_json_parse(line->text, line->nbytes, "a line", &j, NULL) != LS_OK)
        return fault(r, "is damaged", e);
    ls_status s = LS_OK;
    if (ls_json_integer(ls_json_get(j, "begins"), &number)) {
        if (number < r->run->steps) s = read_part(r, j, number, e);
    } else if (ls_json_integer(ls_json_get(j, "step"), &number)) {
        s = read_step(r, j, number, e);
    } else {
        s = fault(r, "is neither a step nor a line about shards", e);
    }
    ls_json_free(j);
    return s;
}

/* Has each step of the part one line, and each version of each shard one step? */
static bool is_whole(const ls_applications_part *p) {
    bool *seen = LS_NEW_ARRAY(bool, p->n *(size_t)(p->nshards + 1));
    bool whole = true;
    for (size_t k = 0; whole && k < p->n; k++)
        for (int i = 0; whole && i <= p->nshards; i++) {
            int64_t place = (i < p->nshards ? p->list[k].at[i] : p->list[k].step) - p->begins;
            whole = place >= 0 && (size_t)place < p->n && !seen[(size_t)i * p->n + (size_t)place];
            if (whole) seen[(size_t)i * p->n + (size_t)place] = true;
        }
    free(seen);
    return whole;
}

static ls_status check(const reader *r, ls_error *e) {
    const ls_applications_read *out = r->out;
    int64_t at = 0;
    for (size_t i = 0; i < out->n; i++) {
        const ls_applications_part *p = &out->parts[i];
        if (p->begins != at || !is_whole(p)) break;
        at += (int64_t)p->n;
    }
    if (at == r->run->steps) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: lacks lines of some steps from %lld to %lld; the run can't be replayed",
                   r->path, (long long)at + 1, (long long)r->run->steps);
}

ls_status ls_applications_load(const ls_applications_run *run, ls_applications_read *r_p,
                               ls_error *e) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = false;
    *r_p = (ls_applications_read){0};
    reader r = {.path = ls_format("%s/" LS_APPLICATIONS_FILE, run->dir), .run = run, .out = r_p};
    ls_status s = ls_lines_open(r.path, false, &l, e);
    while (s == LS_OK && (s = ls_lines_next(l, &line, &there, e)) == LS_OK && there)
        s = read_line(&r, &line, e);
    if (s == LS_OK) s = check(&r, e);
    ls_lines_close(l);
    free(r.path);
    if (s != LS_OK) ls_applications_free(r_p);
    return s;
}

void ls_applications_free(ls_applications_read *r) {
    for (size_t i = 0; i < r->n; i++) free(r->parts[i].list);
    free(r->parts);
    *r = (ls_applications_read){0};
}
