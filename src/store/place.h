/* The place of a database, as messages may have it. */
#pragma once

/* A path as it is; of a URL what comes behind the user and the password, up to the parameters. The
 * caller frees. */
char *place_shown(const char *place);
