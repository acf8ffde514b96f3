/* program_model.h - the model of a program built with the library (lockstep/program.h). */
#ifndef LS_NETWORKS_PROGRAM_MODEL_H
#define LS_NETWORKS_PROGRAM_MODEL_H

#include "config/config.h"
#include "lockstep/program.h"
#include "model/model.h"

/* From now on configs are those of this program, and its model is the one they describe. LS_EINVAL:
 * its name or a key is not possible. One thread; before any config is read. */
ls_status ls_program_use(const ls_program *, ls_error *);

/* As ls_program_use(), for callers that only read models of runs; does nothing if the program is in
 * use already. Any thread. */
ls_status ls_program_use_model(const ls_program *, ls_error *);

/* The program's model. LS_EINVAL: a call of its build function failed; the message is that of the
 * first one. */
ls_status ls_program_create(const ls_config *, ls_model *m_p, ls_error *);

/* Does the program have its own data? Then the config names no files. */
bool ls_program_has_data(void);
/* Opens the program's own data. LS_EINVAL, LS_EIO: as the program's function says. */
ls_status ls_program_open_data(const ls_config *, ls_own_source *source_p, ls_error *);

#endif
