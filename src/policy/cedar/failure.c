/* Why a policy could not be evaluated, in words. */
#include "ast.h"

static void write_type(const struct cedar_failure *failure, struct buffer *out)
{
    const char *between = "type error: expected ";
    for (unsigned kind = 0; kind < CEDAR_KIND_COUNT; kind++) {
        if (!(failure->expected & 1U << kind))
            continue;
        buffer_append_format(out, "%s%s", between, cedar_kind_name((enum cedar_kind)kind));
        between = " or ";
    }
    buffer_append_format(out, ", found %s", cedar_kind_name(failure->found));
}

void cedar_failure_write(const struct cedar_failure *failure, struct buffer *out)
{
    switch (failure->code) {
    case CEDAR_FAILURE_TYPE:
        write_type(failure, out);
        break;
    case CEDAR_FAILURE_ATTRIBUTE:
        buffer_append_text(out, "there is no attribute ");
        buffer_append_json_string(out, failure->name);
        break;
    case CEDAR_FAILURE_VARIANT:
        buffer_append_text(out, failure->name.length
                                    ? "another attribute differs only by case or look from "
                                    : "attributes of the two differ only by case or look");
        if (failure->name.length)
            buffer_append_json_string(out, failure->name);
        break;
    case CEDAR_FAILURE_TAG:
        buffer_append_text(out, "the entity has no such tag");
        break;
    case CEDAR_FAILURE_ENTITY:
        buffer_append_text(out, "the entity with this attribute or tag does not exist");
        break;
    case CEDAR_FAILURE_OVERFLOW:
        buffer_append_text(out, "the result does not fit into 64 bits");
        break;
    case CEDAR_FAILURE_CALL:
        buffer_append_format(out, "%.*s refuses its argument", STR_ARGS(failure->name));
        break;
    case CEDAR_FAILURE_ARITY:
        buffer_append_format(out, "%.*s takes another number of arguments",
                             STR_ARGS(failure->name));
        break;
    case CEDAR_FAILURE_BUDGET:
        buffer_append_text(out, "too much work for one decision");
        break;
    case CEDAR_FAILURE_DEPTH:
        buffer_append_format(out, "sets and records nest deeper than %d levels",
                             CEDAR_MAX_VALUE_DEPTH);
        break;
    case CEDAR_FAILURE_UNKNOWN:
        buffer_append_text(out, "it depends on ");
        buffer_append_json_string(out, failure->name);
        buffer_append_text(out, ", which is not known");
        break;
    }
}

struct cedar_position cedar_failure_position(const struct cedar_failure *failure)
{
    return source_position(failure->policy->source, failure->offset);
}
