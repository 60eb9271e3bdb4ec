/*
 * The files of the skills that servers define, by the digest of each definition
 * (mcp/definition.h), so that a file's content can be compared with what was accepted. Of each
 * source SKILL_FILES_MOST are known; beyond them the content of a file is of none. Any thread.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

#define SKILL_FILES_MOST 20000
/* Reads whose URIs are known, and the longest of these. */
#define SKILL_READS_MOST 4096
#define SKILL_READ_URI_BYTES 2048
/* Larger files cannot be compared. */
#define SKILL_FILE_BYTES ((int64_t)16 * 1024 * 1024)

struct skill_files;
struct skill_files *skill_files_create(void);
void skill_files_destroy(struct skill_files *files); /* NULL is allowed */

/* A definition that the server gives now: the entry of a list, checked JSON. */
struct skill_entry {
    struct str source, name;
    const char *digest;
    struct str raw;
};
void skill_files_put(struct skill_files *files, const struct skill_entry *entry);

enum skill_file {
    SKILL_FILE_FREE,    /* of no skill, or of one whose files no definition names */
    SKILL_FILE_FITS,    /* the content is that of an accepted definition */
    SKILL_FILE_MISFITS, /* it is another one, or nothing is accepted that names the file */
};
/* Spellings of a URI that are equivalent are one. A `skill:` URI that is not known misfits. */
enum skill_file skill_files_judge(struct skill_files *files, struct str source, struct str uri,
                                  struct str content);
/* The URIs that clients have asked for last, by the request: its client's key and its id as it is
 * written. An answer may come on another exchange than the request's. A later request takes the
 * place of an earlier one, sooner or later. */
struct skill_read {
    struct str client, id;
};
void skill_files_note_read(struct skill_files *files, const struct skill_read *read,
                           struct str uri);
/* Appends what it asked for. false: it is not known. */
bool skill_files_find_read(struct skill_files *files, const struct skill_read *read,
                           struct buffer *uri);
/* Whether the content of this URI is to be compared. */
bool skill_files_has(struct skill_files *files, struct str source, struct str uri);
