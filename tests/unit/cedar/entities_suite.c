/* The store of entities: hierarchy, repetition, circles. */
#include "cedar_test.h"

#include <stdio.h>
#include <string.h>

static bool add(struct cedar_entities *entities, const char *type, const char *id,
                const char *parent_type, const char *parent_id, struct error *error)
{
    struct cedar_uid uid = cedar_uid(str_from(type), str_from(id));
    struct cedar_uid parent = cedar_uid(str_from(parent_type), str_from(parent_id));
    return cedar_entities_add(entities, &uid, NULL, NULL, &parent, parent_type != NULL, error);
}

/* Whether User::`child` is in User::`ancestor`. */
static bool is_in(const struct cedar_entities *entities, const char *child, const char *ancestor)
{
    char text[256];
    snprintf(text, sizeof text, "permit(principal in User::\"%s\", action, resource);", ancestor);
    struct cedar_policies *policies = must_parse(text);
    struct cedar_request request = must_make_request(NULL, NULL);
    request.principal = cedar_uid(STR("User"), str_from(child));
    struct cedar_response response;
    cedar_response_init(&response);
    cedar_authorize(policies, entities, &request, &response);
    bool result = response.decision == CEDAR_ALLOW;
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
    return result;
}

START_TEST(ancestors_are_transitive)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    /* Children before parents, a diamond, and a parent that is not there. */
    ck_assert(add(entities, "User", "a", "User", "b", &error));
    struct cedar_uid b = cedar_uid(STR("User"), STR("b"));
    struct cedar_uid both[] = {cedar_uid(STR("User"), STR("left")),
                               cedar_uid(STR("User"), STR("right"))};
    ck_assert(cedar_entities_add(entities, &b, NULL, NULL, both, 2, &error));
    ck_assert(add(entities, "User", "left", "User", "top", &error));
    ck_assert(add(entities, "User", "right", "User", "top", &error));
    ck_assert(add(entities, "User", "top", "User", "ghost", &error));
    ck_assert(cedar_entities_seal(entities, &error));
    ck_assert(is_in(entities, "a", "b"));
    ck_assert(is_in(entities, "a", "left"));
    ck_assert(is_in(entities, "a", "right"));
    ck_assert(is_in(entities, "a", "top"));
    ck_assert(is_in(entities, "a", "ghost"));
    ck_assert(is_in(entities, "a", "a"));
    ck_assert(is_in(entities, "ghost", "ghost"));
    ck_assert(!is_in(entities, "top", "a"));
    ck_assert(!is_in(entities, "left", "right"));
    ck_assert(!is_in(entities, "ghost", "top"));
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(long_hierarchies_hold)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    for (int i = 0; i < 1000; i++) {
        char id[16], parent[16];
        snprintf(id, sizeof id, "%d", i);
        snprintf(parent, sizeof parent, "%d", i + 1);
        ck_assert(add(entities, "User", id, "User", parent, &error));
    }
    ck_assert(cedar_entities_seal(entities, &error));
    ck_assert(is_in(entities, "0", "1000"));
    ck_assert(is_in(entities, "500", "999"));
    ck_assert(!is_in(entities, "501", "500"));
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(hostile_hierarchies_are_refused)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    for (int i = 0; i < 4000; i++) {
        char id[16], parent[16];
        snprintf(id, sizeof id, "%d", i);
        snprintf(parent, sizeof parent, "%d", i + 1);
        ck_assert(add(entities, "User", id, "User", parent, &error));
    }
    ck_assert(!cedar_entities_seal(entities, &error));
    ck_assert_str_eq(error.message, "the entities have more than 4194304 ancestors");
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(circles_are_refused)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    ck_assert(add(entities, "User", "a", "User", "b", &error));
    ck_assert(add(entities, "User", "b", "User", "c", &error));
    ck_assert(add(entities, "User", "c", "User", "b", &error));
    ck_assert(!cedar_entities_seal(entities, &error));
    ck_assert_str_eq(error.message, "entity User::\"b\" is its own ancestor");
    cedar_entities_destroy(entities);
    entities = cedar_entities_create();
    ck_assert(add(entities, "User", "a", "User", "a", &error));
    ck_assert(!cedar_entities_seal(entities, &error));
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(repetition_must_agree)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    ck_assert(add(entities, "User", "a", "User", "b", &error));
    ck_assert(add(entities, "User", "a", "User", "b", &error));
    ck_assert(!add(entities, "User", "a", "User", "c", &error));
    ck_assert_str_eq(error.message, "entity User::\"a\" stands twice with different content");
    ck_assert(cedar_entities_seal(entities, &error));
    ck_assert(!add(entities, "User", "d", NULL, NULL, &error));
    ck_assert_str_eq(error.message, "the entities are sealed");
    cedar_entities_destroy(entities);
}
END_TEST

START_TEST(names_are_checked)
{
    static const char *const bad[] = {"",       "1a",       "a-b",     "a::",        "::a",
                                      "a:b",    "a b",      "a:: b",   "if",         "a::in",
                                      "a::b::", "\xc3\xa9", "__cedar", "__cedar::a", "a\"b"};
    struct cedar_entities *entities = cedar_entities_create();
    struct error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!cedar_type_is_valid(str_from(bad[i])), "%s", bad[i]);
        ck_assert(!add(entities, bad[i], "x", NULL, NULL, &error));
        ck_assert(!add(entities, "User", "x", bad[i], "y", &error));
    }
    ck_assert(cedar_type_is_valid(STR("ThoughtGate::App")));
    ck_assert(cedar_type_is_valid(STR("_a1::permit")));
    ck_assert(!add(entities, "NS::Action", "a", "User", "u", &error));
    ck_assert_str_eq(error.message, "action \"a\" has a parent that is no action");
    ck_assert(add(entities, "NS::Action", "a", "Action", "b", &error));
    cedar_entities_destroy(entities);
}
END_TEST

Suite *entities_suite(void)
{
    Suite *suite = suite_create("entities");
    TCase *tests = tcase_create("entities");
    tcase_add_test(tests, ancestors_are_transitive);
    tcase_add_test(tests, long_hierarchies_hold);
    tcase_add_test(tests, hostile_hierarchies_are_refused);
    tcase_add_test(tests, circles_are_refused);
    tcase_add_test(tests, repetition_must_agree);
    tcase_add_test(tests, names_are_checked);
    suite_add_tcase(suite, tests);
    return suite;
}
