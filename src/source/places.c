/* places.c - see places.h. */
#include "source/places.h"

#include <stdlib.h>

#include "base/log.h"

ls_status ls_places_open(ls_places *p, const char *path, const ls_source_options *o, ls_error *e) {
    ls_plain file;
    LS_TRY(ls_plain_open(path, o, &file, e));
    p->files = ls_grow(p->files, p->nfiles, sizeof *p->files);
    p->first = ls_grow(p->first, p->nfiles, sizeof *p->first);
    p->files[p->nfiles] = file;
    p->first[p->nfiles++] = p->n;
    return LS_OK;
}

void ls_places_add(ls_places *p, uint64_t at) {
    p->at = ls_grow(p->at, p->n, sizeof *p->at);
    p->at[p->n++] = at;
}

ls_sample_place ls_places_find(const ls_places *p, uint64_t i) {
    size_t low = 0, high = p->nfiles; /* the last file whose first sample is at most i */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (p->first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return (ls_sample_place){&p->files[low], p->at[i], i - p->first[low]};
}

ls_hash ls_places_hash(const ls_places *p) {
    if (p->nfiles == 1) return p->files[0].hash;
    ls_hasher *h = ls_hasher_new();
    for (size_t i = 0; i < p->nfiles; i++)
        ls_hasher_add(h, &p->files[i].hash, sizeof p->files[i].hash);
    return ls_hasher_finish(h);
}

void ls_places_close(ls_places *p) {
    for (size_t i = 0; i < p->nfiles; i++) ls_plain_close(&p->files[i]);
    free(p->files);
    free(p->first);
    free(p->at);
    *p = (ls_places){0};
}

ls_status ls_places_damaged(ls_source *s, const ls_source_options *o, const ls_error *why,
                            ls_error *e) {
    if (why->code != LS_EINVAL || !o->skip_damaged) {
        if (e) *e = *why;
        return why->code;
    }
    if (s->ndamaged++ == 0) ls_log("skipped: %s", why->msg);
    return LS_OK;
}
