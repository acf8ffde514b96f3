/* saved.c - see saved.h. */
#include "search/saved.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "search/space.h"

static const char CONFIG[] = "base.yaml", SPACE[] = "space.yaml", COMMAND[] = "command.json";

/* ---- writing ---- */

static ls_status write_text(const char *dir, const char *name, const ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", dir, name);
    ls_status s = ls_file_replace(path, text->data ? text->data : "", text->len, e);
    free(path);
    return s;
}

static void put_command(const ls_search_saved *s, ls_buf *out) {
    ls_json *o = ls_json_new_object(), *sets = ls_json_new_array();
    for (int i = 0; i < s->nsets; i++) ls_json_push(sets, ls_json_new_text(s->sets[i]));
    ls_json_set(o, "set", sets);
    ls_json_set_integer(o, "trials", s->trials);
    ls_json_write(o, 0, out);
    ls_buf_printf(out, "\n");
    ls_json_free(o);
}

ls_status ls_search_saved_write(const char *dir, const ls_search_saved *s, ls_error *e) {
    ls_buf command = {0};
    put_command(s, &command);
    ls_status got = write_text(dir, CONFIG, &s->config, e);
    if (got == LS_OK) got = write_text(dir, SPACE, &s->space, e);
    if (got == LS_OK) got = write_text(dir, COMMAND, &command, e);
    ls_buf_free(&command);
    return got;
}

/* ---- reading ---- */

static ls_status read_text(const char *dir, const char *name, ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", dir, name);
    ls_status s = ls_file_read(path, LS_SPACE_NBYTES, text, e);
    free(path);
    return s;
}

static ls_status read_sets(const ls_json *o, const char *dir, ls_search_saved *s, ls_error *e) {
    const ls_json *sets = ls_json_get(o, "set");
    s->owned = LS_NEW_ARRAY(char *, ls_json_count(sets) + 1);
    bool good = ls_json_integer(ls_json_get(o, "trials"), &s->trials) && ls_json_is_array(sets);
    for (size_t i = 0; good && i < ls_json_count(sets); i++) {
        const char *text = ls_json_text(ls_json_at(sets, i));
        good = text != NULL;
        if (good) s->owned[s->nsets++] = ls_strdup(text);
    }
    s->sets = (const char *const *)s->owned;
    return good ? LS_OK : ls_fail(e, LS_EINVAL, "%s/%s: is damaged", dir, COMMAND);
}

static ls_status read_command(const char *dir, ls_search_saved *s, ls_error *e) {
    ls_buf text = {0};
    ls_json *o = NULL;
    ls_status got = read_text(dir, COMMAND, &text, e);
    if (got == LS_OK) got = ls_json_parse(text.data, text.len, COMMAND, &o, e);
    if (got == LS_OK) got = read_sets(o, dir, s, e);
    ls_json_free(o);
    ls_buf_free(&text);
    return got;
}

static ls_status check_there(const char *dir, ls_error *e) {
    if (!ls_file_exists(dir)) return ls_fail(e, LS_EINVAL, "%s: does not exist", dir);
    if (ls_file_exists_in(dir, "config.yaml"))
        return ls_fail(e, LS_EINVAL,
                       "%s: is a run, not a search; `lockstep train --resume` continues it", dir);
    if (!ls_file_exists_in(dir, "tune.jsonl"))
        return ls_fail(e, LS_EINVAL, "%s: has no search (there is no tune.jsonl)", dir);
    if (!ls_file_exists_in(dir, COMMAND))
        return ls_fail(e, LS_EINVAL,
                       "%s: does not say what was searched (there is no %s); repeat the command "
                       "that began the search",
                       dir, COMMAND);
    return LS_OK;
}

ls_status ls_search_saved_read(const char *dir, ls_search_saved *s_p, ls_error *e) {
    ls_search_saved s = {.nsets = 0};
    ls_status got = check_there(dir, e);
    if (got == LS_OK) got = read_text(dir, CONFIG, &s.config, e);
    if (got == LS_OK) got = read_text(dir, SPACE, &s.space, e);
    if (got == LS_OK) got = read_command(dir, &s, e);
    if (got == LS_OK)
        *s_p = s;
    else
        ls_search_saved_free(&s);
    return got;
}

void ls_search_saved_free(ls_search_saved *s) {
    for (int i = 0; s->owned && i < s->nsets; i++) free(s->owned[i]);
    free(s->owned);
    ls_buf_free(&s->config);
    ls_buf_free(&s->space);
    *s = (ls_search_saved){.nsets = 0};
}
