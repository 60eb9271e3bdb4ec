/* From a connection's certificate to its person. */
#include "client_certificate.h"

bool client_certificate_suffices(const struct http_exchange *exchange, const struct config *config)
{
    return !config->admin_tls.client_ca || http_client_certificate(exchange).bytes != NULL;
}

struct operator_identity *client_certificate_find(const struct http_exchange *exchange,
                                                  const struct config *config)
{
    struct str subject = http_client_certificate(exchange);
    if (!subject.bytes)
        return NULL;
    return operator_of_certificate(config, subject, http_client_certificate_until_ms(exchange));
}
