/* published_record.h - what a run saves of the published model that it began with (model.from), so
 * that it is complete without the model: RUN/published.json has the architecture, with the ids of
 * its tokens and its greatest context, and the chat template. Checkpoints have copies.
 *
 *     {"config": {...},                      as Hugging Face's config.json
 *      "generation": {...},                  as its generation_config.json
 *      "template": "...",                    that of data.template if that is set, else the model's
 *      "tool_template": "...",               for conversations with tools; "": it is the same
 *      "bos_token": "...", "eos_token": "...", "pad_token": "...", "unk_token": "..."}
 *
 * The last four are what the tokenizer and the template call by these names; null: the model has
 * none. A run that
 * begins with such a run (train.from) has a copy.
 */
#ifndef LS_DATASET_PUBLISHED_RECORD_H
#define LS_DATASET_PUBLISHED_RECORD_H

#include "chat/chat_format.h"
#include "config/config.h"
#include "weights/model_text.h"

#define LS_PUBLISHED_RECORD "published.json"
enum { LS_PUBLISHED_NBYTES = 16 << 20 }; /* at most */

typedef struct ls_published_record {
    bool there; /* false: the run began with no published model, or is older than the file */
    ls_architecture arch;
    ls_model_templates templates;
    char *special[LS_NSPECIAL_TOKENS]; /* NULL: none */
    bool says[LS_NSPECIAL_TOKENS];     /* the file has it; older files have none, or two */
} ls_published_record;

/* Writes the file of a run with this config, unless it is there or there is nothing to write. */
ls_status ls_published_record_make(const char *run, const ls_config *, ls_error *);

/* path: a run, or a checkpoint in one. LS_EINVAL: the file is damaged. */
ls_status ls_published_record_read(const char *path, ls_published_record *r_p, ls_error *);
/* Reads the record from a file's text; `what` names it. */
ls_status ls_published_record_parse(const char *text, size_t nbytes, const char *what,
                                    ls_published_record *r_p, ls_error *);

void ls_published_record_free(ls_published_record *);

/* The text of a special token, which the caller frees; NULL: none. */
char *ls_published_special(const ls_published_record *, const ls_tokenizer *, ls_special_token);

/* How the model of the record writes conversations. file: a template in place of its own; NULL:
 * none. LS_EINVAL: the template is damaged. The tokenizer must outlive the format. */
ls_status ls_chat_format_of_record(const ls_published_record *, const ls_tokenizer *,
                                   const char *file, ls_chat_format *f_p, ls_error *);
/* How a run's or checkpoint's model writes conversations: as its record says, or, if it is older
 * than that file, its published model (model.from), or else its data.template. file: a template in
 * place of these; NULL: none. The format has no template if there is none. LS_EINVAL: the template
 * is damaged. The tokenizer must outlive the format. */
ls_status ls_chat_format_of_run(const char *path, const ls_config *, const ls_tokenizer *,
                                const char *file, ls_chat_format *f_p, ls_error *);
/* How a published model writes conversations. */
ls_status ls_chat_format_of_model(const char *path, const ls_tokenizer *, const char *file,
                                  ls_chat_format *f_p, ls_error *);

#endif
