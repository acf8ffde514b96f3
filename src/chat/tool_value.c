/* tool_value.c - see tool_value.h. */
#include "chat/tool_value.h"

#include <string.h>

#include "grammar/schema_values.h"

enum { DEEPEST = 16, MOST_WORK = 2000 }; /* beyond it, a schema allows all types */

/* ---- types ---- */

/* A bit for each type that a value has. */
static unsigned type_of_value(const ls_json *j) {
    unsigned types = 0;
    for (unsigned type = 1; type < LS_TYPE_ALL; type *= 2)
        if (ls_schema_has_type(j, type)) types |= type;
    return types;
}

/* Numbers may be integers. */
static unsigned type_named(const char *name) {
    unsigned type = ls_schema_type_named(name);
    if (!type) return LS_TYPE_ALL; /* such as "float" */
    return type == LS_TYPE_NUMBER ? type | LS_TYPE_INTEGER : type;
}

typedef struct type_reader {
    const ls_json *root;
    int work; /* schemas and values that were looked at, so far */
} type_reader;

static unsigned types_of(type_reader *r, const ls_json *schema, int depth);

/* Of the schemas, types, or values of a list; one that is no list is its own. */
static unsigned types_of_any(type_reader *r, const ls_json *list, const char *keyword, int depth) {
    unsigned types = 0;
    size_t n = ls_json_is_array(list) ? ls_json_count(list) : 1;
    for (size_t i = 0; i < n; i++) {
        const ls_json *one = ls_json_is_array(list) ? ls_json_at(list, i) : list;
        if (++r->work > MOST_WORK) return LS_TYPE_ALL;
        types |= strcmp(keyword, "type") == 0   ? type_named(ls_json_text(one))
                 : strcmp(keyword, "enum") == 0 ? type_of_value(one)
                                                : types_of(r, one, depth + 1);
    }
    return types;
}

static unsigned types_of_reference(type_reader *r, const char *ref, int depth) {
    r->work += (int)(strnlen(ref, MOST_WORK) / 8);
    if (*ref != '#' || r->work > MOST_WORK) return LS_TYPE_ALL;
    return types_of(r, ls_schema_find(r->root, ref + 1), depth + 1);
}

/* Those that its keywords allow. */
static unsigned types_of(type_reader *r, const ls_json *schema, int depth) {
    static const char *const keywords[] = {"type", "enum", "anyOf", "oneOf"};
    const ls_json *constant = ls_json_get(schema, "const"), *all = ls_json_get(schema, "allOf");
    const char *ref = ls_json_text(ls_json_get(schema, "$ref"));
    unsigned types = LS_TYPE_ALL;
    if (depth > DEEPEST || ++r->work > MOST_WORK) return types;
    if (ref) types &= types_of_reference(r, ref, depth);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const ls_json *list = ls_json_get(schema, keywords[i]);
        if (list) types &= types_of_any(r, list, keywords[i], depth);
    }
    if (constant) types &= type_of_value(constant);
    for (size_t i = 0; i < ls_json_count(all) && r->work <= MOST_WORK; i++)
        types &= types_of(r, ls_json_at(all, i), depth + 1);
    return types;
}

static unsigned allowed_types(const ls_json *root, const ls_json *schema) {
    type_reader r = {.root = root};
    unsigned types = types_of(&r, schema, 0);
    return r.work > MOST_WORK ? LS_TYPE_ALL : types;
}

const ls_json *ls_tool_value_schema(const ls_json *parameters, const char *name) {
    return ls_json_get(ls_json_get(parameters, "properties"), name);
}

bool ls_tool_value_is_text(const ls_json *root, const ls_json *schema) {
    return !schema || allowed_types(root, schema) == LS_TYPE_STRING;
}

/* ---- values ---- */

/* NULL: it is none. */
static ls_json *read_value(const char *text, size_t n) {
    static const char *const python[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    ls_json *value = NULL;
    ls_error e = {0};
    for (int i = 0; i < 3; i++) {
        if (strlen(python[i][0]) != n || memcmp(python[i][0], text, n) != 0) continue;
        text = python[i][1];
        n = strlen(text);
        break;
    }
    ls_json_parse_value(text, n, "", &value, &e);
    return value;
}

void ls_tool_value_quote(const char *text, size_t n, ls_buf *out) {
    ls_json *j = ls_json_new_bytes(text, n);
    ls_buf quoted = {0};
    ls_json_write(j, 0, &quoted);
    ls_buf_append(out, quoted.data + 1, quoted.len - 2);
    ls_buf_free(&quoted);
    ls_json_free(j);
}

void ls_tool_value_write(const ls_json *root, const ls_json *schema, const char *text, size_t n,
                         ls_buf *out) {
    ls_json *value = ls_tool_value_is_text(root, schema) ? NULL : read_value(text, n);
    if (value && type_of_value(value) & allowed_types(root, schema)) {
        ls_json_write_exact(value, out);
    } else {
        ls_buf_append(out, "\"", 1);
        ls_tool_value_quote(text, n, out);
        ls_buf_append(out, "\"", 1);
    }
    ls_json_free(value);
}
