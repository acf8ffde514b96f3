/* verify_buffers.h - for the verifier: what the workers' buffers have at a place of the plan. It
 * says what is wrong with the use of a buffer; NULL: nothing.
 */
#ifndef LS_PLAN_VERIFY_BUFFERS_H
#define LS_PLAN_VERIFY_BUFFERS_H

#include "plan/plan.h"

typedef struct ls_buffer_states {
    const ls_plan *p;
    bool whole;  /* Frees are in the plan */
    char *state; /* [nworkers][nbuffers] */
} ls_buffer_states;

void ls_buffer_states_open(ls_buffer_states *, const ls_plan *, bool whole);
void ls_buffer_states_close(ls_buffer_states *);

const char *ls_buffer_states_use(ls_buffer_states *, const ls_action *, int worker, int buffer,
                                 ls_use);
/* Free: its use does not count. */
const char *ls_buffer_states_free(ls_buffer_states *, const ls_action *);
/* ToDevice, FromDevice: of a buffer that both sides use? */
const char *ls_buffer_states_copy(const ls_buffer_states *, const ls_action *);
/* Where the plan ends no transient buffer is in use, and the state is where the next step wants
 * it. */
const char *ls_buffer_states_end(const ls_buffer_states *);

#endif
