/* old_run.c - see old_run.h. */
#include "storage/old_run.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "config/config.h"
#include "storage/checkpoints.h"

static char *join(const char *dir, const char *name) { return ls_format("%s/%s", dir, name); }

/* Other programs have directories with a config.yaml, too. */
static bool is_run(const char *dir) {
    char *path = join(dir, "config.yaml");
    ls_config *c = LS_NEW(ls_config);
    bool is = ls_file_exists_in(dir, "lock") && ls_file_exists(path) &&
              ls_config_read(path, c, NULL) == LS_OK;
    free(c);
    free(path);
    return is;
}

bool ls_old_run_is_unsaved(const char *dir) {
    char *checkpoints = join(dir, "checkpoints");
    int64_t step = -1;
    ls_status s = ls_checkpoints_below(checkpoints, INT64_MAX, &step, NULL);
    free(checkpoints);
    return s == LS_OK && step < 0 && is_run(dir);
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_of_run(const char *name) {
    static const char *const names[] = {
        "config.yaml",      "began.yaml",     "tokenizer.json", "tokens.bin",
        "corpus.json",      "reference.json", "data.json",      "frozen.safetensors",
        "published.json",   "metrics.jsonl",  "samples.jsonl",  "applications.jsonl",
        "loss.svg",         "confusion.svg",  "mistakes.csv",   "mistakes.svg",
        "predictions.json", "log.txt",        "log.txt.1",      "control",
        "workers.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return begins(name, "events.out.tfevents.");
}

static bool is_of_checkpoints(const char *name) {
    return ls_checkpoints_step_of(name) >= 0 || begins(name, LS_CHECKPOINT_HIDDEN) ||
           strcmp(name, "latest") == 0 || strcmp(name, "best") == 0;
}

static ls_status remove_those(const char *dir, bool (*is)(const char *), ls_error *e) {
    DIR *d = opendir(dir);
    ls_status s = LS_OK;
    if (!d && errno == ENOENT) return LS_OK;
    if (!d) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", dir, strerror(errno));
    for (struct dirent *f; s == LS_OK && (f = readdir(d));) {
        char *path = join(dir, f->d_name);
        if (is(f->d_name) && unlink(path) != 0) s = ls_file_remove_tree(path, e);
        free(path);
    }
    closedir(d);
    return s;
}

/* The config goes last: until then the directory is that of a run, which can be replaced again. */
static bool is_other(const char *name) {
    return is_of_run(name) && strcmp(name, "config.yaml") != 0;
}

ls_status ls_old_run_remove(const char *dir, ls_error *e) {
    char *checkpoints = join(dir, "checkpoints");
    ls_status s = remove_those(checkpoints, is_of_checkpoints, e);
    if (s == LS_OK) (void)rmdir(checkpoints); /* not if it has files of others */
    if (s == LS_OK) s = remove_those(dir, is_other, e);
    if (s == LS_OK) s = remove_those(dir, is_of_run, e);
    free(checkpoints);
    return s;
}
