/* key_help.c - see key_help.h. */
#include "config/key_help.h"

#include <string.h>

#include "base/wrap.h"
#include "config/conflicts.h"
#include "config/key.h"
#include "config/needs.h"

static void put_sentence(const char *begin, const char *text, ls_buf *out) {
    ls_buf line = {0};
    ls_buf_printf(&line, "%s%s.", begin, text);
    ls_buf_printf(out, "      ");
    ls_buf_wrap(out, line.data, 6, 6);
    ls_buf_free(&line);
}

static void put_help(const ls_config *usual, const ls_config_key *k, ls_buf *out) {
    ls_buf line = {0};
    ls_buf_printf(&line, "%s = ", k->name);
    ls_config_key_write(usual, k, &line);
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    if (k->type == LS_KEY_INTEGER || k->type == LS_KEY_REAL || k->type == LS_KEY_SPAN)
        ls_buf_printf(&line, " (%s%s%s)", range, k->choices ? ", or " : "",
                      k->choices ? k->choices[0] : "");
    for (int j = 0; k->type == LS_KEY_CHOICE && k->choices[j]; j++)
        ls_buf_printf(&line, "%s%s%s", j ? ", " : " (", k->choices[j],
                      k->choices[j + 1] ? "" : ")");
    ls_buf_printf(out, "  ");
    ls_buf_wrap(out, line.data, 2, 6);
    ls_buf_printf(out, "      ");
    ls_buf_wrap(out, k->help, 6, 6);
    line.len = 0;
    ls_config_put_needs(k->name, &line);
    if (line.len) put_sentence("Acts only with ", line.data, out);
    line.len = 0;
    ls_config_put_conflicts(k->name, &line);
    for (char *rest = line.len ? line.data : NULL, *one; (one = strsep(&rest, "\n"));)
        put_sentence("", one, out);
    ls_buf_free(&line);
}

static ls_status no_group(const char *group, ls_error *e) {
    ls_buf groups = {0};
    ls_config_key_list_groups(&groups);
    const char *meant = ls_config_suggest_key(group);
    ls_status s = ls_fail(e, LS_EINVAL, "there is no group or key '%.60s'%s%s%s; the groups are %s",
                          group, meant ? " (did you mean '" : "", meant ? meant : "",
                          meant ? "'?)" : "", groups.data);
    ls_buf_free(&groups);
    return s;
}

ls_status ls_config_help(const char *group, ls_buf *out, ls_error *e) {
    ls_config usual;
    ls_config_defaults(&usual);
    bool is_key = group && ls_config_key_find(group);
    if (group && !is_key && !ls_config_key_is_group(group)) return no_group(group, e);
    if (!group)
        ls_buf_printf(out, "Keys of a config, with their defaults; in the file as groups:\n\n"
                           "    train:\n      steps: 50\n\n");
    size_t n = group ? strlen(group) : 0;
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (!group || (strncmp(k->name, group, n) == 0 && k->name[n] == (is_key ? 0 : '.')))
            put_help(&usual, k, out);
    return LS_OK;
}

const char *ls_config_key_name(int i) {
    const ls_config_key *k = ls_config_key_at(i);
    return k ? k->name : NULL;
}

const char *const *ls_config_key_words(int i) { return ls_config_key_at(i)->choices; }
