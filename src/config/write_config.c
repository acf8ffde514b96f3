/* write_config.c - see write_config.h. */
#include "config/write_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/key.h"
#include "config/needs.h"
#include "config/own.h"

static void put_real(double v, ls_buf *out) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v) snprintf(text, sizeof text, "%.17g", v);
    ls_buf_printf(out, "%s", text);
}

/* True if YAML allows this character unescaped within double quotes: no control character, none of
 * the line breaks U+0085, U+2028 and U+2029, no byte order mark. */
static bool is_plain(uint32_t point) {
    if (point < 0x20 || (point >= 0x7f && point < 0xa0) || point == '"' || point == '\\')
        return false;
    return point != 0x2028 && point != 0x2029 && point != 0xfeff && (point & 0xfffe) != 0xfffe;
}

/* Appends `s`, which is UTF-8, as a double-quoted YAML scalar. */
static void put_text(const char *s, ls_buf *out) {
    ls_buf_append(out, "\"", 1);
    uint32_t point = 0;
    for (size_t n; *s && (n = ls_utf8_decode(s, strlen(s), &point)); s += n) {
        if (is_plain(point))
            ls_buf_append(out, s, n);
        else if (point == '"' || point == '\\')
            ls_buf_printf(out, "\\%c", (int)point);
        else
            ls_buf_printf(out, "\\U%08x", (unsigned)point);
    }
    ls_buf_append(out, "\"", 1);
}

/* Appends one element as a text, several as a list. */
static void put_list(const char *s, ls_buf *out) {
    if (!strchr(s, '\n')) {
        put_text(s, out);
        return;
    }
    char *all = ls_strdup(s), *rest = all;
    for (char *one; (one = strsep(&rest, "\n"));) {
        ls_buf_printf(out, one == all ? "[" : ", ");
        put_text(one, out);
    }
    ls_buf_printf(out, "]");
    free(all);
}

/* Appends a list of maps. */
static void put_maps(const char *s, ls_buf *out) {
    char *all = ls_strdup(s), *maps = *all ? all : NULL;
    ls_buf_append(out, "[", 1);
    for (char *map; (map = strsep(&maps, "\n"));) {
        ls_buf_printf(out, map == all ? "{" : ", {");
        char *pairs = map;
        for (char *pair; (pair = strsep(&pairs, "\t"));) {
            char *value = strchr(pair, '=');
            if (!value) continue; /* the map is empty */
            ls_buf_printf(out, "%s%.*s: ", pair == map ? "" : ", ", (int)(value - pair), pair);
            put_text(value + 1, out);
        }
        ls_buf_append(out, "}", 1);
    }
    ls_buf_append(out, "]", 1);
    free(all);
}

/* A number of steps, or a text with the unit. */
static void put_span(const ls_config_span *s, ls_buf *out) {
    if (s->n == LS_AUTO) {
        ls_buf_printf(out, "\"auto\"");
        return;
    }
    if (s->unit != LS_SPAN_STEPS) ls_buf_append(out, "\"", 1);
    put_real(s->n, out);
    if (s->unit != LS_SPAN_STEPS) ls_buf_printf(out, " %s\"", ls_config_span_units[s->unit]);
}

/* Appends a tree, with its lines indented so that they belong to the key. */
static void put_tree(const char *s, ls_buf *out) {
    if (!strpbrk(s, "[{")) {
        put_text(s, out);
        return;
    }
    for (; *s; s++) ls_buf_printf(out, *s == '\n' ? "\n    " : "%c", *s);
}

void ls_config_key_write(const ls_config *c, const ls_config_key *k, ls_buf *out) {
    const void *at = (const char *)c + k->offset;
    switch (k->type) {
    case LS_KEY_INTEGER:
        if (k->choices && ls_config_key_whole(c, k) == LS_AUTO)
            ls_buf_printf(out, "\"%s\"", k->choices[0]);
        else
            ls_buf_printf(out, "%lld", (long long)ls_config_key_whole(c, k));
        break;
    case LS_KEY_REAL: put_real(*(const double *)at, out); break;
    case LS_KEY_CHOICE: ls_buf_printf(out, "\"%s\"", k->choices[ls_config_key_whole(c, k)]); break;
    case LS_KEY_TEXT: put_text(ls_config_key_text(c, k), out); break;
    case LS_KEY_LIST: put_list(ls_config_key_text(c, k), out); break;
    case LS_KEY_MAPS: put_maps(ls_config_key_text(c, k), out); break;
    case LS_KEY_TREE: put_tree(ls_config_key_text(c, k), out); break;
    case LS_KEY_SPAN: put_span(at, out); break;
    }
}

/* Is it left out, so that it is chosen when the run begins? Its number would be one that is asked
 * for. */
static bool is_to_choose(const ls_config *c, const ls_config_key *k) {
    static const char micro[] = "train.micro_batch";
    return strcmp(k->name, micro) == 0 && ls_config_leaves_out(c, micro);
}

void ls_config_write(const ls_config *c, ls_buf *out) {
    const char *group = "";
    const ls_config_key *k = NULL;
    ls_config_put_owner(out);
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        if (ls_config_key_is_hidden(c, k) || is_to_choose(c, k)) continue;
        const char *dot = strchr(k->name, '.');
        size_t n = (size_t)(dot - k->name) + 1;
        if (strncmp(group, k->name, n) != 0) ls_buf_printf(out, "%.*s:\n", (int)n - 1, k->name);
        group = k->name;
        ls_buf_printf(out, "  %s: ", dot + 1);
        ls_config_key_write(c, k, out);
        ls_buf_printf(out, "\n");
    }
}
