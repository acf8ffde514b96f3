/* curl.h - libcurl, loaded when it is first used: with its dependencies that takes 20 ms, and
 * programs that neither talk to etcd nor download need not wait for it.
 */
#ifndef LS_BASE_CURL_H
#define LS_BASE_CURL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/error.h"

/* Functions of libcurl, by their names without curl_. */
typedef struct ls_curl {
    CURLcode (*global_init)(long flags);
    char *(*version)(void);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *);
    CURLcode (*easy_perform)(CURL *);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    const char *(*easy_strerror)(CURLcode);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *);
    CURLMcode (*multi_setopt)(CURLM *, CURLMoption, ...);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *running);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned n, int timeout_ms, int *ready);
    CURLMsg *(*multi_info_read)(CURLM *, int *left);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
} ls_curl;

/* Any thread. LS_EIO: libcurl is not there, or lacks what we need. It stays loaded. */
ls_status ls_curl_load(const ls_curl **curl_p, ls_error *);

/* What every handle is set to: URLs of `protocols`, e.g. "http,https"; trust in the authorities of
 * a PEM file, NULL or "": the system's; `detail` [CURL_ERROR_SIZE] receives messages; signals are
 * left alone. False: this libcurl lacks an option. */
bool ls_curl_set_up(const ls_curl *, CURL *, const char *protocols, const char *authorities,
                    char *detail);

#endif
