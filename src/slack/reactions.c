/* From emoji to marks. */
#include "reactions.h"

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* "thumbsup::skin-tone-3" to "+1". */
static struct str bare_name(struct str name)
{
    struct str bare = name;
    for (size_t i = 0; i + 1 < name.length; i++) {
        if (name.bytes[i] == ':' && name.bytes[i + 1] == ':') {
            bare = str_slice(name.bytes, i);
            break;
        }
    }
    if (str_equal(bare, STR("thumbsup")))
        return STR("+1");
    return str_equal(bare, STR("thumbsdown")) ? STR("-1") : bare;
}

static bool is_person(const struct config *config, struct str user)
{
    for (size_t i = 0; i < config->person_count; i++) {
        const char *id = config->people[i].slack;
        if (id && json_string_equals(user, str_from(id)))
            return true;
    }
    return false;
}

static void add_mark(struct ballot_names *marks, char sign, struct str user)
{
    OWNED char *id = json_string_text(user, NULL);
    OWNED char *mark = memory_format("%c%s", sign, id ? id : "");
    ballot_names_add(marks, mark);
}

static bool read_users(struct ballot_names *marks, char sign, struct str reaction,
                       const struct config *config)
{
    struct str users = json_member(reaction, "users"), user;
    uint64_t count = 0;
    size_t position = 0, named = 0;
    if (json_type(users) != JSON_ARRAY)
        return false;
    for (; json_next_element(users, &position, &user); named++) {
        if (is_person(config, user))
            add_mark(marks, sign, user);
    }
    return !str_to_u64(json_member(reaction, "count"), &count) || count <= named;
}

bool reactions_read(struct ballot_names *marks, struct str reactions, const struct config *config)
{
    const struct config_slack *slack = &config->slack;
    size_t position = 0;
    struct str reaction;
    bool is_all = true;
    while (json_type(reactions) == JSON_ARRAY &&
           json_next_element(reactions, &position, &reaction)) {
        OWNED char *name = json_string_text(json_member(reaction, "name"), NULL);
        struct str bare = bare_name(str_from(name));
        char sign = '\0';
        if (str_equal(bare, str_from(slack->approve_reaction)))
            sign = '+';
        else if (str_equal(bare, str_from(slack->reject_reaction)))
            sign = '-';
        if (sign)
            is_all = read_users(marks, sign, reaction, config) && is_all;
    }
    return is_all;
}

void reactions_write(struct buffer *out, const struct ballot_names *marks)
{
    for (size_t i = 0; i < marks->count; i++)
        buffer_append_format(out, "%s%s", i > 0 ? " " : "", marks->items[i]);
}

void reactions_read_marks(struct ballot_names *marks, const char *text)
{
    struct str mark, rest = str_from(text);
    while (rest.length > 0) {
        str_cut(rest, ' ', &mark, &rest);
        OWNED char *copy = memory_copy_str(mark);
        ballot_names_add(marks, copy);
    }
}
