/* Records (RFC 8446 §5.1) and the messages in them (§4), by their heads alone. */
#include "taskgate/tls/bound.h"

#include "taskgate/core/assert.h"

enum { RECORD_CHANGE_CIPHER_SPEC = 20, RECORD_HANDSHAKE = 22 };

static void take_record_byte(struct tls_bound *bound, unsigned char byte, bool is_1_2)
{
    bound->record[bound->record_have++] = byte;
    if (bound->record_have < sizeof bound->record)
        return;
    bound->record_have = 0;
    bound->record_left = (size_t)bound->record[3] << 8 | bound->record[4];
    bound->is_over = is_1_2 && bound->record[0] == RECORD_CHANGE_CIPHER_SPEC;
}

static bool take_message_byte(struct tls_bound *bound, unsigned char byte)
{
    if (bound->message_left > 0) {
        bound->message_left--;
        return true;
    }
    ASSERT_NUMBERS(bound->message_have, <, sizeof bound->message);
    bound->message[bound->message_have++] = byte;
    if (bound->message_have < sizeof bound->message)
        return true;
    bound->message_have = 0;
    bound->message_left =
        (size_t)bound->message[1] << 16 | (size_t)bound->message[2] << 8 | bound->message[3];
    return bound->message_left <= TLS_BOUND_BYTES;
}

bool tls_bound_take(struct tls_bound *bound, struct str bytes, bool is_1_2)
{
    for (size_t i = 0; i < bytes.length && !bound->is_over; i++) {
        unsigned char byte = (unsigned char)bytes.bytes[i];
        if (bound->record_left == 0) {
            take_record_byte(bound, byte, is_1_2);
            continue;
        }
        bound->record_left--;
        if (bound->record[0] == RECORD_HANDSHAKE && !take_message_byte(bound, byte))
            return false;
    }
    return true;
}
