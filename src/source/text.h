/* text.h - a text to train on, in documents: files of texts, directories of them, JSON with a text
 * in each object.
 *
 * A file is a document, or several with a separator between them; of JSON, each object's text is
 * one. Byte order marks and empty documents are left out.
 */
#ifndef LS_SOURCE_TEXT_H
#define LS_SOURCE_TEXT_H

#include "base/file.h"
#include "base/stamp.h"
#include "data/added_tokens.h"
#include "source/damage.h"
#include "source/options.h"

typedef enum ls_text_json {
    LS_TEXT_JSON_COLUMN, /* files of JSON have a text in each object; conversations are refused */
    LS_TEXT_JSON_EITHER, /* the same, but conversations are a text as they are, which is logged */
    LS_TEXT_JSON_AS_IS   /* they are texts as they are, unless a column is named */
} ls_text_json;

typedef struct ls_text_options {
    const char
        *separator; /* \n and \t are a line break and a tab; NULL or "": a file is one document */
    const char *column; /* the member with an object's text; NULL or "": text, else content */
    const char *cache;  /* NULL: see ls_source_options */
    ls_text_json json;
    bool skip_damaged; /* files and objects that can't be read are left out; else they are errors */
} ls_text_options;

typedef struct ls_text {
    const uint8_t *data; /* [nbytes] the documents, one behind the other */
    size_t nbytes;
    ls_text_range *documents; /* [ndocuments] none is empty */
    size_t ndocuments;
    size_t nseparators; /* that were found */
    size_t njson;       /* files from whose objects texts were taken */
    char *name;         /* for messages: "a.txt", or "a.txt and 2 more files" */
    ls_damage damage;   /* what was left out */
    ls_mapped one;      /* } used if it is one file as it is */
    char *path;         /* } */
    ls_stamp was;       /* } its state when it was opened */
    void *joined;       /* [size] used else */
    size_t size;
} ls_text;

/* paths: files, directories, patterns and addresses, one a line. Files are read in the order of the
 * lines; those that match a pattern or are below a directory, in byte order of their paths. A file
 * that several patterns match is taken once. A path that exists is not a pattern. Below a directory
 * are read: files with a known ending (text_files.h), and those whose first bytes are a text; a
 * line says what is not. Files may be packed by gzip or zstd.
 *
 * Errors: LS_EIO: a file can't be read. LS_EINVAL: a pattern matches no file, or a file is binary
 * data (not_text.h), not UTF-8 or no JSON with a text in each object (the message names it).
 * LS_ENOMEM. The UTF-8 of a single file that is a text is not checked here, but where it is
 * encoded. */
ls_status ls_text_open(const char *paths, const ls_text_options *, ls_text *t_p, ls_error *);
/* Called after the last use. LS_EIO: the file was written to, or truncated, meanwhile. */
ls_status ls_text_check(const ls_text *, ls_error *);
void ls_text_close(ls_text *);
/* How many documents of `some` are also in `all`, byte for byte. */
uint64_t ls_text_count_shared(const ls_text *all, const ls_text *some);
/* Logs that the text has line ends other than LF, or bytes of zero, which are taken as they are. */
void ls_text_log_remarks(const ls_text *);

#endif
