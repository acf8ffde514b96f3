/* ratings_read.c - see ratings_read.h. */
#include "source/tables/ratings_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/plural.h"
#include "base/random.h"
#include "base/yaml.h"
#include "source/id_names.h"
#include "source/note.h"
#include "source/number.h"
#include "source/tables/csv_columns.h"

/* ---- data.ratings ---- */

typedef struct option {
    const char *name;
    char *text; /* [LS_RATINGS_NAME] a column's name */
} option;

static ls_status set_text(const ls_yaml_node *n, const char *file, char *to, ls_error *e) {
    if (n->kind == LS_YAML_TEXT && *n->text && strlen(n->text) < LS_RATINGS_NAME) {
        snprintf(to, LS_RATINGS_NAME, "%s", n->text);
        return LS_OK;
    }
    return ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: %s is a column's name of 1 to %d characters",
                   file, n->line, n->key, LS_RATINGS_NAME - 1);
}

static ls_status set_number(const ls_yaml_node *n, const char *file, double *x_p, ls_error *e) {
    if (n->kind == LS_YAML_TEXT && ls_number_parse(n->text, strlen(n->text), x_p)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: %s is a number", file, n->line, n->key);
}

static ls_status set_split(const ls_yaml_node *n, const char *file, bool *leave_one_out,
                           ls_error *e) {
    const char *text = n->kind == LS_YAML_TEXT ? n->text : "";
    *leave_one_out = strcmp(text, "leave_one_out") == 0;
    if (*leave_one_out || strcmp(text, "ratio") == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: split is leave_one_out or ratio", file,
                   n->line);
}

static ls_status set_option(const ls_yaml_node *n, const char *file, ls_ratings_wanted *w,
                            ls_error *e) {
    option texts[] = {
        {"user", w->user}, {"item", w->item}, {"rating", w->rating}, {"time", w->time}};
    double x = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(n->key, texts[i].name) == 0) return set_text(n, file, texts[i].text, e);
    if (strcmp(n->key, "split") == 0) return set_split(n, file, &w->leave_one_out, e);
    if (strcmp(n->key, "at_least") == 0) {
        w->has_least = true;
        return set_number(n, file, &w->at_least, e);
    }
    if (strcmp(n->key, "negatives") != 0)
        return ls_fail(e, LS_EINVAL,
                       "%s:%d: data.ratings: there is no '%.40s'; choose among user, item, rating, "
                       "time, at_least, negatives, split",
                       file, n->line, n->key);
    LS_TRY(set_number(n, file, &x, e));
    w->negatives = (int64_t)x;
    if (x >= 0 && x <= LS_RATINGS_NEGATIVES && (double)w->negatives == x) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: negatives is a whole number from 0 to %d",
                   file, n->line, LS_RATINGS_NEGATIVES);
}

ls_status ls_ratings_read(const char *text, const char *file, int line, double fraction,
                          ls_ratings_wanted *w_p, ls_error *e) {
    ls_yaml_node *root = NULL;
    ls_ratings_wanted w = {.fraction = fraction};
    LS_TRY(ls_yaml_parse_tree(text, file, line, &root, e));
    ls_status s = LS_OK;
    if (root->kind != LS_YAML_MAP)
        s = ls_fail(e, LS_EINVAL,
                    "%s:%d: data.ratings is a map, e.g. {user: userId, item: movieId}", file, line);
    for (int i = 0; s == LS_OK && i < root->nitems; i++)
        s = set_option(root->items[i], file, &w, e);
    if (s == LS_OK && (!*w.user || !*w.item))
        s = ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: %s is missing: the column's name", file,
                    line, *w.user ? "item" : "user");
    if (s == LS_OK && w.has_least && !*w.rating)
        s = ls_fail(e, LS_EINVAL, "%s:%d: data.ratings: at_least needs rating: the column's name",
                    file, line);
    ls_yaml_node_free(root);
    if (s == LS_OK) *w_p = w;
    return s;
}

/* ---- rows ---- */

typedef struct event {
    int32_t user, item;
    float rating;
    double time;
    uint64_t row;
    bool is_held_out;
} event;

typedef struct events {
    const ls_ratings_wanted *wanted;
    ls_id_names users, items;
    event *list; /* [n] */
    size_t n;
    int rating, time; /* numbers of cells; -1: none */
    const ls_ids
        *given; /* of users and items: others are left out, and counted; NULL: all are new */
    uint64_t nunknown;
} events;

/* The ids of a row. *known_p: both are those of the training data. */
static ls_status read_ids(events *s, const ls_csv_cell *cells, event *x, bool *known_p,
                          ls_error *e) {
    const ls_ratings_wanted *w = s->wanted;
    *known_p = true;
    if (!s->given) {
        LS_TRY(ls_id_of_cell(&s->users, &cells[0], w->user, &x->user, e));
        return ls_id_of_cell(&s->items, &cells[1], w->item, &x->item, e);
    }
    LS_TRY(ls_id_find_cell(&s->given->columns[0].ids, &cells[0], w->user, &x->user, e));
    LS_TRY(ls_id_find_cell(&s->given->columns[1].ids, &cells[1], w->item, &x->item, e));
    *known_p = x->user >= 0 && x->item >= 0;
    s->nunknown += !*known_p;
    return LS_OK;
}

static ls_status add_row(void *arg, const ls_csv_row *row, ls_error *e) {
    events *s = arg;
    const ls_csv_cell *cells = row->cells;
    const ls_ratings_wanted *w = s->wanted;
    event x = {.row = s->n};
    double rating = 0;
    if (s->rating >= 0) LS_TRY(ls_csv_number(row, s->rating, w->rating, &rating, e));
    if (s->time >= 0) LS_TRY(ls_csv_number(row, s->time, w->time, &x.time, e));
    if (w->has_least && rating < w->at_least) return LS_OK;
    bool known = false;
    LS_TRY(read_ids(s, cells, &x, &known, e));
    if (!known) return LS_OK;
    x.rating = (float)rating;
    s->list = ls_grow(s->list, s->n, sizeof *s->list);
    s->list[s->n++] = x;
    return LS_OK;
}

/* ---- which count, and which are held out ---- */

static int by_age(const event *a, const event *b) {
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static int by_user_item_age(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->user != y->user) return x->user < y->user ? -1 : 1;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return by_age(x, y);
}

/* Sorts the interactions, and drops those of a user with an item that are not the latest. */
static void sort(events *s) {
    size_t n = 0;
    if (s->n) qsort(s->list, s->n, sizeof *s->list, by_user_item_age);
    for (size_t i = 0; i < s->n; i++) {
        const event *x = &s->list[i], *next = i + 1 < s->n ? x + 1 : NULL;
        if (!next || next->user != x->user || next->item != x->item) s->list[n++] = *x;
    }
    s->n = n;
}

/* The age of an interaction among those of its user: its time, or without times a random number. */
typedef struct aged {
    event *of;
    double random;
} aged;

static int by_latest(const void *a, const void *b) {
    const aged *x = a, *y = b;
    if (x->of->time != y->of->time) return x->of->time > y->of->time ? -1 : 1;
    if (x->random != y->random) return x->random > y->random ? -1 : 1;
    return by_age(y->of, x->of);
}

static size_t count_held_out(const ls_ratings_wanted *w, size_t n) {
    if (n < 2) return 0;
    size_t held = w->leave_one_out ? 1 : (size_t)ls_math_times(w->fraction, (double)n);
    return held < n ? held : n - 1;
}

/* list [n]: those of one user; room [n] */
static void hold_out(const events *s, event *list, size_t n, aged *room) {
    size_t held = count_held_out(s->wanted, n);
    for (size_t i = 0; i < n; i++) {
        double random = 0;
        if (s->time < 0)
            random = ls_random_uniform(LS_RATINGS_SEED, LS_STREAM_SPLIT, 1 + (uint64_t)list[i].user,
                                       (uint64_t)list[i].item);
        room[i] = (aged){&list[i], random};
    }
    if (held) qsort(room, n, sizeof *room, by_latest);
    for (size_t i = 0; i < held; i++) room[i].of->is_held_out = true;
}

static size_t end_of_user(const events *s, size_t begin) {
    size_t end = begin;
    while (end < s->n && s->list[end].user == s->list[begin].user) end++;
    return end;
}

static void split(events *s) {
    aged *room = LS_NEW_ARRAY(aged, s->n + 1);
    for (size_t i = 0, end = 0; i < s->n; i = end) {
        end = end_of_user(s, i);
        hold_out(s, s->list + i, end - i, room);
    }
    free(room);
}

/* ---- parts ---- */

static void make_part(const events *s, bool held_out, ls_ratings_part *p) {
    size_t nusers = (size_t)(s->given ? &s->given->columns[0].ids : &s->users)->n;
    for (size_t i = 0; i < s->n; i++) p->n += s->list[i].is_held_out == held_out;
    p->begins = LS_NEW_ARRAY(uint64_t, nusers + 1);
    p->users = LS_NEW_ARRAY(int32_t, p->n + 1);
    p->items = LS_NEW_ARRAY(int32_t, p->n + 1);
    if (s->rating >= 0) p->ratings = LS_NEW_ARRAY(float, p->n + 1);
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const event *x = &s->list[i];
        if (x->is_held_out != held_out) continue;
        p->users[n] = x->user;
        p->items[n] = x->item;
        if (p->ratings) p->ratings[n] = x->rating;
        p->begins[x->user + 1] = ++n;
    }
    for (size_t u = 1; u <= nusers; u++)
        if (p->begins[u] < p->begins[u - 1]) p->begins[u] = p->begins[u - 1];
}

/* A user who has chosen all items has no negatives. */
static ls_status check_negatives(const events *s, const char *what, ls_error *e) {
    for (size_t i = 0, end = 0; s->wanted->negatives && i < s->n; i = end) {
        end = end_of_user(s, i);
        if (end - i == (size_t)s->items.n)
            return ls_fail(e, LS_EINVAL,
                           "%s: user '%.60s' has all %d items: there are no negatives to draw; set "
                           "negatives: 0 in data.ratings, or leave the user out",
                           what, ls_id_name(&s->users, s->list[i].user), (int)s->items.n);
    }
    return LS_OK;
}

static ls_status make(events *s, const char *what, ls_ratings *r, ls_error *e) {
    if (s->n == 0)
        return ls_fail(e, LS_EINVAL, "%s: has no interactions%s", what,
                       s->wanted->has_least ? " with so high a rating (at_least in data.ratings)"
                                            : "");
    sort(s);
    LS_TRY(check_negatives(s, what, e));
    split(s);
    r->nusers = s->users.n;
    r->nitems = s->items.n;
    make_part(s, false, &r->training);
    make_part(s, true, &r->held_out);
    return LS_OK;
}

static void free_part(ls_ratings_part *p) {
    free(p->begins);
    free(p->users);
    free(p->items);
    free(p->ratings);
}

/* Reads the rows of all files. */
static ls_status read_events(const ls_files *files, const ls_source_options *o, events *s,
                             ls_source *source, ls_error *e) {
    const ls_ratings_wanted *w = s->wanted;
    ls_csv_column columns[4] = {{.name = w->user, .kind = LS_CSV_ID},
                                {.name = w->item, .kind = LS_CSV_ID}};
    int n = 2;
    if (*w->rating) columns[s->rating = n++] = (ls_csv_column){w->rating, LS_CSV_NUMBER, false};
    if (*w->time) columns[s->time = n++] = (ls_csv_column){w->time, LS_CSV_NUMBER, false};
    ls_csv_wanted wanted = {
        .columns = columns, .n = n, .key = "data.ratings", .row = add_row, .arg = s};
    return ls_csv_columns_read(files, o, &wanted, source, e);
}

ls_status ls_ratings_read_files(const ls_files *files, const ls_source_options *o, ls_ratings *r,
                                ls_source *source, ls_error *e) {
    const ls_ratings_wanted *w = &r->wanted;
    events s = {.wanted = w, .rating = -1, .time = -1};
    ls_status status = read_events(files, o, &s, source, e);
    if (status == LS_OK) status = make(&s, files->paths[0], r, e);
    ls_ids_add_column(&r->ids, w->user)->ids = s.users;
    ls_ids_add_column(&r->ids, w->item)->ids = s.items;
    free(s.list);
    return status;
}

ls_status ls_ratings_read_held_out(const ls_files *files, const ls_source_options *o, ls_ratings *r,
                                   ls_source *source, ls_error *e) {
    events s = {.wanted = &r->wanted, .rating = -1, .time = -1, .given = &r->ids};
    const char *what = files->paths[0];
    ls_status status = read_events(files, o, &s, source, e);
    if (status == LS_OK && s.nunknown)
        ls_note("%s: %llu row%s of users or items that the training data do not have are left out",
                what, (unsigned long long)s.nunknown, ls_plural((int64_t)s.nunknown));
    if (status == LS_OK && s.n == 0)
        status =
            ls_fail(e, LS_EINVAL, "%s: has no interactions of the run's users and items", what);
    if (status == LS_OK) {
        sort(&s);
        for (size_t i = 0; i < s.n; i++) s.list[i].is_held_out = true;
        free_part(&r->held_out);
        r->held_out = (ls_ratings_part){0};
        make_part(&s, true, &r->held_out);
    }
    free(s.list);
    return status;
}

void ls_ratings_free(ls_ratings *r) {
    free_part(&r->training);
    free_part(&r->held_out);
    ls_ids_free(&r->ids);
    free(r);
}
