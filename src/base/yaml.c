/* yaml.c - the one file that knows libyaml. See yaml.h. */
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

enum { MAX_DEPTH = 4, MAX_BYTES = 1 << 20 };

typedef struct reader {
    const char *path;
    yaml_parser_t parser;
    ls_yaml *y;
    char *prefix[MAX_DEPTH]; /* the keys that lead to the current mapping, "" at the top */
    int depth;               /* open mappings */
    int ndocuments;
    bool takes_lists, in_list, in_map; /* in_map: in a map of the list */
    bool has_maps;                     /* the list has maps */
    int npairs;                        /* read of the map */
    ls_buf list;                       /* the elements of the list that is being read, one a line */
    int list_line;
    char *key; /* the key whose value comes next, or NULL */
} reader;

static void add_item(reader *r, const char *value, int line, bool is_list) {
    ls_yaml *y = r->y;
    y->items = ls_grow(y->items, y->nitems, sizeof *y->items);
    y->items[y->nitems++] =
        (ls_yaml_item){ls_strdup(r->key), ls_strdup(value), line, is_list, is_list && r->has_maps};
    free(r->key);
    r->key = NULL;
}

/* Scalars and groups may have anchors and tags. */
static ls_status refuse_marks(const reader *r, const yaml_char_t *anchor, const yaml_char_t *tag,
                              int line, ls_error *e) {
    if (anchor)
        return ls_fail(e, LS_EINVAL, "%s:%d: anchors are not supported; write the value itself",
                       r->path, line);
    if (tag)
        return ls_fail(e, LS_EINVAL, "%s:%d: tags are not supported; leave out '%.60s'", r->path,
                       line, (const char *)tag);
    return LS_OK;
}

/* A key or a value of a map in a list. */
static ls_status add_half_pair(reader *r, const char *text, int line, ls_error *e) {
    bool is_key = r->npairs++ % 2 == 0;
    if (strpbrk(text, "\n\t") || (is_key && strchr(text, '=')))
        return ls_fail(e, LS_EINVAL, "%s:%d: has a %s in a map of a list", r->path, line,
                       strpbrk(text, "\n\t") ? "tab or a line end" : "'=' in a key");
    ls_buf_printf(&r->list, "%s%s", is_key ? (r->npairs > 1 ? "\t" : "") : "=", text);
    return LS_OK;
}

static ls_status add_element(reader *r, const char *text, int line, ls_error *e) {
    if (r->has_maps)
        return ls_fail(e, LS_EINVAL, "%s:%d: has maps and other values in one list", r->path, line);
    if (strchr(text, '\n'))
        return ls_fail(e, LS_EINVAL, "%s:%d: has a line end in an element of a list", r->path,
                       line);
    ls_buf_printf(&r->list, "%s%s", r->list.len ? "\n" : "", text);
    return LS_OK;
}

static ls_status on_scalar(reader *r, const yaml_event_t *ev, int line, ls_error *e) {
    const char *text = (const char *)ev->data.scalar.value;
    if (strlen(text) != ev->data.scalar.length)
        return ls_fail(e, LS_EINVAL, "%s:%d: has a zero byte in a value", r->path, line);
    LS_TRY(refuse_marks(r, ev->data.scalar.anchor, ev->data.scalar.tag, line, e));
    if (r->depth == 0)
        return ls_fail(e, LS_EINVAL, "%s:%d: expected groups of keys such as 'train:', not '%.60s'",
                       r->path, line, text);
    if (r->in_map) return add_half_pair(r, text, line, e);
    if (r->in_list) return add_element(r, text, line, e);
    if (r->key) {
        add_item(r, text, line, false);
        return LS_OK;
    }
    const char *prefix = r->prefix[r->depth - 1];
    r->key = ls_format("%s%s%s", prefix, *prefix ? "." : "", text);
    return LS_OK;
}

static ls_status on_map(reader *r, int line, ls_error *e) {
    if (r->in_map || (r->list.len > 0 && !r->has_maps))
        return ls_fail(e, LS_EINVAL, "%s:%d: %s", r->path, line,
                       r->in_map ? "has a map in a map of a list"
                                 : "has maps and other values in one list");
    if (r->has_maps) ls_buf_printf(&r->list, "\n");
    r->in_map = r->has_maps = true;
    r->npairs = 0;
    return LS_OK;
}

static void on_mapping_end(reader *r) {
    if (r->in_map)
        r->in_map = false;
    else
        free(r->prefix[--r->depth]);
}

static ls_status on_mapping(reader *r, const yaml_event_t *ev, int line, ls_error *e) {
    LS_TRY(refuse_marks(r, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line, e));
    if (r->in_list) return on_map(r, line, e);
    if (r->depth == MAX_DEPTH)
        return ls_fail(e, LS_EINVAL, "%s:%d: groups are nested too deeply", r->path, line);
    if (r->depth > 0 && !r->key)
        return ls_fail(e, LS_EINVAL, "%s:%d: a group can't be a key", r->path, line);
    r->prefix[r->depth++] = r->key ? r->key : ls_strdup("");
    r->key = NULL;
    return LS_OK;
}

static ls_status on_list(reader *r, const yaml_event_t *ev, int line, ls_error *e) {
    LS_TRY(refuse_marks(r, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, line, e));
    if (r->in_list)
        return ls_fail(e, LS_EINVAL, "%s:%d: has a list in a %s", r->path, line,
                       r->in_map ? "map of a list" : "list");
    if (!r->takes_lists || !r->key)
        return ls_fail(e, LS_EINVAL, "%s:%d: '%.60s' is a list; a single value is expected",
                       r->path, line, r->key ? r->key : "(top)");
    r->in_list = true;
    r->has_maps = false;
    r->list_line = line;
    return LS_OK;
}

static ls_status on_list_end(reader *r) {
    ls_buf_append(&r->list, "", 1);
    add_item(r, r->list.data, r->list_line, true);
    ls_buf_free(&r->list);
    r->in_list = false;
    return LS_OK;
}

static ls_status on_event(reader *r, const yaml_event_t *ev, ls_error *e) {
    int line = (int)ev->start_mark.line + 1;
    switch (ev->type) {
    case YAML_SCALAR_EVENT: return on_scalar(r, ev, line, e);
    case YAML_MAPPING_START_EVENT: return on_mapping(r, ev, line, e);
    case YAML_MAPPING_END_EVENT: on_mapping_end(r); return LS_OK;
    case YAML_SEQUENCE_START_EVENT: return on_list(r, ev, line, e);
    case YAML_SEQUENCE_END_EVENT: return on_list_end(r);
    case YAML_ALIAS_EVENT:
        return ls_fail(e, LS_EINVAL, "%s:%d: aliases are not supported; write the value itself",
                       r->path, line);
    case YAML_DOCUMENT_START_EVENT:
        if (r->ndocuments++ == 0) return LS_OK;
        return ls_fail(e, LS_EINVAL, "%s:%d: begins a second document; one is expected", r->path,
                       line);
    default: return LS_OK;
    }
}

/* libyaml reports a line, or, for bytes that are not text, their offset. */
static ls_status not_yaml(const reader *r, const ls_buf *text, ls_error *e) {
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line + 1;
    if (p->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < p->problem_offset && i < text->len; i++)
            line += text->data[i] == '\n';
    }
    return ls_fail(e, LS_EINVAL, "%s:%zu: is not valid YAML: %s", r->path, line,
                   p->problem ? p->problem : "unreadable");
}

static ls_status read_events(reader *r, const ls_buf *text, ls_error *e) {
    for (;;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&r->parser, &ev)) return not_yaml(r, text, e);
        bool end = ev.type == YAML_STREAM_END_EVENT;
        ls_status s = on_event(r, &ev, e);
        yaml_event_delete(&ev);
        if (s != LS_OK || end) return s;
    }
}

static ls_status parse(const ls_buf *text, const char *what, bool takes_lists, ls_yaml *y_p,
                       ls_error *e) {
    ls_yaml y = {0};
    reader r = {.path = what, .y = &y, .takes_lists = takes_lists};
    if (!yaml_parser_initialize(&r.parser)) abort();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text->data ? text->data : ""),
                                 text->len);
    ls_status s = read_events(&r, text, e);
    yaml_parser_delete(&r.parser);
    for (int i = 0; i < r.depth; i++) free(r.prefix[i]);
    free(r.key);
    ls_buf_free(&r.list);
    if (s == LS_OK)
        *y_p = y;
    else
        ls_yaml_free(&y);
    return s;
}

static ls_status read_file(const char *path, bool takes_lists, ls_yaml *y_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, MAX_BYTES, &text, e));
    ls_status s = parse(&text, path, takes_lists, y_p, e);
    ls_buf_free(&text);
    return s;
}

ls_status ls_yaml_read(const char *path, ls_yaml *y_p, ls_error *e) {
    return read_file(path, false, y_p, e);
}

ls_status ls_yaml_read_lists(const char *path, ls_yaml *y_p, ls_error *e) {
    return read_file(path, true, y_p, e);
}

ls_status ls_yaml_parse_lists(const ls_buf *text, const char *what, ls_yaml *y_p, ls_error *e) {
    return parse(text, what, true, y_p, e);
}

void ls_yaml_free(ls_yaml *y) {
    for (size_t i = 0; i < y->nitems; i++) {
        free(y->items[i].key);
        free(y->items[i].value);
    }
    free(y->items);
    *y = (ls_yaml){0};
}
