/* taskgate policy test: runs the cases that lie beside rules and policies. */
#include "policy_test.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

#include "options.h"
#include "policy.h"
#include "terminal.h"

#define ENDING ".test.yaml"
#define OPEN_FOLDERS 16

/* ---- finding ---- */

/* nftw() passes no context, and commands have one thread. */
static struct config_strings found;

static void policy_test_add_file(const char *path)
{
    found.items = memory_grow_array(found.items, found.count + 1, sizeof *found.items);
    found.items[found.count++] = memory_copy_text(path);
}

/* Hidden folders are skipped: beside mounted files they hold the same files again. */
static int policy_test_visit(const char *path, const struct stat *status, int type,
                             struct FTW *place)
{
    (void)status;
    if (type == FTW_D && place->level > 0 && path[place->base] == '.')
        return FTW_SKIP_SUBTREE;
    if (type == FTW_F && str_ends_with(str_from(path), STR(ENDING)))
        policy_test_add_file(path);
    return FTW_CONTINUE;
}

static int compare_paths(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* All files of cases below `path`, or `path` itself if it is one; sorted. False after a message on
 * stderr. */
static bool find_files(const char *path)
{
    struct stat status;
    char *folder = memory_copy_text(path);
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        folder[--length] = '\0';
    bool good = stat(folder, &status) == 0;
    if (!good)
        options_complain("%s cannot be read: %s", path, strerror(errno));
    else if (!S_ISDIR(status.st_mode))
        policy_test_add_file(folder);
    else if (nftw(folder, policy_test_visit, OPEN_FOLDERS, FTW_ACTIONRETVAL) != 0)
        good = options_complain("%s cannot be searched: %s", path, strerror(errno)) == 0;
    if (good && found.count == 0)
        good = options_complain("there is no file *" ENDING " in %s", path) == 0;
    if (found.count > 0)
        qsort(found.items, found.count, sizeof *found.items, compare_paths);
    free(folder);
    return good;
}

static void forget_files(void)
{
    for (size_t i = 0; i < found.count; i++)
        free(found.items[i]);
    free(found.items);
    found = (struct config_strings){NULL, 0};
}

/* ---- running ---- */

/* The totals over all files. */
struct tally {
    size_t files, cases, failed, unreached;
    struct buffer out, unreached_lines;
    bool json;
};

/* False when the case could not run at all. */
static bool run_case(struct tally *tally, struct test_file *file, size_t index)
{
    struct test_outcome outcome;
    const struct test_case *one = &file->cases[index];
    bool good = test_case_run(file, one, &outcome);
    if (good && tally->json) {
        buffer_append_text(&tally->out, index > 0 ? ",{" : "{");
        test_report_case_json(&tally->out, one, &outcome);
        buffer_append_char(&tally->out, '}');
    } else if (good && outcome.difference_count > 0) {
        test_report_failure(&tally->out, file, one, &outcome);
    }
    tally->failed += outcome.difference_count > 0;
    tally->cases++;
    test_outcome_finish(&outcome);
    return good;
}

static bool run_file(struct tally *tally, struct test_file *file)
{
    size_t failed_before = tally->failed;
    bool good = true;
    struct buffer *out = &tally->out;
    if (tally->json) {
        buffer_append_text(out, tally->files > 0 ? ",{\"file\":" : "{\"file\":");
        buffer_append_json_string(out, str_from(file->path));
        buffer_append_text(out, ",\"tests\":");
        buffer_append_json_string(out, str_from(file->target));
        buffer_append_text(out, ",\"cases\":[");
    }
    for (size_t i = 0; i < file->count; i++)
        good = run_case(tally, file, i) && good;
    tally->files++;
    tally->unreached += test_report_unreached(&tally->unreached_lines, file);
    if (tally->json) {
        buffer_append_text(out, "],\"unreached\":");
        test_report_unreached_json(out, file);
        buffer_append_char(out, '}');
    } else if (tally->failed == failed_before) {
        buffer_append_format(out, "passed %s: %zu %s of %s\n", file->path, file->count,
                             file->count == 1 ? "case" : "cases", file->target);
    }
    return good;
}

static void summarise(struct tally *tally)
{
    struct buffer *out = &tally->out;
    if (tally->json) {
        buffer_append_format(out, "],\"cases\":%zu,\"failed\":%zu,\"unreached\":%zu}\n",
                             tally->cases, tally->failed, tally->unreached);
        return;
    }
    if (tally->unreached > 0) {
        buffer_append_text(out, "\nNo case has reached:\n");
        buffer_append(out, buffer_str(&tally->unreached_lines));
    }
    buffer_append_format(out, "\n%zu %s: %zu passed, %zu failed. %s\n", tally->cases,
                         tally->cases == 1 ? "case" : "cases", tally->cases - tally->failed,
                         tally->failed,
                         tally->unreached > 0 ? "Not every rule and policy was reached."
                                              : "Every rule and policy was reached.");
}

static int run_files(struct test_file *files, bool strict, bool json)
{
    struct tally tally = {.json = json};
    bool good = true;
    buffer_init(&tally.out);
    buffer_init(&tally.unreached_lines);
    buffer_append_text(&tally.out, json ? "{\"files\":[" : "");
    for (size_t i = 0; i < found.count; i++)
        good = run_file(&tally, &files[i]) && good;
    summarise(&tally);
    int code = terminal_write(&tally.out) ? CLI_DONE : CLI_FAILURE;
    if (tally.failed > 0 || (strict && tally.unreached > 0))
        code = CLI_FAILURE;
    buffer_finish(&tally.unreached_lines);
    buffer_finish(&tally.out);
    return good ? code : CLI_USAGE;
}

/* All files are read before any case runs, so that one run reports all mistakes. */
static int test(const char *path, bool strict, bool json)
{
    int code = CLI_USAGE;
    bool good = find_files(path);
    struct test_file *files = memory_alloc_array(found.count, sizeof *files);
    for (size_t i = 0; i < found.count; i++)
        good = test_file_init(&files[i], found.items[i]) && good;
    if (good)
        code = run_files(files, strict, json);
    for (size_t i = 0; i < found.count; i++)
        test_file_finish(&files[i]);
    free(files);
    forget_files();
    return code;
}

int cli_policy_test(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false, strict = false;
    const struct option options[] = {
        {"json", NULL, "print JSON", NULL, &json},
        {"strict", NULL, "fail also if no case reaches a rule or policy", NULL, &strict},
    };
    const struct command command = {
        .usage = "taskgate policy test DIR [--strict] [--json]",
        .synopsis =
            "Runs the cases in every *" ENDING " in DIR and below; X" ENDING " tests X.yaml,\n"
            "or X.cedar, beside it. A case is a call and its expected outcome:\n\n"
            "  cases:\n"
            "    - name: a small payment goes through\n"
            "      request: {tool: pay_invoice, arguments: {amount: 99}}\n"
            "      expect: {decision: forward, rule: \"pay_*\", policies: [small]}\n\n"
            "  request  tool, source, arguments, principal, at, annotations\n"
            "  expect   decision (forward, approve, deny, reject, hidden), rule, workflow,\n"
            "           policies, errors\n\n"
            "For a failed case, - marks the expectation and + the result. At the end come the\n"
            "rules and policies that no case has reached. Exit code 1 if a case fails, 2 if a\n"
            "file has a mistake.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "DIR",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &path);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return test(path, strict, json);
}
