/* The loopback redirect of RFC 8252, with PKCE, state and `iss`. The token is the
 * gateway's to verify. */
#include "login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#include "loopback.h"

#define SECRET_BYTES 65

static void make_secret(char text[SECRET_BYTES])
{
    unsigned char bytes[(SECRET_BYTES - 1) / 2];
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static char *login_browser_write_address(const struct issuer_client *client, const char *redirect,
                                         const char *state, const char *verifier)
{
    char challenge[DIGEST_BASE64URL_BYTES];
    struct buffer query;
    buffer_init(&query);
    digest_sha256_base64url(str_from(verifier), challenge);
    issuer_client_add(&query, "response_type", "code");
    issuer_client_add(&query, "client_id", client->client_id);
    issuer_client_add(&query, "redirect_uri", redirect);
    issuer_client_add(&query, "scope", client->scope);
    issuer_client_add(&query, "state", state);
    issuer_client_add(&query, "code_challenge", challenge);
    issuer_client_add(&query, "code_challenge_method", "S256");
    char *address =
        memory_format("%s%c%.*s", client->authorization,
                      strchr(client->authorization, '?') ? '&' : '?', STR_ARGS(buffer_str(&query)));
    buffer_finish(&query);
    return address;
}

/* The tokens and secrets of the gateway's are no business of a browser. */
static void forget_variables(void)
{
    static const char *const ours[] = {"TASKGATE_", "THOUGHTGATE_"};
    for (char **entry = environ; *entry;) {
        size_t i = 0;
        while (i < sizeof ours / sizeof *ours && strncmp(*entry, ours[i], strlen(ours[i])) != 0)
            i++;
        char *name = memory_copy_str(str_slice(*entry, strcspn(*entry, "=")));
        bool is_gone = i < sizeof ours / sizeof *ours && unsetenv(name) == 0;
        free(name);
        entry = is_gone ? environ : entry + 1;
    }
}

/* $BROWSER, else what the desktop has; without either the address that is printed must do. */
static void open_browser(const char *address)
{
    const char *browser = getenv("BROWSER");
    bool has_desktop = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (!browser || !*browser)
        browser = has_desktop ? "xdg-open" : NULL;
    pid_t child = browser ? fork() : -1;
    if (child == 0) {
        if (fork() != 0) /* its own parent waits for nothing */
            _exit(0);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        forget_variables();
        execlp(browser, browser, address, (char *)NULL);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static char *login_browser_redeem(const struct issuer_client *client, const char *code,
                                  const char *redirect, const char *verifier, struct error *error)
{
    struct buffer form, body;
    char *token = NULL;
    buffer_init(&form);
    buffer_init(&body);
    issuer_client_add(&form, "grant_type", "authorization_code");
    issuer_client_add(&form, "code", code);
    issuer_client_add(&form, "redirect_uri", redirect);
    issuer_client_add(&form, "code_verifier", verifier);
    long status = issuer_client_post(client, client->token, &form, &body, error);
    if (status == 200)
        token = issuer_client_member(&body, "id_token");
    if (status == 200 && !token)
        error_set(error, "the issuer has given no ID token; is openid among the scopes?");
    else if (status != 0 && status != 200)
        error_set(error, "the issuer has refused the code with HTTP %ld", status);
    if (body.length > 0)
        explicit_bzero(body.bytes, body.length);
    buffer_finish(&form);
    buffer_finish(&body);
    return token;
}

char *login_by_browser(const struct issuer_client *client, struct error *error)
{
    char state[SECRET_BYTES], verifier[SECRET_BYTES], *token = NULL;
    struct loopback loopback;
    if (!client->authorization) {
        error_set(error, "%s has no authorization endpoint", client->issuer);
        return NULL;
    }
    if (!loopback_open(&loopback, error))
        return NULL;
    make_secret(state);
    make_secret(verifier);
    char *address = login_browser_write_address(client, loopback.address, state, verifier);
    fprintf(stderr, "Open %s\n", address);
    open_browser(address);
    const struct loopback_wanted wanted = {state, client->issuer, client->names_itself};
    char *code = loopback_wait(&loopback, &wanted, error);
    if (code)
        token = login_browser_redeem(client, code, loopback.address, verifier, error);
    loopback_close(&loopback);
    free(code);
    free(address);
    return token;
}
