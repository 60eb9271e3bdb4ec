/* taskgate serve: the gateway itself. */
#include "taskgate/cli/cli.h"
#include "taskgate/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#include "local_gateway.h"
#include "options.h"

#define STORE_VARIABLE "THOUGHTGATE_STORE_PATH"

/* policy/default.yaml */
extern const char serve_default_policy[];

/* ---- serve --upstream: a server to protect is all that must be given ---- */

static bool serve_make_folders(const char *path)
{
    OWNED char *copy = memory_copy_text(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0700);
        *slash = '/';
    }
    return mkdir(copy, 0700) == 0 || errno == EEXIST;
}

/* The user may change the file afterwards, so one that is there stays. */
static bool write_default(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST;
    size_t length = strlen(serve_default_policy);
    bool good = write(fd, serve_default_policy, length) == (ssize_t)length;
    good = close(fd) == 0 && good;
    if (!good)
        unlink(path); /* the next start is not to take half of it */
    return good;
}

static bool uses_default_store(const char *path)
{
    struct config_problems problems = {0};
    struct config *config = config_load(path, NULL, &problems);
    bool is_default = config && config->store_path_is_default && !config->store_url;
    config_problems_finish(&problems);
    if (config)
        config_unref(config);
    return is_default;
}

/* The configuration to serve with: the one that is there, else a default one in the folder of the
 * state. NULL after a word on stderr. The caller frees. */
static char *serve_prepare(const char *path, const char *upstream)
{
    char *folder = local_gateway_folder();
    const char *found = config_find(path, NULL);
    char *chosen = found ? memory_copy_text(found) : memory_format("%s/config.yaml", folder);
    setenv("THOUGHTGATE_UPSTREAM", upstream, 1);
    bool good = found || (serve_make_folders(folder) && write_default(chosen));
    if (!good)
        options_complain("%s cannot be written: %s; name a configuration with --config", chosen,
                         strerror(errno));
    if (good && uses_default_store(chosen)) {
        OWNED char *store = memory_format("%s/taskgate.db", folder);
        serve_make_folders(folder);
        setenv(STORE_VARIABLE, store, 0);
    }
    free(folder);
    if (good)
        return chosen;
    free(chosen);
    return NULL;
}

/* The token is for a person at a terminal, not for a log that collects what is printed. */
static void serve_print_page(void *context)
{
    struct local_gateway local;
    if (!local_gateway_find(&local, context))
        return;
    bool has_token = local.token && isatty(STDOUT_FILENO);
    printf("The operators' page: %s/%s%s\n", local.url, has_token ? "#token=" : "",
           has_token ? local.token : "");
    if (local.token && !has_token)
        puts("Its address with the token: taskgate page");
    fflush(stdout);
    local_gateway_finish(&local);
}

static int serve_upstream(const char *path, const char *upstream)
{
    OWNED char *chosen = serve_prepare(path, upstream);
    return chosen ? server_run(chosen, serve_print_page, chosen) : CLI_USAGE;
}

int cli_serve(int argc, char **argv)
{
    const char *path = NULL, *upstream = NULL;
    const struct option options[] = {
        {"config", "FILE", "the configuration; by default one of the usual places", &path},
        {"upstream", "URL", "the MCP server to protect, in place of the configured one", &upstream},
    };
    const struct command command = {
        .usage = "taskgate serve [--config FILE] [--upstream URL]",
        .synopsis = "Runs the gateway in the foreground, until SIGTERM or SIGINT. The log goes to\n"
                    "stderr, one JSON object a line. SIGHUP reads the configuration again. With\n"
                    "--upstream no configuration is needed: a default one is then made, and the\n"
                    "address of the operators' page is printed.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return upstream ? serve_upstream(path, upstream) : server_run(path, NULL, NULL);
}
