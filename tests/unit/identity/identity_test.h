/* The suites of the identity layer and what they share: one issuer with a key of each kind. */
#pragma once

#include <check.h>

#include "signer.h"
#include "taskgate/identity/token.h"

#define ISSUER "https://issuer.example"
#define AUDIENCE "https://gate.example/mcp"
#define NOW_MS INT64_C(1800000000000)
/* The claims of every good token; a test puts more behind them. */
#define CLAIMS                                                                                     \
    "\"iss\":\"" ISSUER "\",\"aud\":\"" AUDIENCE "\",\"sub\":\"alice\",\"exp\":1800000300"

Suite *base64url_suite(void);
Suite *bearer_suite(void);
Suite *claims_suite(void);
Suite *exchange_suite(void);
Suite *issuer_suite(void);
Suite *key_set_suite(void);
Suite *token_cache_suite(void);
Suite *token_suite(void);

extern struct token_rules rules; /* for a token with CLAIMS, leeway 60 s; as new for each test */

/* ES256 under the key id "k". */
extern struct signer *signer;
extern struct key_set *keys;
void scene_setup(void);
void scene_teardown(void);

/* A set of these keys as JSON; the caller unrefs. */
struct key_set *key_set_of(const char *document);
/* The error of a token with this header and these claims, signed by `signer`. On TOKEN_OK
 * `*identity` is the caller's; elsewhere NULL. */
enum token_error verify_signed(const char *header, const char *claims, struct identity **identity);
/* The same of claims alone, with a good header. */
enum token_error verify_claims(const char *claims, struct identity **identity);
/* Of a whole token, in memory without a byte to spare. */
enum token_error verify_text(struct str token, struct identity **identity);

#define expect_refused(expected, actual)                                                           \
    do {                                                                                           \
        enum token_error error_ = (actual);                                                        \
        ck_assert_msg(error_ == (expected), "got %s, want %s", token_error_name(error_),           \
                      token_error_name(expected));                                                 \
    } while (0)
