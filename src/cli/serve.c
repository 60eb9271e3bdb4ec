/* taskgate serve: the gateway itself. */
#include "taskgate/cli/cli.h"
#include "taskgate/server/server.h"

#include "options.h"

int cli_serve(int argc, char **argv)
{
    const char *path = NULL;
    const struct option options[] = {
        {"config", "FILE", "the configuration; by default one of the usual places", &path, NULL},
    };
    const struct command command = {
        .usage = "taskgate serve [--config FILE]",
        .synopsis = "Runs the gateway in the foreground, until SIGTERM or SIGINT. The log goes to\n"
                    "stderr, one JSON object a line. SIGHUP reads the configuration again.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return server_run(path);
}
