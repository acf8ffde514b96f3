/* places.c - see places.h. */
#include "source/places.h"

#include <stdlib.h>
#include <string.h>

ls_status ls_places_open(ls_places *p, const char *path, const ls_source_options *o, ls_error *e) {
    ls_plain file;
    LS_TRY(ls_plain_open(path, o, p->holes, &file, e));
    p->files = ls_grow(p->files, p->nfiles, sizeof *p->files);
    p->first = ls_grow(p->first, p->nfiles, sizeof *p->first);
    p->records = ls_grow(p->records, p->nfiles, sizeof *p->records);
    p->files[p->nfiles] = file;
    ls_places_begin(p, p->nfiles++);
    return LS_OK;
}

void ls_places_begin(ls_places *p, size_t i) {
    p->first[i] = p->n;
    p->records[i] = p->n + p->gaps.n;
}

void ls_places_leave_out(ls_places *p) { ls_gaps_add(&p->gaps, p->n); }

void ls_places_forget(ls_places *p) {
    p->n = 0;
    ls_gaps_free(&p->gaps);
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

/* The number of the file with sample i. */
static size_t file_of(const ls_places *p, uint64_t i) {
    size_t low = 0, high = p->nfiles; /* the last file whose first sample is at most i */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (p->first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

ls_sample_place ls_places_find(const ls_places *p, uint64_t i) {
    size_t file = file_of(p, i);
    return (ls_sample_place){&p->files[file], p->at[i]};
}

void ls_places_close(ls_places *p) {
    for (size_t i = 0; i < p->nfiles; i++) ls_plain_close(&p->files[i]);
    free(p->files);
    free(p->first);
    free(p->records);
    free(p->at);
    ls_gaps_free(&p->gaps);
    *p = (ls_places){0};
}

ls_status ls_places_damaged(ls_places *p, ls_source *s, const ls_source_options *o,
                            const ls_error *why, ls_error *e) {
    LS_TRY(ls_source_leave_out(s, o, why, e));
    ls_places_leave_out(p);
    return LS_OK;
}

/* ---- sources of records ---- */

/* The hash of all files, in their order: that of the file itself if there is one. */
static ls_hash hash_of(const ls_places *p) {
    if (p->nfiles == 1) return p->files[0].hash;
    ls_hasher *h = ls_hasher_new();
    for (size_t i = 0; i < p->nfiles; i++)
        ls_hasher_add(h, &p->files[i].hash, sizeof p->files[i].hash);
    return ls_hasher_finish(h);
}

/* The path of the file with sample i, if there are several. */
static void put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    const ls_places *p = &((const ls_records *)s)->places;
    if (p->nfiles > 1) ls_buf_printf(b, "%s", ls_places_find(p, i).file->path);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    const ls_places *p = &((const ls_records *)s)->places;
    uint64_t number = ls_gaps_record(&p->gaps, i);
    return (ls_record_at){number, number - p->records[file_of(p, i)]};
}

static ls_status follow(ls_source *s, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    return ls_features_follow(((ls_records *)s)->features, numbering, s, what, e);
}

static const char *path_of(const ls_source *s, uint64_t i) {
    return ls_places_find(&((const ls_records *)s)->places, i).file->path;
}

void ls_records_begin(ls_records *r, ls_source base) {
    r->base = base;
    r->base.put_name = put_name;
    r->base.file = path_of;
    r->base.record = record_of;
    if (r->features) r->base.follow = follow;
}

ls_status ls_records_end(ls_records *r, ls_status s, ls_source **s_p) {
    if (s != LS_OK) {
        r->base.close(&r->base);
        return s;
    }
    r->base.count = r->places.n;
    r->base.hash = hash_of(&r->places);
    *s_p = &r->base;
    return LS_OK;
}

/* ---- index ---- */

void ls_places_put(const ls_places *p, const ls_source *s, ls_buf *b) {
    ls_bytes_put_array(b, p->first, p->nfiles, sizeof *p->first);
    ls_bytes_put_array(b, p->records, p->nfiles, sizeof *p->records);
    ls_bytes_put_array(b, p->at, p->n, sizeof *p->at);
    ls_gaps_put(&p->gaps, b);
    ls_damage_put(&s->damage, b);
}

/* Files and offsets ascend, and samples and records are in their files. */
static bool are_inside(const ls_places *p) {
    if (p->nfiles == 0 || p->n == 0 || p->first[0] != 0 || p->records[0] != 0) return false;
    for (size_t i = 0; i < p->nfiles; i++) {
        uint64_t begin = p->first[i], end = i + 1 < p->nfiles ? p->first[i + 1] : p->n;
        if (begin > end || end > p->n) return false;
        if (begin < end && p->records[i] > ls_gaps_record(&p->gaps, begin)) return false;
        for (uint64_t k = begin; k < end; k++)
            if (p->at[k] >= p->files[i].nbytes || (k > begin && p->at[k] <= p->at[k - 1]))
                return false;
    }
    return true;
}

void ls_places_take(ls_places *p, ls_source *s, ls_bytes *in) {
    size_t nfiles = 0, nrecords = 0, n = 0;
    free(p->first);
    free(p->records);
    free(p->at);
    p->first = ls_bytes_take_array(in, sizeof *p->first, &nfiles);
    p->records = ls_bytes_take_array(in, sizeof *p->records, &nrecords);
    p->at = ls_bytes_take_array(in, sizeof *p->at, &n);
    ls_gaps_take(&p->gaps, in);
    p->n = n;
    ls_damage_take(&s->damage, in);
    if (in->bad || nfiles != p->nfiles || nrecords != nfiles || !are_inside(p)) in->bad = true;
}
