/* The methods of sets and entities, as one table. */
#include "ast.h"

static const struct method methods[] = {
    {{"contains", 8}, NODE_CONTAINS, 2},
    {{"containsAll", 11}, NODE_CONTAINS_ALL, 2},
    {{"containsAny", 11}, NODE_CONTAINS_ANY, 2},
    {{"isEmpty", 7}, NODE_IS_EMPTY, 1},
    {{"getTag", 6}, NODE_GET_TAG, 2},
    {{"hasTag", 6}, NODE_HAS_TAG, 2},
};

const struct method *method_find(struct str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (str_equal(methods[i].name, name))
            return &methods[i];
    return NULL;
}

const struct method *method_of(enum node_kind kind)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == kind)
            return &methods[i];
    return NULL;
}
