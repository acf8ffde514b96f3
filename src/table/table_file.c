/* table_file.c - see lockstep/table.h: the hash of a table, and tables on disk.
 *
 * DIR/table.json has the settings, the clock and the hash; DIR/rows-00001-of-00004.safetensors the
 * rows of the second of four workers: ids, values, the optimizer's states, ages (the clock after
 * the latest change), and how often ids without a row have been added.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/floats.h"
#include "base/guard.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/locale.h"
#include "table/table_inside.h"
#include "weights/safetensors.h"

/* ---- the hash ---- */

/* Sums of the hashes of rows: these have no order. */
typedef struct row_hashes {
    uint64_t hi, lo, n;
} row_hashes;

static void add_hash(row_hashes *h, const void *data, size_t nbytes) {
    ls_hash row = ls_hash_bytes(data, nbytes);
    h->hi += row.hi;
    h->lo += row.lo;
    h->n++;
}

static void hash_rows(const ls_rows *r, int64_t clock, row_hashes *h) {
    size_t width = (size_t)r->c->width * sizeof(float), states = (size_t)r->nstates * sizeof(float);
    size_t nbytes = 2 * sizeof(uint64_t) + width + states;
    char *text = ls_alloc(nbytes);
    for (size_t i = 0; i < r->end; i++) {
        uint64_t words[2] = {0};
        ls_row row;
        if (!ls_rows_at(r, i, clock, &words[0], &row)) continue;
        words[1] = *row.age;
        memcpy(text, words, sizeof words);
        memcpy(text + sizeof words, row.values, width);
        if (states) memcpy(text + sizeof words + width, row.states, states);
        add_hash(h, text, nbytes);
    }
    free(text);
}

static void hash_counts(const ls_id_map *m, row_hashes *h) {
    for (size_t i = 0; i < m->capacity; i++) {
        uint64_t words[3] = {m->slots[i].id, m->slots[i].value, 1};
        if (m->slots[i].round == m->round) add_hash(h, words, sizeof words);
    }
}

static ls_status hash_of(ls_group *g, const ls_rows *r, const ls_id_map *counts, int64_t clock,
                         char text[33], ls_error *e) {
    row_hashes h = {0};
    hash_rows(r, clock, &h);
    hash_counts(counts, &h);
    uint64_t words[4] = {h.hi, h.lo, h.n, 0};
    LS_TRY(ls_all_reduce(g, words, words, 3, LS_U64, LS_SUM, e));
    words[3] = (uint64_t)clock;
    ls_hash_text(ls_hash_bytes(words, sizeof words), text);
    return LS_OK;
}

/* A bad directory of one worker is an error of all. */
static ls_status check_directory(ls_table *t, const char *dir, const char *call, ls_error *e) {
    ls_status s = LS_OK;
    if (!dir || !*dir)
        s = ls_fail(e, LS_EINVAL, "%s: the directory is %s", call, dir ? "''" : "NULL");
    return ls_exchange_agree(&t->exchange, s, call, e);
}

ls_status ls_table_hash(ls_table *t, char text[33], ls_error *e) {
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_hash", e));
    ls_status s = text ? LS_OK : ls_fail(e, LS_EINVAL, "ls_table_hash(): the text is NULL");
    LS_TRY(ls_exchange_agree(&t->exchange, s, "ls_table_hash()", e));
    return hash_of(t->group, &t->rows, &t->admitted, t->clock, text, e);
}

/* ---- saving ---- */

static void shard_path(const char *dir, int worker, int n, char **path_p) {
    *path_p = ls_format("%s/rows-%05d-of-%05d.safetensors", dir, worker, n);
}

enum { IDS, COUNTED, VALUES, STATES, AGES, COUNTS, NTENSORS };

/* The tensors of a file with n rows, and counts of m ids. */
static void describe_shard(const ls_rows *r, size_t n, size_t m, ls_tensor t[NTENSORS]) {
    const struct {
        const char *name, *dtype;
        size_t rows, columns;
    } all[NTENSORS] = {
        {"ids", "I64", n, 1},
        {"counted", "I64", m, 1},
        {"values", "F32", n, (size_t)r->c->width},
        {"states", "F32", n, (size_t)r->nstates},
        {"ages", "U32", n, 1},
        {"counts", "U32", m, 1},
    };
    for (int i = 0; i < NTENSORS; i++) {
        t[i] = (ls_tensor){.ndims = all[i].columns == 1 ? 1 : 2,
                           .dims = {(int64_t)all[i].rows, (int64_t)all[i].columns},
                           .count = all[i].rows * all[i].columns,
                           .dtype = all[i].dtype,
                           .type = LS_NBLOCK_TYPES};
        snprintf(t[i].name, sizeof t[i].name, "%s", all[i].name);
    }
}

/* A file that is written in large pieces. */
typedef struct writer {
    ls_file file;
    ls_buf buf;
    ls_status status;
    ls_error *e;
} writer;

static void put(writer *w, const void *data, size_t nbytes, bool last) {
    enum { PIECE = 1 << 20 };
    if (nbytes > 0) ls_buf_append(&w->buf, data, nbytes);
    if (w->status != LS_OK || (w->buf.len < PIECE && !last)) return;
    w->status = ls_file_put(&w->file, w->buf.data, w->buf.len, w->e);
    w->buf.len = 0;
}

/* One tensor of the rows. */
static void put_rows(writer *w, const ls_table *t, int tensor) {
    const ls_rows *r = &t->rows;
    for (size_t i = 0; i < r->end; i++) {
        uint64_t id = 0;
        ls_row row;
        if (!ls_rows_at(r, i, t->clock, &id, &row)) continue;
        if (tensor == IDS) put(w, &id, sizeof id, false);
        if (tensor == VALUES) put(w, row.values, (size_t)r->c->width * sizeof(float), false);
        if (tensor == STATES) put(w, row.states, (size_t)r->nstates * sizeof(float), false);
        if (tensor == AGES) put(w, row.age, sizeof *row.age, false);
    }
}

static void put_counts(writer *w, const ls_id_map *m, int tensor) {
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->slots[i].round != m->round) continue;
        if (tensor == COUNTED) put(w, &m->slots[i].id, sizeof m->slots[i].id, false);
        if (tensor == COUNTS) put(w, &m->slots[i].value, sizeof m->slots[i].value, false);
    }
}

static ls_status write_shard(const ls_table *t, const char *dir, ls_error *e) {
    ls_tensor tensors[NTENSORS];
    size_t n = 0;
    char *path = NULL;
    writer w = {.e = e};
    for (size_t i = 0; i < t->rows.end; i++) {
        uint64_t id = 0;
        ls_row row;
        n += ls_rows_at(&t->rows, i, t->clock, &id, &row);
    }
    describe_shard(&t->rows, n, t->admitted.n, tensors);
    shard_path(dir, t->rows.worker, t->rows.nworkers, &path);
    w.status = ls_safetensors_create(path, tensors, NTENSORS, &w.file, e);
    free(path);
    if (w.status != LS_OK) return w.status;
    for (int i = 0; i < NTENSORS; i++) {
        if (i == COUNTED || i == COUNTS)
            put_counts(&w, &t->admitted, i);
        else
            put_rows(&w, t, i);
    }
    put(&w, NULL, 0, true);
    ls_buf_free(&w.buf);
    if (w.status == LS_OK) return ls_file_close(&w.file, e);
    ls_file_discard(&w.file);
    return w.status;
}

static ls_status write_manifest(const ls_table *t, const char *dir, const char *hash, ls_error *e) {
    ls_buf settings = {0};
    ls_json *j = ls_json_new_object();
    ls_table_describe(&t->c, &settings);
    ls_json_set_text(j, "format", "lockstep table 1");
    ls_json_set_text(j, "settings", settings.data);
    ls_json_set_integer(j, "clock", t->clock);
    ls_json_set_integer(j, "workers", t->rows.nworkers);
    ls_json_set_text(j, "hash", hash);
    ls_buf_free(&settings);
    return ls_json_write_in(j, dir, "table.json", e);
}

/* Worker 0 makes the directory `new`, which becomes `dir` when it is whole. */
static ls_status make_folder(const ls_table *t, const char *dir, const char *new, ls_error *e) {
    struct stat there;
    ls_error why = {0};
    if (t->rows.worker != 0) return LS_OK;
    if (lstat(dir, &there) == 0) return ls_fail(e, LS_EINVAL, "%s: exists already", dir);
    ls_status s = ls_file_remove_tree(new, &why);
    if (s == LS_OK) s = ls_file_make_dirs(new, &why);
    return s == LS_OK ? s : ls_fail(e, s, "%s: %s", dir, why.msg);
}

static ls_status finish_folder(const ls_table *t, const char *dir, const char *new,
                               const char *hash, ls_error *e) {
    if (t->rows.worker != 0) return LS_OK;
    LS_TRY(write_manifest(t, new, hash, e));
    LS_TRY(ls_file_sync_dir(new, e));
    return ls_file_rename(new, dir, e);
}

static char *without_slash(const char *dir) {
    char *path = ls_strdup(dir);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = 0;
    return path;
}

/* Where the workers write the table: the same name on all, and no user's. */
static char *fresh_of(const char *path, const char *hash) {
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    return ls_format("%.*s" LS_FILE_FRESH "%.8s-%.200s", n, path, hash, path + n);
}

ls_status ls_table_save(ls_table *t, const char *dir, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_save", e));
    LS_TRY(check_directory(t, dir, "ls_table_save()", e));
    char hash[33] = "", *path = without_slash(dir);
    ls_exchange *x = &t->exchange;
    ls_status s = ls_table_hash(t, hash, e);
    char *new = fresh_of(path, hash);
    if (s == LS_OK) s = ls_exchange_agree(x, make_folder(t, path, new, e), "ls_table_save()", e);
    if (s == LS_OK) {
        s = ls_exchange_agree(x, write_shard(t, new, e), "ls_table_save()", e);
        if (s == LS_OK)
            s = ls_exchange_agree(x, finish_folder(t, path, new, hash, e), "ls_table_save()", e);
        if (s != LS_OK && t->rows.worker == 0) ls_file_remove_tree(new, NULL);
    }
    free(path);
    free(new);
    return s;
}

/* ---- loading ---- */

typedef struct saved {
    const char *dir;
    int64_t clock, workers;
    char hash[33];
    ls_rows rows; /* this worker's */
    ls_id_map counts;
} saved;

/* Names the first setting in which two descriptions differ. */
static ls_status differ(const char *path, const char *was, const char *is, ls_error *e) {
    while (*was && *is) {
        size_t a = strcspn(was, ","), b = strcspn(is, ",");
        if (a != b || strncmp(was, is, a) != 0) break;
        was += a + strspn(was + a, ", ");
        is += b + strspn(is + b, ", ");
    }
    return ls_fail(e, LS_EINVAL, "%s: was saved with %.*s; the table has %.*s", path,
                   (int)strcspn(was, ","), was, (int)strcspn(is, ","), is);
}

static ls_status check_manifest(const ls_table *t, const char *path, const ls_json *j, saved *s,
                                ls_error *e) {
    const char *format = ls_json_text(ls_json_get(j, "format"));
    const char *hash = ls_json_text(ls_json_get(j, "hash"));
    const char *settings = ls_json_text(ls_json_get(j, "settings"));
    ls_hash parsed;
    if (!format || strcmp(format, "lockstep table 1") != 0 || !settings || !hash ||
        !ls_hash_parse(hash, &parsed) || !ls_json_integer(ls_json_get(j, "clock"), &s->clock) ||
        !ls_json_integer(ls_json_get(j, "workers"), &s->workers) || s->clock < 0 ||
        s->clock > UINT32_MAX || s->workers < 1 || s->workers > 99999)
        return ls_fail(e, LS_EINVAL, "%s: is not that of a table, or is damaged", path);
    snprintf(s->hash, sizeof s->hash, "%s", hash);
    ls_buf own = {0};
    ls_table_describe(&t->c, &own);
    ls_status status = LS_OK;
    if (strcmp(settings, own.data) != 0) status = differ(path, settings, own.data, e);
    ls_buf_free(&own);
    return status;
}

static ls_status read_manifest(const ls_table *t, saved *s, ls_error *e) {
    enum { MOST = 1 << 20 };
    char *path = ls_format("%s/table.json", s->dir);
    ls_json *j = NULL;
    ls_status status = ls_json_read(path, MOST, &j, e);
    if (status == LS_OK && !j) status = ls_fail(e, LS_EIO, "%s: does not exist", path);
    if (status == LS_OK) status = check_manifest(t, path, j, s, e);
    ls_json_free(j);
    free(path);
    return status;
}

/* The tensors of a file, if they are as they were written. */
static ls_status find_tensors(const saved *s, const char *path, const ls_safetensors *f,
                              ls_tensor t[NTENSORS], ls_error *e) {
    ls_tensor wanted[NTENSORS];
    const ls_tensor *ids = ls_safetensors_find(f, "ids"),
                    *counted = ls_safetensors_find(f, "counted");
    size_t n = ids ? ids->count : 0, m = counted ? counted->count : 0;
    describe_shard(&s->rows, n, m, wanted);
    for (int i = 0; i < NTENSORS; i++) {
        const ls_tensor *found = ls_safetensors_find(f, wanted[i].name);
        if (!found || strcmp(found->dtype, wanted[i].dtype) != 0 || found->count != wanted[i].count)
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is missing, or has another type or size",
                           path, wanted[i].name);
        t[i] = *found;
    }
    return LS_OK;
}

/* Ids first .. end of a file; `room` [end - first]. */
static ls_status read_rows(saved *s, const ls_tensor t[NTENSORS], size_t first, size_t end,
                           uint64_t *room, ls_error *e) {
    const uint64_t *ids = t[IDS].data;
    const float *values = t[VALUES].data, *states = t[STATES].data;
    const uint32_t *ages = t[AGES].data;
    size_t width = (size_t)s->rows.c->width, nstates = (size_t)s->rows.nstates, n = 0;
    for (size_t i = first; i < end; i++)
        if (ls_rows_can_have(&s->rows, ids[i]) && ls_rows_owner(&s->rows, ids[i]) == s->rows.worker)
            room[n++] = ids[i];
    LS_TRY(ls_rows_reserve(&s->rows, room, n, e));
    for (size_t i = first; i < end; i++) {
        if (!ls_rows_can_have(&s->rows, ids[i]) ||
            ls_rows_owner(&s->rows, ids[i]) != s->rows.worker)
            continue;
        ls_row row = ls_rows_take(&s->rows, ids[i], s->clock);
        memcpy(row.values, values + i * width, width * sizeof *values);
        if (nstates) memcpy(row.states, states + i * nstates, nstates * sizeof *states);
        *row.age = ages[i];
    }
    return LS_OK;
}

static ls_status read_counts(saved *s, const ls_tensor t[NTENSORS], ls_error *e) {
    const uint64_t *ids = t[COUNTED].data;
    const uint32_t *counts = t[COUNTS].data;
    LS_TRY(ls_id_map_reserve(&s->counts, t[COUNTED].count, e));
    for (size_t i = 0; i < t[COUNTED].count; i++) {
        bool new = false;
        if (ls_rows_owner(&s->rows, ids[i]) == s->rows.worker)
            *ls_id_map_put(&s->counts, ids[i], &new) = counts[i];
    }
    return LS_OK;
}

static ls_status read_shard(saved *s, int shard, ls_error *e) {
    enum { PART = 4096 };
    ls_safetensors f;
    ls_tensor t[NTENSORS];
    char *path = NULL;
    uint64_t *room = LS_NEW_ARRAY(uint64_t, PART);
    shard_path(s->dir, shard, (int)s->workers, &path);
    ls_status status = ls_safetensors_open_any(path, &f, e);
    if (status == LS_OK) {
        status = find_tensors(s, path, &f, t, e);
        for (size_t i = 0; status == LS_OK && i < t[IDS].count; i += PART) {
            size_t end = i + PART < t[IDS].count ? i + PART : t[IDS].count;
            status = read_rows(s, t, i, end, room, e);
        }
        if (status == LS_OK) status = read_counts(s, t, e);
        if (status == LS_OK) status = ls_guard_check(e);
        ls_safetensors_close(&f);
    }
    free(room);
    free(path);
    return status;
}

static ls_status read_all(const ls_table *t, saved *s, ls_error *e) {
    LS_TRY(read_manifest(t, s, e));
    ls_rows_init(&s->rows, &t->c, t->rows.worker, t->rows.nworkers);
    for (int i = 0; i < s->workers; i++) LS_TRY(read_shard(s, i, e));
    return LS_OK;
}

static ls_status check_hash(const ls_table *t, const saved *s, ls_error *e) {
    char hash[33];
    LS_TRY(hash_of(t->group, &s->rows, &s->counts, s->clock, hash, e));
    if (strcmp(hash, s->hash) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is damaged: its rows have another hash than table.json says",
                   s->dir);
}

ls_status ls_table_load(ls_table *t, const char *dir, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    LS_TRY(ls_table_check(t, "ls_table_load", e));
    LS_TRY(check_directory(t, dir, "ls_table_load()", e));
    char *path = without_slash(dir);
    saved s = {.dir = path};
    ls_status status = ls_exchange_agree(&t->exchange, read_all(t, &s, e), "ls_table_load()", e);
    if (status == LS_OK) status = check_hash(t, &s, e);
    if (status == LS_OK) {
        ls_rows rows = t->rows;
        ls_id_map counts = t->admitted;
        t->rows = s.rows;
        t->admitted = s.counts;
        t->clock = s.clock;
        s.rows = rows;
        s.counts = counts;
        ls_table_discard(t);
    }
    ls_rows_free(&s.rows);
    ls_id_map_free(&s.counts);
    free(path);
    return status;
}
