/*
 * From credentials to their person, under one configuration. Operators who show them, and votes
 * that were given with them before, are looked up here alike. Any thread.
 */
#pragma once

#include "taskgate/approval/person.h"
#include "taskgate/config/config.h"

/* The ways credentials are shown: `via` of a person. */
#define PEOPLE_VIA_TOKEN "token"
#define PEOPLE_VIA_OIDC "oidc"
#define PEOPLE_VIA_CERTIFICATE "certificate"
#define PEOPLE_VIA_SLACK "slack"
/* The credential of the token of THOUGHTGATE_ADMIN_TOKEN or of the first start. No token of a file
 * has this name. */
#define PEOPLE_OWN_CREDENTIAL ""
/* And the name that it decides under. */
#define PEOPLE_OWN_NAME "admin"

/* Finds whose the credentials of `person` are (via with credential, or issuer, subject, the digests
 * of verified addresses, and the groups that the issuer claims): sets name, is_named and groups,
 * adds the keys of their entry, and sets their roles (ROLE_… bits, as configured). False, and no
 * more than the credentials, where they are nobody's. */
bool people_know(const struct config *config, struct person *person, unsigned *roles);
