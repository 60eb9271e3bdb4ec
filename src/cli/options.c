/* Reads long options by a table, without a walk back and forth through argv. */
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/str.h"

#include "distance.h"

#define SUGGESTIONS_MAX 16

int options_complain(const char *format, ...)
{
    va_list arguments;
    fputs("taskgate: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return CLI_USAGE;
}

static bool options_asks_words(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[argc - 1], OPTIONS_COMPLETE) == 0;
}

void options_write_word(const char *name, const char *value, const char *help)
{
    printf("%s|%s|%s\n", name ? name : "", value ? value : "", help ? help : "");
}

/* The command's next option: of the table, and --insecure behind them. `*i` begins as 0. */
static bool options_next(const struct command *command, size_t *i, struct option *option)
{
    while (*i < command->option_count) {
        *option = command->options[(*i)++];
        if (option->of == 0 || (option->of & command->self) != 0)
            return true;
    }
    *option = (struct option){"insecure", NULL, "send the token over plain http to another machine",
                              .flag = command->insecure};
    return command->insecure && (*i)++ == command->option_count;
}

static void write_words(const struct command *command)
{
    char name[64];
    struct option option;
    for (size_t i = 0; options_next(command, &i, &option);) {
        snprintf(name, sizeof name, "--%s", option.name);
        options_write_word(name, option.value_name, option.help);
    }
    options_write_word("--help", NULL, "this text");
    if (command->operands_max > 0)
        options_write_word(NULL, command->operand_name, NULL);
}

static void write_version(void)
{
    puts("taskgate " TASKGATE_VERSION);
}

bool options_asks_help(const char *argument)
{
    return strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0;
}

int options_exit_code(enum options_outcome outcome)
{
    return outcome == OPTIONS_HELPED ? CLI_DONE : CLI_USAGE;
}

bool options_answer_version(const char *argument)
{
    if (strcmp(argument, "--version") != 0)
        return false;
    write_version();
    return true;
}

bool options_answer(const char *argument, void (*write_usage)(FILE *out))
{
    if (options_asks_help(argument))
        write_usage(stdout);
    return options_asks_help(argument) || options_answer_version(argument);
}

/* The longest, "--annotations JSON", leaves 58 columns of 80 for the help. */
static void write_option(const char *name, const char *value_name, const char *help)
{
    int width = 16 - (int)strlen(name);
    printf("  --%s %-*s %s\n", name, width, value_name ? value_name : "", help);
}

static void write_help(const struct command *command)
{
    printf("Usage: %s\n\n%s\n\n", command->usage, command->synopsis);
    struct option option;
    for (size_t i = 0; options_next(command, &i, &option);)
        write_option(option.name, option.value_name, option.help);
    write_option("help", NULL, "this text");
    write_option("version", NULL, "taskgate's version");
}

static bool find_option(const struct command *command, struct str name, struct option *option)
{
    for (size_t i = 0; options_next(command, &i, option);) {
        if (str_equal(name, str_from(option->name)))
            return true;
    }
    return false;
}

static enum options_outcome options_refuse_unknown(const struct command *command,
                                                   const char *argument)
{
    const char *names[SUGGESTIONS_MAX] = {"help", "version"};
    size_t count = 2;
    struct option option;
    for (size_t i = 0; count < SUGGESTIONS_MAX && options_next(command, &i, &option);)
        names[count++] = option.name;
    const char *nearest = distance_nearest(argument + 2, names, count);
    if (nearest)
        options_complain("unknown option %s; did you mean --%s?", argument, nearest);
    else
        options_complain("unknown option %s; usage: %s", argument, command->usage);
    return OPTIONS_WRONG;
}

/* Reads the option at argv[*index], and its value. */
static enum options_outcome read_option(const struct command *command, int argc, char **argv,
                                        int *index)
{
    const char *argument = argv[*index];
    struct str name, value;
    bool has_value = str_cut(str_from(argument + 2), '=', &name, &value);
    struct option option = {0};
    bool is_known = find_option(command, name, &option);
    if (options_asks_help(argument)) {
        write_help(command);
        return OPTIONS_HELPED;
    }
    if (strcmp(argument, "--version") == 0) {
        write_version();
        return OPTIONS_HELPED;
    }
    if (!is_known)
        return options_refuse_unknown(command, argument);
    if (option.flag) {
        if (has_value) {
            options_complain("--%s takes no value", option.name);
            return OPTIONS_WRONG;
        }
        *option.flag = true;
        return OPTIONS_READ;
    }
    if (!has_value && *index + 1 >= argc) {
        options_complain("--%s needs a value: --%s %s", option.name, option.name,
                         option.value_name);
        return OPTIONS_WRONG;
    }
    *option.value = has_value ? value.bytes : argv[++*index];
    return OPTIONS_READ;
}

enum options_outcome options_read(const struct command *command, int argc, char **argv,
                                  const char **operands)
{
    size_t count = 0;
    bool options_ended = false;
    if (options_asks_words(argc, argv)) {
        write_words(command);
        return OPTIONS_HELPED;
    }
    for (int i = 1; i < argc; i++) {
        bool is_option = !options_ended && strncmp(argv[i], "--", 2) == 0;
        if (is_option && argv[i][2] == '\0') {
            options_ended = true;
        } else if (is_option) {
            enum options_outcome outcome = read_option(command, argc, argv, &i);
            if (outcome != OPTIONS_READ)
                return outcome;
        } else if (!options_ended && options_asks_help(argv[i])) {
            write_help(command);
            return OPTIONS_HELPED;
        } else if (!options_ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            options_complain("unknown option %s; usage: %s", argv[i], command->usage);
            return OPTIONS_WRONG;
        } else if (count == command->operands_max) {
            options_complain("unexpected argument %s; usage: %s", argv[i], command->usage);
            return OPTIONS_WRONG;
        } else {
            ASSERT_NUMBERS(count, <, command->operands_max);
            operands[count++] = argv[i];
        }
    }
    if (count < command->operands_min) {
        options_complain("%s is missing; usage: %s", command->operand_name, command->usage);
        return OPTIONS_WRONG;
    }
    return OPTIONS_READ;
}
