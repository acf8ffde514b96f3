/* places.c - see places.h. */
#include "source/places.h"

#include <stdlib.h>
#include <string.h>

#include "source/note.h"

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

void ls_places_insert(ls_places *p, uint64_t at) {
    ls_places_add(p, at);
    memmove(p->at + 1, p->at, (p->n - 1) * sizeof *p->at);
    p->at[0] = at;
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

void ls_places_put_name(const ls_places *p, uint64_t i, ls_buf *b) {
    if (p->nfiles > 1) ls_buf_printf(b, "%s", ls_places_find(p, i).file->path);
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

/* ---- index ---- */

void ls_places_put(const ls_places *p, const ls_source *s, ls_buf *b) {
    ls_bytes_put_array(b, p->first, p->nfiles, sizeof *p->first);
    ls_bytes_put_array(b, p->at, p->n, sizeof *p->at);
    ls_damage_put(&s->damage, b);
}

/* Files and offsets ascend, and samples are in their files. */
static bool are_inside(const ls_places *p) {
    if (p->nfiles == 0 || p->n == 0 || p->first[0] != 0) return false;
    for (size_t i = 0; i < p->nfiles; i++) {
        uint64_t begin = p->first[i], end = i + 1 < p->nfiles ? p->first[i + 1] : p->n;
        if (begin > end || end > p->n) return false;
        for (uint64_t k = begin; k < end; k++)
            if (p->at[k] >= p->files[i].nbytes || (k > begin && p->at[k] <= p->at[k - 1]))
                return false;
    }
    return true;
}

void ls_places_take(ls_places *p, ls_source *s, ls_bytes *in) {
    size_t nfiles = 0, n = 0;
    free(p->first);
    free(p->at);
    p->first = ls_bytes_take_array(in, sizeof *p->first, &nfiles);
    p->at = ls_bytes_take_array(in, sizeof *p->at, &n);
    p->n = n;
    ls_damage_take(&s->damage, in);
    if (in->bad || nfiles != p->nfiles || !are_inside(p)) in->bad = true;
}
