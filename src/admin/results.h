/* Waiting for a task's result, GET /api/v1/tasks/{id}/result. */
#pragma once

#include "internal.h"

/* Ends the waits of everybody who may no longer see the task, after a reload. */
void results_renew_all(struct admin *admin);
/* Those that were opened with the token or cookie of this digest. */
void results_end_of(struct admin *admin, const char *sha256);
/* The digest of the cookie of each one that was opened in a session. `visit` changes nothing. */
void results_visit_sessions(struct admin *admin,
                            void (*visit)(struct admin *admin, const char *sha256));
/* Answers everyone with the state as it is: the process ends. */
void results_end_all(struct admin *admin);
