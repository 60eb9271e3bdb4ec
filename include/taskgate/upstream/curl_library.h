/*
 * libcurl, loaded when it is first needed. Below this header its functions have their usual
 * names, and may be called once curl_library_load() has returned true.
 */
#pragma once

#define CURL_DISABLE_TYPECHECK /* it knows functions alone, no pointers to them */
#include <curl/curl.h>
#include <stdbool.h>

#include "taskgate/core/error.h"

/* Reads files, so that it is not for a loop to call first. Any thread, any number of times. */
bool curl_library_load(struct error *error);

#define CURL_FUNCTIONS(X)                                                                          \
    X(easy_cleanup)                                                                                \
    X(easy_escape)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_pause)                                                                                  \
    X(easy_perform)                                                                                \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(free)                                                                                        \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(multi_setopt)                                                                                \
    X(multi_socket_action)                                                                         \
    X(multi_wakeup)                                                                                \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(version_info)

/* The header has some as macros around themselves, which count the arguments. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

struct curl_library {
#define CURL_FUNCTION(name) __typeof__(curl_##name) *(name);
    CURL_FUNCTIONS(CURL_FUNCTION)
#undef CURL_FUNCTION
};
extern struct curl_library curl_library;

#define curl_easy_cleanup curl_library.easy_cleanup
#define curl_easy_escape curl_library.easy_escape
#define curl_easy_getinfo curl_library.easy_getinfo
#define curl_easy_init curl_library.easy_init
#define curl_easy_pause curl_library.easy_pause
#define curl_easy_perform curl_library.easy_perform
#define curl_easy_setopt curl_library.easy_setopt
#define curl_easy_strerror curl_library.easy_strerror
#define curl_free curl_library.free
#define curl_global_init curl_library.global_init
#define curl_multi_add_handle curl_library.multi_add_handle
#define curl_multi_cleanup curl_library.multi_cleanup
#define curl_multi_info_read curl_library.multi_info_read
#define curl_multi_init curl_library.multi_init
#define curl_multi_perform curl_library.multi_perform
#define curl_multi_poll curl_library.multi_poll
#define curl_multi_remove_handle curl_library.multi_remove_handle
#define curl_multi_setopt curl_library.multi_setopt
#define curl_multi_socket_action curl_library.multi_socket_action
#define curl_multi_wakeup curl_library.multi_wakeup
#define curl_slist_append curl_library.slist_append
#define curl_slist_free_all curl_library.slist_free_all
#define curl_version_info curl_library.version_info
