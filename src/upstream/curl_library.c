/*
 * Loading libcurl. A gateway before plain-http servers never calls it, and it brings some
 * thirty other libraries along: 4 MB of memory, and milliseconds of every start.
 */
#include "taskgate/upstream/curl_library.h"

#include <pthread.h>

#include "taskgate/core/library.h"

struct curl_library curl_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct error fault; /* empty: it is loaded */

static void curl_library_open(void)
{
    static const struct library_function functions[] = {
#define CURL_FUNCTION(name) {"curl_" #name, &curl_library.name},
        CURL_FUNCTIONS(CURL_FUNCTION)
#undef CURL_FUNCTION
    };
    /* The ABI of curl/curl.h: no other has had another number since 2006. */
    if (library_load("libcurl", "libcurl.so.4", functions, sizeof functions / sizeof *functions,
                     &fault) &&
        curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        error_set(&fault, "libcurl could not be started");
}

bool curl_library_load(struct error *error)
{
    pthread_once(&once, curl_library_open);
    return fault.message[0] == '\0' || error_set(error, "%s", fault.message);
}
