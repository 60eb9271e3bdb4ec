/* taskgate page: the address of the operators' page, with the token that the gateway made. */
#include "taskgate/cli/cli.h"

#include "local_gateway.h"
#include "options.h"
#include "terminal.h"

static int page_show(const struct local_gateway *local)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, "%s/", local->url);
    if (local->token)
        buffer_append_format(&text, "#token=%s", local->token);
    buffer_append_char(&text, '\n');
    int code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    buffer_finish(&text);
    return code;
}

int cli_page(int argc, char **argv)
{
    const char *path = NULL;
    const struct option options[] = {
        {"config", "FILE", "the configuration; by default one of the usual places", &path, NULL},
    };
    const struct command command = {
        .usage = "taskgate page [--config FILE]",
        .synopsis =
            "Prints the address of the operators' page of the gateway on this machine, with the\n"
            "token that it made. Where operators have tokens of their own the address is bare.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct local_gateway local;
    if (!local_gateway_find(&local, path))
        return options_complain("the configuration cannot be used; taskgate check says why");
    int code = CLI_FAILURE;
    if (local.token_file && !local.token)
        options_complain("%s cannot be read, or is not there yet: is the gateway running, and are "
                         "you its user?",
                         local.token_file);
    else
        code = page_show(&local);
    local_gateway_finish(&local);
    return code;
}
