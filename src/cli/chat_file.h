/* chat_file.h - the conversations of a session in a file, which training reads, too (data.format:
 * chat): a line for each, {"messages": [{"role": "user", "content": "..."}, ...]}. */
#ifndef LS_CLI_CHAT_FILE_H
#define LS_CLI_CHAT_FILE_H

#include "infer/chat.h"

typedef struct cli_chat_file {
    ls_buf before; /* lines of conversations that have ended */
} cli_chat_file;

/* The file's conversations; the last one goes on as that of the chat. LS_EINVAL: it has none, or a
 * message is none that a chat has: "FILE:LINE: ..." */
ls_status cli_chat_file_read(cli_chat_file *, const char *path, ls_chat *, ls_error *);
/* The chat's conversation ends, and another one will begin. */
void cli_chat_file_end(cli_chat_file *, const ls_chat *);
/* Writes all of them, the chat's as the last one. */
ls_status cli_chat_file_write(const cli_chat_file *, const ls_chat *, const char *path, ls_error *);
void cli_chat_file_free(cli_chat_file *);

#endif
