/* json.c - the one file that knows Jansson. */
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/utf8.h"

static json_t *in(const ls_json *j) { return (json_t *)(uintptr_t)j; }
static ls_json *out(json_t *j) {
    if (!j) abort(); /* out of memory, or text that is not UTF-8: our own bug */
    return (ls_json *)j;
}

/* line 0: it is not known. what "": the caller names the text. */
static ls_status fail(const char *what, int line, const char *wrong, const char *why, ls_error *e) {
    if (!*what) return ls_fail(e, LS_EINVAL, "%s: %s", wrong, why);
    if (!line) return ls_fail(e, LS_EINVAL, "%s: %s: %s", what, wrong, why);
    return ls_fail(e, LS_EINVAL, "%s:%d: %s: %s", what, line, wrong, why);
}

ls_status ls_json_parse(const char *text, size_t nbytes, const char *what, ls_json **j_p,
                        ls_error *e) {
    size_t mark = ls_utf8_mark(text, nbytes);
    text += mark;
    nbytes -= mark;
    json_error_t why;
    bool zero = nbytes && memchr(text, 0, nbytes); /* Jansson would skip it */
    json_t *j = zero ? NULL : json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &why);
    if (!j) LS_TRY(ls_utf8_check_beginning(text, nbytes, what, e));
    if (zero) return fail(what, 0, "is not valid JSON", "it has a zero byte", e);
    if (!j && json_error_code(&why) == json_error_numeric_overflow)
        return fail(what, why.line, "has a number that is too large", why.text, e);
    if (!j && json_error_code(&why) == json_error_null_character)
        return fail(what, why.line, "is not valid JSON", "it has \\u0000, a zero byte", e);
    if (!j && (strstr(why.text, "near 'NaN") || strstr(why.text, "near 'Infinity")))
        return fail(what, why.line, "is not valid JSON",
                    "it has NaN or Infinity, which is no number of JSON; write null", e);
    if (!j) return fail(what, why.line, "is not valid JSON", why.text, e);
    *j_p = (ls_json *)j;
    return LS_OK;
}

ls_status ls_json_parse_value(const char *text, size_t nbytes, const char *what, ls_json **j_p,
                              ls_error *e) {
    char *list = ls_format("[%.*s]", (int)nbytes, text);
    ls_json *all = NULL;
    ls_status s = ls_json_parse(list, strlen(list), what, &all, e);
    free(list);
    LS_TRY(s);
    bool one = ls_json_count(all) == 1;
    if (one) *j_p = ls_json_share(ls_json_at(all, 0));
    ls_json_free(all);
    return one ? LS_OK : ls_fail(e, LS_EINVAL, "%s is no JSON", what);
}

/* Digits, with a sign or not, of more than 64 bits. */
static bool is_long(const char *number, size_t n) {
    static const char most[] = "9223372036854775807";
    if (n && *number == '-') number++, n--;
    for (size_t i = 0; i < n; i++)
        if (number[i] < '0' || number[i] > '9') return false;
    return n >= sizeof most || (n == sizeof most - 1 && memcmp(number, most, n) > 0);
}

/* Whole numbers of more than 64 bits become real ones: 1000000000000000000000.0 */
static void make_real(const char *text, size_t n, ls_buf *out) {
    bool quoted = false;
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (quoted && text[i] == '\\' && end < n) end++;
        if (text[i] == '"') quoted = !quoted;
        while (!quoted && text[i] && strchr("+-.0123456789eE", text[i]) && end < n && text[end] &&
               strchr("+-.0123456789eE", text[end]))
            end++;
        ls_buf_append(out, text + i, end - i);
        if (!quoted && is_long(text + i, end - i)) ls_buf_append(out, ".0", 2);
    }
}

/* Python's packages write numbers of any length: tokenizers whose model_max_length is not known
 * have 10^30 there. */
static ls_status parse_file(const ls_buf *text, const char *path, ls_json **j_p, ls_error *e) {
    ls_buf real = {0};
    if (ls_json_parse(text->data ? text->data : "", text->len, path, j_p, NULL) == LS_OK)
        return LS_OK;
    make_real(text->data, text->len, &real);
    ls_status s = ls_json_parse(real.data ? real.data : "", real.len, path, j_p, e);
    ls_buf_free(&real);
    return s;
}

ls_status ls_json_read(const char *path, size_t most, ls_json **j_p, ls_error *e) {
    ls_buf text = {0};
    *j_p = NULL;
    if (!ls_file_exists(path)) return LS_OK;
    ls_status s = ls_file_read(path, most, &text, e);
    if (s == LS_OK) s = parse_file(&text, path, j_p, e);
    ls_buf_free(&text);
    return s;
}

ls_json *ls_json_share(const ls_json *j) { return out(json_incref(in(j))); }

void ls_json_free(ls_json *j) { json_decref(in(j)); }

ls_status ls_json_write_in(ls_json *j, const char *folder, const char *name, ls_error *e) {
    ls_buf text = {0};
    char *path = ls_format("%s/%s", folder, name);
    ls_json_write(j, 2, &text);
    ls_buf_append(&text, "\n", 1);
    ls_status s = ls_file_write(path, text.data, text.len, e);
    ls_json_free(j);
    ls_buf_free(&text);
    free(path);
    return s;
}

const ls_json *ls_json_get(const ls_json *o, const char *key) {
    return (const ls_json *)json_object_get(in(o), key);
}

const ls_json *ls_json_given(const ls_json *o, const char *key) {
    const ls_json *j = ls_json_get(o, key);
    return ls_json_is_null(j) ? NULL : j;
}

const ls_json *ls_json_at(const ls_json *a, size_t i) {
    return (const ls_json *)json_array_get(in(a), i);
}

size_t ls_json_count(const ls_json *j) {
    return json_is_array(in(j)) ? json_array_size(in(j)) : json_object_size(in(j));
}

const char *ls_json_text(const ls_json *j) { return json_string_value(in(j)); }

bool ls_json_integer(const ls_json *j, int64_t *value_p) {
    if (!json_is_integer(in(j))) return false;
    *value_p = json_integer_value(in(j));
    return true;
}

bool ls_json_number(const ls_json *j, double *value_p) {
    if (!json_is_number(in(j))) return false;
    *value_p = json_number_value(in(j));
    return true;
}

bool ls_json_is_true(const ls_json *j) { return json_is_true(in(j)); }
bool ls_json_is_bool(const ls_json *j) { return json_is_boolean(in(j)); }
bool ls_json_is_null(const ls_json *j) { return json_is_null(in(j)); }
bool ls_json_is_object(const ls_json *j) { return json_is_object(in(j)); }
bool ls_json_is_array(const ls_json *j) { return json_is_array(in(j)); }

bool ls_json_equal(const ls_json *a, const ls_json *b) { return json_equal(in(a), in(b)); }

void *ls_json_next(const ls_json *o, void *it, const char **key_p, const ls_json **value_p) {
    it = it ? json_object_iter_next(in(o), it) : json_object_iter(in(o));
    if (!it) return NULL;
    *key_p = json_object_iter_key(it);
    *value_p = (const ls_json *)json_object_iter_value(it);
    return it;
}

ls_json *ls_json_new_object(void) { return out(json_object()); }

ls_json *ls_json_copy(const ls_json *object) {
    ls_json *copy = ls_json_new_object();
    const char *key;
    const ls_json *value;
    for (void *it = NULL; (it = ls_json_next(object, it, &key, &value));)
        ls_json_set(copy, key, ls_json_share(value));
    return copy;
}
ls_json *ls_json_new_array(void) { return out(json_array()); }
ls_json *ls_json_new_text(const char *s) { return out(json_string(s)); }
ls_json *ls_json_new_path(const char *s) {
    if (ls_utf8_is_valid(s, strlen(s))) return ls_json_new_text(s);
    ls_buf text = {0};
    ls_buf_escape(&text, LS_ESCAPE_LINE, s, strlen(s));
    ls_json *j = ls_json_new_text(text.data);
    ls_buf_free(&text);
    return j;
}
ls_json *ls_json_new_bytes(const char *bytes, size_t nbytes) {
    ls_buf text = {0};
    ls_utf8_put(&text, bytes, nbytes);
    ls_json *j = ls_json_new_text(text.data ? text.data : "");
    ls_buf_free(&text);
    return j;
}
ls_json *ls_json_new_integer(int64_t v) { return out(json_integer(v)); }
ls_json *ls_json_new_number(double v) { return out(isfinite(v) ? json_real(v) : json_null()); }
ls_json *ls_json_new_bool(bool v) { return out(json_boolean(v)); }
ls_json *ls_json_new_null(void) { return out(json_null()); }

void ls_json_set(ls_json *o, const char *key, ls_json *value) {
    if (json_object_set_new(in(o), key, in(value)) != 0) abort();
}

void ls_json_drop(ls_json *object, const char *key) { json_object_del(in(object), key); }

void ls_json_set_integer(ls_json *object, const char *key, int64_t value) {
    ls_json_set(object, key, ls_json_new_integer(value));
}

void ls_json_set_number(ls_json *object, const char *key, double value) {
    ls_json_set(object, key, ls_json_new_number(value));
}

void ls_json_set_bool(ls_json *object, const char *key, bool value) {
    ls_json_set(object, key, ls_json_new_bool(value));
}

void ls_json_set_text(ls_json *object, const char *key, const char *value) {
    ls_json_set(object, key, ls_json_new_text(value));
}

void ls_json_set_path(ls_json *object, const char *key, const char *value) {
    ls_json_set(object, key, ls_json_new_path(value));
}

void ls_json_set_hash(ls_json *object, const char *key, ls_hash value) {
    char text[LS_HASH_TEXT];
    ls_hash_text(value, text);
    ls_json_set_text(object, key, text);
}

void ls_json_push(ls_json *a, ls_json *value) {
    if (json_array_append_new(in(a), in(value)) != 0) abort();
}

static int append(const char *text, size_t nbytes, void *buf) {
    ls_buf_append(buf, text, nbytes);
    return 0;
}

void ls_json_write(const ls_json *j, int indent, ls_buf *b) {
    size_t flags = JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY;
    flags |= indent ? JSON_INDENT((size_t)indent) : 0;
    if (json_dump_callback(in(j), append, b, flags) != 0) abort();
}

void ls_json_write_exact(const ls_json *j, ls_buf *b) {
    size_t before = b->len;
    for (size_t digits = 9; digits <= 17; digits += 2) { /* 17 suffice for any double */
        b->len = before;
        if (json_dump_callback(in(j), append, b, JSON_REAL_PRECISION(digits) | JSON_ENCODE_ANY) !=
            0)
            abort();
        json_t *read = json_loadb(b->data + before, b->len - before, JSON_DECODE_ANY, NULL);
        bool same = read && json_equal(read, in(j));
        json_decref(read);
        if (same) return;
    }
}
