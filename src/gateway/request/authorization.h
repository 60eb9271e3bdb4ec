/* Whom an Authorization header speaks for. */
#pragma once

#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

/* The digest by which its holder is known. Spellings that a server reads alike have one digest: the
 * scheme counts in lower case (RFC 9110 §11.1), white space inside as one blank. A value that is
 * one word has no scheme. */
void authorization_digest(struct str value, char hex[DIGEST_HEX_BYTES]);
