/* taskgate backup: one file that holds the store as it is at one moment. */
#include "taskgate/cli/cli.h"

#include "taskgate/store/maintenance.h"
#include "taskgate/store/sqlite.h"

#include "audit_source.h"
#include "options.h"
#include "store_place.h"

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
        {"config", "FILE", "the configuration that names the store", &place.config, NULL},
        {"store", "FILE", "the store itself: a file, a URL, or {env: NAME}", &place.store, NULL},
    };
    const struct command command = {
        .usage = "taskgate backup FILE [--config FILE | --store FILE]",
        .synopsis =
            "Copies the store to a new FILE with mode 0600, as it is at one moment, while the\n"
            "gateway runs. The copy is an SQLite file, of a PostgreSQL database, too. A file that\n"
            "is there already is not touched.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "FILE",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &target);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return copy_store(&place, target);
}
