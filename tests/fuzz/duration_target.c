/* Durations: a read duration is never negative, and is equal after writing and reading again. */
#include "fuzz.h"
#include "taskgate/config/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    int64_t ms = -1, again = -1;
    char text[64];
    if (!duration_parse(str_slice((const char *)data, size), &ms, &error)) {
        FUZZ_EXPECT(error.message[0]);
        return 0;
    }
    FUZZ_EXPECT(ms >= 0);
    duration_format(ms, text);
    FUZZ_EXPECT(duration_parse(str_from(text), &again, &error));
    FUZZ_EXPECT(again == ms);
    return 0;
}
