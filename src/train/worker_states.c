/* worker_states.c - see worker_states.h. */
#include "train/worker_states.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"

/* Seconds between two files, and between two measurements of memory, which take longer. */
static const double WRITE = 1, MEASURE = 5;
/* Of a look's weight, what is left after a second. */
static const double FADE = 0.977;

static const char *const seen_names[LS_NSEEN] = {"compute", "communicate", "between"};

void ls_worker_states_doing(const ls_layout *l, int action, char *text, size_t nbytes) {
    if (action < 0 || action >= l->plan.nactions) {
        snprintf(text, nbytes, "between steps");
        return;
    }
    const ls_action *a = &l->plan.actions[action];
    bool layer = ls_action_calls_layer(a);
    bool bucket = !layer && a->kind != LS_FREE && a->bucket > 0;
    char what[64] = "";
    if (layer) snprintf(what, sizeof what, " %.60s", l->model.layers[a->layer].name);
    if (bucket) snprintf(what, sizeof what, " bucket %d", a->bucket);
    snprintf(text, nbytes, "%s%s", ls_action_kind_name(a->kind), what);
}

static int seen_of(const ls_plan *p, int action) {
    if (action < 0 || action >= p->nactions) return LS_SEEN_BETWEEN;
    return ls_plan_lane(p, &p->actions[action]) == LS_LANE_COMM ? LS_SEEN_COMMUNICATING
                                                                : LS_SEEN_COMPUTING;
}

/* ---- looking ---- */

static void begin_view(ls_worker_states *s, const ls_worker_states_view *v) {
    ls_memory_config how = ls_layout_memory_config(v->config, v->layout->plan.share.nworkers,
                                                   v->layout->plan.share.nworkers);
    ls_memory most;
    ls_plan_memory(&v->layout->plan, &how, &most);
    free(s->workers);
    s->workers = LS_NEW_ARRAY(ls_worker_seen, (size_t)v->n);
    s->n = v->n;
    s->view = v->number;
    s->planned_nbytes = (int64_t)most.peak;
    s->measured_ns = 0;
}

static void measure(ls_worker_states *s, const ls_worker_states_view *v) {
    for (int i = 0; i < s->n; i++)
        s->workers[i].proportional_nbytes =
            ls_process_proportional_nbytes(atomic_load(&v->board->slots[v->first + i].pid));
}

/* ---- the file ---- */

static ls_json *worker_json(const ls_worker_seen *seen, const ls_worker_states_view *v, int i) {
    int worker = v->first + i;
    const ls_board_slot *slot = &v->board->slots[worker];
    const ls_share *sh = &v->layout->plan.share;
    char doing[128];
    double all = 0;
    ls_json *o = ls_json_new_object();
    int action = atomic_load(&slot->action), pid = atomic_load(&slot->pid);
    ls_worker_states_doing(v->layout, action, doing, sizeof doing);
    ls_json_set_integer(o, "worker", worker);
    ls_json_set_integer(o, "pid", pid);
    ls_json_set_integer(o, "step", atomic_load(&slot->step) + 1);
    ls_json_set_text(o, "doing", doing);
    ls_json_set_text(o, "kind", seen_names[seen_of(&v->layout->plan, action)]);
    ls_json_set_integer(o, "first_virtual", sh->workers[worker].first_vw);
    ls_json_set_integer(o, "virtual", sh->workers[worker].nvws);
    double beat_s = (double)(ls_clock_ns() - atomic_load(&slot->beat_ns)) / 1e9;
    ls_json_set_number(o, "beat_s", beat_s > 0 ? beat_s : 0);
    ls_json_set_number(o, "cpu_s", ls_process_cpu_s(pid));
    ls_json_set_integer(o, "memory_bytes", seen->proportional_nbytes);
    for (int k = 0; k < LS_NSEEN; k++) all += seen->seen[k];
    for (int k = 0; k < LS_NSEEN; k++)
        ls_json_set_number(o, seen_names[k], all > 0 ? seen->seen[k] / all : 0);
    return o;
}

static void write_text(const char *dir, const ls_buf *text) {
    char *path = ls_format("%s/" LS_WORKER_STATES_FILE, dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    bool ok = fd >= 0 && pwrite(fd, text->data, text->len, 0) == (ssize_t)text->len &&
              ftruncate(fd, (off_t)text->len) == 0;
    (void)ok; /* it is for people who look, and comes again in a second */
    if (fd >= 0) close(fd);
    free(path);
}

static void write_states(ls_worker_states *s, const ls_worker_states_view *v) {
    char host[128] = "";
    ls_buf text = {0};
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    gethostname(host, sizeof host - 1);
    ls_json_set_path(o, "host", host);
    ls_json_set_integer(o, "time_s", (int64_t)ls_clock_wall_s());
    ls_json_set_integer(o, "view", s->view);
    ls_json_set_integer(o, "of", v->layout->plan.share.nworkers);
    ls_json_set_integer(o, "planned_bytes", s->planned_nbytes);
    for (int i = 0; i < s->n; i++) ls_json_push(list, worker_json(&s->workers[i], v, i));
    ls_json_set(o, "workers", list);
    ls_json_write(o, 0, &text);
    ls_json_free(o);
    ls_buf_append(&text, "\n", 1);
    write_text(v->dir, &text);
    ls_buf_free(&text);
    s->there = true;
}

static bool has_begun(const ls_worker_states_view *v) {
    for (int i = 0; i < v->n; i++)
        if (atomic_load(&v->board->slots[v->first + i].action) >= 0) return true;
    return false;
}

void ls_worker_states_look(ls_worker_states *s, const ls_worker_states_view *v) {
    int64_t now = ls_clock_ns();
    if (!v->dir || v->number < 1 || v->first != 0 || v->n < 1) return;
    if (v->layout->plan.share.nworkers < v->n) return; /* between two views */
    if (!s->there && !has_begun(v)) return;
    if (s->view != v->number) begin_view(s, v);
    for (int i = 0; i < s->n; i++)
        s->workers[i].seen[seen_of(&v->layout->plan, atomic_load(&v->board->slots[i].action))]++;
    if ((double)(now - s->measured_ns) / 1e9 >= MEASURE) {
        measure(s, v);
        s->measured_ns = now;
    }
    if ((double)(now - s->written_ns) / 1e9 < WRITE) return;
    write_states(s, v);
    s->written_ns = now;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < LS_NSEEN; k++) s->workers[i].seen[k] *= FADE;
}

void ls_worker_states_end(ls_worker_states *s, const char *dir) {
    char *path = dir && s->there ? ls_format("%s/" LS_WORKER_STATES_FILE, dir) : NULL;
    if (path) unlink(path);
    free(path);
    free(s->workers);
    *s = (ls_worker_states){0};
}
