/* reference.c - see reference.h. */
#include "dataset/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char FORMAT[] = "lockstep reference";
static const char *const keys[] = {"chosen", "rejected"};

static bool has_hash(const ls_json *o, const char *key, ls_hash h) {
    const char *text = ls_json_text(ls_json_get(o, key));
    ls_hash has;
    return text && ls_hash_parse(text, &has) && ls_hash_same(has, h);
}

static ls_hash hash_of(const ls_chats *c) {
    return ls_hash_bytes(c->reference, 2 * c->n * sizeof *c->reference);
}

void ls_reference_write(const ls_chats *c, ls_hash tokens, ls_buf *out) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "format", FORMAT);
    ls_json_set_integer(o, "version", 1);
    ls_json_set_hash(o, "tokens", tokens);
    for (int side = 0; side < 2; side++) {
        ls_json *list = ls_json_new_array();
        for (uint64_t i = 0; i < c->n; i++)
            ls_json_push(list, ls_json_new_number((double)c->reference[2 * i + (size_t)side]));
        ls_json_set(o, keys[side], list);
    }
    ls_json_set_hash(o, "xxh3_128", hash_of(c));
    ls_json_write(o, 0, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(o);
}

/* Reads the numbers. False: they are damaged. */
static bool read_values(const ls_json *o, ls_chats *c) {
    for (int side = 0; side < 2; side++) {
        const ls_json *list = ls_json_get(o, keys[side]);
        if (!ls_json_is_array(list) || ls_json_count(list) != c->n) return false;
        for (uint64_t i = 0; i < c->n; i++) {
            double x = 0;
            if (!ls_json_number(ls_json_at(list, i), &x)) return false;
            c->reference[2 * i + (size_t)side] = (float)x;
        }
    }
    return has_hash(o, "xxh3_128", hash_of(c));
}

static ls_status parse(const char *path, const ls_json *o, ls_hash tokens, ls_chats *c,
                       ls_error *e) {
    const char *format = ls_json_text(ls_json_get(o, "format"));
    int64_t version = 0;
    if (!format || strcmp(format, FORMAT) != 0 ||
        !ls_json_integer(ls_json_get(o, "version"), &version) || version != 1)
        return ls_fail(e, LS_EINVAL, "%s: has no log-probabilities of a reference, version 1",
                       path);
    if (!has_hash(o, "tokens", tokens))
        return ls_fail(e, LS_EINVAL,
                       "%s: was computed for other pairs than those of the run's tokens.bin; put "
                       "the run's own back, or remove it: --resume takes the copy of a checkpoint",
                       path);
    if (read_values(o, c)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: is damaged; remove it: --resume takes the copy of a checkpoint", path);
}

ls_status ls_reference_read(const char *dir, ls_hash tokens, ls_chats *c, bool *there_p,
                            ls_error *e) {
    char *path = ls_format("%s/" LS_REFERENCE_FILE, dir);
    ls_json *o = NULL;
    ls_status s = ls_json_read(path, LS_REFERENCE_NBYTES, &o, e);
    *there_p = s == LS_OK && o;
    if (*there_p) s = parse(path, o, tokens, c, e);
    if (s == LS_OK && *there_p) c->has_reference = true;
    ls_json_free(o);
    free(path);
    return s;
}
