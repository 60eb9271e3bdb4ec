/* Attributes, tags, types, the hierarchy and patterns. */
#include "cedar_test.h"

START_TEST(attributes_are_there_or_an_error)
{
    static const struct expression_case cases[] = {
        {"principal.age == 30", TRUE_},
        {"principal[\"age\"] == 30", TRUE_},
        {"principal.address[\"zip code\"] == \"3011\"", TRUE_},
        {"principal.boss.age == 50", TRUE_},
        {"resource.owner.boss == User::\"bob\"", TRUE_},
        {"context.rec.a.b.c == 1", TRUE_},
        {"{a: 1}.a == 1", TRUE_},
        {"{a: 1}.b == 1", ATTRIBUTE_},
        {"principal.nope == 1", ATTRIBUTE_},
        {"principal.role == \"lead\"", ATTRIBUTE_},
        {"action.name == 1", ENTITY_},
        {"User::\"ghost\".age == 1", ENTITY_},
        {"context.ghost.age == 1", ENTITY_},
        {"context.n.x == 1", TYPE_},
        {"\"a\".b == 1", TYPE_},
        {"true.b == 1", TYPE_},
        {"[1].contains == 1", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(has_looks_without_failing)
{
    static const struct expression_case cases[] = {
        {"context has n", TRUE_},
        {"context has nope", FALSE_},
        {"context has \"n\"", TRUE_},
        {"context.rec has \"x y\"", TRUE_},
        {"context has rec.a.b.c", TRUE_},
        {"context has rec.a.nope.c", FALSE_},
        {"context has nope.a.b", FALSE_},
        {"context has n.x", TYPE_},
        {"context has permit", FALSE_},
        {"context has principal.x", FALSE_},
        {"principal has age", TRUE_},
        {"principal has boss.age", TRUE_},
        {"principal has boss.boss.age", FALSE_},
        {"context has ghost.age", FALSE_},
        {"User::\"ghost\" has age", FALSE_},
        {"\"s\" has a", TYPE_},
        {"ip(\"1.1.1.1\") has a", TYPE_},
        {"context.nope has a", ATTRIBUTE_},
        {"context has nope && context.nope == 5", FALSE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(tags_are_not_attributes)
{
    static const struct expression_case cases[] = {
        {"principal.hasTag(\"role\")", TRUE_},
        {"principal.hasTag(\"age\")", FALSE_},
        {"principal.getTag(\"role\") == \"lead\"", TRUE_},
        {"principal.getTag(\"level\") == 3", TRUE_},
        {"principal.getTag(\"nope\") == 1", TAG_},
        {"principal.getTag(\"ro\" + \"le\") == 1", TYPE_},
        {"User::\"ghost\".hasTag(\"role\")", FALSE_},
        {"User::\"ghost\".getTag(\"role\") == 1", ENTITY_},
        {"principal.hasTag(1)", TYPE_},
        {"context.hasTag(\"n\")", TYPE_},
        {"1.getTag(\"a\") == 1", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(in_follows_parents)
{
    static const struct expression_case cases[] = {
        {"principal in Team::\"team\"", TRUE_},
        {"principal in Company::\"company\"", TRUE_},
        {"principal in Company::\"other\"", FALSE_},
        {"principal in principal", TRUE_},
        {"User::\"ghost\" in User::\"ghost\"", TRUE_},
        {"Team::\"team\" in principal", FALSE_},
        {"principal in []", FALSE_},
        {"principal in [Doc::\"d1\", Company::\"company\"]", TRUE_},
        {"principal in context.who", TRUE_},
        {"principal in context.mixed", TYPE_},
        {"principal in [[Team::\"team\"]]", TYPE_},
        {"principal in \"team\"", TYPE_},
        {"principal in {}", TYPE_},
        {"1 in []", TYPE_},
        {"[principal] in Team::\"team\"", TYPE_},
        {"principal.boss in Team::\"team\"", FALSE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(is_compares_types)
{
    static const struct expression_case cases[] = {
        {"principal is User", TRUE_},
        {"principal is NS::User", FALSE_},
        {"NS :: User::\"x\" is NS::User", TRUE_},
        {"User::\"ghost\" is User", TRUE_},
        {"action is Action", TRUE_},
        {"principal is principal", FALSE_},
        {"\"a\" is User", TYPE_},
        {"{} is User", TYPE_},
        {"principal is User in Company::\"company\"", TRUE_},
        {"principal is User in [Team::\"other\", Team::\"team\"]", TRUE_},
        {"principal is User in Team::\"other\"", FALSE_},
        {"principal is Group in 1", FALSE_},
        {"principal is User in 1", TYPE_},
        {"principal is User in [Team::\"team\", 1]", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(like_knows_stars_alone)
{
    static const struct expression_case cases[] = {
        {"\"hello\" like \"hello\"", TRUE_},
        {"\"hello\" like \"hell\"", FALSE_},
        {"\"hello\" like \"h*o\"", TRUE_},
        {"\"hello\" like \"*\"", TRUE_},
        {"\"\" like \"*\"", TRUE_},
        {"\"\" like \"**\"", TRUE_},
        {"\"\" like \"\"", TRUE_},
        {"\"a\" like \"\"", FALSE_},
        {"\"hello\" like \"*l*l*\"", TRUE_},
        {"\"hello\" like \"*l*l*l*\"", FALSE_},
        {"\"aba\" like \"aba*aba\"", FALSE_},
        {"\"ababab\" like \"*abab\"", TRUE_},
        {"\"mississippi\" like \"m*iss*ippi\"", TRUE_},
        {"\"mississippi\" like \"m*issip*ss*\"", FALSE_},
        {"\"a*b\" like \"a\\*b\"", TRUE_},
        {"\"axb\" like \"a\\*b\"", FALSE_},
        {"\"axb\" like \"a\\u{2a}b\"", TRUE_},
        {"\"HELLO\" like \"hello\"", FALSE_},
        {"\"a.b\" like \"a?b\"", FALSE_},
        {"\"\\u{1F600}x\" like \"*x\"", TRUE_},
        {"context.nul like \"a\\0*\"", TRUE_},
        {"context.n like \"5\"", TYPE_},
        {"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\" like \"*a*a*a*a*a*a*a*a*a*a*a*c\"", FALSE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

Suite *access_suite(void)
{
    Suite *suite = suite_create("access");
    TCase *tests = tcase_create("access");
    tcase_add_test(tests, attributes_are_there_or_an_error);
    tcase_add_test(tests, has_looks_without_failing);
    tcase_add_test(tests, tags_are_not_attributes);
    tcase_add_test(tests, in_follows_parents);
    tcase_add_test(tests, is_compares_types);
    tcase_add_test(tests, like_knows_stars_alone);
    suite_add_tcase(suite, tests);
    return suite;
}
