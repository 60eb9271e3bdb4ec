/* taskgate version: what this program is, and the libraries that it has loaded. */
#include "taskgate/cli/cli.h"

#include <cjose/cjose.h>
#include <h2o/version.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdio.h>
#include <yaml.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/store/postgres_library.h"
#include "taskgate/upstream/curl_library.h"

#include "options.h"
#include "terminal.h"
#include "version_commit.h"

#if defined __x86_64__
#define ARCH "amd64"
#elif defined __aarch64__
#define ARCH "arm64"
#else
#define ARCH "other"
#endif
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "GCC " __VERSION__
#endif

enum {
    VERSION_BYTES = 32,
    COMMIT_CHARACTERS = 40 /* a build outside a repository has another word */
};

/* libcurl and libpq are loaded when they are first needed, and may not be there. */
static const char *curl_loaded(void)
{
    struct error error = {""};
    return curl_library_load(&error) ? curl_version_info(CURLVERSION_NOW)->version : NULL;
}

/* 150008 is 15.8 */
static const char *libpq_loaded(char text[VERSION_BYTES])
{
    struct error error = {""};
    if (!postgres_library_load(&error))
        return NULL;
    int number = PQlibVersion();
    snprintf(text, VERSION_BYTES, "%d.%d", number / 10000, number % 10000);
    return text;
}

struct part {
    const char *name, *version; /* NULL: it cannot be loaded */
};

static void version_append_json(struct buffer *out, const struct part *parts, size_t count)
{
    const char *commit = sizeof VERSION_COMMIT - 1 == COMMIT_CHARACTERS ? VERSION_COMMIT : NULL;
    buffer_append_char(out, '{');
    json_add_text(out, "version", TASKGATE_VERSION);
    json_add_text_or_null(out, "commit", commit);
    json_add_text(out, "arch", ARCH);
    json_add_text(out, "compiler", COMPILER);
    json_add_key(out, "libraries");
    buffer_append_char(out, '{');
    for (size_t i = 0; i < count; i++)
        json_add_text_or_null(out, parts[i].name, parts[i].version);
    buffer_append_text(out, "}}\n");
}

static int version_show(bool json)
{
    char libpq[VERSION_BYTES];
    const struct part parts[] = {
        {"h2o", H2O_VERSION}, /* it has no function that says so */
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"sqlite", sqlite3_libversion()},
        {"libpq", libpq_loaded(libpq)},
        {"libcurl", curl_loaded()},
        {"cjose", cjose_version()},
        {"libyaml", yaml_get_version_string()},
    };
    OWNED_BUFFER(text);
    if (json)
        version_append_json(&text, parts, sizeof parts / sizeof *parts);
    else
        buffer_append_text(&text, "taskgate " TASKGATE_VERSION "\n");
    return terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
}

int cli_version(int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", NULL, "print JSON", .flag = &json}};
    const struct command command = {
        .usage = "taskgate version [--json]",
        .synopsis =
            "Prints the version; with --json also the commit, the architecture, the compiler, and\n"
            "the versions of the libraries that are loaded.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    return outcome == OPTIONS_READ ? version_show(json) : options_exit_code(outcome);
}
