/* choose_code.h - decides compress.kind auto: which code, if any, makes training between hosts
 * faster.
 *
 * Steps of the config without codes and with each candidate are simulated, with the speeds of the
 * machine and of the link as they were measured. Candidates are codes whose losses in training are
 * known; a step with one counts as many times as it needs more steps for the same loss
 * (docs/guide/communication.md). What saves less than a tenth of the time is not worth it.
 */
#ifndef LS_PERF_CHOOSE_CODE_H
#define LS_PERF_CHOOSE_CODE_H

#include "config/config.h"

/* Sets compress.kind, which is auto, and logs why: for `hosts` hosts of nworkers workers each.
 * Hosts with the same config and the same files make the same choice. LS_EINVAL: the files of
 * measurements are missing or wrong. */
ls_status ls_choose_code(ls_config *, int nworkers, int hosts, ls_error *);

#endif
