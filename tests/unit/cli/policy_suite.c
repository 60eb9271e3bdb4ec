/* taskgate policy: files in, lines and exit codes out. */
#include "harness.h"

#include <string.h>

#include "taskgate/cli/cli.h"

/* ---- parse ---- */

START_TEST(good_policies_are_exit_0_without_a_word)
{
    write_file("good.cedar", "// \xC3\xA9\n@id(\"a\")\npermit(principal, action, resource,);");
    ck_assert_int_eq(run("policy parse good.cedar"), CLI_DONE);
    ck_assert_str_eq(captured[0], "");
    ck_assert_str_eq(captured[1], "");
    write_file("empty.cedar", "");
    ck_assert_int_eq(run("policy parse empty.cedar"), CLI_DONE);
}
END_TEST

START_TEST(every_error_of_policies_has_its_place)
{
    write_file("bad.cedar", "permit(principal, action);\n"
                            "permit(principal, action, resource) when { 1 + };\n"
                            "forbid(principal, action, resource)\n  when { true }");
    ck_assert_int_eq(run("policy parse bad.cedar"), CLI_USAGE);
    ck_assert_str_eq(captured[0], "");
    ck_assert_str_eq(
        captured[1],
        "bad.cedar:1:25: unexpected \")\"; expected \",\", \"==\" or \"in\" behind action\n"
        "bad.cedar:2:48: unexpected \"}\"; expected an operand\n"
        "bad.cedar:4:16: unexpected the end of the text; expected \"when\", \"unless\" "
        "or \";\"\n");
}
END_TEST

START_TEST(files_that_cannot_be_read_are_exit_2)
{
    ck_assert_int_eq(run("policy parse missing.cedar"), CLI_USAGE);
    ck_assert_str_eq(captured[1], "taskgate: missing.cedar cannot be read: No such file or "
                                  "directory\n");
    ck_assert_int_eq(run("policy parse ."), CLI_USAGE);
    ck_assert_str_eq(captured[1], "taskgate: . cannot be read: Is a directory\n");
}
END_TEST

/* ---- authorize ---- */

#define AUTHORIZE "policy authorize --policies p.cedar --entities e.json --requests r.json"
#define REQUEST(id)                                                                                \
    "{\"principal\": {\"type\": \"User\", \"id\": \"" id                                           \
    "\"}, \"action\": {\"__entity\": {\"type\": \"Action\", \"id\": \"view\"}}, \"resource\": "    \
    "\"Doc::\\\"d\\\"\", \"validateRequest\": false}"

static void write_ground(void)
{
    write_file("p.cedar", "permit(principal in Group::\"g\", action, resource);\n"
                          "forbid(principal, action, resource) when { principal.locked };\n"
                          "permit(principal == User::\"eve\", action, resource)\n"
                          "when { context.at < duration(\"1h\") };");
    write_file("e.json",
               "[{\"uid\": {\"type\": \"User\", \"id\": \"ann\"}, \"attrs\": {\"locked\": false},\n"
               "  \"parents\": [{\"type\": \"Group\", \"id\": \"g\"}]},\n"
               " {\"uid\": {\"__entity\": {\"type\": \"User\", \"id\": \"bob\"}}, \"attrs\": "
               "{\"locked\": true}, \"parents\": [{\"__entity\": {\"type\": \"Group\", \"id\": "
               "\"g\"}}], \"tags\": {}}]");
}

START_TEST(requests_are_decided_line_by_line)
{
    static const char decisions[] =
        "{\"decision\":\"allow\",\"reason\":[\"policy0\"],\"errors\":[]}\n"
        "{\"decision\":\"deny\",\"reason\":[\"policy1\"],\"errors\":[]}\n"
        "{\"decision\":\"deny\",\"reason\":[],\"errors\":[\"policy1\",\"policy2\"]}\n";
    write_ground();
    write_file("r.json", "[" REQUEST("ann") ", " REQUEST("bob") ", " REQUEST("eve") "]");
    ck_assert_int_eq(run(AUTHORIZE), CLI_DONE);
    ck_assert_str_eq(captured[0], decisions);
    ck_assert_str_eq(captured[1], "");
    write_file("r.json", "{\"shouldValidate\": true, \"requests\": [" REQUEST("ann") ", " REQUEST(
                             "bob") ", " REQUEST("eve") "]}");
    ck_assert_int_eq(run(AUTHORIZE), CLI_DONE);
    ck_assert_str_eq(captured[0], decisions);
    write_file("r.json", " [] ");
    ck_assert_int_eq(run(AUTHORIZE), CLI_DONE);
    ck_assert_str_eq(captured[0], "");
}
END_TEST

START_TEST(bad_files_are_exit_2_with_all_their_places)
{
    static const struct {
        const char *file, *text, *says;
    } rows[] = {
        {"p.cedar", "permit();", "p.cedar:1:8: unexpected \")\"; expected \"principal\"\n"},
        {"e.json", "{}", "e.json:1:1: expected an array of entities\n"},
        {"e.json", "[\n {\"uid\": 1}]",
         "e.json:2:10: entity 1: uid: expected {\"type\": \"…\", \"id\": \"…\"}\n"},
        {"e.json", "[\n  1,\n  2]",
         "e.json:2:3: entity 1: expected an object\ne.json:3:3: entity 2: expected an object\n"},
        {"e.json",
         "[{\"uid\": {\"type\": \"A\", \"id\": \"a\\u001b\"},\n\"attrs\": {}, \"parents\":\n"
         "[{\"type\": \"A\", \"id\": \"a\\u001b\"}]}]",
         "e.json:1:2: entity A::\"a\\u001b\" is its own ancestor\n"},
        {"e.json", "[{\"uid\": \"A::\\\"a\\\"\", \"attrs\": {\"\xC3\xA9\": 1.5}, \"parents\": []}]",
         "e.json:1:37: entity 1: attrs: 1.5 is not a whole number of 64 bits\n"},
        {"e.json", "[{]", "e.json:1:3: not readable as JSON: "},
        {"r.json", "[", "r.json:1:2: not readable as JSON: unexpected end\n"},
        {"r.json", "", "r.json:1:1: not readable as JSON: unexpected end\n"},
        {"r.json", "{\"request\": []}",
         "r.json:1:1: expected an array of requests, or an object with \"requests\"\n"},
        {"r.json", "{\"requests\": {}}",
         "r.json:1:14: expected an array of requests, or an object with \"requests\"\n"},
        {"r.json", "[{\"principal\": \"A::\\\"a\\\"\"}]",
         "r.json:1:2: request 1: action: expected {"},
        {"r.json",
         "[{\"principal\": \"A::\\\"a\\\"\", \"action\": \"A::\\\"a\\\"\", \"resource\": "
         "\"A::\\\"a\\\"\",\n\"context\": {\"__entity\": {\"type\": \"A\", \"id\": \"a\"}}}]",
         "r.json:2:12: request 1: context: expected an object\n"},
        {"r.json", "[{\"principal\": 1, \"principal\": 2}]", "r.json:1:19: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_ground();
        write_file("r.json", "[]");
        write_file(rows[i].file, rows[i].text);
        ck_assert_msg(run(AUTHORIZE) == CLI_USAGE, "%s", rows[i].text);
        ck_assert_str_eq(captured[0], "");
        ck_assert_msg(strncmp(captured[1], rows[i].says, strlen(rows[i].says)) == 0,
                      "%s: %s instead of %s", rows[i].text, captured[1], rows[i].says);
    }
}
END_TEST

START_TEST(the_faults_of_all_files_are_told_at_once)
{
    write_file("p.cedar", "x");
    write_file("e.json", "1");
    ck_assert_int_eq(run(AUTHORIZE), CLI_USAGE);
    expect(1, "p.cedar:1:1: ");
    expect(1, "e.json:1:1: expected an array of entities\n");
    expect(1, "taskgate: r.json cannot be read: No such file or directory\n");
}
END_TEST

TCase *policy_cases(void)
{
    TCase *cases = tcase_create("policy");
    tcase_add_checked_fixture(cases, enter_folder, leave_folder);
    tcase_add_test(cases, good_policies_are_exit_0_without_a_word);
    tcase_add_test(cases, every_error_of_policies_has_its_place);
    tcase_add_test(cases, files_that_cannot_be_read_are_exit_2);
    tcase_add_test(cases, requests_are_decided_line_by_line);
    tcase_add_test(cases, bad_files_are_exit_2_with_all_their_places);
    tcase_add_test(cases, the_faults_of_all_files_are_told_at_once);
    return cases;
}
