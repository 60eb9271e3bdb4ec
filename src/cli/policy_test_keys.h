/*
 * Between the readers of a file of cases: mappings along tables of keys.
 */
#pragma once

#include "policy_test.h"

/* The reader's place. */
struct reading {
    struct report report;
    struct test_file *file;
    const struct node *root;
    struct test_case *one; /* the case that is read */
};

/* A key of a mapping and the reader of its value; `path` is its full name. */
struct test_key {
    const char *name;
    bool is_required;
    void (*read)(struct reading *reading, const struct node *node, const char *path);
};

/* Reads a mapping, its keys in the order of the table. */
void test_keys_read(struct reading *reading, const struct node *node, const char *path,
                    const struct test_key *keys, size_t count);
/* The text of a single value, or NULL after a report. */
const char *test_text_of(struct reading *reading, const struct node *node, const char *path);
/* `"word" is not WHAT`, with the nearest of the words that are known. */
void test_refuse_word(struct reading *reading, const struct node *node, const char *path,
                      const char *what, const char **words, size_t count);

/* ---- policy_test_request.c, policy_test_expect.c ---- */
void test_read_request(struct reading *reading, const struct node *node, const char *path);
void test_read_expect(struct reading *reading, const struct node *node, const char *path);
