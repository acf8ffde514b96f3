/* chat_partner.h - who answers in lockstep chat: a model that this program computes, or a
 * server. */
#ifndef LS_CLI_CHAT_PARTNER_H
#define LS_CLI_CHAT_PARTNER_H

#include "infer/chat.h"
#include "infer/text_form.h"
#include "serve/remote.h"

typedef struct cli_partner_options {
    const char *path; /* of the model; NULL: `server` has it */
    ls_trained_options trained;
    const char *template;     /* a file, or NULL */
    ls_remote_options server; /* without its form */
    ls_text_form *form;       /* of answers; it outlives the partner */
} cli_partner_options;

/* One of the two: */
typedef struct cli_partner {
    ls_trained trained; /* with its chat */
    ls_chat chat;
    ls_remote *remote; /* NULL: the model is here */
} cli_partner;

/* Completes the writing's rule and constraint for a model that is here. The partner must stay where
 * it is. */
ls_status cli_partner_open(const cli_partner_options *, ls_writing *, cli_partner *p_p, ls_error *);
void cli_partner_close(cli_partner *);

ls_talk *cli_partner_talk(cli_partner *);
/* As ls_chat_say() and ls_remote_say(). */
ls_status cli_partner_say(cli_partner *, const char *text, const ls_writing *, ls_generated *g_p,
                          const char **answer_p, ls_error *);

#endif
