/* rescale.c - see rescale.h. */
#include "train/rescale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"

/* Explains what limits the number of workers, and whether that can be changed. */
static void explain_limit(const ls_host *h, bool too_few, char *text, size_t nbytes) {
    const ls_config *c = &h->run->config;
    int64_t V = c->train.virtual_workers, limit = c->survival.max_workers;
    int most = h->survival.most;
    if (too_few)
        snprintf(text, nbytes, "survival.min_workers is %lld; --resume can begin with another",
                 (long long)c->survival.min_workers);
    else if (most == ls_config_most_workers(c))
        snprintf(text, nbytes, "train.virtual_workers is %lld, fixed when the run began",
                 (long long)V);
    else if (most == limit || (limit == 0 && most == LS_SCALE_MOST))
        snprintf(text, nbytes,
                 "survival.max_workers is %lld%s; --resume can begin with another, up to "
                 "train.virtual_workers %lld",
                 (long long)limit, limit ? "" : " (at most 256)", (long long)V);
    else
        snprintf(text, nbytes, "there was no memory for the state of more when it started");
}

/* Answers "scale N", after a check that there is a plan for N workers. */
static void scale(ls_host *h, const char *words, char answer[LS_CONTROL_LINE]) {
    ls_supervisor *s = &h->survival;
    ls_layout layout;
    ls_error e = {0};
    char *end = NULL;
    long n = strtol(words, &end, 10);
    if (!*words || *end) {
        snprintf(answer, LS_CONTROL_LINE, "error '%.40s' is not a number of workers", words);
        return;
    }
    if (n < s->least || n > s->most) {
        char why[128] = "";
        if (n >= 1) explain_limit(h, n < s->least, why, sizeof why);
        snprintf(answer, LS_CONTROL_LINE, "error %.40s workers: this run can have %d to %d%s%s",
                 words, s->least, s->most, *why ? ": " : "", why);
        return;
    }
    int most = (int)h->run->config.parallel.shard_group;
    if (ls_layout_make_nearest(&h->run->config, (int)n, most, NULL, &layout, &e) != LS_OK) {
        snprintf(answer, LS_CONTROL_LINE, "error %.200s", e.msg);
        return;
    }
    ls_layout_free(&layout);
    snprintf(answer, LS_CONTROL_LINE, "ok from %d to %ld worker%s, after the step in flight",
             h->layout.plan.share.nworkers, n, ls_plural(n));
    s->wanted = (int)n;
}

void ls_scale_answer(ls_host *h) {
    char line[LS_CONTROL_LINE], answer[LS_CONTROL_LINE] = "error unknown request";
    ls_error e = {0};
    if (!h->run->dir || ls_folder_phase_of(&h->notes->folder) != LS_FOLDER_MADE) return;
    if (!h->control && ls_control_open(h->run->dir, &h->control, &e) != LS_OK) return;
    if (!ls_control_next(h->control, line)) return;
    if (strncmp(line, "scale ", 6) == 0) scale(h, line + 6, answer);
    ls_control_answer(h->control, answer);
}
