/* chat_partner.c - see chat_partner.h. */
#include "cli/chat_partner.h"

ls_status cli_partner_open(const cli_partner_options *o, ls_sampler_rule *rule, cli_partner *p_p,
                           ls_error *e) {
    *p_p = (cli_partner){0};
    if (!o->path) return ls_remote_open(&o->server, &p_p->remote, e);
    LS_TRY(ls_trained_open(o->path, &o->trained, &p_p->trained, e));
    ls_status s = ls_chat_open(&p_p->trained, o->template, &p_p->chat, e);
    if (s != LS_OK) ls_trained_close(&p_p->trained);
    if (s == LS_OK)
        ls_trained_complete_rule(&p_p->trained,
                                 &(ls_sampler_rule){.temperature = 0.7, .top_p = 0.95}, rule);
    return s;
}

void cli_partner_close(cli_partner *p) {
    if (p->remote) {
        ls_remote_close(p->remote);
        return;
    }
    ls_chat_close(&p->chat);
    ls_trained_close(&p->trained);
}

ls_talk *cli_partner_talk(cli_partner *p) {
    return p->remote ? ls_remote_talk(p->remote) : &p->chat.talk;
}

ls_status cli_partner_say(cli_partner *p, const char *text, const ls_writing *w, ls_generated *g_p,
                          const char **answer_p, ls_error *e) {
    if (p->remote) return ls_remote_say(p->remote, text, w, g_p, answer_p, e);
    return ls_chat_say(&p->chat, text, w, g_p, answer_p, e);
}
