/* ranking.c - see ranking.h. The scores are those that the model gives to samples made of a user
 * and as many items as a sample has. */
#include "infer/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"

enum { SAMPLES = 64 }; /* computed at once */

struct ls_ranking {
    ls_infer infer; /* with memory of its own */
    const ls_model *model;
    const ls_ratings *ratings;
    const ls_field *user, *items; /* of a sample */
    int64_t width;                /* items of a sample */
    const ls_measure *scores;     /* a measure that has them */
    int32_t *users;               /* [nusers] that count */
    uint64_t nusers;
    int nmeasures;
    char *samples;   /* [SAMPLES] */
    double *records; /* [SAMPLES] */
    int32_t *list;   /* [nitems] items that are ranked */
    double *of_list; /* [nitems] their scores */
};

static bool is_ranking(const ls_measure *m) {
    return m->kind == LS_MEASURE_HIT || m->kind == LS_MEASURE_NDCG;
}

static const ls_measure *first_of(const ls_model *m) {
    for (int i = 0; i < m->nmeasures; i++)
        if (is_ranking(&m->measures[i])) return &m->measures[i];
    return NULL;
}

bool ls_ranking_is_wanted(const ls_model *m) { return first_of(m) != NULL; }

/* ---- scores ---- */

/* A sample of the user and items [n] of the list, the last of which fills it up. */
static void fill_sample(const ls_ranking *r, int32_t user, const int32_t *items, size_t n,
                        char *sample) {
    int32_t *to = (int32_t *)(void *)(sample + r->items->offset);
    memset(sample, 0, r->model->sample_nbytes);
    memcpy(sample + r->user->offset, &user, sizeof user);
    for (size_t i = 0; i < (size_t)r->width; i++) to[i] = items[i < n ? i : n - 1];
}

/* Scores [n] of items [n]. */
static ls_status score(ls_ranking *r, int32_t user, const int32_t *items, size_t n, double *scores,
                       ls_error *e) {
    size_t width = (size_t)r->width, size = ls_record_size(r->model), done = 0;
    while (done < n) {
        size_t samples = 0, begin = done;
        for (; samples < SAMPLES && done < n; samples++) {
            size_t some = n - done < width ? n - done : width;
            fill_sample(r, user, items + done, some,
                        r->samples + samples * r->model->sample_nbytes);
            done += some;
        }
        LS_TRY(ls_infer_records(&r->infer, (int64_t)samples, r->samples, r->records, e));
        for (size_t i = begin; i < done; i++) {
            size_t sample = (i - begin) / width, at = (i - begin) % width;
            scores[i] = r->records[sample * size + r->scores->at + at];
        }
    }
    return LS_OK;
}

/* ---- ranks ---- */

/* Does the score of item a come before that of item b? One that is no number comes last. */
static bool comes_before(double a, int32_t item_a, double b, int32_t item_b) {
    if (isnan(a) || isnan(b)) return !isnan(a) || (isnan(b) && item_a < item_b);
    return a > b || (a == b && item_a < item_b);
}

/* From 0. */
static size_t rank_in(const ls_ranking *r, size_t n, double score, int32_t item) {
    size_t rank = 0;
    for (size_t i = 0; i < n; i++) rank += comes_before(r->of_list[i], r->list[i], score, item);
    return rank;
}

/* What an item of this rank (from 0) counts. */
static double gain_of(const ls_measure *m, size_t rank) {
    if (rank >= (size_t)m->k) return 0;
    return m->kind == LS_MEASURE_HIT ? 1 : ls_math_log(2) / ls_math_log((double)rank + 2);
}

/* ---- all items ---- */

static size_t list_all(const ls_ranking *r, int32_t user) {
    size_t n = 0;
    for (int32_t i = 0; i < r->ratings->nitems; i++)
        if (!ls_ratings_has(&r->ratings->training, user, i)) r->list[n++] = i;
    return n;
}

static size_t place_in_list(const ls_ranking *r, size_t n, int32_t item) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (r->list[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The value of one user. */
static double value_in_list(const ls_ranking *r, const ls_measure *m, int32_t user, size_t n) {
    const ls_ratings_part *held = &r->ratings->held_out;
    double sum = 0, best = 0;
    for (uint64_t i = held->begins[user]; i < held->begins[user + 1]; i++) {
        int32_t item = held->items[i];
        size_t rank = rank_in(r, n, r->of_list[place_in_list(r, n, item)], item);
        sum += gain_of(m, rank);
        best += gain_of(m, (size_t)(i - held->begins[user]));
    }
    return m->kind == LS_MEASURE_HIT ? sum > 0 : sum / best;
}

/* ---- drawn items ---- */

/* The sum over the user's held-out items, each ranked among drawn ones. */
static ls_status add_sampled(ls_ranking *r, const ls_measure *m, int32_t user, double values[2],
                             ls_error *e) {
    const ls_ratings_part *held = &r->ratings->held_out;
    size_t n = (size_t)m->candidates;
    int32_t *items = LS_NEW_ARRAY(int32_t, n + 1);
    double *scores = LS_NEW_ARRAY(double, n + 1);
    ls_status s = LS_OK;
    for (uint64_t i = held->begins[user]; s == LS_OK && i < held->begins[user + 1]; i++) {
        ls_ratings_place place = {LS_RATINGS_SEED, LS_RATINGS_CANDIDATES, 0};
        size_t rank = 0;
        items[0] = held->items[i];
        for (size_t k = 0; k < n; k++) {
            place.i = i * n + k;
            items[1 + k] = ls_ratings_negative(r->ratings, &place, user, true);
        }
        s = score(r, user, items, n + 1, scores, e);
        for (size_t k = 1; k <= n; k++)
            rank += comes_before(scores[k], items[k], scores[0], items[0]);
        values[0] += gain_of(m, rank);
        values[1]++;
    }
    free(items);
    free(scores);
    return s;
}

/* ---- records: of each such measure a sum, and of how many ---- */

ls_status ls_ranking_record(ls_ranking *r, uint64_t i, double *record, ls_error *e) {
    int32_t user = r->users[i];
    size_t n = 0; /* items in the list; 0: it is not made yet */
    memset(record, 0, ls_ranking_size(r) * sizeof *record);
    for (int k = 0; k < r->model->nmeasures; k++) {
        const ls_measure *m = &r->model->measures[k];
        if (!is_ranking(m)) continue;
        if (m->candidates) {
            LS_TRY(add_sampled(r, m, user, record, e));
        } else {
            if (n == 0) {
                n = list_all(r, user);
                LS_TRY(score(r, user, r->list, n, r->of_list, e));
            }
            record[0] = value_in_list(r, m, user, n);
            record[1] = 1;
        }
        record += 2;
    }
    return LS_OK;
}

void ls_ranking_add(const ls_ranking *r, const double *records, ls_evaluation *v) {
    size_t size = ls_ranking_size(r), at = 0;
    for (int k = 0; k < r->model->nmeasures; k++) {
        const ls_measure *m = &r->model->measures[k];
        double sum = 0, count = 0;
        if (!is_ranking(m)) continue;
        for (uint64_t i = 0; i < r->nusers; i++) {
            sum += records[i * size + at];
            count += records[i * size + at + 1];
        }
        ls_metric_value *to = &v->metrics[v->nmetrics++];
        memcpy(to->name, m->name, sizeof to->name);
        to->value = count > 0 ? sum / count : (double)NAN;
        at += 2;
    }
}

uint64_t ls_ranking_users(const ls_ranking *r) { return r->nusers; }
size_t ls_ranking_size(const ls_ranking *r) { return 2 * (size_t)r->nmeasures; }

/* ---- opening ---- */

static void choose_users(ls_ranking *r, uint64_t nusers) {
    const ls_ratings_part *held = &r->ratings->held_out;
    uint64_t all = 0;
    r->users = LS_NEW_ARRAY(int32_t, (size_t)r->ratings->nusers + 1);
    for (int32_t u = 0; u < r->ratings->nusers; u++)
        if (held->begins[u] < held->begins[u + 1]) r->users[all++] = u;
    r->nusers = nusers == 0 || nusers > all ? all : nusers;
    for (uint64_t i = 0; i < r->nusers; i++) r->users[i] = r->users[i * all / r->nusers];
}

static ls_status check(const ls_ranking *r, ls_error *e) {
    if (r->user && r->items && r->items->type == LS_I32 && r->scores->nvalues == r->width)
        return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "model.metrics: %s ranks items by the scores of a model that reads the fields "
        "user and items, and this one does not, or does not have one score for each item",
        r->scores->name);
}

ls_status ls_ranking_open(const ls_infer *f, const ls_dataset *d, uint64_t nusers, ls_ranking **r_p,
                          ls_error *e) {
    const ls_ratings *ratings = d->samples ? d->samples->ratings : NULL;
    const ls_model *m = f->model;
    if (!ratings)
        return ls_fail(e, LS_EINVAL, "model.metrics: %s needs interactions of users: data.ratings",
                       first_of(m)->name);
    ls_ranking *r = LS_NEW(ls_ranking);
    *r = (ls_ranking){.infer = *f, .model = m, .ratings = ratings, .scores = first_of(m)};
    r->user = ls_model_field(m, "user");
    r->items = ls_model_field(m, "items");
    if (r->items) r->width = (int64_t)(r->items->nbytes / sizeof(int32_t));
    for (int i = 0; i < m->nmeasures; i++) r->nmeasures += is_ranking(&m->measures[i]);
    r->infer.memory = NULL;
    int64_t most = f->fetch && m->sparse_batch < SAMPLES ? m->sparse_batch : SAMPLES;
    ls_status s = check(r, e);
    if (s == LS_OK) s = ls_infer_open_memory(&r->infer, most, "scores of items", e);
    if (s != LS_OK) {
        ls_ranking_close(r);
        return s;
    }
    r->samples = ls_alloc(SAMPLES * m->sample_nbytes);
    r->records = LS_NEW_ARRAY(double, SAMPLES *ls_record_size(m));
    r->list = LS_NEW_ARRAY(int32_t, (size_t)ratings->nitems);
    r->of_list = LS_NEW_ARRAY(double, (size_t)ratings->nitems);
    choose_users(r, nusers);
    *r_p = r;
    return LS_OK;
}

void ls_ranking_close(ls_ranking *r) {
    if (!r) return;
    ls_infer_close_memory(&r->infer);
    free(r->samples);
    free(r->records);
    free(r->users);
    free(r->list);
    free(r->of_list);
    free(r);
}
