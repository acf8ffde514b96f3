/* engine.h - writes the replies to many requests at a time, in a thread of its own.
 *
 * Each step computes one more token of all replies that are being written, and with the rest of its
 * rows parts of prompts, in the order of the queue. Keys and values are in pages (pages.h);
 * if there are none left, the newest reply gives its pages back, and is computed again later. None
 * of this changes a byte of a reply: its logits have the bits that they have alone
 * (ls_infer_texts()), and its random numbers depend on its seed, its number and the token's place.
 * Source of the scheduling: Yu et al., "Orca", OSDI 2022; Agrawal et al., "Sarathi-Serve", OSDI
 * 2024 (prompts in parts, beside decoding).
 */
#ifndef LS_SERVE_ENGINE_H
#define LS_SERVE_ENGINE_H

#include "infer/adapter.h"
#include "infer/strips.h"
#include "serve/reply.h"

typedef struct ls_engine ls_engine;

typedef struct ls_engine_options {
    int texts;                  /* most replies that are written at a time */
    int64_t rows;               /* most tokens in a step */
    int64_t context;            /* of a reply with its prompt, at most; 0: the model's */
    size_t memory_nbytes;       /* of keys and values */
    ls_kept_type kept;          /* how these are stored: in fewer bits, replies differ */
    const ls_adapter *adapters; /* [nadapters] of texts that want one; they outlive it */
    int nadapters;
    ls_strips *strips; /* those that are left are made beside steps; NULL: none */
    int guesses; /* tokens of a text that are guessed in a step, at most (lookup.h); 0: none */
    /* Called by the engine's thread after each step, without the lock. */
    void (*progress)(void *arg);
    void *arg;
} ls_engine_options;

/* Totals since the engine was opened, and its present state. */
typedef struct ls_engine_counts {
    int64_t prompt_tokens, found_tokens; /* of prompts, and how many of these pages had */
    int64_t written_tokens, steps, preempted;
    int64_t guessed_tokens, right_tokens; /* guesses, and how many were right */
    int running, waiting, pages, pages_used;
} ls_engine_counts;

/* The model must outlive it; if a device computes, the engine alone uses it. LS_EINVAL: the memory
 * has no room for one text, or the model's layers do not continue texts. LS_ENOMEM. */
ls_status ls_engine_open(const ls_trained *, const ls_engine_options *, ls_engine **e_p,
                         ls_error *);
/* Ends all replies that are not complete: their `left` is called. */
void ls_engine_close(ls_engine *);

int64_t ls_engine_context(const ls_engine *);

/* The lock must be held while replies are read or `dropped` is set. */
void ls_engine_lock(ls_engine *);
void ls_engine_unlock(ls_engine *);

/* With the lock: adds the reply to the queue, in which requests take turns: the n-th reply of one,
 * by its number, waits for n of another. Its `left` is called when the engine no longer uses it:
 * when it has ended, or soon after it was dropped. */
void ls_engine_add(ls_engine *, ls_reply *);
/* With the lock: how many of those that wait come before the last of n replies that a request adds
 * now. */
int ls_engine_waiting(const ls_engine *, int n);
/* With the lock. */
ls_engine_counts ls_engine_count(const ls_engine *);
/* With the lock: bytes of the model's file were lost, or the device failed. Replies stay as they
 * are, and the engine writes no more. */
bool ls_engine_failed(const ls_engine *, ls_error *);

#endif
