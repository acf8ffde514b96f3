/* wait_policy.c - see wait_policy.h. */
#include "base/wait_policy.h"

#include <stdlib.h>
#include <string.h>

static const char *policy(void) {
    const char *name = getenv("LOCKSTEP_WAIT_POLICY");
    return name && *name ? name : "active";
}

ls_status ls_wait_policy_check(ls_error *e) {
    const char *name = policy();
    if (strcmp(name, "active") == 0 || strcmp(name, "passive") == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "LOCKSTEP_WAIT_POLICY: '%.40s' is not a policy; use active or passive, or unset "
                   "it",
                   name);
}

bool ls_wait_is_passive(void) { return strcmp(policy(), "passive") == 0; }
