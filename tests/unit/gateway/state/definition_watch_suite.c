/* Lists of definitions that workers see. */
#include "state/definition_watch.h"

#include <pthread.h>

#include "suites.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/policy/pins.h"

#define ENTRIES 400
#define ROUNDS 30

struct race {
    struct definition_watch *watch;
    const struct config_source *source;
    struct str entries;
    pthread_barrier_t start;
};

static unsigned flags_of_last(const struct config_source *source)
{
    const struct pin_name last = {str_from(source->id), DEFINITION_PROMPT, STR("last")};
    return pins_flags(&last);
}

/* The flags that the last entry has when the list may go down. */
static void *see(void *context)
{
    struct race *race = context;
    pthread_barrier_wait(&race->start);
    definition_watch_see_entries(race->watch, race->source, DEFINITION_PROMPT, race->entries, true);
    return flags_of_last(race->source) ? race : NULL;
}

static void write_entries(struct buffer *out)
{
    buffer_init(out);
    buffer_append_char(out, '[');
    for (int i = 0; i < ENTRIES; i++)
        buffer_append_format(out, "{\"name\":\"p%d\",\"description\":\"plain\"},", i);
    buffer_append_text(out, "{\"name\":\"last\",\"description\":\"\\u001b[8mhidden\"}]");
}

START_TEST(a_list_that_two_workers_see_at_once_is_pinned_before_either_goes_on)
{
    char id[] = "up";
    const struct config_source source = {.id = id, .pins = {PIN_WARN, PIN_WARN, PIN_WARN}};
    struct buffer entries;
    write_entries(&entries);
    for (int i = 0; i < ROUNDS; i++) {
        struct race race = {definition_watch_create(NULL), &source, buffer_str(&entries), {{0}}};
        pthread_t workers[2];
        void *is_flagged[2];
        pthread_barrier_init(&race.start, NULL, 2);
        for (size_t k = 0; k < 2; k++)
            pthread_create(&workers[k], NULL, see, &race);
        for (size_t k = 0; k < 2; k++)
            pthread_join(workers[k], &is_flagged[k]);
        ck_assert_msg(is_flagged[0] && is_flagged[1], "round %d", i);
        pthread_barrier_destroy(&race.start);
        definition_watch_destroy(race.watch);
    }
    buffer_finish(&entries);
}
END_TEST

TCase *definition_watch_tests(void)
{
    TCase *tests = tcase_create("definition_watch");
    tcase_add_test(tests, a_list_that_two_workers_see_at_once_is_pinned_before_either_goes_on);
    return tests;
}
