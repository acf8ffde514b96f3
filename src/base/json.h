/* json.h - JSON values: parse, look up, build, write.
 *
 * A value has one owner, which frees it with ls_json_free(); what ls_json_get() and ls_json_at()
 * return is borrowed from it. ls_json_set() and ls_json_push() take ownership of the child. One
 * thread at a time.
 */
#ifndef LS_BASE_JSON_H
#define LS_BASE_JSON_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/mem.h"

typedef struct ls_json ls_json;

/* `what` names the text in messages, e.g. the file's path; "": they begin with what is wrong.
 * Duplicate keys are refused. */
ls_status ls_json_parse(const char *text, size_t nbytes, const char *what, ls_json **j_p,
                        ls_error *);
/* A value of any type, which alone is no document to ls_json_parse(). */
ls_status ls_json_parse_value(const char *text, size_t nbytes, const char *what, ls_json **j_p,
                              ls_error *);
/* JSON's white space. */
static inline bool ls_json_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
void ls_json_free(ls_json *);
/* Returns the value, with one more owner. */
ls_json *ls_json_share(const ls_json *);

/* Parses a file of at most `most` bytes. *j_p is NULL if the file does not exist. Whole numbers of
 * more than 64 bits are real ones. */
ls_status ls_json_read(const char *path, size_t most, ls_json **j_p, ls_error *);
/* Writes a new file, as ls_file_write(), of indented lines. Frees the value. */
ls_status ls_json_write_in(ls_json *, const char *folder, const char *name, ls_error *);

/* Look-up. Each returns NULL, 0 or false if there is no such value. */
const ls_json *ls_json_get(const ls_json *object, const char *key);
const ls_json *ls_json_given(const ls_json *object, const char *key); /* nor if it is null */
const ls_json *ls_json_at(const ls_json *array, size_t i);
size_t ls_json_count(const ls_json *);     /* elements of an array, members of an object, else 0 */
const char *ls_json_text(const ls_json *); /* of a string, else NULL */
bool ls_json_integer(const ls_json *, int64_t *value_p); /* false: not an integer */
bool ls_json_number(const ls_json *, double *value_p);   /* integers too */
bool ls_json_is_true(const ls_json *);
bool ls_json_is_bool(const ls_json *);
bool ls_json_is_null(const ls_json *);
bool ls_json_is_object(const ls_json *);
bool ls_json_is_array(const ls_json *);
bool ls_json_equal(const ls_json *, const ls_json *);

/* Iterates over the members of an object, in the order of the text: begin with it = NULL; NULL
 * ends. */
void *ls_json_next(const ls_json *object, void *it, const char **key_p, const ls_json **value_p);

/* Building. Text must be UTF-8. */
ls_json *ls_json_new_object(void);
/* A new object with the members of one, if there is one; it shares their values. */
ls_json *ls_json_copy(const ls_json *object);
ls_json *ls_json_new_array(void);
ls_json *ls_json_new_text(const char *);
/* For a path: bytes that are not UTF-8 are escaped (escape.h). */
ls_json *ls_json_new_path(const char *);
/* For bytes [n] that may not be text: each that is not UTF-8, or is 0, becomes U+FFFD. */
ls_json *ls_json_new_bytes(const char *bytes, size_t n);
ls_json *ls_json_new_integer(int64_t);
ls_json *ls_json_new_number(double); /* NaN and infinities become null */
ls_json *ls_json_new_bool(bool);
ls_json *ls_json_new_null(void);
void ls_json_set(ls_json *object, const char *key, ls_json *value);
/* Removes a member, if it is there. */
void ls_json_drop(ls_json *object, const char *key);
/* Sets a member to a new value. */
void ls_json_set_integer(ls_json *object, const char *key, int64_t value);
void ls_json_set_number(ls_json *object, const char *key, double value);
void ls_json_set_bool(ls_json *object, const char *key, bool value);
void ls_json_set_text(ls_json *object, const char *key, const char *value);
void ls_json_set_path(ls_json *object, const char *key, const char *value);
void ls_json_set_hash(ls_json *object, const char *key, ls_hash value);
void ls_json_push(ls_json *array, ls_json *value);

/* Appends the text: `indent` spaces a level, or 0 for one line. Numbers that are not whole have at
 * most 9 digits. No line break at the end. */
void ls_json_write(const ls_json *, int indent, ls_buf *);
/* On one line, with as many digits as it takes to read the same numbers. */
void ls_json_write_exact(const ls_json *, ls_buf *);

#endif
