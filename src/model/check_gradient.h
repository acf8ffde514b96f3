/* check_gradient.h - gradients of one layer against central differences (check.h). */
#ifndef LS_MODEL_CHECK_GRADIENT_H
#define LS_MODEL_CHECK_GRADIENT_H

#include "model/check.h"
#include "model/check_call.h"

enum { LS_CHECK_TEXT = 256 };

/* Compares the gradients of all inputs and parameters of c->layer. False: one is wrong, and `wrong`
 * says which. Sets comparisons, nopen, open, worst and bound of the result. */
bool ls_check_gradients(ls_check *c, ls_check_result *, char wrong[LS_CHECK_TEXT]);

/* The name of a parameter without that of its layer: "weight". */
const char *ls_check_param_name(const ls_check *, int p);

#endif
