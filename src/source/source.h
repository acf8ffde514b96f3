/* source.h - samples of a data set: named fields of fixed shapes, read by number.
 *
 * A source is opened once: its files are indexed, and never in memory as a whole. Afterwards any
 * threads may read any samples at the same time. The files must not change while it is open: a
 * change is an error once it is noticed, at the latest by ls_source_verify().
 */
#ifndef LS_SOURCE_SOURCE_H
#define LS_SOURCE_SOURCE_H

#include "base/hash.h"
#include "base/mem.h"
#include "data/order.h"
#include "lockstep/group.h"
#include "source/damage.h"

enum { LS_SOURCE_FIELDS = 64, LS_FIELD_DIMS = 4, LS_FIELD_NAME = 256, LS_FIELD_ALIGN = 64 };
enum { LS_SOURCE_FORM = 160 };

/* A list: whole numbers, i32 or i64, in one dimension; a sample has at most dims[0] of them. Behind
 * the last one stands the least number of the type, unless the list is full.
 *
 * Names that have a meaning: "label" is a class, one LS_I32; an LS_U8 field of 3 dimensions whose
 * last is 1 or 3 is an image. */
typedef struct ls_field {
    char name[LS_FIELD_NAME];    /* "image", "label", a column's name */
    ls_dtype type;               /* LS_U8, LS_I32, LS_F32, ... in the machine's byte order */
    int ndims;                   /* 0: one number */
    int64_t dims[LS_FIELD_DIMS]; /* an image: height, width, channels; each at least 1 */
    size_t offset, nbytes;       /* in a sample; offsets are multiples of LS_FIELD_ALIGN */
    bool is_list;
    int64_t ids;   /* its numbers are ids from 0 to ids - 1; 0: they are none, or it is not known */
    bool is_whole; /* f32: all values are whole numbers, as a text file spells them */
    const char *trouble; /* why a model can't read the field; NULL: it can */
} ls_field;

typedef struct ls_index ls_index;             /* index.h */
typedef struct ls_numbering ls_numbering;     /* numbering.h */
typedef struct ls_ids ls_ids;                 /* ids.h */
typedef struct ls_pixel_cache ls_pixel_cache; /* pixel_cache.h */

typedef enum ls_index_use {
    LS_INDEX_NONE, /* too little data for one, or the cache can't be written */
    LS_INDEX_USED, /* the files were not read again */
    LS_INDEX_MADE
} ls_index_use;

/* Where in its files a sample comes from; records that are left out count. */
typedef struct ls_record_at {
    uint64_t number;  /* among the records of all files, in their order */
    uint64_t in_file; /* among those of its own file */
} ls_record_at;

typedef struct ls_source ls_source;
struct ls_source {      /* a reader's own struct begins with it */
    const char *format; /* "idx" */
    uint64_t count;     /* samples */
    int nfields;
    ls_field fields[LS_SOURCE_FIELDS];
    size_t nbytes; /* size of a sample */
    ls_hash hash;  /* hash of the unpacked files that samples come from, in their order */
    bool fits;     /* its images are read as options.images says */
    bool turned;   /* EXIF says that images are not upright, and they are read as it says */
    int64_t side;  /* of the squares as which images of several sizes are read, since nothing says
                    * another size; 0: they are not */
    bool decodes;  /* a field has pixels of JPEG or PNG images: the decoders are part of the hash */
    bool scales;   /* its images are scaled or cut */
    ls_hash scale; /* how: all that decides pixels beside the files */
    ls_pixel_cache *pixels; /* where they are kept; NULL: nowhere */
    char **classes; /* [nclasses] names of the values of the field "label"; NULL: they have none */
    int nclasses;
    const ls_numbering
        *numbering;    /* what it has decided about texts; NULL: there is nothing to decide */
    const ls_ids *ids; /* of ratings and clicks; NULL: it has none */
    char form[LS_SOURCE_FORM]; /* what else was found: "cells are separated by tabs"; "": nothing */
    uint64_t nfiles, file_nbytes; /* on disk; nfiles 0: ls_source_open() counts the paths' files */
    ls_damage damage;             /* records that were left out (skip_damaged) */
    uint64_t nmissing;            /* records that were left out since they lack values (missing) */
    ls_source **parts;            /* [nparts] sources that it is made of (mixed.h); NULL: files */
    int nparts;
    ls_index_use index_use;
    ls_index
        *index; /* the states in which the files were opened; NULL: not from ls_source_open() */
    /* Reads sample i < count into sample [nbytes], whose gaps between fields it leaves as they are.
     * LS_EINVAL: the sample is damaged; the message names the file, the record or offset, and what
     * is wrong. LS_EIO: a file can't be read, or has changed since it was opened. */
    ls_status (*read)(const ls_source *, uint64_t i, void *sample, ls_error *);
    /* The reader's own: ls_source_open() puts one around it that finds lost and changed files. */
    ls_status (*read_record)(const ls_source *, uint64_t i, void *sample, ls_error *);
    /* Reads sample i for training, where the draw changes what is read. NULL: it doesn't. */
    ls_status (*draw)(const ls_source *, uint64_t i, const ls_draw *, void *sample, ls_error *);
    /* See ls_source_follow(). NULL: its numbers are those in the files. */
    ls_status (*follow)(ls_source *, const ls_numbering *, const char *what, ls_error *);
    /* Appends the name of the file or member that has sample i. NULL: samples have numbers
     * alone. */
    void (*put_name)(const ls_source *, uint64_t i, ls_buf *);
    /* See ls_source_file(). NULL: it is not known. */
    const char *(*file)(const ls_source *, uint64_t i);
    /* See ls_source_record(). NULL: all records have samples, or samples have names. */
    ls_record_at (*record)(const ls_source *, uint64_t i);
    void (*close)(ls_source *); /* frees it */
};

typedef struct ls_source_options ls_source_options; /* options.h */

void ls_source_close(ls_source *); /* NULL is fine */
/* Lets a source that was just opened give texts the numbers that they have in another one: NULL is
 * a source without numbering. what: names it in messages. LS_EINVAL: it has other texts or
 * fields. */
ls_status ls_source_follow(ls_source *, const ls_numbering *, const char *what, ls_error *);
/* LS_EIO: a file of the source has changed since it was opened; the message names it. */
ls_status ls_source_verify(const ls_source *, ls_error *);

static inline bool ls_field_is_image(const ls_field *f) {
    return f->type == LS_U8 && f->ndims == 3 && (f->dims[2] == 1 || f->dims[2] == 3);
}
/* The first field that is an image; NULL: none is. */
const ls_field *ls_source_image(const ls_source *);
/* The numbers of a field's value in a sample: of a list those before its end. */
size_t ls_field_count(const ls_field *, const void *sample);
/* The names of the classes of a field, [the result]; 0: they have none. They are the source's. */
int ls_source_classes(const ls_source *, const char *field, char *const **names_p);
/* The name of sample i, e.g. "cat/tabby.jpg"; nothing is appended if samples have no names. */
void ls_source_put_name(const ls_source *, uint64_t i, ls_buf *);
/* The path of the file that has sample i; NULL: it is not known. It is the source's. */
const char *ls_source_file(const ls_source *, uint64_t i);
/* The record of sample i: row 17 of a file, counted from 0 behind the header, whichever rows before
 * it are left out. */
ls_record_at ls_source_record(const ls_source *, uint64_t i);
/* Ends a list behind its n numbers. */
void ls_field_end(const ls_field *, void *sample, size_t n);
/* The field of this name; NULL: there is none. */
const ls_field *ls_source_field(const ls_source *, const char *name);
/* Reads sample i for training, as this draw of it says. */
ls_status ls_source_draw(const ls_source *, uint64_t i, const ls_draw *, void *sample, ls_error *);

/* A source that changes the samples of another, which it owns, with as many samples in their order:
 * `over` begins a structure from malloc(). The caller adds the fields. */
typedef struct ls_source_over {
    ls_source source;
    ls_source *from;
} ls_source_over;
typedef ls_status ls_source_change(const ls_source *, uint64_t i, const ls_draw *, void *sample,
                                   ls_error *);
/* change: reads a sample as the draw says; NULL: not for training. */
void ls_source_over_open(ls_source_over *, ls_source *from, ls_source_change *change);
/* Reads sample i of the other. */
ls_status ls_source_over_read(const ls_source_over *, uint64_t i, const ls_draw *, void *sample,
                              ls_error *);

/* ---- for readers ---- */

/* Appends a field of this shape and returns it, with its place in the sample; `what` (a path) names
 * it in messages. LS_EINVAL: too many fields or dimensions, a dimension below 1, or a sample over
 * LS_SAMPLE_NBYTES. */
#define LS_SAMPLE_NBYTES ((size_t)1 << 31)
ls_status ls_source_add_field(ls_source *, const char *what, const ls_field *like, ls_error *);

/* Copies the error of a damaged record, and adds what to do, unless it says so; returns its
 * code. */
ls_status ls_source_refuse(const ls_error *damage, ls_error *e);
/* What happens to a record that is damaged as *why says: with skip_damaged it is counted in the
 * source, whose opening logs it, and the result is LS_OK; else as above. An error that is not
 * LS_EINVAL is always returned. */
ls_status ls_source_leave_out(ls_source *, const ls_source_options *, const ls_error *why,
                              ls_error *e);

/* The part that has record i: begins[part] <= i < begins[part + 1]; begins [nparts + 1] ascend. */
size_t ls_source_part(const uint64_t *begins, size_t nparts, uint64_t i);

#endif
