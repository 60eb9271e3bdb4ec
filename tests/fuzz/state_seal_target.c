/* Sealed texts: what is sealed opens, and nothing else does; an opened text is the one that would
 * be written. */
#include "taskgate/core/state_seal.h"

#include "fuzz.h"

#define PREFIX STR("tg1.")

/* Its nonce and its tag cannot be guessed, so the text itself is changed. */
static void check_changed(const struct state_keys *keys, struct buffer *sealed,
                          struct fuzz_input *input)
{
    struct buffer payload = {0};
    size_t place = ((size_t)fuzz_byte(input) << 8 | fuzz_byte(input)) % sealed->length;
    char kept = sealed->bytes[place];
    sealed->bytes[place] = (char)fuzz_byte(input);
    if (sealed->bytes[place] != kept)
        FUZZ_EXPECT(!state_unseal(keys, PREFIX, STR("bound"), buffer_str(sealed), &payload));
    sealed->bytes[place] = kept;
    buffer_finish(&payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state_keys keys = {.keys = {{1}, {2}}, .count = 2}, other = {.keys = {{3}}, .count = 1};
    struct str text = str_slice((const char *)data, size);
    struct fuzz_input input = {data, size};
    struct buffer sealed = {0}, payload = {0}, wrapped = {0};
    struct error error;
    buffer_append(&wrapped, PREFIX);
    buffer_append(&wrapped, text);
    FUZZ_EXPECT(!state_unseal(&keys, PREFIX, STR("bound"), text, &payload));
    FUZZ_EXPECT(!state_unseal(&keys, PREFIX, STR("bound"), buffer_str(&wrapped), &payload));
    state_keys_read(&other, text, &error);
    if (state_seal(&keys, PREFIX, STR("bound"), text, &sealed)) {
        FUZZ_EXPECT(sealed.length <= STATE_MOST_BYTES);
        check_changed(&keys, &sealed, &input);
        FUZZ_EXPECT(state_unseal(&keys, PREFIX, STR("bound"), buffer_str(&sealed), &payload));
        FUZZ_EXPECT(str_equal(buffer_str(&payload), text));
    }
    buffer_finish(&sealed);
    buffer_finish(&payload);
    buffer_finish(&wrapped);
    return 0;
}
