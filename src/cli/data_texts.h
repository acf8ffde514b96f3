/* data_texts.h - what lockstep data says of texts and conversations: how many there are, and which keys
 * of a config train on them. */
#ifndef LS_CLI_DATA_TEXTS_H
#define LS_CLI_DATA_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum data_kind { DATA_SAMPLES, DATA_TEXTS, DATA_CHATS } data_kind;

/* What files are, one path or pattern a line, by the first one: a text by its name, conversations by
 * its name and first object. A directory is one of texts if most names in it are, or more
 * than those of pictures. */
data_kind data_kind_of(const char *paths);
/* The same for files that can't be read as samples: directories of others, and JSON with a text in each
 * object. */
data_kind data_kind_besides(const char *paths);

typedef struct data_texts {
    const char *paths;
    const char *column; /* data.text; NULL: not named */
    bool skips_damaged; /* texts; conversations are read to the end anyway */
    bool json;          /* for programs */
} data_texts;

/* Reads and prints all; logs damage. *ndamaged_p: objects that are no conversations. LS_EINVAL, LS_EIO:
 * a file can't be read, or is no text. */
ls_status data_texts_print(const data_texts *, data_kind, uint64_t *ndamaged_p, ls_error *);

#endif
