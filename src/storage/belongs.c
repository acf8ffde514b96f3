/* belongs.c - see belongs.h. */
#include "storage/belongs.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/differences.h"
#include "dataset/corpus_record.h"
#include "dataset/data_files.h"
#include "dataset/data_record.h"
#include "dataset/published_record.h"
#include "dataset/reference.h"
#include "source/ids.h"
#include "storage/checkpoints.h"
#include "storage/manifest.h"

enum { MOST_CONFIG = 4 << 20 };

/* One file as the run has it and as the checkpoint has it: free_pair(). */
typedef struct pair {
    char *run, *checkpoint;
} pair;

static pair pair_of(const char *run, const char *checkpoint, const char *name) {
    return (pair){ls_format("%s/%s", run, name), ls_format("%s/%s", checkpoint, name)};
}

static void free_pair(pair *p) {
    free(p->run);
    free(p->checkpoint);
}

static bool both_exist(const pair *p) {
    return ls_file_exists(p->run) && ls_file_exists(p->checkpoint);
}

static ls_status same_text(const pair *p, size_t most, bool *same_p, ls_error *e) {
    ls_buf a = {0}, b = {0};
    ls_status s = ls_file_read(p->run, most, &a, e);
    if (s == LS_OK) s = ls_file_read(p->checkpoint, most, &b, e);
    *same_p = s == LS_OK && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
    ls_buf_free(&a);
    ls_buf_free(&b);
    return s;
}

/* ---- the config ---- */

/* Is it the text of RUN/config.yaml, which may have keys of another program, or that of
 * began.yaml? */
static ls_status is_same_config(const char *run, const pair *config, bool *same_p, ls_error *e) {
    pair began = {ls_format("%s/" LS_BEGAN_FILE, run), config->checkpoint};
    ls_status s = same_text(config, MOST_CONFIG, same_p, e);
    if (s == LS_OK && !*same_p && ls_file_exists(began.run))
        s = same_text(&began, MOST_CONFIG, same_p, e);
    free(began.run);
    return s;
}

static ls_status compare_configs(const pair *p, ls_error *e) {
    ls_config *now = LS_NEW(ls_config), *was = LS_NEW(ls_config);
    char *unused = NULL;
    ls_error why = {0};
    ls_status s = ls_config_read(p->run, now, e);
    if (s == LS_OK) s = ls_config_read(p->checkpoint, was, e);
    if (s == LS_OK && ls_config_compatible(was, now, &unused, &why) != LS_OK)
        s = ls_fail(e, LS_EINVAL, "%s does not go with it: %s", p->run, why.msg);
    free(unused);
    free(was);
    free(now);
    return s;
}

static ls_status check_config(const char *run, const char *checkpoint, ls_error *e) {
    pair p = pair_of(run, checkpoint, LS_CONFIG_FILE);
    bool same = true;
    ls_status s = both_exist(&p) ? is_same_config(run, &p, &same, e) : LS_OK;
    if (s == LS_OK && !same) s = compare_configs(&p, e);
    free_pair(&p);
    return s;
}

/* ---- what it was trained on ---- */

static ls_status fail_data(const char *run, const char *name, ls_error *e) {
    return ls_fail(
        e, LS_EINVAL,
        "its %s is not that of the run; put the right %s/%s back, or remove it: --resume "
        "takes the checkpoint's copy",
        name, run, name);
}

static ls_status check_text(const char *run, const char *checkpoint, const char *name, size_t most,
                            ls_error *e) {
    pair p = pair_of(run, checkpoint, name);
    bool same = true;
    ls_status s = both_exist(&p) ? same_text(&p, most, &same, e) : LS_OK;
    free_pair(&p);
    return s == LS_OK && !same ? fail_data(run, name, e) : s;
}

/* With the record of a corpus, tokenizer.json is compared with its hash there when it is read. */
static ls_status check_corpus(const char *run, const char *checkpoint, ls_error *e) {
    ls_corpus_record a, b;
    bool has_a = false, has_b = false;
    LS_TRY(ls_corpus_record_read(run, &a, &has_a, e));
    LS_TRY(ls_corpus_record_read(checkpoint, &b, &has_b, e));
    if (!has_a || !has_b)
        return check_text(run, checkpoint, LS_TOKENIZER_FILE, LS_TOKENIZER_NBYTES, e);
    bool same = ls_hash_same(a.tokens, b.tokens) && ls_hash_same(a.tokenizer, b.tokenizer);
    return same ? LS_OK : fail_data(run, LS_CORPUS_RECORD, e);
}

static ls_status check_samples(const char *run, const char *checkpoint, ls_error *e) {
    ls_data_record *a = LS_NEW(ls_data_record), *b = LS_NEW(ls_data_record);
    bool has_a = false, has_b = false;
    ls_status s = ls_data_record_read(run, a, &has_a, e);
    if (s == LS_OK) s = ls_data_record_read(checkpoint, b, &has_b, e);
    if (s == LS_OK && has_a && has_b &&
        !ls_hash_same(ls_data_record_identity(a), ls_data_record_identity(b)))
        s = fail_data(run, LS_DATA_RECORD, e);
    free(a);
    free(b);
    return s;
}

ls_status ls_belongs_check(const char *run, const char *checkpoint, ls_error *e) {
    ls_error why = {0};
    ls_status s = check_config(run, checkpoint, &why);
    if (s == LS_OK) s = check_corpus(run, checkpoint, &why);
    if (s == LS_OK) s = check_samples(run, checkpoint, &why);
    if (s == LS_OK) s = check_text(run, checkpoint, LS_REFERENCE_FILE, LS_REFERENCE_NBYTES, &why);
    if (s == LS_OK) s = check_text(run, checkpoint, LS_IDS_FILE, LS_IDS_NBYTES, &why);
    if (s == LS_OK) s = check_text(run, checkpoint, LS_PUBLISHED_RECORD, LS_TOKENIZER_NBYTES, &why);
    return s == LS_OK ? s : ls_fail(e, s, "%s: %s", checkpoint, why.msg);
}

ls_status ls_belongs_check_place(const char *checkpoint, ls_error *e) {
    char *real = realpath(checkpoint, NULL), *slash = real ? strrchr(real, '/') : NULL;
    ls_status s = LS_OK;
    if (slash && ls_checkpoints_step_of(slash + 1) >= 0) {
        *slash = 0;
        char *parent = strrchr(real, '/');
        if (parent && strcmp(parent, "/checkpoints") == 0) {
            *parent = 0;
            s = ls_belongs_check(*real ? real : "/", checkpoint, e);
        }
    }
    free(real);
    return s;
}
