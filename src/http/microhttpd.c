/* microhttpd.c - see microhttpd.h. */
#include "http/microhttpd.h"

#include "base/library.h"

static const ls_symbol symbols[] = {
    {"MHD_start_daemon", offsetof(ls_microhttpd, start_daemon)},
    {"MHD_stop_daemon", offsetof(ls_microhttpd, stop_daemon)},
    {"MHD_run", offsetof(ls_microhttpd, run)},
    {"MHD_get_timeout", offsetof(ls_microhttpd, get_timeout)},
    {"MHD_get_daemon_info", offsetof(ls_microhttpd, get_daemon_info)},
    {"MHD_get_connection_info", offsetof(ls_microhttpd, get_connection_info)},
    {"MHD_get_connection_values", offsetof(ls_microhttpd, get_connection_values)},
    {"MHD_lookup_connection_value", offsetof(ls_microhttpd, lookup_connection_value)},
    {"MHD_suspend_connection", offsetof(ls_microhttpd, suspend_connection)},
    {"MHD_resume_connection", offsetof(ls_microhttpd, resume_connection)},
    {"MHD_create_response_from_buffer", offsetof(ls_microhttpd, create_response_from_buffer)},
    {"MHD_create_response_from_callback", offsetof(ls_microhttpd, create_response_from_callback)},
    {"MHD_add_response_header", offsetof(ls_microhttpd, add_response_header)},
    {"MHD_queue_response", offsetof(ls_microhttpd, queue_response)},
    {"MHD_destroy_response", offsetof(ls_microhttpd, destroy_response)},
};

static ls_microhttpd functions;
static ls_library library = LS_LIBRARY(
    "libmicrohttpd.so.12", symbols, functions,
    .refusal = "libmicrohttpd can't be loaded (Debian's package libmicrohttpd12)", .code = LS_EIO);

ls_status ls_microhttpd_load(const ls_microhttpd **m_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, e));
    *m_p = &functions;
    return LS_OK;
}
