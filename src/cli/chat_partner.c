/* chat_partner.c - see chat_partner.h. */
#include "cli/chat_partner.h"

static ls_status open_remote(const cli_partner_options *o, cli_partner *p, ls_error *e) {
    ls_remote_options server = o->server;
    server.form = o->form;
    return ls_remote_open(&server, &p->remote, e);
}

ls_status cli_partner_open(const cli_partner_options *o, ls_writing *w, cli_partner *p_p,
                           ls_error *e) {
    *p_p = (cli_partner){0};
    if (!o->path) return open_remote(o, p_p, e);
    LS_TRY(ls_trained_open(o->path, &o->trained, &p_p->trained, e));
    ls_status s = ls_chat_open(&p_p->trained, o->template, &p_p->chat, e);
    if (s == LS_OK) s = ls_text_form_prepare(o->form, &p_p->trained, e);
    if (s != LS_OK) {
        cli_partner_close(p_p);
        return s;
    }
    w->constraint = o->form->constraint;
    ls_trained_complete_rule(&p_p->trained, &(ls_sampler_rule){.temperature = 0.7, .top_p = 0.95},
                             &w->rule);
    return LS_OK;
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
