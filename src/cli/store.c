/* taskgate store: work on the database itself, without a running gateway. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/maintenance.h"
#include "taskgate/store/site.h"

#include "audit_source.h"
#include "judgement.h"
#include "options.h"
#include "store_place.h"
#include "subcommands.h"

static int exit_code(enum store_work work, const struct error *error)
{
    if (work == STORE_WORK_DONE)
        return CLI_DONE;
    options_complain("%s", error->message);
    return work == STORE_WORK_CONFLICT ? CLI_CONFLICT : CLI_FAILURE;
}

/* ---- the store of the configuration ---- */

/* THOUGHTGATE_STORE_URL names it without a file, too. NULL after a word on stderr. */
static char *configured_place(const char *path)
{
    const char *url = getenv("THOUGHTGATE_STORE_URL");
    if (!path && url && *url)
        return memory_copy_text(url);
    struct snapshot *snapshot = judgement_load(path, NULL);
    if (!snapshot)
        return NULL;
    const struct config *config = snapshot->config;
    char *place = memory_copy_text(config->store_url ? config->store_url : config->store_path);
    snapshot_unref(snapshot);
    return place;
}

static int print_migration(const struct store_site *site, const char *grant_to)
{
    struct error error = {""};
    OWNED char *sql = store_migration(site, grant_to, &error);
    if (!sql)
        return exit_code(STORE_WORK_FAILED, &error);
    fputs(sql, stdout);
    return CLI_DONE;
}

static int store_migrate_site(const struct store_site *site, const char *grant_to)
{
    struct error error = {""};
    int code = exit_code(store_migrate(site, grant_to, &error), &error);
    if (code == CLI_DONE)
        puts("The schema is that of this version.");
    if (code == CLI_DONE && grant_to)
        printf("The role %s may use it.\n", grant_to);
    return code;
}

static int run_migrate(int argc, char **argv)
{
    const char *path = NULL, *grant_to = NULL;
    bool prints = false;
    const struct option options[] = {
        {"grant-to", "ROLE", "the role of PostgreSQL that the gateways use: give it its rights",
         &grant_to},
        {"print", NULL, "print the statements instead, and change nothing", .flag = &prints},
        {"config", "FILE", "the configuration that names the store", &path},
    };
    const struct command command = {
        .usage = "taskgate store migrate [--grant-to ROLE] [--print] [--config FILE]",
        .synopsis =
            "Brings the schema of the store up to this version of taskgate. Each start does that,\n"
            "too, so this is for a role that may create tables where the gateway's own may not.\n"
            "Gateways of the version before go on meanwhile.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    char *place = configured_place(path);
    if (!place)
        return CLI_USAGE;
    const struct store_site site = store_place_site(place);
    int code = prints ? print_migration(&site, grant_to) : store_migrate_site(&site, grant_to);
    memory_forget_text(place);
    return code;
}

static int run_accept_timeline(int argc, char **argv)
{
    const char *path = NULL;
    bool was_held = false;
    const struct option options[] = {
        {"config", "FILE", "the configuration that names the store", &path},
    };
    const struct command command = {
        .usage = "taskgate store accept-timeline [--config FILE]",
        .synopsis = "After a failover that has lost commits, no replica decides or executes. Look "
                    "at what is\n"
                    "missing; then this lets them go on with the database as it is. Calls that ran "
                    "when the\n"
                    "commits were lost have ended with an unknown outcome; they are not run again.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    char *place = configured_place(path);
    struct error error = {""};
    if (!place)
        return CLI_USAGE;
    const struct store_site site = store_place_site(place);
    int code = exit_code(store_accept_timeline(&site, &was_held, &error), &error);
    if (code == CLI_DONE)
        puts(was_held ? "Accepted. The replicas go on within 5 seconds."
                      : "There was nothing to accept.");
    memory_forget_text(place);
    return code;
}

/* ---- copy ---- */

/* One end: a file, a URL without a password, {env: NAME}, or a variable. */
struct end {
    const char *name; /* "from" */
    const char *place, *variable;
};

/* NULL after a word on stderr. */
static char *store_place_of(const struct end *end)
{
    if (!end->place == !end->variable) {
        options_complain("name one of --%s and --%s-env", end->name, end->name);
        return NULL;
    }
    if (end->variable)
        return store_place_of_variable(end->variable);
    OWNED char *elsewhere = memory_format("--%s-env", end->name);
    return store_place_given(end->name, end->place, elsewhere);
}

static int store_copy_site(const char *from, const char *to)
{
    struct error error = {""};
    struct store_copied copied;
    const struct store_site source = store_place_site(from), target = store_place_site(to);
    int code = exit_code(store_copy(&source, &target, &copied, &error), &error);
    if (code == CLI_DONE)
        printf("Copied %" PRId64 " tasks, %" PRId64 " rows of the audit trail, and %" PRId64
               " others.\n",
               copied.tasks, copied.audit_rows, copied.others);
    return code;
}

static int run_copy(int argc, char **argv)
{
    struct end from = {"from", NULL, NULL}, to = {"to", NULL, NULL};
    const struct option options[] = {
        {"from", "FILE", "the store to copy: a file, or a URL without a password", &from.place},
        {"from-env", "NAME", "the same: the environment variable with its URL", &from.variable},
        {"to", "FILE", "the store to make: a file, or a URL without a password", &to.place},
        {"to-env", "NAME", "the same: the environment variable with its URL", &to.variable},
    };
    const struct command command = {
        .usage = "taskgate store copy (--from FILE | --from-env NAME) (--to FILE | --to-env NAME)",
        .synopsis =
            "Copies a store to another place, such as from a file to PostgreSQL. Stop the gateway\n"
            "before. The place to copy to must be empty: otherwise, and where a gateway still\n"
            "serves one of the files, nothing is done and the exit code is 5.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    char *source = store_place_of(&from);
    char *target = source ? store_place_of(&to) : NULL;
    int code = CLI_USAGE;
    if (source && target && strcmp(source, target) == 0)
        options_complain("--from and --to name the same store");
    else if (source && target && !strstr(source, "://") && access(source, R_OK) != 0)
        options_complain("%s cannot be read: %s", source, strerror(errno));
    else if (source && target)
        code = store_copy_site(source, target);
    memory_forget_text(source);
    memory_forget_text(target);
    return code;
}

/* ---- choosing ---- */

static const struct subcommand_main subcommands[] = {
    {{"migrate", "", "bring the schema up to this version"}, run_migrate},
    {{"copy", "--from --to", "copy a store to another place"}, run_copy},
    {{"accept-timeline", "", "go on with a database that has lost commits"}, run_accept_timeline},
};

int cli_store(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "store",
        .head = "Usage: taskgate store SUBCOMMAND [OPTIONS]\n\n"
                "Works on the database itself: the one that the configuration names, or\n"
                "THOUGHTGATE_STORE_URL.\n\n",
        .foot =
            "\nExit codes: 1 the database cannot be reached or refuses, 5 it is in use, or not\n"
            "empty.\n",
        SUBCOMMAND_ROWS(subcommands),
    };
    return subcommands_run(&set, argc, argv);
}

/* ---- taskgate backup ---- */

static int copy_store(const struct audit_place *place, const char *target)
{
    struct audit_source source;
    struct error error = {""};
    int code = CLI_USAGE;
    if (audit_source_find_store(&source, place)) {
        const struct store_site from = store_place_site(source.path), to = {&store_sqlite, target};
        code = CLI_DONE;
        if (!store_backup(&from, &to, &error)) {
            options_complain("%s", error.message);
            code = CLI_FAILURE;
        }
    }
    audit_source_finish(&source);
    return code;
}

int cli_backup(int argc, char **argv)
{
    struct audit_place place = {NULL, NULL, NULL};
    const char *target = NULL;
    const struct option options[] = {
        {"config", "FILE", "the configuration that names the store", &place.config},
        {"store", "FILE", "the store itself: a file, a URL, or {env: NAME}", &place.store},
    };
    const struct command command = {
        .usage = "taskgate backup FILE [--config FILE | --store FILE]",
        .synopsis =
            "Copies the store to a new FILE with mode 0600, as it is at one moment, while the\n"
            "gateway runs. The copy is an SQLite file, of a PostgreSQL database, too. A file that\n"
            "is there already is not touched.",
        COMMAND_OPTIONS(options),
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "FILE",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &target);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return copy_store(&place, target);
}
