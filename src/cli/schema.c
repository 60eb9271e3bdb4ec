/* taskgate schema: the configuration's keys for editors and for Helm. */
#include "taskgate/config/schema.h"
#include "taskgate/cli/cli.h"

#include "options.h"
#include "terminal.h"

int cli_schema(int argc, char **argv)
{
    const struct command command = {
        .usage = "taskgate schema",
        .synopsis = "Prints the JSON Schema (draft 7) of the configuration file. What it refuses,\n"
                    "taskgate check refuses; rules over several keys are check's alone.",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct buffer text;
    buffer_init(&text);
    config_write_schema(&text);
    int code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    buffer_finish(&text);
    return code;
}
