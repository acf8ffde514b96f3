/* rated_pairs.c - see rated_pairs.h. */
#include "infer/rated_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/opened.h"
#include "source/tables/csv_columns.h"
#include "source/tables/csv_rules.h"
#include "source/tables/ratings.h"

typedef struct reading {
    ls_rated_pairs *p;
    ls_csv_column columns[2];
} reading;

static ls_status add_row(void *arg, const ls_csv_row *row, ls_error *e) {
    reading *r = arg;
    ls_rated_pairs *p = r->p;
    int32_t pair[2];
    LS_TRY(ls_id_of_cell(&p->users, &row->cells[0], r->columns[0].name, &pair[0], e));
    LS_TRY(ls_id_of_cell(&p->items, &row->cells[1], r->columns[1].name, &pair[1], e));
    p->list = ls_grow(p->list, p->n, sizeof pair);
    memcpy(p->list + 2 * p->n++, pair, sizeof pair);
    return LS_OK;
}

/* Ratings and times are not read: what data.missing says of them does not matter. */
static void forget_others(ls_csv_rules *r, const reading *read) {
    size_t n = 0;
    for (size_t i = 0; i < r->nrules; i++) {
        ls_missing_rule rule = r->rules[i];
        bool wanted = strcmp(rule.column, "*") == 0 ||
                      strcmp(rule.column, read->columns[0].name) == 0 ||
                      strcmp(rule.column, read->columns[1].name) == 0;
        if (wanted)
            r->rules[n++] = rule;
        else
            free(rule.column);
    }
    r->nrules = n;
}

static ls_status read_files(ls_rated_pairs *p, const ls_files *files, const ls_config *c,
                            ls_error *e) {
    const ls_config_tree *t = &c->data.ratings;
    ls_source_options o = {.cache = *c->data.cache ? c->data.cache : NULL,
                           .skip_damaged = c->data.damaged == LS_DAMAGED_SKIP,
                           .missing = c->data.missing};
    ls_ratings_wanted w;
    ls_csv_rules rules = {0};
    ls_source read = {0}; /* what is known of the files */
    LS_TRY(ls_ratings_read(t->text, t->file, t->line, c->data.val_fraction, &w, e));
    reading r = {p, {{.name = w.user, .kind = LS_CSV_ID}, {.name = w.item, .kind = LS_CSV_ID}}};
    LS_TRY(ls_opening_read_rules(c, &rules, &o, e));
    forget_others(&rules, &r);
    const ls_csv_wanted wanted = {.columns = r.columns,
                                  .n = 2,
                                  .key = "data.ratings",
                                  .row = add_row,
                                  .arg = &r,
                                  .gaps = &p->gaps};
    ls_status s = ls_csv_columns_read(files, &o, &wanted, &read, e);
    ls_csv_rules_free(&rules);
    p->ndamaged = read.damage.n;
    p->nmissing = read.nmissing;
    return s;
}

ls_status ls_rated_pairs_open(const ls_predictor *predictor, const char *paths,
                              ls_rated_pairs **p_p, ls_error *e) {
    ls_rated_pairs *p = LS_NEW(ls_rated_pairs);
    ls_files files = {0};
    ls_status s = ls_rater_open(predictor, &p->rater, e);
    if (s == LS_OK) s = ls_files_find(paths, &files, e);
    if (s == LS_OK) s = read_files(p, &files, &predictor->trained.config, e);
    for (uint64_t i = 0; s == LS_OK && i < p->n; i++) p->nunknown += !ls_rated_pairs_is_known(p, i);
    ls_files_free(&files);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_rated_pairs_close(p);
    return s;
}

void ls_rated_pairs_close(ls_rated_pairs *p) {
    if (!p) return;
    ls_rater_close(&p->rater);
    ls_id_names_free(&p->users);
    ls_id_names_free(&p->items);
    ls_gaps_free(&p->gaps);
    free(p->list);
    free(p);
}

const char *ls_rated_pairs_user(const ls_rated_pairs *p, uint64_t i) {
    return ls_id_name(&p->users, p->list[2 * i]);
}

const char *ls_rated_pairs_item(const ls_rated_pairs *p, uint64_t i) {
    return ls_id_name(&p->items, p->list[2 * i + 1]);
}

/* The numbers of the model; false: it lacks one. */
static bool find(const ls_rated_pairs *p, uint64_t i, int32_t *user_p, int32_t *item_p) {
    const char *user = ls_rated_pairs_user(p, i), *item = ls_rated_pairs_item(p, i);
    *user_p = ls_id_find(p->rater.user_names, user, strlen(user));
    *item_p = ls_id_find(p->rater.item_names, item, strlen(item));
    return *user_p >= 0 && *item_p >= 0;
}

bool ls_rated_pairs_is_known(const ls_rated_pairs *p, uint64_t i) {
    int32_t user = 0, item = 0;
    return find(p, i, &user, &item);
}

bool ls_rated_pairs_sample(const ls_rated_pairs *p, uint64_t i, char *sample) {
    int32_t user = 0, item = 0;
    bool known = find(p, i, &user, &item);
    if (!known) user = item = 0;
    ls_rater_fill(&p->rater, user, &item, 1, sample);
    return known;
}
