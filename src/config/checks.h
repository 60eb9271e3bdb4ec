/* The forms of single values: one function per kind, each with its sentence. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

bool check_not_empty(struct str text, struct error *error);
bool check_glob(struct str text, struct error *error);
bool check_source_id(struct str text, struct error *error);
/* An absolute http or https URL with a host. Never shown: it may hold credentials. */
bool check_url(struct str text, struct error *error);
/* The same, or smtp://HOST:PORT or smtps://HOST:PORT and nothing else. */
bool check_endpoint(struct str text, struct error *error);
/* A mail address in characters that mean nothing in a header or a command (RFC 5321 §4.1.2,
 * without quoted names and without SMTPUTF8). */
bool check_mail_address(struct str text, struct error *error);
/* An IPv4 or IPv6 address to listen on. */
bool check_address(struct str text, struct error *error);
/* HOST:PORT to listen on; the host is an IP address or localhost. */
bool check_listen_address(struct str text, struct error *error);
/* http://HOST:PORT and nothing else. */
bool check_replica_address(struct str text, struct error *error);
/* A name that logs, metrics and headers can have: visible ASCII, at most 128 characters. */
bool check_replica_id(struct str text, struct error *error);
/* A host as a Host header has it, with or without port. */
bool check_host(struct str text, struct error *error);
/* An issuer's identifier (RFC 8414 §2): an https URL, or plain http to this machine, without query.
 */
bool check_issuer(struct str text, struct error *error);
/* RFC 6749 §3.3: one scope, without white space. */
bool check_scope(struct str text, struct error *error);
bool check_origin(struct str text, struct error *error);
/* RFC 9110 token, and none of the names the gateway or HTTP itself must set. */
bool check_header_name(struct str text, struct error *error);
bool check_header_value(struct str text, struct error *error);
bool check_sha256(struct str text, struct error *error);
bool check_dot_path(struct str text, struct error *error);
/* The first characters that a tool's name may have, so that every client accepts the whole. */
bool check_tool_prefix(struct str text, struct error *error);
/* https, or plain http to a loopback address; no credentials, query or fragment. */
bool check_base_url(struct str text, struct error *error);
/* The names of people and groups: no white space at the ends, no control character. */
bool check_name(struct str text, struct error *error);
/* U…, W… or S…: of a person or a group in Slack. */
bool check_slack_id(struct str text, struct error *error);
/* U… or W…: of a person. */
bool check_slack_user(struct str text, struct error *error);
/* The subject of a certificate in the form of RFC 4514, without blanks between its parts. */
bool check_certificate_subject(struct str text, struct error *error);
bool check_variable_name(struct str text, struct error *error);
/* The name as an error may repeat it. A text that looks like a secret is "named
 * here". */
const char *check_shown_variable(const char *name);

bool parse_bool(struct str text, bool *value);
/* "4MiB", "512 kB", "1048576". */
bool parse_bytes(struct str text, int64_t *value, struct error *error);
bool parse_integer(struct str text, int64_t *value);
