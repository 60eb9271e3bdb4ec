/* params.task: how long a client wants its task kept. */
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"

/* A literal without fraction or exponent that is above 0. JSON allows no leading zeros, so a
 * first digit of 0 is 0. */
static bool is_positive_integer(struct str number)
{
    for (size_t i = 0; i < number.length; i++) {
        if (number.bytes[i] < '0' || number.bytes[i] > '9')
            return false;
    }
    return number.length > 0 && number.bytes[0] != '0';
}

enum dialect_ttl dialect_read_ttl(struct str task, int64_t default_ms, int64_t max_ms,
                                  int64_t *ttl_ms)
{
    if (json_type(task) != JSON_OBJECT)
        return DIALECT_TTL_INVALID;
    struct str ttl = json_member(task, "ttl");
    if (ttl.length == 0) {
        *ttl_ms = default_ms;
        return DIALECT_TTL_OK;
    }
    if (!is_positive_integer(ttl))
        return DIALECT_TTL_INVALID;
    uint64_t asked; /* a literal beyond 64 bits is above any maximum */
    if (!str_to_u64(ttl, &asked) || asked > (uint64_t)max_ms) {
        *ttl_ms = max_ms;
        return DIALECT_TTL_CLAMPED;
    }
    *ttl_ms = (int64_t)asked;
    return DIALECT_TTL_OK;
}
