/* The words of definitions. */
#include "taskgate/config/definitions.h"

static const char *const kinds[DEFINITION_KINDS] = {"tool", "prompt", "skill"};

const char *definition_kind_name(enum definition_kind kind)
{
    return kinds[kind];
}

bool definition_kind_parse(struct str name, enum definition_kind *kind)
{
    for (unsigned i = 0; i < DEFINITION_KINDS; i++) {
        if (str_equal(name, str_from(kinds[i]))) {
            *kind = (enum definition_kind)i;
            return true;
        }
    }
    return false;
}

const char *definition_flag_name(enum definition_flag flag)
{
    static const char *const names[DEFINITION_FLAG_COUNT] = {
#define FLAG_ROW(symbol, name, meaning) [FLAG_BIT_##symbol] = (name),
        DEFINITION_FLAGS(FLAG_ROW)
#undef FLAG_ROW
    };
    return names[flag];
}
