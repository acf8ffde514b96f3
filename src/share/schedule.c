/* schedule.c - see schedule.h. */
#include "share/schedule.h"

static const char *const schedules[] = {ls_pipe_kind_words(LS_CHOICE_WORD)};

const char *ls_pipe_name(ls_pipe_kind kind) { return schedules[kind]; }

bool ls_pipe_splits(ls_pipe_kind kind) { return kind == LS_PIPE_ZB_H1 || kind == LS_PIPE_ZB_V; }
bool ls_pipe_is_chunked(ls_pipe_kind kind) {
    return kind == LS_PIPE_INTERLEAVED || kind == LS_PIPE_ZB_V;
}

int ls_pipe_npasses(const ls_pipe_schedule *s) {
    return (ls_pipe_splits(s->kind) ? 3 : 2) * s->chunks * s->micros;
}

int ls_pipe_stage(const ls_pipe_schedule *s, int rank, int chunk) {
    bool back = s->kind == LS_PIPE_ZB_V && chunk == 1;
    return back ? 2 * s->workers - 1 - rank : chunk * s->workers + rank;
}

void ls_pipe_place(const ls_pipe_schedule *s, int stage, int *rank_p, int *chunk_p) {
    bool back = s->kind == LS_PIPE_ZB_V && stage >= s->workers;
    *rank_p = back ? 2 * s->workers - 1 - stage : stage % s->workers;
    *chunk_p = stage / s->workers;
}

/* Interleaved schedules take micro-batches in groups: at least P in each, as a smaller group would
 * make workers wait for each other. Larger groups come first. */
typedef struct group {
    int first, size;
} group;

static group group_of(const ls_pipe_schedule *s, int number) {
    int groups = s->micros / s->workers > 1 ? s->micros / s->workers : 1;
    int size = s->micros / groups, larger = s->micros % groups;
    return (group){number * size + (number < larger ? number : larger), size + (number < larger)};
}

/* The i-th forward pass of a worker: a group of micro-batches through its first chunk, the same
 * through the next chunk, and so on; then the next group. Backward passes take the chunks from the
 * last to the first. */
static ls_pass pass_at(const ls_pipe_schedule *s, int i, bool backward) {
    int number = 0;
    group g = group_of(s, 0);
    if (s->chunks == 1) return (ls_pass){backward, 0, i, LS_BACK_ALL};
    while (i >= (g.first + g.size) * s->chunks) g = group_of(s, ++number);
    int at = i - g.first * s->chunks, chunk = at / g.size;
    return (ls_pass){backward, backward ? s->chunks - 1 - chunk : chunk, g.first + at % g.size,
                     LS_BACK_ALL};
}

/* Forward passes before the first backward one. */
static int warmup(const ls_pipe_schedule *s, int rank) {
    int all = s->chunks * s->micros, behind = s->workers - 1 - rank;
    int n = s->kind == LS_PIPE_GPIPE ? all
            : s->chunks == 1         ? behind
                                     : 2 * behind + (s->chunks - 1) * group_of(s, 0).size;
    return n < all ? n : all;
}

/* Worker r holds back r micro-batches' gradients of parameters, and so has as many activations as
 * worker 0. */
static void list_zb_h1(const ls_pipe_schedule *s, int rank, ls_pass *passes) {
    int all = s->micros, ahead = warmup(s, rank), n = 0, done = 0;
    for (int i = 0; i < ahead; i++) passes[n++] = (ls_pass){false, 0, i, LS_BACK_ALL};
    for (int i = 0; i < all; i++) {
        if (ahead + i < all) passes[n++] = (ls_pass){false, 0, ahead + i, LS_BACK_ALL};
        passes[n++] = (ls_pass){true, 0, i, LS_BACK_INPUTS};
        if (i >= rank) passes[n++] = (ls_pass){true, 0, done++, LS_BACK_PARAMS};
    }
    while (done < all) passes[n++] = (ls_pass){true, 0, done++, LS_BACK_PARAMS};
}

/* A list of zb-v: the next micro-batch of each chunk's passes. */
typedef struct v_list {
    ls_pass *passes;
    int n, micros; /* those that exist */
    int forward[2], inputs[2], params[2];
} v_list;

static void add_v(v_list *l, bool backward, int chunk, int *next, ls_back back) {
    if (*next < l->micros) l->passes[l->n++] = (ls_pass){backward, chunk, *next, back};
    (*next)++;
}

static void add_forward(v_list *l, int chunk) {
    add_v(l, false, chunk, &l->forward[chunk], LS_BACK_ALL);
}
static void add_inputs(v_list *l, int chunk) {
    add_v(l, true, chunk, &l->inputs[chunk], LS_BACK_INPUTS);
}
static void add_params(v_list *l, int chunk) {
    add_v(l, true, chunk, &l->params[chunk], LS_BACK_PARAMS);
}

/* Until the gradients come back, chunk 0 goes ahead by what the V's other half needs; then the two
 * chunks take turns. With fewer than 2 P - 1 micro-batches, the order is that of 2 P - 1, without
 * those that are missing. */
static void list_zb_v(const ls_pipe_schedule *s, int rank, ls_pass *passes) {
    int ahead = s->workers - rank, all = 2 * s->workers - 1;
    v_list l = {.passes = passes, .micros = s->micros};
    if (s->micros > all) all = s->micros;
    for (int i = 0; i < 2 * ahead - 1; i++) add_forward(&l, 0);
    for (int i = 0; i < rank; i++) {
        add_forward(&l, 1);
        add_forward(&l, 0);
    }
    for (int i = 0; i < ahead; i++) {
        add_forward(&l, 1);
        add_inputs(&l, 1);
        add_params(&l, 1);
    }
    while (l.forward[1] < all) {
        if (l.forward[0] < all) add_forward(&l, 0);
        add_inputs(&l, 0);
        add_params(&l, 0);
        add_forward(&l, 1);
        add_inputs(&l, 1);
        add_params(&l, 1);
    }
    for (int i = 0; i < rank; i++) {
        add_inputs(&l, 0);
        add_inputs(&l, 1);
    }
    while (l.inputs[0] < all) {
        add_inputs(&l, 0);
        add_params(&l, 0);
    }
    while (l.params[1] < all) add_params(&l, 1);
    while (l.params[0] < all) add_params(&l, 0);
}

void ls_pipe_list(const ls_pipe_schedule *s, int rank, ls_pass *passes) {
    int all = s->chunks * s->micros, ahead = warmup(s, rank), n = 0;
    if (s->kind == LS_PIPE_ZB_H1) {
        list_zb_h1(s, rank, passes);
        return;
    }
    if (s->kind == LS_PIPE_ZB_V) {
        list_zb_v(s, rank, passes);
        return;
    }
    for (int i = 0; i < ahead; i++) passes[n++] = pass_at(s, i, false);
    for (int i = 0; i < all; i++) {
        if (ahead + i < all) passes[n++] = pass_at(s, ahead + i, false);
        passes[n++] = pass_at(s, i, true);
    }
}

/* In a worker's passes for one micro-batch, which take 3: (P - 1) of them, with several chunks a
 * v-th; split, (P - 1) (F + I - W). */
double ls_pipe_bubble(const ls_pipe_schedule *s) {
    double idle = (ls_pipe_splits(s->kind) ? 1.0 : 3.0) * (s->workers - 1) / s->chunks;
    return idle / (3.0 * s->micros + idle);
}
