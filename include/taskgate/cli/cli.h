/*
 * The command line: taskgate COMMAND. Behaviour 2.1.
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

/* The commands: COMMAND(name, help), each run by the function cli_NAME. */
#define CLI_COMMANDS(COMMAND)                                                                      \
    COMMAND(serve, "run the gateway")                                                              \
    COMMAND(check, "read the configuration and say everything that is wrong with it")              \
    COMMAND(explain, "say what the rules come to for one tool, and why")                           \
    COMMAND(policy, "try policies before they are in force")                                       \
    COMMAND(tasks, "list, show and decide the calls that wait for a human")                        \
    COMMAND(grants, "list and revoke grants: calls that run again without a question")             \
    COMMAND(block, "stop a caller for a while: its calls are refused")                             \
    COMMAND(blocks, "list and lift blocks")                                                        \
    COMMAND(definitions, "list, show and accept what servers define and have changed")             \
    COMMAND(audit, "list, show, export and verify the audit trail")                                \
    COMMAND(backup, "copy the store while the gateway runs")                                       \
    COMMAND(store, "copy the store, bring its schema up, accept a timeline")                       \
    COMMAND(call, "call a tool through a running gateway, under its rules")                        \
    COMMAND(completion, "print what completes commands in bash or zsh")                            \
    COMMAND(login, "sign in at a running gateway's identity provider")                             \
    COMMAND(logout, "forget that sign-in")                                                         \
    COMMAND(whoami, "say who you are to a running gateway, and what you may do")                   \
    COMMAND(health, "say whether a running gateway is alive, or ready for calls")                  \
    COMMAND(page, "print the address of the operators' page, with the local token")                \
    COMMAND(schema, "print the JSON Schema of the configuration, for editors")                     \
    COMMAND(version, "print the version, and those of the libraries")
/* argv[0] is the command's own name. */
#define CLI_COMMAND_FUNCTION(name, help) int cli_##name(int argc, char **argv);
CLI_COMMANDS(CLI_COMMAND_FUNCTION)
#undef CLI_COMMAND_FUNCTION
