/* microhttpd.h - GNU libmicrohttpd, loaded when it is first used: programs that serve nothing start
 * without it and its dependencies (GnuTLS).
 */
#ifndef LS_HTTP_MICROHTTPD_H
#define LS_HTTP_MICROHTTPD_H

#include <microhttpd.h>

#include "base/error.h"

/* Functions of libmicrohttpd, by their names without MHD_. */
typedef struct ls_microhttpd {
    struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback,
                                       void *, MHD_AccessHandlerCallback, void *, ...);
    void (*stop_daemon)(struct MHD_Daemon *);
    enum MHD_Result (*run)(struct MHD_Daemon *);
    enum MHD_Result (*get_timeout)(struct MHD_Daemon *, MHD_UNSIGNED_LONG_LONG *ms_p);
    const union MHD_DaemonInfo *(*get_daemon_info)(struct MHD_Daemon *, enum MHD_DaemonInfoType,
                                                   ...);
    int (*get_connection_values)(struct MHD_Connection *, enum MHD_ValueKind, MHD_KeyValueIterator,
                                 void *);
    const union MHD_ConnectionInfo *(*get_connection_info)(struct MHD_Connection *,
                                                           enum MHD_ConnectionInfoType, ...);
    const char *(*lookup_connection_value)(struct MHD_Connection *, enum MHD_ValueKind,
                                           const char *key);
    void (*suspend_connection)(struct MHD_Connection *);
    void (*resume_connection)(struct MHD_Connection *);
    struct MHD_Response *(*create_response_from_buffer)(size_t, void *,
                                                        enum MHD_ResponseMemoryMode);
    struct MHD_Response *(*create_response_from_callback)(uint64_t size, size_t block,
                                                          MHD_ContentReaderCallback, void *,
                                                          MHD_ContentReaderFreeCallback);
    enum MHD_Result (*add_response_header)(struct MHD_Response *, const char *, const char *);
    enum MHD_Result (*queue_response)(struct MHD_Connection *, unsigned status,
                                      struct MHD_Response *);
    void (*destroy_response)(struct MHD_Response *);
} ls_microhttpd;

/* Any thread. LS_EIO: libmicrohttpd is not there, or lacks what we need. It stays loaded. */
ls_status ls_microhttpd_load(const ls_microhttpd **m_p, ls_error *);

#endif
