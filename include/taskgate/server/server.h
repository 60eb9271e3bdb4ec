/*
 * The process: configuration, store, loops, listeners, reload, shutdown, wired together.
 */
#pragma once

/* Runs until SIGTERM or SIGINT. `config_path` NULL: the search path. Returns the exit code: 0 after
 * an orderly end, 1 when it could not start, 2 for a bad configuration (every error is on stderr).
 * `ready` is called once when it serves, on the thread of the caller; NULL: nothing is called.
 * Behaviour 2.8. */
int server_run(const char *config_path, void (*ready)(void *context), void *context);
