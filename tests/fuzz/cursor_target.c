/* Cursors: an accepted cursor equals, byte for byte, one that the gateway would write. */
#include "methods/cursor.h"

#include <openssl/evp.h>

#include "fuzz.h"
#include "taskgate/json/text.h"

static void check_accepted(const struct cursor *cursor, struct str text)
{
    struct buffer written;
    buffer_init(&written);
    cursor_write(cursor, &written);
    FUZZ_EXPECT(written.length == text.length + 2);
    FUZZ_EXPECT(str_equal(str_slice(written.bytes + 1, text.length), text));
    buffer_finish(&written);
}

/* Every cursor that the gateway can make comes back as it was. */
static void check_way_back(struct fuzz_input input)
{
    struct cursor cursor, again;
    struct buffer written;
    cursor_init(&cursor);
    cursor_init(&again);
    buffer_init(&written);
    cursor.upstream = fuzz_byte(&input) & 1;
    for (size_t i = 0; i < 8; i++)
        cursor.skip = cursor.skip << 8 | fuzz_byte(&input);
    cursor.sequence = (int64_t)(cursor.skip >> 1);
    if (cursor.sequence == 0)
        cursor.sequence = INT64_MAX;
    if (cursor.upstream && input.left)
        buffer_append_json_string(&cursor.wrapped, fuzz_text(&input, 512));
    cursor_write(&cursor, &written);
    FUZZ_EXPECT(cursor_read(&again, str_slice(written.bytes + 1, written.length - 2)));
    FUZZ_EXPECT(again.upstream == cursor.upstream);
    if (cursor.upstream) {
        FUZZ_EXPECT(again.skip == cursor.skip);
        FUZZ_EXPECT(str_equal(buffer_str(&again.wrapped), buffer_str(&cursor.wrapped)));
    } else {
        FUZZ_EXPECT(again.sequence == cursor.sequence);
    }
    cursor_finish(&cursor);
    cursor_finish(&again);
    buffer_finish(&written);
}

static void try_read(struct str text)
{
    struct cursor cursor;
    cursor_init(&cursor);
    if (cursor_read(&cursor, text))
        check_accepted(&cursor, text);
    cursor_finish(&cursor);
}

/* The input as a forger would wrap it: no fuzzer finds its way through base64. */
static void try_wrapped(struct str text)
{
    struct buffer wrapped;
    buffer_init(&wrapped);
    buffer_reserve(&wrapped, text.length * 2 + 8);
    int length = EVP_EncodeBlock((unsigned char *)wrapped.bytes, (const unsigned char *)text.bytes,
                                 (int)text.length);
    try_read(str_slice(wrapped.bytes, (size_t)length));
    buffer_finish(&wrapped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    try_read(text);
    try_wrapped(text);
    check_way_back((struct fuzz_input){data, size});
    return 0;
}
