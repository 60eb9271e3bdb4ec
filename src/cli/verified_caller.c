/* Reading the issuer's words. */
#include "verified_caller.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

static struct config_strings texts_of(struct str array)
{
    struct config_strings texts = {0};
    size_t position = 0;
    struct str element;
    if (json_type(array) != JSON_ARRAY)
        return texts;
    while (json_next_element(array, &position, &element)) {
        char *text = json_string_text(element, NULL);
        if (!text)
            continue;
        texts.items = memory_grow_array(texts.items, texts.count + 1, sizeof *texts.items);
        texts.items[texts.count++] = text;
    }
    return texts;
}

const struct policy_verified *verified_caller_read(struct verified_caller *caller,
                                                   struct str object)
{
    *caller = (struct verified_caller){.subject = NULL};
    caller->subject = json_string_text(json_member(object, "subject"), NULL);
    if (!caller->subject)
        return NULL;
    caller->issuer = json_string_text(json_member(object, "issuer"), NULL);
    caller->words = (struct policy_verified){
        .issuer = str_from(caller->issuer),
        .subject = str_from(caller->subject),
        .groups = texts_of(json_member(object, "groups")),
        .scopes = texts_of(json_member(object, "scopes")),
    };
    return &caller->words;
}

static void verified_caller_finish_texts(struct config_strings *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
}

void verified_caller_finish(struct verified_caller *caller)
{
    verified_caller_finish_texts(&caller->words.groups);
    verified_caller_finish_texts(&caller->words.scopes);
    free(caller->issuer);
    free(caller->subject);
    *caller = (struct verified_caller){.subject = NULL};
}
