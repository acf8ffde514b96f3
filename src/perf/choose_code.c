/* choose_code.c - see choose_code.h. */
#include "perf/choose_code.h"

#include "base/log.h"
#include "config/needs.h"
#include "config/relations.h"
#include "perf/forecast.h"
#include "train/layout.h"

/* times: how many times more steps it takes to the same loss. */
typedef struct candidate {
    ls_compress_kind kind;
    const char *name;
    double times;
} candidate;

static const candidate candidates[] = {
    {LS_COMPRESS_OFF, "none", 1},
    {LS_COMPRESS_WITH_INT8, "int8", 1},
    {LS_COMPRESS_WITH_INT4, "int4", 1},
    {LS_COMPRESS_WITH_POWERSGD, "powersgd", 1.3},
};
enum { NCANDIDATES = sizeof candidates / sizeof *candidates };

static const double WORTH = 0.9;

/* Keys that the kind does not need have their defaults. */
static void set_kind(ls_config *c, ls_compress_kind kind) {
    ls_config_settle(c);
    c->compress.kind = kind;
    ls_config_drop_idle(c, NULL);
}

/* false: the config's other settings exclude this kind, or no parameter is large enough for it. */
static bool predict(const ls_config *c, int n, const ls_forecast_world *w, ls_compress_kind kind,
                    double *step_s_p, ls_error *e) {
    ls_config with = *c;
    ls_layout l;
    ls_forecast f;
    set_kind(&with, kind);
    ls_layout_config_distributed(&with);
    ls_config_forget_written(&with); /* it is not as it was written */
    if (ls_config_check(&with, "config", e) != LS_OK) return false;
    if (ls_layout_make(&with, n, NULL, &l, e) != LS_OK) return false;
    bool differs = kind == LS_COMPRESS_OFF || ls_layout_encodes(&l.plan);
    ls_status s = differs ? ls_forecast_plan(&with, &l.plan, w, &f, e) : LS_EINVAL;
    ls_layout_free(&l);
    *step_s_p = s == LS_OK ? f.step_s : 0;
    return s == LS_OK;
}

static ls_status choose(ls_config *c, int n, const ls_forecast_world *w, ls_error *e) {
    double best = 0;
    const candidate *chosen = &candidates[0];
    ls_buf text = {0};
    ls_error why[NCANDIDATES] = {0};
    for (int i = 0; i < NCANDIDATES; i++) {
        const candidate *x = &candidates[i];
        double step_s = 0;
        if (!predict(c, n, w, x->kind, &step_s, &why[i])) continue;
        ls_buf_printf(&text, "%s%s %.3g s", text.len ? ", " : "", x->name, step_s);
        if (x->times > 1) ls_buf_printf(&text, " (%g times the steps)", x->times);
        if (x->kind == LS_COMPRESS_OFF) best = WORTH * step_s;
        if (x->kind == LS_COMPRESS_OFF || x->times * step_s >= best) continue;
        best = x->times * step_s;
        chosen = x;
    }
    if (best == 0) {
        ls_buf_free(&text);
        return ls_fail(e, LS_EINVAL,
                       "compress.kind auto: no step of this config can be predicted; "
                       "set compress.kind, or leave it out: %s",
                       why[0].msg);
    }
    ls_log(
        "compress.kind auto: %s, for %d workers on hosts with %.3g Mbit/s; predicted steps: %s%s",
        chosen->name, n, 8e-6 / w->byte_s, text.data,
        chosen->kind == LS_COMPRESS_OFF ? "; no code saves a tenth" : "");
    set_kind(c, chosen->kind);
    ls_buf_free(&text);
    return LS_OK;
}

ls_status ls_choose_code(ls_config *c, int nworkers, int hosts, ls_error *e) {
    ls_machine m;
    ls_link link;
    if (hosts <= 1) {
        set_kind(c, LS_COMPRESS_OFF);
        ls_log("compress.kind auto: none, since all workers are on this host");
        return LS_OK;
    }
    if (!*c->compress.machine || !*c->compress.links)
        return ls_fail(e, LS_EINVAL,
                       "compress.kind auto needs measured speeds, the same files on all hosts: set "
                       "compress.machine to what `lockstep bench machine --save FILE` writes, and "
                       "compress.links to what `lockstep bench comm --save FILE` writes between "
                       "the hosts");
    LS_TRY(ls_link_read(c->compress.links, &link, e));
    LS_TRY(ls_machine_read(c->compress.machine, &m, e));
    const ls_forecast_world w = {.machine = &m,
                                 .host_workers = nworkers,
                                 .latency_s = link.latency_s,
                                 .byte_s = link.byte_s};
    ls_status s = choose(c, nworkers * hosts, &w, e);
    ls_machine_free(&m);
    return s;
}
