/*
 * The command line: taskgate COMMAND (src/cli/dispatch.c has the list). Behaviour 2.1.
 */
#pragma once

/* Exit codes of every command. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILURE = 1,
    CLI_USAGE = 2,     /* wrong usage or configuration */
    CLI_REFUSED = 3,   /* the admin endpoint is unreachable, or refused the token */
    CLI_NOT_FOUND = 4, /* no such task */
    CLI_CONFLICT = 5,  /* the task is in a state that does not allow it */
};

/* The whole program: finds the command and runs it. Returns the exit code. */
int cli_main(int argc, char **argv);

/* The commands; argv[0] is the command's own name. */
int cli_serve(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_tasks(int argc, char **argv);
int cli_block(int argc, char **argv);
int cli_blocks(int argc, char **argv);
int cli_grants(int argc, char **argv);
int cli_definitions(int argc, char **argv);
int cli_audit(int argc, char **argv);
int cli_backup(int argc, char **argv);
int cli_store(int argc, char **argv);
int cli_call(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_login(int argc, char **argv);
int cli_logout(int argc, char **argv);
int cli_whoami(int argc, char **argv);
int cli_health(int argc, char **argv);
int cli_page(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_version(int argc, char **argv);
