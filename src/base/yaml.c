/* yaml.c - the one file that knows libyaml. See yaml.h. */
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 4, MAX_TREE_DEPTH = 16, MAX_TREE_KEYS = 4096, MAX_BYTES = 1 << 20 };

typedef struct reader {
    const char *path;
    yaml_parser_t parser;
    ls_yaml *y;
    char *prefix[MAX_DEPTH]; /* the keys that lead to the current mapping, "" at the top */
    int depth;               /* open mappings */
    int ndocuments;
    bool takes_lists, in_list, in_map; /* in_map: inside a map that is an element of the list */
    bool has_maps;                     /* the list has maps */
    int npairs;                        /* pairs of the map read so far */
    ls_buf list;                       /* the elements of the list that is being read, one a line */
    int list_line;
    ls_yaml_is_tree *is_tree;             /* NULL: no key has a tree */
    ls_buf tree;                          /* the text of the tree that is being read */
    int tree_line, tree_depth, tree_ends; /* its first line, open lists and maps, its line ends */
    struct {
        bool is_map;
        int n; /* keys and values so far */
    } tree_open[MAX_TREE_DEPTH];
    char *key; /* the key whose value comes next, or NULL */
} reader;

static void add_item(reader *r, const char *value, int line, bool is_list) {
    ls_yaml *y = r->y;
    y->items = ls_grow(y->items, y->nitems, sizeof *y->items);
    y->items[y->nitems++] = (ls_yaml_item){ls_strdup(r->key), ls_strdup(value),       line,
                                           is_list,           is_list && r->has_maps, false};
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

/* ---- trees as text ---- */

/* What stands before the next key or value: line ends up to its line, a comma or a colon. */
static void begin_in_tree(reader *r, int line) {
    if (r->tree_depth > 0) {
        int n = r->tree_open[r->tree_depth - 1].n++;
        bool is_value = r->tree_open[r->tree_depth - 1].is_map && n % 2 == 1;
        if (n > 0) ls_buf_printf(&r->tree, is_value ? ": " : ", ");
    }
    for (; r->tree_line + r->tree_ends < line; r->tree_ends++) ls_buf_printf(&r->tree, "\n");
}

static ls_status open_in_tree(reader *r, bool is_map, int line, ls_error *e) {
    bool is_key = r->tree_depth > 0 && r->tree_open[r->tree_depth - 1].is_map &&
                  r->tree_open[r->tree_depth - 1].n % 2 == 0;
    if (is_key || r->tree_depth == MAX_TREE_DEPTH)
        return ls_fail(e, LS_EINVAL, "%s:%d: %s", r->path, line,
                       is_key ? "a list or a map can't be a key" : "is nested too deeply");
    if (r->tree_depth == 0) {
        r->tree_line = line;
        r->tree_ends = 0;
    }
    begin_in_tree(r, line);
    ls_buf_printf(&r->tree, is_map ? "{" : "[");
    r->tree_open[r->tree_depth].is_map = is_map;
    r->tree_open[r->tree_depth++].n = 0;
    return LS_OK;
}

static void close_in_tree(reader *r) {
    ls_buf_printf(&r->tree, r->tree_open[--r->tree_depth].is_map ? "}" : "]");
    if (r->tree_depth > 0) return;
    add_item(r, r->tree.data, r->tree_line, false);
    r->y->items[r->y->nitems - 1].is_tree = true;
    ls_buf_free(&r->tree);
}

static ls_status add_to_tree(reader *r, const char *text, int line, ls_error *e) {
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return ls_fail(e, LS_EINVAL, "%s:%d: has a control character in a value", r->path,
                           line);
    begin_in_tree(r, line);
    ls_buf_printf(&r->tree, "\"");
    for (const char *p = text; *p; p++)
        ls_buf_printf(&r->tree, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    ls_buf_printf(&r->tree, "\"");
    return LS_OK;
}

/* Does a list or map that begins now belong to a tree? */
static bool is_in_tree(const reader *r) {
    return r->tree_depth > 0 || (r->is_tree && r->key && !r->in_list && r->is_tree(r->key));
}

/* ---- events ---- */

static ls_status on_scalar(reader *r, const yaml_event_t *ev, int line, ls_error *e) {
    const char *text = (const char *)ev->data.scalar.value;
    if (strlen(text) != ev->data.scalar.length)
        return ls_fail(e, LS_EINVAL, "%s:%d: has a zero byte in a value", r->path, line);
    LS_TRY(refuse_marks(r, ev->data.scalar.anchor, ev->data.scalar.tag, line, e));
    if (r->tree_depth > 0) return add_to_tree(r, text, line, e);
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
    if (r->tree_depth > 0)
        close_in_tree(r);
    else if (r->in_map)
        r->in_map = false;
    else
        free(r->prefix[--r->depth]);
}

static ls_status on_mapping(reader *r, const yaml_event_t *ev, int line, ls_error *e) {
    LS_TRY(refuse_marks(r, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line, e));
    if (is_in_tree(r)) return open_in_tree(r, true, line, e);
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
    if (is_in_tree(r)) return open_in_tree(r, false, line, e);
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
    if (r->tree_depth > 0) {
        close_in_tree(r);
        return LS_OK;
    }
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

/* Has the line, counted from 1, a tab among its leading white space? */
static bool begins_with_tab(const ls_buf *text, size_t line) {
    const char *at = text->data ? text->data : "";
    for (; line > 1 && (at = strchr(at, '\n')); at++) line--;
    return at && at[strspn(at, " ")] == '\t';
}

/* libyaml reports a line, or, for bytes that are not text, their offset. It reads UTF-16 too, if
 * that has a byte order mark. */
static ls_status not_yaml(const reader *r, const ls_buf *text, ls_error *e) {
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line + 1;
    if (p->error == YAML_READER_ERROR) {
        if (text->len && ls_utf8_other(text->data, text->len))
            return ls_utf8_check(text->data, text->len, r->path, e);
        line = 1;
        for (size_t i = 0; i < p->problem_offset && i < text->len; i++)
            line += text->data[i] == '\n';
    }
    if (p->error == YAML_SCANNER_ERROR && begins_with_tab(text, line))
        return ls_fail(e, LS_EINVAL,
                       "%s:%zu: is not valid YAML: the line is indented with a tab; use spaces",
                       r->path, line);
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

/* What the caller takes beside scalars. */
typedef struct takes {
    bool lists;
    ls_yaml_is_tree *is_tree;
} takes;

static ls_status parse(const ls_buf *text, const char *what, takes t, ls_yaml *y_p, ls_error *e) {
    ls_yaml y = {0};
    reader r = {.path = what, .y = &y, .takes_lists = t.lists, .is_tree = t.is_tree};
    if (!yaml_parser_initialize(&r.parser)) abort();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text->data ? text->data : ""),
                                 text->len);
    ls_status s = read_events(&r, text, e);
    yaml_parser_delete(&r.parser);
    for (int i = 0; i < r.depth; i++) free(r.prefix[i]);
    free(r.key);
    ls_buf_free(&r.list);
    ls_buf_free(&r.tree);
    if (s == LS_OK)
        *y_p = y;
    else
        ls_yaml_free(&y);
    return s;
}

static ls_status read_file(const char *path, takes t, ls_yaml *y_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, MAX_BYTES, &text, e));
    ls_status s = parse(&text, path, t, y_p, e);
    ls_buf_free(&text);
    return s;
}

ls_status ls_yaml_read(const char *path, ls_yaml *y_p, ls_error *e) {
    return read_file(path, (takes){false, NULL}, y_p, e);
}

ls_status ls_yaml_read_lists(const char *path, ls_yaml_is_tree *is_tree, ls_yaml *y_p,
                             ls_error *e) {
    return read_file(path, (takes){true, is_tree}, y_p, e);
}

ls_status ls_yaml_parse_lists(const ls_buf *text, const char *what, ls_yaml_is_tree *is_tree,
                              ls_yaml *y_p, ls_error *e) {
    return parse(text, what, (takes){true, is_tree}, y_p, e);
}

void ls_yaml_free(ls_yaml *y) {
    for (size_t i = 0; i < y->nitems; i++) {
        free(y->items[i].key);
        free(y->items[i].value);
    }
    free(y->items);
    *y = (ls_yaml){0};
}

/* ---- trees ---- */

typedef struct tree_reader {
    yaml_parser_t parser;
    const char *what;
    int line; /* line of the file in which the text begins */
} tree_reader;

void ls_yaml_node_free(ls_yaml_node *n) {
    if (!n) return;
    for (int i = 0; i < n->nitems; i++) ls_yaml_node_free(n->items[i]);
    free(n->items);
    free(n->key);
    free(n->text);
    free(n);
}

const ls_yaml_node *ls_yaml_node_find(const ls_yaml_node *n, const char *key) {
    for (int i = 0; n->kind == LS_YAML_MAP && i < n->nitems; i++)
        if (strcmp(n->items[i]->key, key) == 0) return n->items[i];
    return NULL;
}

static ls_status next_event(tree_reader *r, yaml_event_t *ev, int *line_p, ls_error *e) {
    if (!yaml_parser_parse(&r->parser, ev))
        return ls_fail(e, LS_EINVAL, "%s:%d: is not valid YAML: %s", r->what,
                       r->line + (int)r->parser.problem_mark.line,
                       r->parser.problem ? r->parser.problem : "unreadable");
    *line_p = r->line + (int)ev->start_mark.line;
    return LS_OK;
}

static ls_status read_node(tree_reader *r, const yaml_event_t *ev, int line, int depth,
                           ls_yaml_node *n, ls_error *e);

/* Reads the items of a list or a map, up to its end. */
static ls_status read_items(tree_reader *r, int depth, ls_yaml_node *n, ls_error *e) {
    for (;;) {
        yaml_event_t ev;
        int line = 0;
        char *key = NULL;
        LS_TRY(next_event(r, &ev, &line, e));
        bool end = ev.type == YAML_SEQUENCE_END_EVENT || ev.type == YAML_MAPPING_END_EVENT;
        bool has_key = !end && n->kind == LS_YAML_MAP, scalar = ev.type == YAML_SCALAR_EVENT;
        if (has_key && scalar) key = ls_strdup((const char *)ev.data.scalar.value);
        if (end || has_key) yaml_event_delete(&ev);
        if (end) return LS_OK;
        if (has_key && !scalar)
            return ls_fail(e, LS_EINVAL, "%s:%d: a list or a map can't be a key", r->what, line);
        if (key && n->nitems == MAX_TREE_KEYS) {
            free(key);
            return ls_fail(e, LS_EINVAL, "%s:%d: has over %d keys in one map", r->what, line,
                           MAX_TREE_KEYS);
        }
        if (key && ls_yaml_node_find(n, key)) {
            ls_status twice =
                ls_fail(e, LS_EINVAL, "%s:%d: '%.60s' occurs twice", r->what, line, key);
            free(key);
            return twice;
        }
        n->items = ls_grow(n->items, (size_t)n->nitems, sizeof *n->items);
        ls_yaml_node *item = n->items[n->nitems++] = LS_NEW(ls_yaml_node);
        item->key = key;
        if (has_key) LS_TRY(next_event(r, &ev, &line, e));
        ls_status s = read_node(r, &ev, line, depth + 1, item, e);
        yaml_event_delete(&ev);
        LS_TRY(s);
    }
}

static ls_status read_node(tree_reader *r, const yaml_event_t *ev, int line, int depth,
                           ls_yaml_node *n, ls_error *e) {
    n->line = line;
    n->kind = ev->type == YAML_SCALAR_EVENT           ? LS_YAML_TEXT
              : ev->type == YAML_SEQUENCE_START_EVENT ? LS_YAML_LIST
                                                      : LS_YAML_MAP;
    if (n->kind == LS_YAML_TEXT) n->text = ls_strdup((const char *)ev->data.scalar.value);
    if (n->kind == LS_YAML_MAP && ev->type != YAML_MAPPING_START_EVENT)
        return ls_fail(e, LS_EINVAL, "%s:%d: aliases are not supported; write the value itself",
                       r->what, line);
    if (depth > MAX_TREE_DEPTH)
        return ls_fail(e, LS_EINVAL, "%s:%d: is nested too deeply", r->what, line);
    return n->kind == LS_YAML_TEXT ? LS_OK : read_items(r, depth, n, e);
}

ls_status ls_yaml_parse_tree(const char *text, const char *what, int line, ls_yaml_node **root_p,
                             ls_error *e) {
    tree_reader r = {.what = what, .line = line};
    ls_yaml_node *root = LS_NEW(ls_yaml_node);
    ls_status s = LS_OK;
    if (!yaml_parser_initialize(&r.parser)) abort();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, strlen(text));
    for (bool done = false; s == LS_OK && !done;) {
        yaml_event_t ev;
        int at = 0;
        s = next_event(&r, &ev, &at, e);
        if (s != LS_OK) break;
        done = ev.type != YAML_STREAM_START_EVENT && ev.type != YAML_DOCUMENT_START_EVENT;
        if (done && ev.type == YAML_STREAM_END_EVENT)
            s = ls_fail(e, LS_EINVAL, "%s:%d: is empty", what, line);
        else if (done)
            s = read_node(&r, &ev, at, 0, root, e);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&r.parser);
    if (s == LS_OK)
        *root_p = root;
    else
        ls_yaml_node_free(root);
    return s;
}
