/* From the layer that verifies to the one that decides. */
#include "verified.h"

const struct policy_verified *verified_from(const struct identity *identity,
                                            struct policy_verified *verified)
{
    if (!identity)
        return NULL;
    *verified = (struct policy_verified){
        .issuer = str_from(identity->issuer),
        .subject = str_from(identity->subject),
        .groups = {identity->groups.items, identity->groups.count},
        .scopes = {identity->scopes.items, identity->scopes.count},
    };
    return verified;
}
