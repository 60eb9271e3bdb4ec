/*
 * The demo databases: a set of names for the dangerous tool to delete from.
 */
#ifndef EXAMPLE_DATABASES_H
#define EXAMPLE_DATABASES_H

#include <jansson.h>
#include <stdbool.h>

struct databases {
    json_t *names;      /* an object used as a set */
    const char *folder; /* holds one file NAME.db for each, or NULL */
};

/* With a folder its files are the set. A missing folder is made and filled with the demo set.
 * false: the reason is on stderr. */
bool databases_open(struct databases *databases, const char *folder);
void databases_free(struct databases *databases);

/* false: there is none of that name, or its file cannot be removed. */
bool databases_delete(struct databases *databases, const char *name);

/* The names that are left, as "a, b, c", to be freed. */
char *databases_list(const struct databases *databases);

#endif
