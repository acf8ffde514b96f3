/* mixture.c - see mixture.h. */
#include "dataset/mixture.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/base_numbering.h"
#include "source/fetch.h"
#include "source/formats/open.h"
#include "source/images/fitted.h"
#include "source/mixed.h"
#include "source/numbering.h"

static ls_status read_weight(int k, const char *value, double *weight_p, ls_error *e) {
    char *end = NULL;
    double w = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (!number || !(w >= 0.001 && w <= 1000))
        return ls_fail(e, LS_EINVAL,
                       "data.mix: source %d: weight: '%.60s' is not a number from 0.001 to 1000",
                       k + 1, value);
    *weight_p = w;
    return LS_OK;
}

static ls_status read_pair(int k, char *pair, ls_mixture_part *p, ls_error *e) {
    char *value = strchr(pair, '=');
    *value++ = 0;
    if (strcmp(pair, "weight") == 0) return read_weight(k, value, &p->weight, e);
    const char **text = strcmp(pair, "path") == 0     ? &p->path
                        : strcmp(pair, "labels") == 0 ? &p->labels
                        : strcmp(pair, "format") == 0 ? &p->format
                                                      : NULL;
    if (!text)
        return ls_fail(e, LS_EINVAL,
                       "data.mix: source %d: '%.60s' is not a key of a source; these are path, "
                       "weight, labels, format",
                       k + 1, pair);
    if (*text || !*value)
        return ls_fail(e, LS_EINVAL, "data.mix: source %d: %s %s", k + 1, pair,
                       *text ? "occurs twice" : "is empty");
    *text = value;
    return LS_OK;
}

static ls_status read_part(int k, char *map, ls_mixture_part *p, ls_error *e) {
    *p = (ls_mixture_part){.weight = 1};
    for (char *pair; (pair = strsep(&map, "\t"));)
        if (*pair) LS_TRY(read_pair(k, pair, p, e));
    if (p->path) return LS_OK;
    return ls_fail(e, LS_EINVAL, "data.mix: source %d has no path", k + 1);
}

ls_status ls_mixture_read(const char *text, ls_mixture *m_p, ls_error *e) {
    ls_mixture m = {.text = ls_strdup(text)};
    char *rest = *m.text ? m.text : NULL;
    ls_status s = LS_OK;
    for (char *map; s == LS_OK && (map = strsep(&rest, "\n"));) {
        if (m.n == LS_MIX_PARTS)
            s = ls_fail(e, LS_EINVAL, "data.mix: at most %d sources are possible", LS_MIX_PARTS);
        else
            s = read_part(m.n, map, &m.parts[m.n], e);
        m.n += s == LS_OK;
    }
    if (s == LS_OK)
        *m_p = m;
    else
        ls_mixture_free(&m);
    return s;
}

void ls_mixture_free(ls_mixture *m) {
    free(m->text);
    *m = (ls_mixture){0};
}

/* Images of the later parts have the size of the first one's. */
static void follow_images(ls_image_way *way, const ls_source *first) {
    if (way->nfields) return;
    way->fields = first->fields;
    way->nfields = first->nfields;
}

static ls_status open_part(const ls_mixture_part *p, const char *dir,
                           const ls_source_options *options, ls_source **s_p, ls_error *e) {
    ls_source_options o = *options;
    char *path = ls_paths_from(p->path, dir);
    char *labels = p->labels ? ls_paths_from(p->labels, dir) : NULL;
    o.labels = labels;
    if (p->format) o.format = p->format;
    ls_status s = ls_source_open(path, &o, s_p, e);
    free(path);
    free(labels);
    return s;
}

/* All parts get the same numbers of texts, and the same means; base: those of train.from. */
static ls_status unite(ls_source *const *parts, const char *const *names, int n,
                       const ls_numbering *base, ls_error *e) {
    static const ls_numbering none;
    const ls_numbering *numbering[LS_MIX_PARTS];
    ls_status s = LS_OK;
    for (int round = 0; s == LS_OK && round < 2; round++) {
        for (int k = 0; k < n; k++)
            numbering[k] = parts[k]->numbering ? parts[k]->numbering : &none;
        ls_numbering all = ls_numbering_unite(numbering, n);
        if (round == 0) /* where numbers become texts, these have no numbers yet */
            for (size_t i = 0; i < all.n; i++) ls_classes_free(&all.list[i].in);
        for (int k = 0; s == LS_OK && k < n; k++) s = ls_source_follow(parts[k], &all, names[k], e);
        ls_numbering_free(&all);
    }
    for (int k = 0; s == LS_OK && k < n; k++)
        s = ls_base_numbering_follow(parts[k], base, names[k], e);
    return s;
}

ls_status ls_mixture_open(const ls_mixture *m, const char *dir, const ls_numbering *base,
                          const ls_source_options *options, ls_source **s_p, ls_error *e) {
    ls_source *parts[LS_MIX_PARTS];
    const char *names[LS_MIX_PARTS];
    ls_status s = LS_OK;
    int n = 0;
    ls_image_way way = options->images ? *options->images : (ls_image_way){0};
    ls_source_options o = *options;
    o.images = &way;
    for (; s == LS_OK && n < m->n; n += s == LS_OK) {
        names[n] = m->parts[n].path;
        s = open_part(&m->parts[n], dir, &o, &parts[n], e);
        if (s == LS_OK && n == 0) follow_images(&way, parts[0]);
    }
    if (s == LS_OK) s = unite(parts, names, n, base, e);
    for (int k = 0; s == LS_OK && k < n; k++) {
        s = ls_fitted_open(parts[k], &way, names[k], &parts[k], e);
        if (s == LS_OK) continue;
        parts[k] = parts[--n]; /* it is closed */
        break;
    }
    if (s == LS_OK) return ls_mixed_open(parts, names, n, s_p, e);
    for (int k = 0; k < n; k++) ls_source_close(parts[k]);
    return s;
}
