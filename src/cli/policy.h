/* The subcommands of `taskgate policy`: each has a row in the table of policy.c. Also
 * their shared functions. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/policy/cedar.h"

int cli_policy_simulate(int argc, char **argv);
int cli_policy_test(int argc, char **argv);

/* ---- policy_files.c: files of policies and data, all that is wrong said on stderr ---- */

/* Reads the file whole into `text`. */
bool policy_files_read(const char *path, struct buffer *text);
/* Lines of NAME:LINE:COLUMN, as the engine's readers make them. */
void policy_files_complain(const struct buffer *problems);
/* The contents of the file; NULL when it cannot be read or has a mistake. */
struct cedar_policies *policy_files_policies(const char *path);
struct cedar_entities *policy_files_entities(const char *path);
struct cedar_requests *policy_files_requests(const char *path);
