/* RFC 8628: asks again and again, as fast as the issuer allows. */
#include "login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"

#define INTERVAL_S 5   /* when the issuer names none */
#define SLOWER_S 5     /* added at each "slow_down" */
#define LONGEST_S 1800 /* the limit, even if the issuer allows more */
#define GRANT "urn:ietf:params:oauth:grant-type:device_code"

struct device {
    char *code;
    int64_t interval_s, until_ms;
};

static int64_t login_device_read_seconds(const struct buffer *body, const char *name,
                                         int64_t otherwise)
{
    struct str value = json_member(buffer_str(body), name);
    uint64_t seconds;
    bool is_number = json_type(value) == JSON_NUMBER && str_to_u64(value, &seconds);
    return is_number && seconds > 0 && seconds <= LONGEST_S ? (int64_t)seconds : otherwise;
}

/* To stderr, so that stdout stays free for scripts. */
static bool login_device_show(const struct buffer *body, struct error *error)
{
    char *address = issuer_client_member(body, "verification_uri");
    char *complete = issuer_client_member(body, "verification_uri_complete");
    char *code = issuer_client_member(body, "user_code");
    bool can_be_shown = address && code;
    if (can_be_shown) {
        struct buffer text;
        buffer_init(&text);
        buffer_append_text(&text, "Open ");
        visible_append(&text, str_from(complete ? complete : address));
        buffer_append_text(&text, " in any browser, and enter the code ");
        visible_append(&text, str_from(code));
        fprintf(stderr, "%.*s\n", STR_ARGS(buffer_str(&text)));
        buffer_finish(&text);
    } else {
        error_set(error, "the issuer has given no code to enter");
    }
    free(code);
    free(complete);
    free(address);
    return can_be_shown;
}

static bool login_device_begin(const struct issuer_client *client, struct device *device,
                               struct error *error)
{
    struct buffer form, body;
    buffer_init(&form);
    buffer_init(&body);
    issuer_client_add(&form, "scope", client->scope);
    long status = issuer_client_post(client, client->device_authorization, &form, &body, error);
    device->code = status == 200 ? issuer_client_member(&body, "device_code") : NULL;
    device->interval_s = login_device_read_seconds(&body, "interval", INTERVAL_S);
    device->until_ms =
        clock_monotonic_ms() + 1000 * login_device_read_seconds(&body, "expires_in", LONGEST_S);
    bool begun = status != 0 &&
                 (device->code ? login_device_show(&body, error)
                               : error_set(error, "the issuer refused with HTTP %ld", status));
    buffer_finish(&form);
    buffer_finish(&body);
    return begun;
}

static void wait_seconds(int64_t seconds)
{
    struct timespec left = {.tv_sec = seconds};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Whether it is to be asked again after this answer. */
static bool goes_on(struct device *device, const struct buffer *body, struct error *error)
{
    char *code = issuer_client_member(body, "error");
    bool is_slower = code && strcmp(code, "slow_down") == 0;
    bool again = is_slower || (code && strcmp(code, "authorization_pending") == 0);
    if (is_slower)
        device->interval_s += SLOWER_S;
    if (!again && code && strcmp(code, "access_denied") == 0)
        error_set(error, "the sign-in was refused");
    else if (!again && code && strcmp(code, "expired_token") == 0)
        error_set(error, "nobody has entered the code in time");
    else if (!again)
        error_set(error, "the issuer has refused the sign-in");
    free(code);
    return again;
}

static char *poll_once(const struct issuer_client *client, struct device *device, bool *again,
                       struct error *error)
{
    struct buffer form, body;
    char *token = NULL;
    buffer_init(&form);
    buffer_init(&body);
    issuer_client_add(&form, "grant_type", GRANT);
    issuer_client_add(&form, "device_code", device->code);
    long status = issuer_client_post(client, client->token, &form, &body, error);
    if (status == 200)
        token = issuer_client_member(&body, "id_token");
    if (status == 200 && !token)
        error_set(error, "the issuer has given no ID token; is openid among the scopes?");
    *again = status != 0 && status != 200 && goes_on(device, &body, error);
    explicit_bzero(body.bytes, body.length);
    buffer_finish(&form);
    buffer_finish(&body);
    return token;
}

char *login_by_device(const struct issuer_client *client, struct error *error)
{
    struct device device = {0};
    char *token = NULL;
    bool again = login_device_begin(client, &device, error);
    while (again && !token) {
        if (clock_monotonic_ms() > device.until_ms) {
            error_set(error, "nobody has entered the code in time");
            break;
        }
        wait_seconds(device.interval_s);
        token = poll_once(client, &device, &again, error);
    }
    free(device.code);
    return token;
}
