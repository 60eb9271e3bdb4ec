/* taskgate login and logout: a token of the issuer of one's own, kept between commands. */
#include "login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#include "admin_client.h"
#include "options.h"
#include "saved_token.h"
#include "tasks.h"
#include "terminal.h"

/* ---- which issuer ---- */

static void append_scope(struct buffer *scope, struct str name)
{
    if (scope->length > 0)
        buffer_append_char(scope, ' ');
    buffer_append(scope, name);
}

/* From a configuration that is here: false when it has no sign-in, or is none. */
static int read_config(const char *path, struct issuer_client *issuer)
{
    struct config_problems problems = {0};
    struct config *config = config_load(path, NULL, &problems);
    struct buffer text, scope;
    int code = CLI_DONE;
    buffer_init(&text);
    buffer_init(&scope);
    if (!config) {
        config_problems_write(&problems, &text);
        fprintf(stderr, "%.*s", STR_ARGS(buffer_str(&text)));
        code = CLI_USAGE;
    } else if (!config->oidc.is_on) {
        code = options_complain("%s has no admin.oidc to sign in with", config->path);
    } else {
        issuer->issuer = memory_copy_text(config->oidc.issuer);
        issuer->client_id = memory_copy_text(config->oidc.client_id);
        issuer->client_secret = memory_copy_text(config->oidc.client_secret);
        for (size_t i = 0; i < config->oidc.scopes.count; i++)
            append_scope(&scope, str_from(config->oidc.scopes.items[i]));
        issuer->scope = buffer_take(&scope, NULL);
    }
    buffer_finish(&scope);
    buffer_finish(&text);
    config_problems_finish(&problems);
    config_unref(config);
    return code;
}

static int ask_endpoint(struct admin_client *client, struct issuer_client *issuer)
{
    struct buffer body, scope;
    struct str element;
    size_t position = 0;
    const struct admin_request request = {.method = "GET", .path = "/api/v1/sign-in"};
    buffer_init(&body);
    buffer_init(&scope);
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE) {
        struct str scopes = json_member(buffer_str(&body), "scopes");
        issuer->issuer = issuer_client_member(&body, "issuer");
        issuer->client_id = issuer_client_member(&body, "clientId");
        while (json_type(scopes) == JSON_ARRAY && json_next_element(scopes, &position, &element)) {
            char *name = json_string_text(element, NULL);
            append_scope(&scope, str_from(name));
            free(name);
        }
        issuer->scope = buffer_take(&scope, NULL);
    }
    if (code == CLI_DONE && (!issuer->issuer || !issuer->client_id)) {
        fprintf(stderr, "taskgate: nobody signs in at %s: it has no admin.oidc\n",
                admin_client_url(client));
        code = CLI_REFUSED;
    }
    buffer_finish(&scope);
    buffer_finish(&body);
    return code;
}

/* ---- signing in ---- */

static char *get_token(struct issuer_client *issuer, bool device, struct error *error)
{
    if (!issuer_client_discover(issuer, error))
        return NULL;
    if (device && issuer->device_authorization)
        return login_by_device(issuer, error);
    if (device)
        fputs("taskgate: the issuer knows no sign-in by code, so a browser is needed\n", stderr);
    return login_by_browser(issuer, error);
}

/* Only what the gateway takes is kept; it says whose it is. */
static int keep_token(struct admin_client *client, const char *token)
{
    struct buffer body, text;
    struct error error = {""};
    const struct admin_request request = {.method = "GET", .path = "/api/v1/whoami"};
    buffer_init(&body);
    buffer_init(&text);
    admin_client_use_token(client, token);
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE && !saved_token_write(admin_client_url(client), token, &error)) {
        options_complain("%s", error.message);
        code = CLI_FAILURE;
    }
    if (code == CLI_DONE) {
        buffer_append_text(&text, "Signed in as ");
        tasks_append_member(&text, buffer_str(&body), "person");
        buffer_append_char(&text, '\n');
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    buffer_finish(&text);
    buffer_finish(&body);
    return code;
}

static int sign_in(struct admin_client *client, const char *config, bool device)
{
    struct issuer_client issuer = {0};
    struct error error = {""};
    const char *file = config ? config : getenv("THOUGHTGATE_CONFIG");
    int code = file && *file ? read_config(file, &issuer) : ask_endpoint(client, &issuer);
    char *token = code == CLI_DONE ? get_token(&issuer, device, &error) : NULL;
    if (token) {
        code = keep_token(client, token);
        explicit_bzero(token, strlen(token));
    } else if (code == CLI_DONE) {
        options_complain("%s", error.message);
        code = CLI_REFUSED;
    }
    free(token);
    issuer_client_finish(&issuer);
    return code;
}

int cli_login(int argc, char **argv)
{
    const char *config = NULL;
    bool device = false;
    const struct option options[] = {
        {"device", NULL, "sign in elsewhere, with a code that is printed", NULL, &device},
        {"config", "FILE", "the gateway's configuration, when it is here", &config, NULL},
    };
    const struct command command = {
        .usage = "taskgate login [--device] [--config FILE]",
        .synopsis = "Signs in at the identity provider of a running gateway, in a browser, and\n"
                    "keeps the token for the other commands until it is over.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct admin_client *client = admin_client_create();
    int code = client ? sign_in(client, config, device) : CLI_USAGE;
    admin_client_destroy(client);
    return code;
}

int cli_logout(int argc, char **argv)
{
    const struct command command = {
        .usage = "taskgate logout",
        .synopsis = "Forgets the token that taskgate login has kept for this gateway.",
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    if (!saved_token_forget(admin_client_url(client)))
        fputs("taskgate: you were not signed in\n", stderr);
    admin_client_destroy(client);
    return CLI_DONE;
}
