/* error.c - the names of statuses; ls_fail_at() is in fail.c. */
#include "base/error.h"

const char *ls_version(void) { return LS_VERSION; }

const char *ls_status_name(ls_status code) {
    switch (code) {
    case LS_OK: return "ok";
    case LS_EINVAL: return "bad input";
    case LS_ENOMEM: return "out of memory";
    case LS_EIO: return "input/output error";
    case LS_EPENDING: return "still in flight";
    case LS_EPEER: return "worker lost";
    case LS_ETIMEOUT: return "timed out";
    case LS_EABORT: return "aborted";
    case LS_EDISAGREE: return "workers disagree";
    case LS_EBROKEN: return "transport broken";
    }
    return "unknown status";
}
