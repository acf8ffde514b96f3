/* oracle_codes.h - the actions of compressed gradients: Encode, Exchange and Decode. */
#ifndef LS_TEST_ORACLE_CODES_H
#define LS_TEST_ORACLE_CODES_H

#include "plan/oracle_state.h"

void oracle_run_encode(oracle *, const ls_action *);
void oracle_run_exchange(oracle *, const ls_action *);
void oracle_run_decode(oracle *, const ls_action *);

#endif
