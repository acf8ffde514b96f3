/* shards.h - the tensors of a model in a directory of Hugging Face's form: in model.safetensors, or
 * in several files that model.safetensors.index.json lists.
 *
 * Index: {"metadata": {"total_size": BYTES}, "weight_map": {TENSOR: FILE, ...}}. Each tensor is in
 * the file that the index names and in no other, and each file is in the directory itself.
 */
#ifndef LS_WEIGHTS_SHARDS_H
#define LS_WEIGHTS_SHARDS_H

#include "weights/safetensors.h"

#define LS_SHARDS_ONE   "model.safetensors"
#define LS_SHARDS_INDEX "model.safetensors.index.json"

typedef struct ls_shards {
    ls_safetensors *files; /* [nfiles] */
    char **paths;          /* [nfiles] */
    size_t nfiles;
    const ls_tensor **tensors; /* [n] of all files, by name */
    size_t n;
} ls_shards;

/* Does the directory have such a file? */
bool ls_shards_exist(const char *folder);
/* LS_EINVAL: a file is damaged, the index and the files differ, or there is the one file beside an
 * index of others. LS_EIO: a file can't be read. */
ls_status ls_shards_open(const char *folder, ls_shards *s_p, ls_error *);
void ls_shards_close(ls_shards *);
const ls_tensor *ls_shards_find(const ls_shards *, const char *name); /* or NULL */

#endif
