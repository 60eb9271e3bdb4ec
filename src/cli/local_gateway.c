/* From a configuration to the address and the token of its gateway. */
#include "local_gateway.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/str.h"

#define TOKEN_FILE "admin-token"
#define TOKEN_MAX_BYTES 512

char *local_gateway_folder(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        return memory_format("%s/taskgate", state);
    if (geteuid() == 0 || !home)
        return memory_copy_text("/var/lib/taskgate");
    return memory_format("%s/.local/state/taskgate", home);
}

/* A port that listens everywhere is asked on the loopback address. */
static char *url_of(const struct config *config)
{
    struct str host = str_from(config->admin_bind);
    if (str_equal(host, STR("0.0.0.0")))
        host = STR("127.0.0.1");
    else if (str_equal(host, STR("::")) || str_equal(host, STR("[::]")))
        host = STR("::1");
    struct str head, tail;
    bool is_bare_six = str_cut(host, ':', &head, &tail) && !str_starts_with(host, STR("["));
    return memory_format("%s://%s%.*s%s:%d", config->admin_tls.server ? "https" : "http",
                         is_bare_six ? "[" : "", STR_ARGS(host), is_bare_six ? "]" : "",
                         (int)config->admin_port);
}

static char *beside(const char *file)
{
    OWNED char *copy = memory_copy_text(file);
    return memory_format("%s/" TOKEN_FILE, dirname(copy));
}

/* Beside the store; with the default path that may be the folder in which the gateway started, or
 * that of the user's own state. */
static char *token_file_of(const struct config *config)
{
    char *path = beside(config->store_path), *folder = local_gateway_folder();
    char *others[] = {memory_copy_text("./" TOKEN_FILE), memory_format("%s/" TOKEN_FILE, folder)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool is_there = config->store_path_is_default && access(path, F_OK) != 0 &&
                        access(others[i], F_OK) == 0;
        char *unused = is_there ? path : others[i];
        path = is_there ? others[i] : path;
        free(unused);
    }
    free(folder);
    return path;
}

static char *read_token(const char *path)
{
    char text[TOKEN_MAX_BYTES];
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    struct str token = str_trim(str_slice(text, length));
    char *copy = token.length > 0 ? memory_copy_str(token) : NULL;
    explicit_bzero(text, sizeof text);
    return copy;
}

bool local_gateway_find(struct local_gateway *gateway, const char *path)
{
    struct config_problems problems = {0};
    *gateway = (struct local_gateway){0};
    char *folder = local_gateway_folder();
    char *own = memory_format("%s/" LOCAL_GATEWAY_CONFIG, folder);
    const char *found = config_find(path, NULL);
    if (!found && access(own, R_OK) == 0)
        found = own;
    struct config *config = found ? config_load(found, NULL, &problems) : NULL;
    free(own);
    free(folder);
    config_problems_finish(&problems);
    if (!config)
        return false;
    gateway->url = url_of(config);
    if (config->token_count == 0) {
        gateway->token_file = token_file_of(config);
        gateway->token = read_token(gateway->token_file);
    }
    config_unref(config);
    return true;
}

void local_gateway_finish(struct local_gateway *gateway)
{
    memory_forget_text(gateway->token);
    free(gateway->token_file);
    free(gateway->url);
    *gateway = (struct local_gateway){0};
}
