/*
 * Reload: a thread of its own reads the configuration again on SIGHUP and when its file, or one of
 * the policy files that it names, has changed (ConfigMap symlink swaps too), within 5 s
 * (behaviour 2.6). A changed file is read once it was still for half a second. A bad file leaves
 * the old configuration in force, policies included, and says why.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"

struct reload;

/* Called on the reload thread: NULL after a good reload (the snapshot is installed), else
 * the places of the errors, without a value of the file. A good reload is not logged or counted
 * yet: the callback does that once the workers have taken it. */
typedef void (*reload_callback)(void *context, const char *error);

/* `config_path` as given on the command line; `config` is the one in force. NULL on failure. */
struct reload *reload_start(const char *config_path, const struct config *config,
                            reload_callback callback, void *context, struct error *error);
void reload_now(struct reload *reload);  /* any thread; returns at once */
void reload_stop(struct reload *reload); /* NULL is allowed */

/*
 * Loads the libraries that a configuration needs beside the program itself.
 */

/* Loads the libraries for calls to its servers and endpoints; reads files. */
bool libraries_load(const struct config *config, struct error *error);
