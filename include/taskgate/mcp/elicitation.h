/*
 * Elicitation (2025-11-25): a person's answer to a server's form. The form is a flat
 * schema of texts, numbers, yes-or-no and choices; content is checked against it before it
 * goes up. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

enum elicitation_action { ELICITATION_ACCEPT, ELICITATION_DECLINE, ELICITATION_CANCEL };
/* "accept", "decline", "cancel". */
const char *elicitation_action_name(enum elicitation_action action);
/* `value` is JSON text. */
bool elicitation_action_parse(struct str value, enum elicitation_action *action);

/* Whether `params` of elicitation/create ask for a visit to a URL in place of a form. */
bool elicitation_is_url(struct str params);

/* Whether `params` of elicitation/create have a question: a message with a form, or with a URL and
 * an id. The content of the form is not checked. false: `error` names the member. */
bool elicitation_check_request(struct str params, struct error *error);

/* Whether `content` (JSON text, empty when absent) answers the form `schema` (JSON text): an
 * object of texts, numbers, booleans and lists of texts, with everything that is required, each
 * value of its type, length, format, range or choice. Members that the form does not name are
 * let through unless it says additionalProperties: false. false: `error` names the member. */
bool elicitation_check_content(struct str schema, struct str content, struct error *error);

/*
 * Sampling (2025-11-25): a server's request for a message of a model. Any thread; nothing is owned.
 */

/* Whether `params` of sampling/createMessage are a conversation and say how long the answer may be.
 * false: `error` names the member. */
bool sampling_check_request(struct str params, struct error *error);
