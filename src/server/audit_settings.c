/* The configuration's settings of the audit trail, for the store. */
#include "audit_settings.h"

void audit_settings_apply(struct store *store, const struct config *config)
{
    const struct config_audit *audit = &config->audit;
    const struct store_audit_settings settings = {
        .keep_arguments_ms = audit->keep_arguments_ms,
        .keep_ms = audit->keep_ms,
        .anchor_every_ms = audit->anchor_every_ms,
        .key = audit->key,
    };
    store_audit_configure(store, &settings);
}
