/* taskgate health: a probe for containers, in which there is nothing else to ask with. */
#include "taskgate/cli/cli.h"

#include <stdio.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/str.h"
#include "taskgate/upstream/curl_library.h"

#include "local_gateway.h"
#include "options.h"
#include "terminal.h"

#define DEFAULT_URL "http://127.0.0.1:7469"
#define TIMEOUT_S 5L

static size_t discard(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

/* No secret is sent, and the name of a certificate is seldom that of the loopback address: the
 * certificate is not checked. */
static int health_ask(const char *url)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK)
        fprintf(stderr, "taskgate: %s: %s\n", url, curl_easy_strerror(result));
    else if (status != 200)
        fprintf(stderr, "taskgate: %s: HTTP %ld\n", url, status);
    curl_easy_cleanup(curl);
    return result == CURLE_OK && status == 200 ? CLI_DONE : CLI_FAILURE;
}

int cli_health(int argc, char **argv)
{
    bool ready = false;
    const char *path = NULL, *given = NULL;
    const struct option options[] = {
        {"ready", NULL, "ask whether it is ready for calls, not only alive", .flag = &ready},
        {"config", "FILE", "the configuration; by default one of the usual places", &path},
    };
    const struct command command = {
        .usage = "taskgate health [--ready] [URL] [--config FILE]",
        .synopsis =
            "Asks a running gateway whether it is alive, and exits with 0 or 1. Without URL:\n"
            "the admin port of the configuration.",
        COMMAND_OPTIONS(options),
        .operands_max = 1,
        .operand_name = "URL",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &given);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct error error = {""};
    if (!curl_library_load(&error)) {
        options_complain("%s", error.message);
        return CLI_FAILURE;
    }
    struct local_gateway local = {0};
    if (!given)
        local_gateway_find(&local, path);
    const char *base = given ? given : local.url ? local.url : DEFAULT_URL;
    struct str trimmed = str_from(base);
    while (str_ends_with(trimmed, STR("/")))
        trimmed.length--;
    OWNED char *url = memory_format("%.*s/%s", STR_ARGS(trimmed), ready ? "ready" : "health");
    int code = health_ask(url);
    local_gateway_finish(&local);
    return code;
}

/* ---- taskgate page ---- */

static int page_show(const struct local_gateway *local)
{
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%s/", local->url);
    if (local->token)
        buffer_append_format(&text, "#token=%s", local->token);
    buffer_append_char(&text, '\n');
    return terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
}

int cli_page(int argc, char **argv)
{
    const char *path = NULL;
    const struct option options[] = {
        {"config", "FILE", "the configuration; by default one of the usual places", &path},
    };
    const struct command command = {
        .usage = "taskgate page [--config FILE]",
        .synopsis =
            "Prints the address of the operators' page of the gateway on this machine, with the\n"
            "token that it made. Where operators have tokens of their own the address is bare.",
        COMMAND_OPTIONS(options),
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
