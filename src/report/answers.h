/* answers.h - what a model in training writes after the prompts of its run: RUN/samples.jsonl, and
 * the log.
 *
 * A line is one prompt after one evaluation:
 *
 *     {"step": 100, "prompt": "...", "text": "...", "tokens": 12, "end": "end"}
 *
 * with the words of `lockstep generate --json`. Worker 0 writes them.
 */
#ifndef LS_REPORT_ANSWERS_H
#define LS_REPORT_ANSWERS_H

#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"

#define LS_ANSWERS_FILE "samples.jsonl"

typedef struct ls_answer {
    const char *prompt;
    ls_buf text;
    int64_t ntokens;
    const char *end; /* why it ends */
} ls_answer;

/* Before a run resumes from step `steps`: cuts off later or partly written lines. *step_p: the last
 * step with lines; 0: none. */
ls_status ls_answers_cut(const char *run, int64_t steps, int64_t *step_p, ls_error *);
/* Appends the lines of a step, all or none. */
ls_status ls_answers_write(const char *run, int64_t step, const ls_answer *, int n, ls_error *);
/* Logs the beginnings of the first ones. */
void ls_answers_log(const char *run, const ls_answer *, int n);

#endif
