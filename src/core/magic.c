/* A checked cast that fails. */
#include "taskgate/core/magic.h"

#include <stdlib.h>

#include "taskgate/core/log.h"

_Noreturn void magic_mismatch(const char *type, uint32_t wanted, uint32_t found)
{
    log_error("A pointer does not lead to the expected kind of object, stopping",
              LOG_TEXT("type", type), LOG_NUMBER("magic", found), LOG_NUMBER("expected", wanted));
    abort();
}
