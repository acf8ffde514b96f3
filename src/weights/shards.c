/* shards.c - see shards.h. */
#include "weights/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MOST_INDEX = 256 << 20, MOST_FILES = 10000 };

static char *path_in(const char *folder, const char *name) {
    return ls_format("%s/%s", folder, name);
}

bool ls_shards_exist(const char *folder) {
    return ls_file_exists_in(folder, LS_SHARDS_ONE) || ls_file_exists_in(folder, LS_SHARDS_INDEX);
}

static ls_status add_file(ls_shards *s, char *path, ls_error *e) {
    s->files = ls_grow(s->files, s->nfiles, sizeof *s->files);
    s->paths = ls_grow(s->paths, s->nfiles, sizeof *s->paths);
    s->files[s->nfiles] = (ls_safetensors){0};
    s->paths[s->nfiles] = path;
    return ls_safetensors_open_any(path, &s->files[s->nfiles++], e);
}

/* The file that a tensor lies in. */
static const char *path_of(const ls_shards *s, const ls_tensor *t) {
    for (size_t i = 0; i < s->nfiles; i++)
        if (t >= s->files[i].tensors && t < s->files[i].tensors + s->files[i].n) return s->paths[i];
    return "?";
}

static ls_status sort_tensors(ls_shards *s, ls_error *e) {
    for (size_t i = 0; i < s->nfiles; i++) s->n += s->files[i].n;
    s->tensors = LS_NEW_ARRAY(const ls_tensor *, s->n);
    size_t n = 0;
    for (size_t i = 0; i < s->nfiles; i++)
        for (size_t k = 0; k < s->files[i].n; k++) s->tensors[n++] = &s->files[i].tensors[k];
    if (n) qsort(s->tensors, n, sizeof *s->tensors, ls_tensor_by_name);
    for (size_t i = 1; i < n; i++)
        if (ls_tensor_by_name(&s->tensors[i - 1], &s->tensors[i]) == 0)
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is also in %s", path_of(s, s->tensors[i]),
                           s->tensors[i]->name, path_of(s, s->tensors[i - 1]));
    return LS_OK;
}

/* ---- the index ---- */

/* A file of the directory itself, whatever an index says. */
static bool is_plain_name(const char *name) {
    return name && *name && name[0] != '.' && !strchr(name, '/') && strlen(name) < 256;
}

/* Opens the file of a tensor unless it is open. */
static ls_status open_named(ls_shards *s, const char *folder, const char *name, ls_error *e) {
    char *path = path_in(folder, name);
    for (size_t i = 0; i < s->nfiles; i++)
        if (strcmp(s->paths[i], path) == 0) {
            free(path);
            return LS_OK;
        }
    return add_file(s, path, e);
}

static ls_status open_files(ls_shards *s, const char *folder, const char *index, const ls_json *map,
                            ls_error *e) {
    const char *name = NULL;
    const ls_json *file = NULL;
    for (void *it = NULL; (it = ls_json_next(map, it, &name, &file));) {
        if (!is_plain_name(ls_json_text(file)))
            return ls_fail(e, LS_EINVAL,
                           "%s: the file of tensor '%s' must be a name in the same directory",
                           index, name);
        if (s->nfiles == MOST_FILES)
            return ls_fail(e, LS_EINVAL, "%s: lists over %d files", index, MOST_FILES);
        LS_TRY(open_named(s, folder, ls_json_text(file), e));
    }
    return LS_OK;
}

/* Each tensor of the files is where the index says; and the index lists no more. */
static ls_status compare(const ls_shards *s, const char *folder, const char *index,
                         const ls_json *map, ls_error *e) {
    const char *name = NULL;
    const ls_json *file = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const char *path = path_of(s, s->tensors[i]);
        const char *listed = ls_json_text(ls_json_get(map, s->tensors[i]->name));
        if (!listed || strcmp(listed, path + strlen(folder) + 1) != 0)
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is in %s, but not listed there", index,
                           s->tensors[i]->name, path);
    }
    for (void *it = NULL; (it = ls_json_next(map, it, &name, &file));)
        if (!ls_shards_find(s, name))
            return ls_fail(e, LS_EINVAL, "%s: tensor '%s' is not in %s", index, name,
                           ls_json_text(file));
    return LS_OK;
}

static ls_status open_index(ls_shards *s, const char *folder, const char *path, ls_error *e) {
    ls_json *index = NULL;
    LS_TRY(ls_json_read(path, MOST_INDEX, &index, e));
    const ls_json *map = ls_json_get(index, "weight_map");
    ls_status status = LS_OK;
    if (!ls_json_is_object(map) || ls_json_count(map) == 0)
        status = ls_fail(e, LS_EINVAL, "%s: has no weight_map that lists tensors", path);
    if (status == LS_OK) status = open_files(s, folder, path, map, e);
    if (status == LS_OK) status = sort_tensors(s, e);
    if (status == LS_OK) status = compare(s, folder, path, map, e);
    ls_json_free(index);
    return status;
}

/* MLX writes an index for one file, too. An index of other files belongs to other weights. */
static ls_status check_only(const ls_shards *s, const char *folder, ls_error *e) {
    const char *name = s->paths[0] + strlen(folder) + 1;
    if (s->nfiles == 1 && strcmp(name, LS_SHARDS_ONE) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: has " LS_SHARDS_ONE ", and " LS_SHARDS_INDEX
                   " lists other files; remove the one that is not meant",
                   folder);
}

ls_status ls_shards_open(const char *folder, ls_shards *s_p, ls_error *e) {
    ls_shards s = {0};
    ls_status status = LS_OK;
    bool one = ls_file_exists_in(folder, LS_SHARDS_ONE),
         index = ls_file_exists_in(folder, LS_SHARDS_INDEX);
    if (one && !index) {
        status = add_file(&s, path_in(folder, LS_SHARDS_ONE), e);
        if (status == LS_OK) status = sort_tensors(&s, e);
    } else {
        char *path = path_in(folder, LS_SHARDS_INDEX);
        status = index ? open_index(&s, folder, path, e)
                       : ls_fail(e, LS_EIO, "%s: has no " LS_SHARDS_ONE, folder);
        if (status == LS_OK && one) status = check_only(&s, folder, e);
        free(path);
    }
    if (status == LS_OK)
        *s_p = s;
    else
        ls_shards_close(&s);
    return status;
}

void ls_shards_close(ls_shards *s) {
    for (size_t i = 0; i < s->nfiles; i++) {
        ls_safetensors_close(&s->files[i]);
        free(s->paths[i]);
    }
    free(s->files);
    free(s->paths);
    free(s->tensors);
    *s = (ls_shards){0};
}

const ls_tensor *ls_shards_find(const ls_shards *s, const char *name) {
    ls_tensor key = {0};
    if (s->n == 0 || strlen(name) >= sizeof key.name) return NULL;
    memcpy(key.name, name, strlen(name) + 1);
    const ls_tensor *at = &key,
                    **found = bsearch(&at, s->tensors, s->n, sizeof *s->tensors, ls_tensor_by_name);
    return found ? *found : NULL;
}
