/* Look-alikes by the folding that judges all names. */
#include "lookalike.h"

#include "taskgate/json/fold.h"

bool lookalike(struct str key, struct str name)
{
    while (key.length) {
        struct str folded = fold_next(&key);
        if (folded.length > name.length ||
            !str_equal_ignore_case(folded, str_slice(name.bytes, folded.length)))
            return false;
        name = str_slice(name.bytes + folded.length, name.length - folded.length);
    }
    return name.length == 0;
}
