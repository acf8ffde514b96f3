/* prompts.h - what a run's model writes after prompts while it trains (train.sample_prompts).
 *
 * Worker 0 reads the prompts and cuts them into tokens; workers divide them, write with the weights
 * that evaluations use, and worker 0 collects the texts. Nothing of this changes the run. The texts
 * are the same for any number of workers and threads.
 */
#ifndef LS_TRAIN_PROMPTS_H
#define LS_TRAIN_PROMPTS_H

#include "chat/chat_format.h"
#include "report/answers.h"
#include "train/member.h"

typedef struct ls_prompts {
    int32_t n;           /* 0: the run has none */
    char **texts;        /* [n] worker 0's */
    uint32_t *tokens;    /* of all, one after the other */
    int64_t *begins;     /* [n + 1] */
    ls_chat_format chat; /* worker 0's, until the tokens are made; `ends` are all workers' */
    ls_model model;      /* the run's; it reads plain tokens */
} ls_prompts;

/* Bytes of a worker's keys and values while it writes; 0: the config has no prompts. */
size_t ls_prompts_nbytes(const ls_config *);

/* Collective, once the member has begun. LS_EINVAL: a prompt is longer than the context, or the
 * template refuses it. */
ls_status ls_prompts_open(ls_prompts *p_p, ls_member *, ls_error *);
void ls_prompts_close(ls_prompts *);

/* Collective, between steps. On worker 0 answers [n], to be freed with ls_prompts_free_answers();
 * elsewhere NULL. */
ls_status ls_prompts_answer(const ls_prompts *, ls_member *, int64_t steps, ls_answer **answers_p,
                            ls_error *);
void ls_prompts_free_answers(const ls_prompts *, ls_answer *);

#endif
