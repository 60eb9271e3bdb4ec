/* Mirrored headers against OpenSSL's base64: what is encoded comes back, and every payload that is
 * accepted is the only spelling of its text. */
#include "taskgate/mcp/mirrored_header.h"

#include <openssl/evp.h>
#include <string.h>

#include "fuzz.h"

static void check_way_back(struct str text)
{
    struct buffer value = {0}, room = {0};
    struct str again;
    mirrored_header_encode(text, &value);
    struct mirrored_header header = {buffer_str(&value), 1};
    FUZZ_EXPECT(mirrored_header_compare(&header, text) == MIRRORED_SAME);
    FUZZ_EXPECT(mirrored_header_decode(header.value, &room, &again) == str_is_utf8(text));
    buffer_finish(&value);
    buffer_finish(&room);
}

/* `payload` is refused, or what OpenSSL writes for its text. */
static void check_payload(struct str payload)
{
    struct buffer value = {0}, room = {0}, again = {0};
    struct str text;
    buffer_append(&value, STR("=?base64?"));
    buffer_append(&value, payload);
    buffer_append(&value, STR("?="));
    struct mirrored_header header = {buffer_str(&value), 1};
    if (mirrored_header_decode(header.value, &room, &text)) {
        FUZZ_EXPECT(mirrored_header_compare(&header, text) == MIRRORED_SAME);
        buffer_reserve(&again, text.length / 3 * 4 + 8);
        int length = EVP_EncodeBlock((unsigned char *)again.bytes,
                                     (const unsigned char *)text.bytes, (int)text.length);
        FUZZ_EXPECT(str_equal(str_slice(again.bytes, (size_t)length), payload));
    }
    buffer_finish(&value);
    buffer_finish(&room);
    buffer_finish(&again);
}

/* The first byte says where the input is cut into a header's value and a text of the body. */
static void check_pair(struct fuzz_input input)
{
    struct str value = fuzz_text(&input, fuzz_byte(&input)), text = fuzz_text(&input, 4096), own;
    struct buffer room = {0};
    struct mirrored_header header = {value, 1};
    enum mirrored_verdict verdict = mirrored_header_compare(&header, text);
    bool decoded = mirrored_header_decode(value, &room, &own);
    if (verdict == MIRRORED_SAME)
        FUZZ_EXPECT(str_equal(own, text) && decoded == str_is_utf8(text));
    else if (decoded)
        FUZZ_EXPECT(verdict == MIRRORED_DIFFERENT && !str_equal(own, text));
    buffer_finish(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    check_way_back(text);
    check_payload(text);
    check_pair((struct fuzz_input){data, size});
    return 0;
}
