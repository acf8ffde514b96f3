/* program.h - your own program, with all commands of `lockstep`.
 *
 *     #include <lockstep/program.h>
 *
 *     static void build(ls_model *m, const ls_keys *k) { ... ls_key_int(k, "width") ... }
 *     static const ls_key_spec keys[] = {
 *         {"width", LS_KEY_INT, .low = 8, .high = 512, .usual = "32", .help = "channels"}, {0}};
 *     static const ls_program cnn = {.name = "cnn", .keys = keys, .build = build};
 *
 *     int main(int argc, char **argv) { return ls_program_main(argc, argv, &cnn); }
 *
 * `./cnn train cnn.yaml -n 4` trains the model on the config's data: on any number of workers, to
 * the same bits, with checkpoints, `--resume`, under mpirun and srun; `./cnn plan`, `bench`,
 * `ckpt`, ... are those of `lockstep`. `./cnn check` finds wrong layers. The config has no
 * model.kind; keys of the program are in the group of its name ("cnn: {width: 48}"), and are saved
 * with the run.
 *
 * A program ends with the process: all that it points to may be static, and is never freed.
 */
#ifndef LOCKSTEP_PROGRAM_H
#define LOCKSTEP_PROGRAM_H

#include "lockstep/data.h"
#include "lockstep/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys of the config ---- */

typedef enum ls_key_type {
    LS_KEY_INT = 1, /* ls_key_int() */
    LS_KEY_FLOAT,   /* ls_key_float() */
    LS_KEY_STRING   /* ls_key_string(): UTF-8 of at most 1023 bytes */
} ls_key_type;

/* low, high: the least and the greatest number allowed, low at most high; both 0: no limits. usual:
 * the default as text; NULL: 0, or "". */
typedef struct ls_key_spec {
    const char *name LS_UNSET; /* letters, digits and '_'; NULL ends the array */
    ls_key_type type LS_UNSET;
    double low LS_UNSET, high LS_UNSET;
    const char *usual LS_UNSET;
    const char *help LS_UNSET;
} ls_key_spec;

enum { LS_MAX_KEYS = 32, LS_MAX_STRING_KEYS = 8 };

/* The values of a program's keys. To read a key that the program does not have, or as another type,
 * is an error of the model that is being built, or of the data. Strings live as long as the call of
 * `build` or `open`. */
typedef struct ls_keys ls_keys;
int64_t ls_key_int(const ls_keys *, const char *name);
double ls_key_float(const ls_keys *, const char *name);
const char *ls_key_string(const ls_keys *, const char *name);

/* ---- programs ---- */

typedef struct ls_program {
    const char *name LS_UNSET;        /* the program's name, also that of its keys' group */
    const ls_key_spec *keys LS_UNSET; /* NULL: none */
    /* Builds the model. It may be called several times, and in several processes; the same keys
     * must give the same model. */
    void (*build)(ls_model *, const ls_keys *) LS_UNSET;
    /* Data of the program; else the config names files (data.path). `open`, if it is not NULL,
     * describes them when a run begins, in each of its processes; it may read keys. On failure it
     * returns LS_EINVAL or LS_EIO, with a text in e->msg. */
    const ls_own_source *source LS_UNSET;
    ls_status (*open)(const ls_keys *, ls_own_source *source_p, ls_error *e) LS_UNSET;
} ls_program;

/* Runs the command in argv, and returns the program's exit code. Called once, by main(), before the
 * program has started threads. */
int ls_program_main(int argc, char **argv, const ls_program *);

/* ---- checks ---- */

/* Checks each layer of the program's model: its gradients with central differences; that its bits
 * do not depend on the batch, a sample's neighbours, micro-batches or threads; that it writes its
 * own memory only, and reads nothing that it has not written.
 *
 * config  the path of a config with values of the keys; NULL: all have their defaults
 * report  is called with a line on each layer; NULL: nothing is reported
 *
 * LS_EINVAL: a layer is wrong; the message names it and says how. Not while a program runs
 * (ls_program_main()). */
ls_status ls_model_check(const ls_program *, const char *config,
                         void (*report)(void *arg, const char *line), void *arg, ls_error *);

#ifdef __cplusplus
}
#endif
#endif
