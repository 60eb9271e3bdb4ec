/*
 * Sessions of operators that end at another replica. Their next request here finds none; but a
 * stream or a wait that is open asks no more. So those of sessions are looked up every 5 s while
 * replicas share the store. On the admin's loop.
 */
#pragma once

struct admin;
struct session_watch;

struct session_watch *session_watch_create(struct admin *admin);
void session_watch_destroy(struct session_watch *watch); /* NULL is allowed */
