/*
 * Loading libpq. A gateway with an SQLite store never calls it, and it brings some twenty other
 * libraries along: 3 MB of memory, and milliseconds of every start.
 */
#include "taskgate/store/postgres_library.h"

#include <pthread.h>

#include "taskgate/core/library.h"

struct postgres_library postgres_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct error fault; /* empty: it is loaded */

static void library_load_libpq(void)
{
    static const struct library_function functions[] = {
#define POSTGRES_FUNCTION(name) {"PQ" #name, &postgres_library.name},
        POSTGRES_FUNCTIONS(POSTGRES_FUNCTION)
#undef POSTGRES_FUNCTION
    };
    library_load("libpq", "libpq.so.5", functions, sizeof functions / sizeof *functions, &fault);
}

bool postgres_library_load(struct error *error)
{
    pthread_once(&once, library_load_libpq);
    return fault.message[0] == '\0' || error_set(error, "%s", fault.message);
}
