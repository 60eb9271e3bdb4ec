/* From a configuration to the address and the token of its gateway. */
#include "local_gateway.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/str.h"

#define TOKEN_FILE "admin-token"
#define TOKEN_MAX_BYTES 512

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

/* Beside the store; with the default path that may be the folder in which the gateway started. */
static char *token_file_of(const struct config *config)
{
    char *store = memory_copy_text(config->store_path);
    char *path = memory_format("%s/" TOKEN_FILE, dirname(store));
    free(store);
    if (config->store_path_is_default && access(path, F_OK) != 0) {
        free(path);
        path = memory_copy_text("./" TOKEN_FILE);
    }
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
    struct config *config = config_find(path, NULL) ? config_load(path, NULL, &problems) : NULL;
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
    if (gateway->token)
        explicit_bzero(gateway->token, strlen(gateway->token));
    free(gateway->token);
    free(gateway->token_file);
    free(gateway->url);
    *gateway = (struct local_gateway){0};
}
