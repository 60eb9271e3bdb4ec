/* Reads the files of policy commands as a whole; mistakes go to stderr. */
#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"

#include "options.h"

bool policy_files_read(const char *path, struct buffer *text)
{
    char chunk[65536];
    FILE *file = fopen(path, "rbe");
    int failure = file ? 0 : errno;
    for (size_t count; file && (count = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buffer_append(text, str_slice(chunk, count));
    if (file && ferror(file))
        failure = errno; /* a folder can be opened, but not read */
    if (file)
        fclose(file);
    if (failure)
        options_complain("%s cannot be read: %s", path, strerror(failure));
    return failure == 0;
}

/* A name in the file may hold anything; the lines stay lines. */
void policy_files_complain(const struct buffer *problems)
{
    struct str rest = buffer_str(problems), line;
    OWNED_BUFFER(safe);
    while (rest.length) {
        str_cut(rest, '\n', &line, &rest);
        visible_append(&safe, line);
        buffer_append_char(&safe, '\n');
    }
    fwrite(safe.bytes ? safe.bytes : "", 1, safe.length, stderr);
}

/* One of the engine's readers; its product goes to `result`. */
typedef void reader(const struct cedar_source *source, struct buffer *problems, void *result);

static void read_by(reader *read, const char *path, void *result)
{
    OWNED_BUFFER(text);
    OWNED_BUFFER(problems);
    if (policy_files_read(path, &text)) {
        struct cedar_source source = {.name = path, .text = buffer_str(&text)};
        read(&source, &problems, result);
        policy_files_complain(&problems);
    }
}

static void policy_files_read_policies(const struct cedar_source *source, struct buffer *problems,
                                       void *result)
{
    *(struct cedar_policies **)result = cedar_policies_parse(source, 1, problems);
}

static void read_entities(const struct cedar_source *source, struct buffer *problems, void *result)
{
    *(struct cedar_entities **)result = cedar_entities_parse(source, problems);
}

static void read_requests(const struct cedar_source *source, struct buffer *problems, void *result)
{
    *(struct cedar_requests **)result = cedar_requests_parse(source, problems);
}

struct cedar_policies *policy_files_policies(const char *path)
{
    struct cedar_policies *policies = NULL;
    read_by(policy_files_read_policies, path, &policies);
    return policies;
}

struct cedar_entities *policy_files_entities(const char *path)
{
    struct cedar_entities *entities = NULL;
    read_by(read_entities, path, &entities);
    return entities;
}

struct cedar_requests *policy_files_requests(const char *path)
{
    struct cedar_requests *requests = NULL;
    read_by(read_requests, path, &requests);
    return requests;
}
