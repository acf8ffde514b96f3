/* chat_file.h - the conversations of a session in a file, which training reads, too (data.format:
 * chat): a line for each, {"messages": [{"role": "user", "content": "..."}, ...]}. */
#ifndef LS_INFER_CHAT_FILE_H
#define LS_INFER_CHAT_FILE_H

#include "base/mem.h"
#include "infer/talk.h"

typedef struct ls_chat_file {
    ls_buf before; /* lines of conversations that have ended */
} ls_chat_file;

/* Reads the file's conversations; the last one becomes the talk. LS_EINVAL: the file has
 * none, or has a message of a kind that a chat does not have: "FILE:LINE: ..." */
ls_status ls_chat_file_read(ls_chat_file *, const char *path, ls_talk *, ls_error *);
/* The conversation ends, and another one will begin. */
void ls_chat_file_end(ls_chat_file *, const ls_talk *);
/* Writes all conversations, the talk as the last one. */
ls_status ls_chat_file_write(const ls_chat_file *, const ls_talk *, const char *path, ls_error *);
void ls_chat_file_free(ls_chat_file *);

#endif
