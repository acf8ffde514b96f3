/* read_images.c - a directory whose sub-directories are classes, as torchvision's ImageFolder
 * reads it: DIR/CLASS/NAME.jpg, .jpeg or .png; or a directory of images, or files of images, which
 * have no class.
 *
 * Classes are numbered in byte order of their names, samples are in order of class and name. Names
 * that begin with a dot are ignored.
 *
 * Opening reads each file once, for the hash and the images' sizes. Later a sample is one file.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/plural.h"
#include "source/format.h"
#include "source/image_set.h"
#include "source/index.h"
#include "source/note.h"
#include "source/numbering.h"

typedef struct image_file {
    char *name; /* in the directory of its class; of files: the path */
    int class;
    uint64_t hash; /* of the file, when the source was opened */
} image_file;

typedef struct images {
    ls_source source;
    char *root;             /* NULL: files are given */
    ls_classes dirs;        /* names of its directories */
    ls_numbering numbering; /* of one feature, the label */
    char *trouble;          /* of the label; NULL: none */
    int32_t *labels;        /* [dirs.n] */
    image_file *files;      /* [source.count] */
    size_t nfiles;
    ls_image_fit fit;
    bool flat;  /* without classes: dirs has one, without a name */
    char *what; /* the data, for messages: the root, or the first file */
} images;

/* ---- names ---- */

typedef struct names {
    char **text; /* [n] sorted by bytes */
    size_t n;
} names;

static void free_names(names *l) {
    for (size_t i = 0; i < l->n; i++) free(l->text[i]);
    free(l->text);
    *l = (names){0};
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ls_status list(const char *path, names *l_p, ls_error *e) {
    DIR *d = opendir(path);
    names l = {0};
    if (!d) return ls_fail(e, LS_EIO, "%s: can't be listed: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] == '.') continue;
        l.text = ls_grow(l.text, l.n, sizeof *l.text);
        l.text[l.n++] = ls_strdup(entry->d_name);
    }
    closedir(d);
    if (l.n) qsort(l.text, l.n, sizeof *l.text, by_bytes);
    *l_p = l;
    return LS_OK;
}

static bool is_image_name(const char *name) {
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(dot, suffixes[i]) == 0) return true;
    return false;
}

/* A path without its directories. */
static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *path_of(const images *m, const image_file *f) {
    if (!m->root) return ls_strdup(f->name);
    if (m->flat) return ls_format("%s/%s", m->root, f->name);
    return ls_format("%s/%s/%s", m->root, m->dirs.names[f->class], f->name);
}

/* ---- open ---- */

static ls_status find_classes(images *m, ls_error *e) {
    names all;
    ls_status s = LS_OK;
    LS_TRY(list(m->root, &all, e));
    const char *outside = NULL; /* the first image that is in no class */
    m->dirs.names = LS_NEW_ARRAY(char *, all.n + 2);
    for (size_t i = 0; i < all.n; i++) {
        char *path = ls_format("%s/%s", m->root, all.text[i]);
        if (ls_file_is_dir(path))
            m->dirs.names[m->dirs.n++] = ls_strdup(all.text[i]);
        else if (!outside && is_image_name(all.text[i]))
            outside = all.text[i];
        free(path);
    }
    if (outside && m->dirs.n)
        s = ls_fail(e, LS_EINVAL,
                    "%s/%s: an image outside of a class; move it into a sub-directory that is "
                    "named like its class",
                    m->root, outside);
    m->flat = outside && !m->dirs.n;
    if (m->flat) m->dirs.names[m->dirs.n++] = ls_strdup("");
    free_names(&all);
    if (s == LS_OK && m->dirs.n == 0)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has no sub-directories; images are expected as DIR/CLASS/NAME.jpg or .png",
                    m->root);
    return s;
}

/* Lists the files of a class. nothers counts those that are no images. */
static ls_status find_files(images *m, int class, size_t *nothers, ls_error *e) {
    names all = {0};
    char *dir = ls_format(m->flat ? "%s" : "%s/%s", m->root, m->dirs.names[class]);
    size_t before = m->nfiles;
    ls_status s = list(dir, &all, e);
    for (size_t i = 0; s == LS_OK && i < all.n; i++) {
        char *path = ls_format("%s/%s", dir, all.text[i]);
        if (ls_file_is_dir(path)) {
            s = ls_fail(e, LS_EINVAL,
                        "%s: a directory in that of a class; only images belong there", path);
        } else if (is_image_name(all.text[i])) {
            m->files = ls_grow(m->files, m->nfiles, sizeof *m->files);
            m->files[m->nfiles++] = (image_file){ls_strdup(all.text[i]), class, 0};
        } else {
            ++*nothers;
        }
        free(path);
    }
    if (s == LS_OK && m->nfiles == before)
        s = ls_fail(e, LS_EINVAL, "%s: has no images (.jpg, .jpeg or .png)", dir);
    free_names(&all);
    free(dir);
    return s;
}

/* All images are read once. */
typedef struct indexing {
    images *m;
    const ls_source_options *o;
    ls_image_set *set;
    ls_hasher *hasher;
} indexing;

static ls_status check_image(const indexing *x, image_file *f, ls_image_seen *s_p, ls_error *e) {
    images *m = x->m;
    char *path = path_of(m, f);
    ls_buf b = {0};
    ls_status s = ls_file_read(path, LS_IMAGE_FILE_NBYTES, &b, e);
    if (s == LS_OK) s = ls_image_set_check(x->set, path, (const uint8_t *)b.data, b.len, s_p, e);
    if (s == LS_OK) {
        ls_hash hash = ls_hash_bytes(b.data, b.len);
        f->hash = hash.lo;
        const char *name = m->root ? f->name : last_part(f->name);
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
static ls_status add_image(indexing *x, image_file *f, uint8_t *left_p, ls_error *e) {
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
    for (size_t i = 0; i < m->nfiles; i++) LS_TRY(add_image(x, &m->files[i], &left[i], e));
    if (m->source.damage.n < m->nfiles) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: all images are damaged; the first: %s", m->what,
                   m->source.damage.named[0]);
}

/* ---- the index in the cache ---- */

/* A hash of the names, classes and states of all files. */
static ls_hash hash_list(const images *m, ls_index *x) {
    ls_hasher *h = ls_hasher_new();
    for (size_t i = 0; i < m->nfiles; i++) {
        char *path = path_of(m, &m->files[i]);
        struct stat st = {0};
        if (stat(path, &st) == 0) ls_index_note_state(x, &st);
        ls_stamp stamp = ls_stamp_of(&st);
        ls_hasher_add(h, path, strlen(path) + 1);
        ls_hasher_add(h, &stamp, sizeof stamp);
        free(path);
    }
    return ls_hasher_finish(h);
}

/* `left`: for each file that was found, 1 if it is left out. */
static void put_index(const images *m, const ls_image_set *set, const uint8_t *left, size_t n,
                      ls_buf *out) {
    ls_bytes_put_array(out, left, n, 1);
    for (size_t i = 0; i < n; i++) ls_bytes_put_u64(out, m->files[i].hash);
    ls_image_sizes_put(&set->sizes, out);
    ls_damage_put(&m->source.damage, out);
    ls_bytes_put(out, &m->source.hash, sizeof m->source.hash);
    ls_bytes_put_u64(out, m->source.file_nbytes);
}

static void drop_files(images *m, const uint8_t *left) {
    size_t n = m->nfiles;
    m->nfiles = 0;
    for (size_t i = 0; i < n; i++) {
        if (left[i])
            free(m->files[i].name);
        else
            m->files[m->nfiles++] = m->files[i];
    }
}

/* What is known of the files, instead of reading them. */
static ls_status take_index(images *m, ls_image_set *set, ls_hash list, ls_bytes *in, ls_error *e) {
    size_t n = 0;
    ls_hash then;
    ls_bytes_take(in, &then, sizeof then);
    uint8_t *left = ls_bytes_take_array(in, 1, &n);
    if (n != m->nfiles) in->bad = true;
    for (size_t i = 0; i < n && !in->bad; i++) m->files[i].hash = ls_bytes_take_u64(in, UINT64_MAX);
    ls_image_sizes_take(&set->sizes, in);
    ls_damage_take(&m->source.damage, in);
    ls_bytes_take(in, &m->source.hash, sizeof m->source.hash);
    m->source.file_nbytes = ls_bytes_take_u64(in, UINT64_MAX);
    bool good = !in->bad && ls_hash_same(then, list) && n == m->nfiles && set->sizes.n;
    if (good) drop_files(m, left);
    free(left);
    return good && m->nfiles ? LS_OK : ls_fail(e, LS_EINVAL, "the index is damaged");
}

/* Reads all images; those that are left out leave m->files. */
static ls_status index_images(images *m, const ls_source_options *o, ls_image_set *set,
                              ls_hash list, ls_error *e) {
    uint8_t *left = ls_alloc(m->nfiles);
    ls_buf *out = ls_index_out(o->index);
    indexing x = {m, o, set, ls_hasher_new()};
    ls_status s = check_images(&x, left, e);
    m->source.hash = ls_hasher_finish(x.hasher);
    ls_image_sizes_end(&set->sizes);
    if (s == LS_OK && out) {
        ls_hash now = hash_list(m, o->index); /* other files since then: the index won't fit */
        ls_bytes_put(out, ls_hash_same(now, list) ? &list : &(ls_hash){0}, sizeof list);
        put_index(m, set, left, m->nfiles, out);
    }
    if (s == LS_OK) drop_files(m, left);
    free(left);
    return s;
}

/* The numbers of the directories' names. */
static void number_labels(images *m) {
    const ls_classes *all = &m->numbering.list[0].in;
    if (!m->labels) m->labels = LS_NEW_ARRAY(int32_t, (size_t)m->dirs.n);
    for (int i = 0; i < m->dirs.n; i++)
        m->labels[i] = ls_classes_find(all, m->dirs.names[i], strlen(m->dirs.names[i]));
    m->source.numbering = &m->numbering;
    m->source.classes = all->names;
    m->source.nclasses = all->n;
}

static ls_status add_fields(images *m, const ls_image_set *set, ls_error *e) {
    ls_field label = {.name = "label", .type = LS_I32};
    m->source.count = m->source.nfiles = m->nfiles;
    LS_TRY(ls_image_set_field(set, &m->source, m->what, &m->fit, e));
    if (m->flat) {
        ls_note(m->root ? "%s: its images are in no sub-directories, so they have no classes"
                        : "%s: images that are given as files have no classes",
                m->what);
        return LS_OK;
    }
    LS_TRY(ls_source_add_field(&m->source, m->root, &label, e));
    ls_numbered *code = ls_numbering_add(&m->numbering, "label", "label");
    code->text = true;
    code->in = ls_classes_copy(&m->dirs);
    number_labels(m);
    return LS_OK;
}

/* Finds the files of the directory. */
static ls_status find_all(images *m, ls_error *e) {
    size_t nothers = 0;
    LS_TRY(find_classes(m, e));
    for (int i = 0; i < m->dirs.n; i++) LS_TRY(find_files(m, i, &nothers, e));
    if (nothers)
        ls_note("%s: %zu file%s without a name of an image (.jpg, .jpeg, .png) ignored", m->root,
                nothers, ls_plural((int64_t)nothers));
    return LS_OK;
}

/* Files that are given have no classes. */
static ls_status take_files(images *m, const ls_files *files, ls_error *e) {
    m->flat = true;
    m->dirs.names = LS_NEW_ARRAY(char *, 1);
    m->dirs.names[m->dirs.n++] = ls_strdup("");
    m->files = LS_NEW_ARRAY(image_file, files->n);
    for (size_t i = 0; i < files->n; i++) {
        if (ls_file_is_dir(files->paths[i]))
            return ls_fail(e, LS_EINVAL,
                           "%s: images come from one directory, or from files; %zu paths are given",
                           files->paths[i], files->n);
        m->files[m->nfiles++] = (image_file){ls_strdup(files->paths[i]), 0, 0};
    }
    return LS_OK;
}

static ls_status fill(images *m, const ls_files *files, const ls_source_options *o, ls_error *e) {
    ls_image_set set = {.way = o->images, .decodes = o->skip_damaged};
    LS_TRY(m->root ? find_all(m, e) : take_files(m, files, e));
    ls_hash list = hash_list(m, o->index);
    ls_status s = ls_index_is_known(o->index) ? take_index(m, &set, list, ls_index_in(o->index), e)
                                              : index_images(m, o, &set, list, e);
    if (s == LS_OK) s = add_fields(m, &set, e);
    ls_image_set_free(&set);
    return s;
}

/* ---- the source ---- */

static ls_status read_sample(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const images *m = (const images *)source;
    const image_file *f = &m->files[i];
    int32_t label = m->flat ? 0 : m->labels[f->class];
    ls_buf b = {0};
    ls_error own = {0};
    char *path = path_of(m, f);
    ls_status s = ls_file_read(path, LS_IMAGE_FILE_NBYTES, &b, e);
    if (s == LS_OK && ls_hash_bytes(b.data, b.len).lo != f->hash)
        s = ls_fail(e, LS_EIO,
                    "%s: has changed since it was opened; put the file back and start "
                    "again",
                    path);
    if (s == LS_OK &&
        ls_image_fit_decode(&m->fit, (const uint8_t *)b.data, b.len,
                            (uint8_t *)sample + source->fields[0].offset, &own) != LS_OK)
        s = ls_fail(e, own.code, "%s: %s", path, own.msg);
    if (!m->flat) memcpy((char *)sample + source->fields[1].offset, &label, sizeof label);
    ls_buf_free(&b);
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
    if (m->flat) return LS_OK;
    for (size_t i = 0; i < numbering->n; i++)
        if (strcmp(numbering->list[i].field, "label") == 0) label = &numbering->list[i];
    if (!label || !label->text)
        ls_fail(&why, LS_EINVAL,
                "%s: its classes have names, and the labels of the training data are numbers",
                what);
    else if (label->in.n == 0 ||
             ls_classes_check(&m->dirs, &label->in, what, "label", &why) == LS_OK) {
        ls_classes all = ls_classes_copy(label->in.n ? &label->in : &m->dirs);
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
    const image_file *f = &m->files[i];
    if (!m->flat) ls_buf_printf(b, "%s/", m->dirs.names[f->class]);
    ls_buf_printf(b, "%s", f->name);
}

static void close_images(ls_source *source) {
    images *m = (images *)source;
    for (size_t i = 0; i < m->nfiles; i++) free(m->files[i].name);
    ls_classes_free(&m->dirs);
    ls_numbering_free(&m->numbering);
    free(m->trouble);
    free(m->labels);
    free(m->files);
    free(m->root);
    free(m->what);
    free(m);
}

static ls_status open_images(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                             ls_error *e) {
    images *m = LS_NEW(images);
    m->what = ls_strdup(files->paths[0]);
    if (files->n == 1 && ls_file_is_dir(m->what)) m->root = ls_strdup(m->what);
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
