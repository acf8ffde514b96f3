/* read_images.c - a directory whose sub-directories are classes, as torchvision's ImageFolder reads
 * it: DIR/CLASS/.../NAME.jpg, .jpeg or .png (image_tree.h); or a directory of images, or files of
 * images, which have no class.
 *
 * Opening reads each file once, for the hash and the images' sizes. Later a sample is one file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "source/format.h"
#include "source/images/image_set.h"
#include "source/images/image_tree.h"
#include "source/index.h"
#include "source/note.h"
#include "source/numbering.h"
#include "source/pixel_cache.h"

typedef struct images {
    ls_source source;
    ls_image_tree tree;
    ls_numbering numbering; /* of one feature, the label */
    char *trouble;          /* of the label; NULL: none */
    int32_t *labels;        /* [tree.dirs.n] */
    ls_image_fit fit;
    char *what; /* the data, for messages: the root, or the first file */
} images;

static char *path_of(const images *m, const ls_image_file *f) {
    if (!m->tree.root) return ls_strdup(f->name);
    if (m->tree.flat) return ls_format("%s/%s", m->tree.root, f->name);
    return ls_format("%s/%s/%s", m->tree.root, m->tree.dirs.names[f->class], f->name);
}

/* ---- open ---- */

/* All images are read once. */
typedef struct indexing {
    images *m;
    const ls_source_options *o;
    ls_image_set *set;
    ls_hasher *hasher;
} indexing;

static ls_status check_image(const indexing *x, ls_image_file *f, ls_image_seen *s_p, ls_error *e) {
    images *m = x->m;
    char *path = path_of(m, f);
    ls_buf b = {0};
    ls_status s = ls_file_read(path, LS_IMAGE_FILE_NBYTES, &b, e);
    if (s == LS_OK) s = ls_image_set_check(x->set, path, (const uint8_t *)b.data, b.len, s_p, e);
    if (s == LS_OK) {
        ls_hash hash = ls_hash_bytes(b.data, b.len);
        f->hash = hash.lo;
        const char *name = m->tree.root ? f->name : ls_file_name(f->name);
        ls_hasher_add(x->hasher, name, strlen(name) + 1);
        ls_hasher_add(x->hasher, &f->class, sizeof f->class);
        ls_hasher_add(x->hasher, &hash, sizeof hash);
        m->source.file_nbytes += b.len;
    }
    ls_buf_free(&b);
    free(path);
    return s;
}

/* Reads an image. *left_p: 1 if it is left out. */
static ls_status add_image(indexing *x, ls_image_file *f, uint8_t *left_p, ls_error *e) {
    ls_image_seen s;
    ls_error damage = {0};
    if (check_image(x, f, &s, &damage) == LS_OK) {
        ls_image_sizes_add(&x->set->sizes, s);
        return LS_OK;
    }
    LS_TRY(ls_source_leave_out(&x->m->source, x->o, &damage, e));
    *left_p = 1;
    return LS_OK;
}

static ls_status check_images(indexing *x, uint8_t *left, ls_error *e) {
    const images *m = x->m;
    for (size_t i = 0; i < m->tree.nfiles; i++)
        LS_TRY(add_image(x, &m->tree.files[i], &left[i], e));
    if (m->source.damage.n < m->tree.nfiles) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: all images are damaged; the first: %s", m->what,
                   m->source.damage.named[0]);
}

/* ---- the index in the cache ---- */

/* A hash of the names, classes and states of all files. */
static ls_hash hash_list(images *m, ls_index *x) {
    ls_hasher *h = ls_hasher_new();
    for (size_t i = 0; i < m->tree.nfiles; i++) {
        char *path = path_of(m, &m->tree.files[i]);
        struct stat st = {0};
        if (stat(path, &st) == 0) ls_index_note_state(x, &st);
        m->tree.files[i].stamp = ls_stamp_of(&st);
        ls_hasher_add(h, path, strlen(path) + 1);
        ls_hasher_add(h, &m->tree.files[i].stamp, sizeof(ls_stamp));
        free(path);
    }
    return ls_hasher_finish(h);
}

/* `left`: for each file that was found, 1 if it is left out. */
static void put_index(const images *m, const ls_image_set *set, const uint8_t *left, size_t n,
                      ls_buf *out) {
    ls_bytes_put_array(out, left, n, 1);
    for (size_t i = 0; i < n; i++) ls_bytes_put_u64(out, m->tree.files[i].hash);
    ls_image_sizes_put(&set->sizes, out);
    ls_damage_put(&m->source.damage, out);
    ls_bytes_put(out, &m->source.hash, sizeof m->source.hash);
    ls_bytes_put_u64(out, m->source.file_nbytes);
}

static void drop_files(images *m, const uint8_t *left) {
    size_t n = m->tree.nfiles;
    m->tree.nfiles = 0;
    for (size_t i = 0; i < n; i++) {
        if (left[i])
            free(m->tree.files[i].name);
        else
            m->tree.files[m->tree.nfiles++] = m->tree.files[i];
    }
}

/* What is known of the files, instead of reading them. */
static ls_status take_index(images *m, ls_image_set *set, ls_hash list, ls_bytes *in, ls_error *e) {
    size_t n = 0;
    ls_hash then;
    ls_bytes_take(in, &then, sizeof then);
    uint8_t *left = ls_bytes_take_array(in, 1, &n);
    if (n != m->tree.nfiles) in->bad = true;
    for (size_t i = 0; i < n && !in->bad; i++)
        m->tree.files[i].hash = ls_bytes_take_u64(in, UINT64_MAX);
    ls_image_sizes_take(&set->sizes, in);
    ls_damage_take(&m->source.damage, in);
    ls_bytes_take(in, &m->source.hash, sizeof m->source.hash);
    m->source.file_nbytes = ls_bytes_take_u64(in, UINT64_MAX);
    bool good = !in->bad && ls_hash_same(then, list) && n == m->tree.nfiles && set->sizes.n;
    if (good) drop_files(m, left);
    free(left);
    return good && m->tree.nfiles ? LS_OK : ls_fail(e, LS_EINVAL, "the index is damaged");
}

/* Reads all images; those that are left out leave m->tree.files. */
static ls_status index_images(images *m, const ls_source_options *o, ls_image_set *set,
                              ls_hash list, ls_error *e) {
    uint8_t *left = ls_alloc(m->tree.nfiles);
    ls_buf *out = ls_index_out(o->index);
    indexing x = {m, o, set, ls_hasher_new()};
    ls_status s = check_images(&x, left, e);
    m->source.hash = ls_hasher_finish(x.hasher);
    ls_image_sizes_end(&set->sizes);
    if (s == LS_OK && out) {
        ls_hash now = hash_list(m, o->index); /* other files since then: the index won't fit */
        ls_bytes_put(out, ls_hash_same(now, list) ? &list : &(ls_hash){0}, sizeof list);
        put_index(m, set, left, m->tree.nfiles, out);
    }
    if (s == LS_OK) drop_files(m, left);
    free(left);
    return s;
}

/* The numbers of the directories' names. */
static void number_labels(images *m) {
    const ls_classes *all = &m->numbering.list[0].in;
    if (!m->labels) m->labels = LS_NEW_ARRAY(int32_t, (size_t)m->tree.dirs.n);
    for (int i = 0; i < m->tree.dirs.n; i++)
        m->labels[i] = ls_classes_find(all, m->tree.dirs.names[i], strlen(m->tree.dirs.names[i]));
    m->source.numbering = &m->numbering;
    m->source.classes = all->names;
    m->source.nclasses = all->n;
}

static ls_status add_fields(images *m, const ls_image_set *set, ls_error *e) {
    ls_field label = {.name = "label", .type = LS_I32};
    m->source.count = m->source.nfiles = m->tree.nfiles;
    LS_TRY(ls_image_set_field(set, &m->source, m->what, &m->fit, e));
    if (m->tree.flat) return LS_OK;
    if (m->tree.doubt) label.trouble = m->trouble = ls_strdup(m->tree.doubt);
    LS_TRY(ls_source_add_field(&m->source, m->tree.root, &label, e));
    ls_numbered *code = ls_numbering_add(&m->numbering, "label", "label");
    code->text = true;
    code->in = ls_classes_copy(&m->tree.dirs);
    number_labels(m);
    return LS_OK;
}

/* Files that are given have no classes. */
static ls_status take_files(images *m, const ls_files *files, ls_error *e) {
    for (size_t i = 0; i < files->n; i++) {
        if (ls_file_is_dir(files->paths[i]))
            return ls_fail(e, LS_EINVAL,
                           "%s: images come from one directory, or from files; %zu paths are given",
                           files->paths[i], files->n);
        ls_image_tree_add(&m->tree, files->paths[i]);
    }
    ls_note("%s: images that are given as files have no classes", m->what);
    return LS_OK;
}

static ls_status fill(images *m, const ls_files *files, const ls_source_options *o, ls_error *e) {
    ls_image_set set = {.way = o->images, .decodes = o->skip_damaged};
    LS_TRY(m->tree.root ? ls_image_tree_find(&m->tree, e) : take_files(m, files, e));
    ls_hash list = hash_list(m, o->index);
    ls_status s = ls_index_is_known(o->index) ? take_index(m, &set, list, ls_index_in(o->index), e)
                                              : index_images(m, o, &set, list, e);
    if (s == LS_OK) s = add_fields(m, &set, e);
    ls_image_set_free(&set);
    return s;
}

/* ---- the source ---- */

/* Reads the file, which must be as it was. */
static ls_status decode(const images *m, const ls_image_file *f, const char *path, uint8_t *out,
                        ls_error *e) {
    ls_buf b = {0};
    ls_error own = {0};
    ls_status s = ls_file_read(path, LS_IMAGE_FILE_NBYTES, &b, e);
    if (s == LS_OK && ls_hash_bytes(b.data, b.len).lo != f->hash)
        s = ls_fail(e, LS_EIO,
                    "%s: has changed since it was opened; put the file back and start "
                    "again",
                    path);
    if (s == LS_OK &&
        ls_image_fit_decode(&m->fit, (const uint8_t *)b.data, b.len, out, &own) != LS_OK)
        s = ls_fail(e, own.code, "%s: %s", path, own.msg);
    ls_buf_free(&b);
    return s;
}

/* Is the state of the file the one before it was opened? */
static bool is_untouched(const ls_image_file *f, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    ls_stamp now = ls_stamp_of(&st);
    return ls_stamp_same(&now, &f->stamp);
}

static ls_status read_sample(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const images *m = (const images *)source;
    const ls_image_file *f = &m->tree.files[i];
    int32_t label = m->tree.flat ? 0 : m->labels[f->class];
    size_t offset = source->fields[0].offset;
    uint8_t *out = (uint8_t *)sample + offset;
    char *path = path_of(m, f);
    ls_status s = LS_OK;
    if (!is_untouched(f, path) || !ls_pixel_cache_get(source->pixels, i, offset, out)) {
        s = decode(m, f, path, out, e);
        if (s == LS_OK) ls_pixel_cache_put(source->pixels, i, offset, out);
    }
    if (!m->tree.flat) memcpy((char *)sample + source->fields[1].offset, &label, sizeof label);
    free(path);
    return s;
}

/* Directories get the numbers that their names have in the training data. */
static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    images *m = (images *)source;
    const ls_numbered *label = NULL;
    ls_error why = {0};
    (void)e;
    if (m->tree.flat || m->tree.doubt) return LS_OK;
    for (size_t i = 0; i < numbering->n; i++)
        if (strcmp(numbering->list[i].field, "label") == 0) label = &numbering->list[i];
    if (!label || !label->text)
        ls_fail(&why, LS_EINVAL,
                "%s: its classes have names, and the labels of the training data are numbers",
                what);
    else if (label->in.n == 0 ||
             ls_classes_check(&m->tree.dirs, &label->in, what, "label", &why) == LS_OK) {
        ls_classes all = ls_classes_copy(label->in.n ? &label->in : &m->tree.dirs);
        ls_classes_free(&m->numbering.list[0].in);
        m->numbering.list[0].in = all;
        number_labels(m);
    }
    free(m->trouble);
    m->trouble = why.code ? ls_strdup(why.msg) : NULL;
    source->fields[1].trouble = m->trouble;
    return LS_OK;
}

static void put_name(const ls_source *source, uint64_t i, ls_buf *b) {
    const images *m = (const images *)source;
    const ls_image_file *f = &m->tree.files[i];
    if (!m->tree.flat) ls_buf_printf(b, "%s/", m->tree.dirs.names[f->class]);
    ls_buf_printf(b, "%s", f->name);
}

static void close_images(ls_source *source) {
    images *m = (images *)source;
    ls_image_tree_free(&m->tree);
    ls_numbering_free(&m->numbering);
    free(m->trouble);
    free(m->labels);
    free(m->what);
    free(m);
}

static ls_status open_images(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                             ls_error *e) {
    images *m = LS_NEW(images);
    m->what = ls_strdup(files->paths[0]);
    if (files->n == 1 && ls_file_is_dir(m->what)) {
        size_t n = strlen(m->what);
        while (n > 1 && m->what[n - 1] == '/') m->what[--n] = 0;
        m->tree.root = ls_strdup(m->what);
    }
    m->source.read = read_sample;
    m->source.decodes = m->source.fits = true;
    m->source.follow = follow;
    m->source.put_name = put_name;
    m->source.close = close_images;
    ls_status s = fill(m, files, o, e);
    if (s == LS_OK)
        *s_p = &m->source;
    else
        close_images(&m->source);
    return s;
}

static bool recognizes(const ls_first_file *f) {
    return f->is_dir ||
           (f->nbytes >= LS_IMAGE_RECOGNIZED && ls_image_recognize(f->bytes, f->nbytes));
}

const ls_data_format ls_format_images = {
    .name = "images",
    .recognizes = recognizes,
    .open = open_images,
};
