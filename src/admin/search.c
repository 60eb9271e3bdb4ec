/* The search of operators. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#define WHITE_SPACE " \t\r\n"

bool search_finds(const char *text, struct str words)
{
    bool finds = true;
    char *rest = NULL, *copy = memory_copy_str(words);
    for (char *word = strtok_r(copy, WHITE_SPACE, &rest); word && finds;
         word = strtok_r(NULL, WHITE_SPACE, &rest))
        finds = strcasestr(text, word) != NULL;
    free(copy);
    return finds;
}
