/* eval_print.h - what lockstep eval has measured: for people, several models side by side, and for
 * programs. */
#ifndef LS_CLI_EVAL_PRINT_H
#define LS_CLI_EVAL_PRINT_H

#include "report/confusion.h"
#include "report/evaluation.h"
#include "source/numbering.h"

/* The result of an evaluation. */
typedef struct cli_measured {
    char *checkpoint; /* its own */
    bool ema, has_tokens;
    const char *data;      /* a file; NULL: the validation part of the run's data */
    const char *unit;      /* "conversations", "pairs"; NULL: tokens or samples */
    int64_t count;         /* of tokens, of pairs, or of samples */
    int64_t context;       /* of a language model, before it was shortened; 0: it is none */
    size_t file_tokens;    /* tokens of that file; 0: it has no text */
    const char *reference; /* of the pairs of that file; NULL: it has no pairs */
    ls_evaluation model, bigram;
    bool has_bigram;
    ls_confusion_matrix classes; /* n 0: there are none. Its counts are its own ... */
    ls_classes names;            /* ... and these are the names of its classes */
} cli_measured;

void cli_measured_free(cli_measured *);

/* One result; or several of the same data, a line each. */
void cli_measured_print(const cli_measured *, int n);
/* One line each. */
void cli_measured_print_json(const cli_measured *, int n);

#endif
