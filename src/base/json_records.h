/* json_records.h - the values of a text: one a line, the elements of a JSON array, or objects over
 * several lines each, one after the other. A cursor finds where each begins and ends; a parser then
 * reads it.
 */
#ifndef LS_BASE_JSON_RECORDS_H
#define LS_BASE_JSON_RECORDS_H

#include "base/json.h"
#include "base/lines.h"

typedef struct ls_json_records {
    const char *at, *end;
    char line_end; /* CR in a file that has no LF */
    bool array;
    bool spread;      /* objects over several lines */
    uint64_t number;  /* the value's number, from 1; of lines, empty ones count */
    uint64_t line;    /* where it begins, or where the file is damaged */
    const char *text; /* [n] the value */
    size_t n;
    const char *wrong; /* what is damaged (static text); NULL: nothing */
} ls_json_records;

/* A cursor at the beginning of a text [n], behind a byte order mark. */
ls_json_records ls_json_records_of(const char *text, size_t n);
/* A cursor for text of one value a line, where a value may be an array. */
ls_json_records ls_json_lines_of(const char *text, size_t n);
/* Goes to the next value; passes over empty lines. False: the text ends, or `wrong` is set. */
bool ls_json_records_next(ls_json_records *);
/* The bytes of the value that begins at `at` in this text, where next() had found it. */
size_t ls_json_record_length(const ls_json_records *, const char *at);
/* The value as JSON; LS_EINVAL: the message does not name the place. */
ls_status ls_json_records_parse(const ls_json_records *, ls_json **j_p, ls_error *);
/* Prefixes a message about the value with its place: "FILE:3: why", or "FILE:3: element 2 why".
 * Returns LS_EINVAL. */
ls_status ls_json_records_fail(const ls_json_records *, const char *name, const char *why,
                               ls_error *);

/* The value of one line of a file, such as a line of a log; the caller frees it. NULL: the line is
 * torn, too long or no JSON. */
ls_json *ls_json_of_line(const ls_line *);

#endif
