/* dlopen(3), and every function that is used. */
#include "taskgate/core/library.h"

#include <dlfcn.h>

bool library_load(const char *title, const char *file, const struct library_function *functions,
                  size_t count, struct error *error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return error_set(error, "cannot load %s: %s", title, dlerror());
    for (size_t i = 0; i < count; i++) {
        /* As POSIX has it: a pointer to a function in the place of one to data. */
        void **pointer = functions[i].pointer;
        *pointer = dlsym(library, functions[i].name);
        if (*pointer == NULL)
            return error_set(error, "%s is too old: it has no %s()", title, functions[i].name);
    }
    return true;
}
