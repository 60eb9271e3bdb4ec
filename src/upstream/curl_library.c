/*
 * Loading libcurl. A gateway before plain-http servers never calls it, and it brings some
 * thirty other libraries along: 4 MB of memory, and milliseconds of every start.
 */
#include "taskgate/upstream/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>

/* The ABI of curl/curl.h: no other has had another number since 2006. */
#define FILE_NAME "libcurl.so.4"

struct curl_library curl_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct error fault; /* empty: it is loaded */

static bool find(void *library, const char *name, void *function)
{
    /* As POSIX has it: a pointer to a function in the place of one to data. */
    *(void **)function = dlsym(library, name);
    if (*(void **)function == NULL)
        error_set(&fault, "libcurl is too old: it has no %s()", name);
    return *(void **)function != NULL;
}

static void load(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        error_set(&fault, "cannot load libcurl: %s", dlerror());
        return;
    }
#define CURL_FUNCTION(name)                                                                        \
    if (!find(library, "curl_" #name, &curl_library.name))                                         \
        return;
    CURL_FUNCTIONS(CURL_FUNCTION)
#undef CURL_FUNCTION
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        error_set(&fault, "libcurl could not be started");
}

bool curl_library_load(struct error *error)
{
    pthread_once(&once, load);
    return fault.message[0] == '\0' || error_set(error, "%s", fault.message);
}
