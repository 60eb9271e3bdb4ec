/*
 * The database that a command works on, as text: a file's path, or the URL of a shared database,
 * which may hold a password. So the text is never written to a message, and wiped after its use.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/site.h"

/* Its kind goes by the text, which must live as long. */
struct store_site store_place_site(const char *place);

/* The place that the value of an option names: a file, a URL without a password, or {env: NAME}.
 * `elsewhere` says how to name a URL that has one. NULL after a word on stderr. */
char *store_place_given(const char *option, const char *text, const char *elsewhere);
/* The value of an environment variable. NULL after a word on stderr. */
char *store_place_of_variable(const char *variable);
/* The place that THOUGHTGATE_STORE_URL names without a configuration; NULL: there is one, or the
 * variable is not set. */
char *store_place_without_configuration(const char *path);
/* The place that a configuration names. If it names nothing: the gateway's default folder, or the
 * folder in which it was started. NULL after a word on stderr. */
char *store_place_of_configuration(const struct config *config);
