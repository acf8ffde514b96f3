/* print.c - prints a plan, one line an action, and hashes it. */
#include "plan/plan.h"
#include "share/config.h"

enum { SOME_NBYTES = 1 << 16 };

static const char *factor_name(const ls_plan *p, const ls_action *a) {
    if (!p->share.has_factors) return "";
    return a->round ? ", second factor" : ", first factor";
}

static void print_mix(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_share *sh = &p->share;
    int into = sh->buckets[a->bucket].island;
    ls_buf_printf(out, "  bucket %-3d replica %d %s %g * replica %d", a->bucket, into - 1,
                  a->start ? "=" : "+=", sh->sync.mix->of[into - 1][a->island - 1], a->island - 1);
}

static void print_chosen(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    if (!c) return;
    ls_buf_printf(out, " at most: rows that choose experts %lld to %lld by %s, about %.0f",
                  (long long)c->first, (long long)c->end - 1,
                  p->share.model->layers[c->scores].name, ls_plan_sent_nbytes(p, a));
}

static void print_details(const ls_plan *p, const ls_action *a, ls_buf *out) {
    const ls_share *sh = &p->share;
    char name[96];
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD:
        ls_buf_printf(out, "  %-10s vw %d", sh->model->layers[a->layer].name, a->vw);
        if (a->micro >= 0)
            ls_buf_printf(out, " micro %d", a->micro);
        else
            ls_buf_printf(out, " all micros");
        if (a->kind == LS_BACKWARD)
            ls_buf_printf(out, "  sum %d%s%s", a->slot, a->start ? " (start)" : "",
                          a->back == LS_BACK_INPUTS   ? ", of inputs"
                          : a->back == LS_BACK_PARAMS ? ", of parameters"
                                                      : "");
        break;
    case LS_SQUARES:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d", a->bucket, a->vw, a->slot);
        break;
    case LS_ENCODE:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d, %s%s", a->bucket, a->vw, a->slot,
                      ls_compression_name(sh->compress.how.kind), factor_name(p, a));
        break;
    case LS_ADD:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d += sum %d%s", a->bucket, a->vw, a->slot,
                      a->from, a->summed ? ", over all workers" : "");
        break;
    case LS_DECODE: ls_buf_printf(out, "  bucket %-3d", a->bucket); break;
    case LS_EXCHANGE:
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE:
    case LS_ALL_GATHER:
        if (a->bucket == LS_SCALARS && a->axis == LS_AXIS_ISLAND) {
            ls_buf_printf(out, "  norm of replica %d  %lld bytes a worker", a->island - 1,
                          (long long)a->nbytes);
            break;
        }
        if (a->kind == LS_ALL_REDUCE && a->bucket == LS_SCALARS) {
            ls_buf_printf(out, "  norm, loss  %lld bytes a worker", (long long)a->nbytes);
            break;
        }
        ls_buf_printf(out, "  bucket %-3d [%zu, %zu)  %lld bytes a worker", a->bucket,
                      sh->buckets[a->bucket].first, sh->buckets[a->bucket].end,
                      (long long)a->nbytes);
        if (a->kind == LS_EXCHANGE) ls_buf_printf(out, "%s", factor_name(p, a));
        if (a->axis == LS_AXIS_ISLAND)
            ls_buf_printf(out, ", of replica %d, workers %d to %d", a->island - 1, a->of.from,
                          a->of.to - 1);
        if (a->axis == LS_AXIS_STAGE)
            ls_buf_printf(
                out, a->of.step > 1 ? ", of workers %d to %d, each %d" : ", of workers %d to %d",
                a->of.from, a->of.to - 1, a->of.step);
        if (sh->nreplicas > 1 && a->axis != LS_AXIS_ALL)
            ls_buf_printf(out,
                          a->axis == LS_AXIS_SHARDS ? ", in groups of %d"
                                                    : ", of its shard, among %d groups",
                          a->axis == LS_AXIS_SHARDS ? sh->nshards : sh->nreplicas);
        break;
    case LS_DELTA:
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d, replica %d", a->bucket, a->vw, a->slot,
                      ls_share_island_of(sh, a->vw) - 1);
        break;
    case LS_COPY: ls_buf_printf(out, "  bucket %-3d", a->bucket); break;
    case LS_MIX: print_mix(p, a, out); break;
    case LS_UPDATE: {
        ls_range s = ls_share_owned(sh, a->bucket, a->worker);
        ls_buf_printf(out, "  bucket %-3d [%zu, %zu)", a->bucket, s.first, s.end);
        break;
    }
    case LS_SEND:
        if (sh->task == LS_TASK_MIX) {
            ls_buf_printf(out, "  to w%-3d bucket %d of replica %d  %lld bytes", a->peer,
                          ls_share_common_bucket(sh, a->bucket), a->island - 1,
                          (long long)a->nbytes);
            break;
        }
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  to w%-3d %s", a->peer, name);
        if (a->micro >= 0) ls_buf_printf(out, "  vw %d micro %d", a->vw, a->micro);
        ls_buf_printf(out, "  %lld bytes", (long long)a->nbytes);
        print_chosen(p, a, out);
        break;
    case LS_TAKE:
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  bucket %-3d vw %d  sum %d = %s, from w%d", a->bucket, a->vw, a->slot,
                      name, a->peer);
        break;
    case LS_FREE:
        ls_plan_buffer_name(p, a->buffer, name, sizeof name);
        ls_buf_printf(out, "  %s  %zu bytes", name, ls_plan_buffer_nbytes(p, a->buffer, a->worker));
        break;
    default: break;
    }
}

void ls_plan_print_action(const ls_plan *p, int i, ls_buf *out) {
    const ls_action *a = &p->actions[i];
    if (a->worker == LS_ALL_WORKERS)
        ls_buf_printf(out, "%6d  all  %-13s", i, ls_action_kind_name(a->kind));
    else
        ls_buf_printf(out, "%6d  w%-3d %-13s", i, a->worker, ls_action_kind_name(a->kind));
    print_details(p, a, out);
    if (a->phase == LS_PHASE_VALUES) ls_buf_printf(out, ", in the warm-up");
    ls_buf_append(out, "\n", 1);
}

int ls_plan_print_some(const ls_plan *p, int worker, int first, ls_buf *out) {
    int i = first;
    for (; i < p->nactions && out->len < SOME_NBYTES; i++)
        if (worker == LS_ALL_WORKERS || ls_action_concerns(&p->actions[i], worker))
            ls_plan_print_action(p, i, out);
    return i;
}

ls_hash ls_plan_hash(const ls_plan *p) {
    const ls_share *sh = &p->share;
    ls_buf text = {0};
    ls_hasher *h = ls_hasher_new();
    ls_buf_printf(&text, "n %d V %d batch %lld micro %lld tree %d compute %s reduce %s\n",
                  sh->nworkers, sh->V, (long long)sh->batch, (long long)sh->micro_batch,
                  sh->config->tree, ls_dtype_name(sh->compute), ls_dtype_name(sh->reduce));
    for (int w = 0; sh->ranges && w < sh->nworkers; w++)
        ls_buf_printf(&text, "worker %d from %d\n", w, sh->ranges[w]);
    if (sh->ncells > 1)
        ls_buf_printf(&text, "pipe %d tensor %d chunks %d\n", sh->pipe, sh->tensor,
                      sh->config->chunks);
    if (sh->nchunks > 1)
        ls_buf_printf(&text, "%s %d of %d\n", ls_share_context_name(sh->model), sh->context,
                      sh->nchunks);
    const ls_share_compress *z = &sh->compress;
    if (z->on)
        ls_buf_printf(
            &text,
            "compress %s feedback %d ratio %g block %zu rank %d warmup %lld min %zu momentum %g\n",
            ls_compression_name(z->how.kind), (int)z->how.feedback, z->how.ratio, z->how.block,
            z->how.rank, (long long)z->warmup, z->min_count, z->momentum);
    for (int at = 0; at < p->nactions; text.len = 0) {
        at = ls_plan_print_some(p, LS_ALL_WORKERS, at, &text);
        ls_hasher_add(h, text.data, text.len);
    }
    ls_buf_free(&text);
    return ls_hasher_finish(h);
}
