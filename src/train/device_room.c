/* device_room.c - see device_room.h. */
#include "train/device_room.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "networks/network.h"
#include "plan/memory.h"
#include "train/host_memory.h"
#include "train/layout.h"

/* Gradients, the shares of sums, new parameters: about as many bytes to a device as from it. */
static double copied_mb(const ls_config *c, int nworkers) {
    ls_model m;
    if (ls_network_create_cut(c, &m, NULL) != LS_OK) return 0;
    double mb = (double)(m.count - m.frozen_count) * sizeof(float) * (1 + 1.0 / nworkers) / 1e6;
    ls_model_free(&m);
    return mb;
}

/* One process plays all workers, on one device. */
static bool plays_all(const ls_config *c) { return c->parallel.executor == LS_EXECUTOR_SEQUENTIAL; }

ls_status ls_device_room_try(ls_config *c, int nworkers, ls_device_trial *t, ls_error *e) {
    *t = (ls_device_trial){0};
    if (!ls_config_has_device(c)) return LS_OK;
    bool links = ls_layout_links_devices(c) && c->parallel.device_link != LS_DEVICE_LINK_NCCL &&
                 ls_device_shares(c->parallel.device) && nworkers > 1;
    if (ls_device_is_kind(c->parallel.device, "c")) return LS_OK;
    ls_device_try(c->parallel.device, plays_all(c) ? 1 : nworkers, links, t);
    if (!links || t->links || t->n < 2)
        return LS_OK; /* of those that don't open, the run says it */
    if (c->parallel.device_link == LS_DEVICE_LINK_PEERS)
        return ls_fail(e, LS_EINVAL, "parallel.device_link: peers: %s; use host, or leave it out",
                       t->why);
    c->parallel.device_link = LS_DEVICE_LINK_HOST;
    ls_log(
        "parallel.device_link auto: cores sum, since %s; each step copies about %.3g MB from each "
        "device, and as much to it",
        t->why, copied_mb(c, nworkers));
    return LS_OK;
}

/* A worker's part of a device that several have, each of which needs a context of its own. */
static double part_of(const ls_device_trial *t, int sharing) {
    enum { CONTEXT_NBYTES = 512 << 20 };
    double context = (double)(t->room.all - t->room.free);
    if (context > CONTEXT_NBYTES) context = CONTEXT_NBYTES;
    return ((double)t->room.free - context * (sharing - 1)) / sharing;
}

static const struct {
    const char *name;
    size_t at;
} lines[] = {
#define LINE(name, member)                                                                         \
    { name, offsetof(ls_device_memory, member) }
    LINE("parameters", params),         LINE("the optimizer's states", state),
    LINE("gradients", grads),           LINE("activations", arena),
    LINE("a layer's work", work),       LINE("samples", samples),
    LINE("numbers in 16 bits", halves), LINE("frozen parameters", held),
    LINE("sums over workers", sums),    LINE("sums of other workers", incoming)};
enum { NLINES = sizeof lines / sizeof *lines };

static size_t line_of(const ls_device_memory *m, int i) {
    size_t nbytes = 0;
    memcpy(&nbytes, (const char *)m + lines[i].at, sizeof nbytes);
    return nbytes;
}

static size_t all_of(const ls_device_memory *m) {
    size_t all = m->losses + m->norms + m->weights;
    for (int i = 0; i < NLINES; i++) all += line_of(m, i) + (line_of(m, i) ? LS_DEVICE_PAGE : 0);
    return all + 2 * (size_t)LS_DEVICE_PAGE;
}

static int largest(const ls_device_memory *m) {
    int most = 0;
    for (int i = 1; i < NLINES; i++)
        if (line_of(m, i) > line_of(m, most)) most = i;
    return most;
}

/* Adapters are for a model that has none yet, of kind llama. */
static bool can_adapt(const ls_config *c) {
    return c->model.kind == LS_MODEL_LLAMA && !c->lora.rank && !*c->model.adapter;
}

static const char *advice(const ls_config *c, const ls_plan *p, const char *most) {
    bool adapts = can_adapt(c);
    if (strcmp(most, "activations") == 0 || strcmp(most, "a layer's work") == 0) {
        if (c->train.micro_batch > ls_layout_micro_unit(c)) return "a smaller train.micro_batch";
        if (c->parallel.recompute == 0) return "parallel.recompute=2, or a smaller model.context";
        return "a smaller model.context or parallel.mesh.pipe";
    }
    if (strcmp(most, "the optimizer's states") == 0) {
        if (p->share.nworkers > 1 && c->parallel.zero == 0)
            return "parallel.zero=1, or parallel.optimizer_state=memory";
        return adapts ? "parallel.optimizer_state=memory, or lora.rank=8"
                      : "parallel.optimizer_state=memory";
    }
    if (strcmp(most, "samples") == 0) return "a smaller train.batch";
    if (strcmp(most, "gradients") == 0 && p->share.V > p->share.nworkers)
        return adapts ? "fewer train.virtual_workers, more workers, or lora.rank=8"
                      : "fewer train.virtual_workers, or more workers";
    return adapts ? "lora.rank=8, parallel.mesh.pipe, or a smaller model"
                  : "parallel.mesh.pipe, or a smaller model";
}

/* The worker that needs most, and its largest lines: "activations 21.0 GB, gradients 9.1 GB". */
static ls_device_memory neediest(const ls_plan *p) {
    ls_device_memory most = ls_plan_device_memory(p, 0);
    for (int w = 1; w < p->share.nworkers; w++) {
        ls_device_memory m = ls_plan_device_memory(p, w);
        if (all_of(&m) > all_of(&most)) most = m;
    }
    return most;
}

static void list_largest(ls_device_memory m, char *text, size_t size) {
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < 3 && n < size; i++) {
        char nbytes[32];
        int most = largest(&m);
        if (line_of(&m, most) == 0) return;
        ls_host_memory_text((double)line_of(&m, most), nbytes);
        n += (size_t)snprintf(text + n, size - n, "%s%s %s", i ? ", " : "", lines[most].name,
                              nbytes);
        memset((char *)&m + lines[most].at, 0, sizeof(size_t));
    }
}

ls_status ls_device_room_fits(const ls_config *c, const ls_plan *p, const ls_device_trial *t,
                              ls_error *e) {
    enum { SPARE = 32 }; /* of which a part is left: kernels take some when they first run */
    if (t->room.free == 0 || !p->share.on_device) return LS_OK;
    bool shared = ls_device_is_numbered(c->parallel.device) || plays_all(c);
    int sharing = shared ? p->share.nworkers : 1;
    ls_device_memory m = neediest(p);
    double free = part_of(t, sharing), all = (double)all_of(&m);
    int most = largest(&m);
    bool once = line_of(&m, most) <= t->room.most;
    char need[32], has[32], whole[32], at_once[64] = "", text[160], block[32];
    if (all <= free - free / SPARE && once) return LS_OK;
    list_largest(m, text, sizeof text);
    if (!once)
        snprintf(at_once, sizeof at_once, ", and at most %s at once",
                 ls_host_memory_text((double)t->room.most, block));
    return ls_fail(e, LS_ENOMEM,
                   "a worker needs %s of its device's memory (%s); device %s (%s) has %s free for "
                   "%s, of %s%s; use %s",
                   ls_host_memory_text(all, need), text, t->device, t->name,
                   ls_host_memory_text(free > 0 ? free : 0, has),
                   sharing > 1 ? "each of the workers that share it" : "it",
                   ls_host_memory_text((double)t->room.all, whole), at_once,
                   advice(c, p, lines[most].name));
}
