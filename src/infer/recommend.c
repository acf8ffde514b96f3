/* recommend.c - see recommend.h. */
#include "infer/recommend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "infer/rater.h"
#include "report/predictions.h"
#include "source/tables/ratings.h"
#include "storage/checkpoint.h"

struct ls_recommender {
    ls_predictor *p;
    ls_recommender_options o;
    ls_rater rater;
    ls_dataset data; /* the run's ratings; empty: `seen` */
    int32_t *list;   /* [n] the numbers of the users, or items, that are asked for */
    uint64_t n;
    float *vectors; /* [items][C] of length 1; NULL: they are not wanted */
    int64_t C;
};

static int32_t nitems(const ls_recommender *r) { return r->rater.item_names->n; }

/* ---- vectors of items ---- */

/* The last layer that reads items alone and has several numbers of each; -1: there is none. */
static int find_layer(const ls_recommender *r) {
    const ls_model *m = &r->p->trained.model;
    bool *layers = ls_alloc((size_t)m->nlayers), *needed = ls_alloc((size_t)m->nlayers);
    bool fields[LS_SOURCE_FIELDS];
    int found = -1;
    ls_predictions_need(m, r->p->list, r->p->n, needed, fields);
    for (int i = 0; i < m->nlayers; i++) {
        const ls_prediction one = {.layer = i};
        if (!needed[i] || m->layers[i].traits.loss) continue;
        ls_predictions_need(m, &one, 1, layers, fields);
        bool alone = fields[r->rater.items - m->inputs];
        for (int k = 0; k < m->ninputs; k++)
            alone = alone && (!fields[k] || &m->inputs[k] == r->rater.items);
        int64_t floats = (int64_t)m->layers[i].y_floats;
        if (alone && floats % r->rater.width == 0 && floats > r->rater.width) found = i;
    }
    free(layers);
    free(needed);
    return found;
}

static void make_unit(float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; sum > 0 && i < n; i++) x[i] = (float)((double)x[i] / sqrt(sum));
}

/* A prediction of items for a user. */
typedef struct query {
    const ls_prediction *of;
    int32_t user;
    const int32_t *items; /* [n] */
    int64_t n;
} query;

/* out [n][each], and room for a sample more. */
static ls_status run(const ls_recommender *r, const query *q, float *out, ls_error *e) {
    int64_t most = r->p->batch, each = ls_prediction_count(q->of) / r->rater.width;
    size_t nbytes = r->p->trained.model.sample_nbytes;
    char *samples = ls_alloc((size_t)most * nbytes);
    ls_status s = LS_OK;
    for (int64_t done = 0; s == LS_OK && done < q->n;) {
        int64_t k = 0, begin = done;
        for (; k < most && done < q->n; k++) {
            int64_t some = q->n - done < r->rater.width ? q->n - done : r->rater.width;
            ls_rater_fill(&r->rater, q->user, q->items + done, some, samples + (size_t)k * nbytes);
            done += some;
        }
        s = ls_predictor_run_as(r->p, q->of, k, samples, out + begin * each, e);
    }
    free(samples);
    return s;
}

static int32_t *count_items(const ls_recommender *r) {
    int32_t *all = LS_NEW_ARRAY(int32_t, (size_t)nitems(r) + 1);
    for (int32_t i = 0; i < nitems(r); i++) all[i] = i;
    return all;
}

static ls_status make_vectors(ls_recommender *r, ls_error *e) {
    const ls_model *m = &r->p->trained.model;
    int layer = find_layer(r);
    if (layer < 0)
        return ls_fail(e, LS_EINVAL, "%s: has no layer that reads items alone, to compare them by",
                       r->p->trained.path);
    ls_prediction x = {.kind = LS_NUMBERS, .layer = layer, .rows = r->rater.width};
    x.width = (int64_t)m->layers[layer].y_floats / r->rater.width;
    r->C = x.width;
    r->vectors = LS_NEW_ARRAY(float, (size_t)((nitems(r) + r->rater.width) * r->C));
    int32_t *all = count_items(r);
    ls_status s = run(r, &(query){&x, 0, all, nitems(r)}, r->vectors, e);
    for (int32_t i = 0; s == LS_OK && i < nitems(r); i++) make_unit(r->vectors + i * r->C, r->C);
    free(all);
    return s;
}

/* ---- opening ---- */

static ls_status check_scores(const ls_recommender *r, ls_error *e) {
    if (ls_prediction_count(&r->p->list[0]) == r->rater.width) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the model's first prediction is no score of each item",
                   r->p->trained.path);
}

/* texts [n]: of users, or of items; none: all. */
static ls_status find_ids(ls_recommender *r, bool users, const char *const *texts, int n,
                          ls_error *e) {
    const ls_id_names *ids = users ? r->rater.user_names : r->rater.item_names;
    r->n = n ? (uint64_t)n : (uint64_t)ids->n;
    r->list = LS_NEW_ARRAY(int32_t, (size_t)r->n + 1);
    for (uint64_t i = 0; i < r->n; i++) {
        r->list[i] = n ? ls_id_find(ids, texts[i], strlen(texts[i])) : (int32_t)i;
        if (r->list[i] < 0)
            return ls_fail(e, LS_EINVAL,
                           "--%s: '%.100s' is not in the column '%.60s' of the "
                           "training data",
                           users ? "user" : "similar", texts[i],
                           r->rater.ids.columns[users ? 0 : 1].name);
    }
    return LS_OK;
}

/* The run's ratings say which items a user has chosen. */
static ls_status open_ratings(ls_recommender *r, ls_error *e) {
    const ls_trained *t = &r->p->trained;
    ls_error why = {0};
    if (r->o.seen || r->o.nitems) return LS_OK;
    LS_TRY(ls_trained_needs_own_data(t, e));
    char *run = ls_checkpoint_run(t->path);
    ls_status s = ls_dataset_open(&r->data, run, &t->config, &t->model, &why);
    free(run);
    if (s != LS_OK)
        return ls_fail(e, s,
                       "%.400s; --seen recommends also what users have chosen, and needs no "
                       "ratings",
                       why.msg);
    return LS_OK;
}

ls_status ls_recommender_open(ls_predictor *p, const ls_recommender_options *o,
                              ls_recommender **r_p, ls_error *e) {
    ls_recommender *r = LS_NEW(ls_recommender);
    r->p = p;
    r->o = *o;
    ls_status s = ls_rater_open(p, &r->rater, e);
    if (s == LS_OK) s = check_scores(r, e);
    if (s == LS_OK && o->nitems)
        s = find_ids(r, false, o->items, o->nitems, e);
    else if (s == LS_OK)
        s = find_ids(r, true, o->users, o->nusers, e);
    if (s == LS_OK) s = open_ratings(r, e);
    if (s == LS_OK && o->nitems) s = make_vectors(r, e);
    if (s == LS_OK)
        *r_p = r;
    else
        ls_recommender_close(r);
    return s;
}

void ls_recommender_close(ls_recommender *r) {
    if (!r) return;
    ls_rater_close(&r->rater);
    if (r->data.samples) ls_dataset_free(&r->data);
    free(r->list);
    free(r->vectors);
    free(r);
}

uint64_t ls_recommender_count(const ls_recommender *r) { return r->n; }

/* ---- rows ---- */

static int64_t list_unseen(const ls_recommender *r, int32_t user, int32_t *items) {
    int64_t n = 0;
    const ls_ratings *ratings = r->data.samples ? r->data.samples->ratings : NULL;
    for (int32_t i = 0; i < nitems(r); i++)
        if (!ratings || !ls_ratings_has(&ratings->training, user, i)) items[n++] = i;
    return n;
}

static int64_t list_others(const ls_recommender *r, int32_t item, int32_t *items, float *scores) {
    int64_t n = 0;
    const float *a = r->vectors + item * r->C;
    for (int32_t i = 0; i < nitems(r); i++) {
        const float *b = r->vectors + i * r->C;
        double sum = 0;
        if (i == item) continue;
        for (int64_t k = 0; k < r->C; k++) sum += (double)a[k] * (double)b[k];
        items[n] = i;
        scores[n++] = (float)sum;
    }
    return n;
}

typedef struct words {
    const char *what, *list, *one, *score;
} words;

static words words_of(const ls_recommender *r) {
    return r->o.nitems ? (words){"item", "similar", "item", "similarity"}
                       : (words){"user", "items", "item", "score"};
}

void ls_recommender_begin(const ls_recommender *r, ls_buf *b) {
    words w = words_of(r);
    if (r->o.json) return;
    ls_buf_printf(b, "%s,rank,%s,%s\n", w.what, r->o.nitems ? w.list : w.one, w.score);
}

/* The items of a user, or those that are similar to an item. */
typedef struct found {
    const int32_t *items;
    const float *scores;
    int64_t top[LS_PREDICTED_TOP]; /* [n] the numbers of those that are written */
    int64_t n;
} found;

static const char *item_of(const ls_recommender *r, const found *f, int64_t i) {
    return ls_id_name(r->rater.item_names, f->items[f->top[i]]);
}

static void put_json(const ls_recommender *r, const char *name, const found *f, ls_buf *b) {
    words w = words_of(r);
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    ls_json_set_path(o, w.what, name);
    for (int64_t i = 0; i < f->n; i++) {
        ls_json *one = ls_json_new_object();
        ls_json_set_path(one, w.one, item_of(r, f, i));
        ls_json_set_number(one, w.score, (double)f->scores[f->top[i]]);
        ls_json_push(list, one);
    }
    ls_json_set(o, w.list, list);
    ls_json_write(o, 0, b);
    ls_buf_printf(b, "\n");
    ls_json_free(o);
}

static void put_csv(const ls_recommender *r, const char *name, const found *f, ls_buf *b) {
    for (int64_t i = 0; i < f->n; i++) {
        ls_csv_put(b, name);
        ls_buf_printf(b, ",%lld,", (long long)i + 1);
        ls_csv_put(b, item_of(r, f, i));
        ls_buf_printf(b, ",%.9g\n", (double)f->scores[f->top[i]]);
    }
}

static ls_status add_one(const ls_recommender *r, int32_t id, int32_t *items, float *scores,
                         ls_buf *b, ls_error *e) {
    int64_t n = 0;
    if (r->o.nitems) {
        n = list_others(r, id, items, scores);
    } else {
        n = list_unseen(r, id, items);
        LS_TRY(run(r, &(query){&r->p->list[0], id, items, n}, scores, e));
    }
    found f = {.items = items, .scores = scores};
    f.n = ls_top_of(scores, n, r->o.top, f.top);
    while (f.n && isnan(scores[f.top[f.n - 1]])) f.n--;
    const char *name = ls_id_name(r->o.nitems ? r->rater.item_names : r->rater.user_names, id);
    (r->o.json ? put_json : put_csv)(r, name, &f, b);
    return LS_OK;
}

ls_status ls_recommender_rows(const ls_recommender *r, uint64_t first, uint64_t end, ls_buf *b,
                              ls_error *e) {
    size_t room = (size_t)(nitems(r) + r->rater.width);
    int32_t *items = LS_NEW_ARRAY(int32_t, room);
    float *scores = LS_NEW_ARRAY(float, room);
    ls_status s = LS_OK;
    for (uint64_t i = first; s == LS_OK && i < end; i++)
        s = add_one(r, r->list[i], items, scores, b, e);
    free(items);
    free(scores);
    return s;
}
