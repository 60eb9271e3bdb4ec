/*
 * Measures first verifications of tokens, by algorithm; prints one JSON object with verifications
 * a second of one core's time, whoever else uses the core.
 *
 *     bench_tokens [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "signer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/token.h"

#define CLAIMS                                                                                     \
    "{\"iss\":\"https://issuer.example\",\"aud\":\"https://gate.example/mcp\",\"sub\":"            \
    "\"3f2c5c0e-9d55-4b0d-8d7a-7b8f3f0f4a11\",\"exp\":4102444800,\"iat\":1800000000,"              \
    "\"jti\":\"0b8e1d8e-31a1-4f0c-8a5c-55d0a2f5a2b6\",\"client_id\":\"agent\","                    \
    "\"scope\":\"mcp:read mcp:write\",\"groups\":[\"payments\",\"dba\",\"engineering\"]}"

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double measure(const char *algorithm, double seconds)
{
    struct signer *signer = signer_create(algorithm, "k");
    struct buffer set = {0}, token = {0};
    struct error error = {0};
    buffer_append_text(&set, "{\"keys\":[");
    signer_write_jwk(signer, "", &set);
    buffer_append_text(&set, "]}");
    char *header = memory_format("{\"alg\":\"%s\",\"kid\":\"k\",\"typ\":\"at+jwt\"}", algorithm);
    signer_write_token(signer, algorithm, str_from(header), STR(CLAIMS), &token);
    struct key_set *keys = key_set_parse(buffer_str(&set), &error);
    struct token_rules rules = {.issuer = "https://issuer.example",
                                .audience = "https://gate.example/mcp"};
    double start = cpu_seconds(), now = start, count = 0;
    while (now - start < seconds) {
        struct identity *identity = NULL;
        enum token_error refusal =
            token_verify(buffer_str(&token), keys, &rules, clock_now_ms(), &identity);
        if (refusal != TOKEN_OK) {
            fprintf(stderr, "%s: %s\n", algorithm, token_error_name(refusal));
            exit(EXIT_FAILURE);
        }
        identity_unref(identity);
        count++;
        now = cpu_seconds();
    }
    key_set_unref(keys);
    free(header);
    buffer_finish(&set);
    buffer_finish(&token);
    signer_destroy(signer);
    return count / (now - start);
}

int main(int count, char **arguments)
{
    static const char *const algorithms[] = {"ES256", "ES384", "EdDSA", "RS256", "PS256"};
    double seconds = count > 1 ? strtod(arguments[1], NULL) : 2;
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        printf("%s\"%s\": %.0f", i ? ", " : "{", algorithms[i], measure(algorithms[i], seconds));
    printf("}\n");
    return EXIT_SUCCESS;
}
