/* alone.c - see alone.h. */
#include "train/alone.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "config/write_config.h"

ls_alone *ls_alone_new(void) {
    ls_alone *a = aligned_alloc(_Alignof(ls_alone), sizeof *a);
    if (!a) abort();
    memset(a, 0, sizeof *a);
    return a;
}

ls_status ls_alone_open(ls_alone *a, ls_error *e) {
    const ls_config *c = &a->run.config;
    a->run.nworkers = 1;
    a->run.began_ns = ls_clock_ns();
    ls_config_write(c, &a->run.config_text);
    LS_TRY(ls_host_open(&a->host, &a->run, e));
    const ls_layout *l = &a->host.layout;
    LS_TRY(ls_dataset_open(&a->data, a->run.dir, c, &l->model, e));
    ls_group_options o = {.arena_nbytes = ls_share_group_nbytes(&l->plan.share)};
    LS_TRY(ls_group_open_threads(1, &o, &a->group, e));
    a->m = ls_member_of(&a->host, a->group, &a->slot, &a->data);
    LS_TRY(ls_member_join(&a->m, e));
    return ls_member_begin(&a->m, 0, NULL, e);
}

void ls_alone_close(ls_alone *a) {
    ls_member_leave(&a->m);
    ls_group_close(a->group);
    ls_dataset_free(&a->data);
    ls_host_free(&a->host);
    ls_run_free(&a->run);
    free(a);
}
