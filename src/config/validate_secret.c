/* Secrets that stand in environment variables (V-014). */
#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

char *validate_secret(const struct draft *draft, const struct node *variable, const char *path)
{
    struct error error;
    if (!variable || variable->kind != NODE_TEXT ||
        !check_variable_name(str_from(variable->text), &error))
        return NULL;
    const char *secret = draft->environment(variable->text);
    if ((!secret || !*secret) && draft->needs_no_secrets)
        return NULL;
    if (!secret || !*secret)
        report_error(&draft->report, variable, path, "set it to the secret",
                     "V-014 the environment variable %s is not set",
                     check_shown_variable(variable->text));
    else if (!check_header_value(str_from(secret), &error)) /* a line end read along with it */
        report_error(&draft->report, variable, path, NULL, "in the environment variable %s: %s",
                     variable->text, error.message);
    else
        return memory_copy_text(secret);
    return NULL;
}
