/* Libraries that are loaded when they are first needed. Reads files. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/error.h"

struct library_function {
    const char *name;
    void *pointer; /* to the pointer to the function, which is set */
};
/* `file` has the number of the ABI that the headers are of; `title` is for the error. */
bool library_load(const char *title, const char *file, const struct library_function *functions,
                  size_t count, struct error *error);
