/* Commands run inside the test, with stdout and stderr in files. */
#pragma once

#include <check.h>

/* stdout and stderr of the last run. */
extern char *captured[2];
/* The value for the word CONFIG in the arguments. */
extern char config_path[];

/* Runs "taskgate ARGUMENTS", which are split at blanks. Returns the exit code. */
int run(const char *arguments);
/* That the stream (0: stdout) of the last run holds the text. */
void expect(int stream, const char *text);
/* Forgets the last run. */
void forget_run(void);

/* The suites beside this one. */
TCase *output_cases(void);
TCase *policy_cases(void);
TCase *policy_test_cases(void);

/* An empty folder, which is where the process is until it is left. */
void enter_folder(void);
void leave_folder(void);
void write_file(const char *name, const char *text);
