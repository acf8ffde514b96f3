/* curl.c - see curl.h. */
#include "base/curl.h"

#include "base/library.h"

static const ls_symbol symbols[] = {
    {"curl_global_init", offsetof(ls_curl, global_init)},
    {"curl_version", offsetof(ls_curl, version)},
    {"curl_easy_init", offsetof(ls_curl, easy_init)},
    {"curl_easy_cleanup", offsetof(ls_curl, easy_cleanup)},
    {"curl_easy_perform", offsetof(ls_curl, easy_perform)},
    {"curl_easy_setopt", offsetof(ls_curl, easy_setopt)},
    {"curl_easy_getinfo", offsetof(ls_curl, easy_getinfo)},
    {"curl_easy_strerror", offsetof(ls_curl, easy_strerror)},
    {"curl_multi_init", offsetof(ls_curl, multi_init)},
    {"curl_multi_cleanup", offsetof(ls_curl, multi_cleanup)},
    {"curl_multi_setopt", offsetof(ls_curl, multi_setopt)},
    {"curl_multi_add_handle", offsetof(ls_curl, multi_add_handle)},
    {"curl_multi_remove_handle", offsetof(ls_curl, multi_remove_handle)},
    {"curl_multi_perform", offsetof(ls_curl, multi_perform)},
    {"curl_multi_poll", offsetof(ls_curl, multi_poll)},
    {"curl_multi_info_read", offsetof(ls_curl, multi_info_read)},
    {"curl_slist_append", offsetof(ls_curl, slist_append)},
    {"curl_slist_free_all", offsetof(ls_curl, slist_free_all)},
};

static ls_curl functions;

static ls_status set_up(ls_error *e) {
    if (functions.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return LS_OK;
    return ls_fail(e, LS_EIO, "libcurl can't be set up");
}

static ls_library library =
    LS_LIBRARY("libcurl.so.4", symbols, functions, .refusal = "libcurl can't be loaded",
               .code = LS_EIO, .set_up = set_up);

ls_status ls_curl_load(const ls_curl **curl_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, e));
    *curl_p = &functions;
    return LS_OK;
}

bool ls_curl_set_up(const ls_curl *lib, CURL *c, const char *protocols, const char *authorities,
                    char *detail) {
    bool bad = lib->easy_setopt(c, CURLOPT_PROTOCOLS_STR, protocols) != CURLE_OK;
    bad |= lib->easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
    bad |= lib->easy_setopt(c, CURLOPT_ERRORBUFFER, detail) != CURLE_OK;
    if (!authorities || !*authorities) return !bad;
    bad |= lib->easy_setopt(c, CURLOPT_CAPATH, NULL) != CURLE_OK; /* and no longer the system's */
    bad |= lib->easy_setopt(c, CURLOPT_CAINFO, authorities) != CURLE_OK;
    return !bad;
}
