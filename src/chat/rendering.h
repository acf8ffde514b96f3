/* rendering.h - a conversation as its template writes it, and where names of special tokens in it
 * are text.
 *
 * The name of a special token is a token where the template writes it, and text where it comes from
 * the conversation: from any text or key of messages and tools. So no data can forge a turn.
 */
#ifndef LS_CHAT_RENDERING_H
#define LS_CHAT_RENDERING_H

#include "chat/chat_format.h"

typedef struct ls_chat_rendering {
    ls_buf text;
    ls_text_range *plain; /* [nplain] ascending: names of special tokens are text there */
    size_t nplain;
} ls_chat_rendering;

/* LS_EINVAL: there is no template, it refuses the conversation, or it writes the conversation in
 * another way because of the name of a special token there, so that its place is unknown; or the
 * last message, which is continued, is not in it. */
ls_status ls_chat_render(const ls_chat_format *, const ls_chat_text *, ls_chat_rendering *r_p,
                         ls_error *);
void ls_chat_rendering_free(ls_chat_rendering *);

#endif
