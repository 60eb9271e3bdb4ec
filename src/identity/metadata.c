/* Reading an issuer's metadata. */
#include "taskgate/identity/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

static const struct {
    const char *name;
    size_t offset;
} urls[] = {
#define URL(name, member)                                                                          \
    {                                                                                              \
        name, offsetof(struct issuer_metadata, member)                                             \
    }
    URL("jwks_uri", jwks_url),
    URL("authorization_endpoint", authorization_endpoint),
    URL("token_endpoint", token_endpoint),
    URL("device_authorization_endpoint", device_authorization_endpoint),
    URL("userinfo_endpoint", userinfo_endpoint),
    URL("end_session_endpoint", end_session_endpoint),
#undef URL
};
#define URL_COUNT (sizeof urls / sizeof *urls)

static char **url_at(struct issuer_metadata *metadata, size_t index)
{
    return (char **)(void *)((char *)metadata + urls[index].offset);
}

/* An issuer elsewhere does not send this process to the services of its own machine. */
static bool metadata_is_allowed(const char *url, const char *issuer)
{
    return secure_url_check(str_from(url), NULL) &&
           (!secure_url_is_plain(str_from(url)) || secure_url_is_plain(str_from(issuer)));
}

static void read_urls(struct issuer_metadata *metadata, struct str document, const char *issuer)
{
    for (size_t i = 0; i < URL_COUNT; i++) {
        char *url = json_plain_text(json_member(document, urls[i].name));
        if (url && metadata_is_allowed(url, issuer))
            *url_at(metadata, i) = url;
        else
            free(url);
    }
}

struct issuer_metadata *issuer_metadata_parse(struct str document, const char *issuer,
                                              struct error *error)
{
    if (!json_check(document, error) || json_type(document) != JSON_OBJECT) {
        error_set(error, "the metadata is no JSON object");
        return NULL;
    }
    if (!json_string_equals(json_member(document, "issuer"), str_from(issuer))) {
        error_set(error, "the metadata is that of another issuer");
        return NULL;
    }
    struct issuer_metadata *metadata = memory_alloc(sizeof(*metadata));
    metadata->references = 1;
    read_urls(metadata, document, issuer);
    struct str methods = json_member(document, "token_endpoint_auth_methods_supported");
    metadata->secret_in_body = json_has_text(methods, STR("client_secret_post")) &&
                               !json_has_text(methods, STR("client_secret_basic"));
    metadata->names_itself =
        json_type(json_member(document, "authorization_response_iss_parameter_supported")) ==
        JSON_TRUE;
    metadata->has_s256 =
        json_has_text(json_member(document, "code_challenge_methods_supported"), STR("S256"));
    return metadata;
}

struct issuer_metadata *issuer_metadata_ref(struct issuer_metadata *metadata)
{
    __atomic_fetch_add(&metadata->references, 1, __ATOMIC_RELAXED);
    return metadata;
}

void issuer_metadata_unref(struct issuer_metadata *metadata)
{
    if (!metadata)
        return;
    unsigned before = __atomic_fetch_sub(&metadata->references, 1, __ATOMIC_ACQ_REL);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    for (size_t i = 0; i < URL_COUNT; i++)
        free(*url_at(metadata, i));
    free(metadata);
}

char *issuer_metadata_url(const char *issuer, unsigned place)
{
    static const char oauth[] = "/.well-known/oauth-authorization-server",
                      openid[] = "/.well-known/openid-configuration";
    const char *host = strstr(issuer, "://"), *path;
    path = strchr(host ? host + 3 : issuer, '/');
    size_t length = strlen(issuer), root = path ? (size_t)(path - issuer) : length;
    while (length > root && issuer[length - 1] == '/')
        length--; /* RFC 8414 §3.1: "any terminating / must be removed" */
    int path_length = (int)(length - root);
    if (place == 2)
        return memory_format("%.*s%s", (int)length, issuer, openid);
    if (place == 1 && path_length == 0)
        return NULL;
    return memory_format("%.*s%s%.*s", (int)root, issuer, place == 0 ? oauth : openid, path_length,
                         issuer + root);
}
