/*
 * Shared by the fuzz targets: the entry point that libFuzzer calls, and the check that ends the
 * run. A target never trusts the code under test to judge itself: it compares with a second
 * reader, a model, or a way back.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer writes the input that led here to a file. */
#define FUZZ_EXPECT(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Input that is used up from the front, a byte at a time; 0 when there is no more. */
struct fuzz_input {
    const uint8_t *bytes;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->bytes++;
}

/* The rest, or up to `limit` bytes of it. */
static inline struct str fuzz_text(struct fuzz_input *input, size_t limit)
{
    struct str text = str_slice((const char *)input->bytes, limit);
    if (text.length > input->left)
        text.length = input->left;
    input->bytes += text.length;
    input->left -= text.length;
    return text;
}
