/* taskgate policy simulate: recorded calls put to a changed configuration. */
#include "policy.h"

#include "taskgate/cli/cli.h"

#include "consultation.h"
#include "judgement.h"
#include "options.h"
#include "simulation.h"
#include "store_place.h"
#include "terminal.h"

struct choice {
    const char *config, *log, *store, *since;
    bool json, fail_on_change;
};

static int policy_simulate_report(struct simulation *simulation, int64_t unnamed,
                                  const struct choice *choice)
{
    struct buffer text;
    buffer_init(&text);
    simulation_sort(simulation);
    if (choice->json)
        simulation_write_json(&text, simulation, unnamed);
    else
        simulation_write_text(&text, simulation, unnamed);
    bool written = terminal_write(&text);
    buffer_finish(&text);
    bool fails = choice->fail_on_change && simulation->different > 0;
    return written && !fails ? CLI_DONE : CLI_FAILURE;
}

static bool read_store(const struct config *config, const struct choice *choice,
                       struct recorded_calls *calls)
{
    char *place = choice->store ? store_place_given("store", choice->store, "--store '{env: NAME}'")
                                : store_place_of_configuration(config);
    bool read = place && recorded_calls_read_store(place, calls);
    store_place_forget(place);
    return read;
}

static int simulate(const struct snapshot *snapshot, int64_t since_ms, const struct choice *choice)
{
    struct simulation simulation;
    simulation_init(&simulation, snapshot);
    struct recorded_calls calls = {
        .visit = simulation_add, .context = &simulation, .since_ms = since_ms};
    bool read = choice->log ? recorded_calls_read_log(choice->log, &calls)
                            : read_store(snapshot->config, choice, &calls);
    int code = read ? policy_simulate_report(&simulation, calls.unnamed, choice) : CLI_USAGE;
    simulation_finish(&simulation);
    return code;
}

static bool names_store(const struct config *config)
{
    return config->store_url || !config->store_path_is_default;
}

int cli_policy_simulate(int argc, char **argv)
{
    struct choice choice = {0};
    int64_t since_ms = 0;
    const struct option options[] = {
        {"log", "FILE", "the gateway's log; - is standard input", &choice.log, NULL},
        {"store", "FILE", "the calls that became tasks: a file, a URL, or {env: NAME}",
         &choice.store, NULL},
        {"config", "FILE", "the changed one; by default one of the usual places", &choice.config,
         NULL},
        {"since", "TIME", "leave out older calls: a time, or an age such as 7d", &choice.since,
         NULL},
        {"json", NULL, "print JSON", NULL, &choice.json},
        {"fail-on-change", NULL, "exit with 1 if any call would be treated differently", NULL,
         &choice.fail_on_change},
    };
    const struct command command = {
        .usage = "taskgate policy simulate [--log FILE | --store FILE] [--config FILE]\n"
                 "       [--since TIME] [--json] [--fail-on-change]",
        .synopsis =
            "Judges past calls by a changed configuration, and lists the tools that it would\n"
            "treat differently, with the old and the new rule. Says so if a decision\n"
            "depends on facts that were not recorded, such as arguments. Without --log and\n"
            "--store it reads the store that the configuration names. Changes nothing, and\n"
            "needs no running gateway.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (choice.log && choice.store)
        return options_complain("name either --log or --store; usage: %s", command.usage);
    if (choice.since && !consultation_read_since(choice.since, &since_ms))
        return CLI_USAGE;
    struct snapshot *snapshot = judgement_load(choice.config, NULL);
    if (!snapshot)
        return CLI_USAGE;
    bool names_calls = choice.log || choice.store || names_store(snapshot->config);
    int code = names_calls
                   ? simulate(snapshot, since_ms, &choice)
                   : options_complain("the configuration names no store: name either --log or "
                                      "--store; usage: %s",
                                      command.usage);
    snapshot_unref(snapshot);
    return code;
}
