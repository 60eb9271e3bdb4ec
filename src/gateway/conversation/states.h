/*
 * The states of a call that the gateway runs, and the moves between them: one list.
 * conversation_move() makes its table of it, the picture in docs/architecture.md is drawn from it
 * (scripts/states.mjs).
 *
 * MOVE(from, to, name, of): `of` says whose move it is: of an APPROVED call, of a DETACHED one, or
 * of BOTH. A move that is not listed is forbidden. The order counts: no move leads from RUNNING or
 * a state after it to one before it, so nothing is sent twice (behaviour 1.4), except, at RUNNING
 * and once, a call that the server has not looked at because it had forgotten its session
 * (execute.c).
 */
#pragma once

/* clang-format off */
#define CONVERSATION_STATES(STATE)                                                                 \
    STATE(OFFERED, "offered")       /* approved: the credentials are held; nothing is under way */ \
    STATE(CHECKING, "checking")     /* whether it is still what was approved */                    \
    STATE(CLAIMING, "claiming")     /* "executing" is queued after the vote that may approve it */ \
    STATE(COMMITTING, "committing") /* "executing" is on its way to disk */                        \
    STATE(OPENING, "opening")       /* a session is obtained; no byte of the request has left */   \
    STATE(RUNNING, "running")       /* the server works, or may */                                 \
    STATE(DETACHING, "detaching")   /* so does it, and its task is on its way to disk */           \
    STATE(FOLLOWING, "following")   /* the server runs it as a task of its own */                  \
    STATE(STORING, "storing")       /* its outcome is on the way to the store */                   \
    STATE(REFUSED, "refused")       /* nothing was sent; the refusal is on the way to the store */ \
    STATE(ENDED, "ended")           /* nothing is sent or stored any more */

#define CONVERSATION_MOVES(MOVE)                                                                   \
    MOVE(OFFERED, CHECKING, "check", APPROVED)                                                     \
    MOVE(OFFERED, CLAIMING, "claim", APPROVED)                                                     \
    MOVE(OFFERED, ENDED, "drop", APPROVED)                                                         \
    MOVE(CHECKING, OFFERED, "wait", APPROVED)                                                      \
    MOVE(CHECKING, COMMITTING, "commit", APPROVED)                                                 \
    MOVE(CHECKING, REFUSED, "refuse", APPROVED)                                                    \
    MOVE(CHECKING, ENDED, "drop", APPROVED)                                                        \
    MOVE(CLAIMING, OFFERED, "wait", APPROVED)                                                      \
    MOVE(CLAIMING, OPENING, "open", APPROVED)                                                      \
    MOVE(CLAIMING, ENDED, "drop", APPROVED)                                                        \
    MOVE(COMMITTING, OFFERED, "wait", APPROVED)                                                    \
    MOVE(COMMITTING, OPENING, "open", APPROVED)                                                    \
    MOVE(COMMITTING, ENDED, "drop", APPROVED)                                                      \
    MOVE(OPENING, RUNNING, "run", APPROVED)                                                        \
    MOVE(OPENING, STORING, "fail", APPROVED)                                                       \
    MOVE(OPENING, ENDED, "drop", APPROVED)                                                         \
    MOVE(RUNNING, DETACHING, "detach", DETACHED)                                                   \
    MOVE(RUNNING, FOLLOWING, "follow", APPROVED)                                                   \
    MOVE(RUNNING, STORING, "answer", BOTH)                                                         \
    MOVE(RUNNING, ENDED, "drop", BOTH)                                                             \
    MOVE(DETACHING, RUNNING, "run", DETACHED)                                                      \
    MOVE(DETACHING, STORING, "answer", DETACHED)                                                   \
    MOVE(DETACHING, ENDED, "drop", DETACHED)                                                       \
    MOVE(FOLLOWING, STORING, "answer", APPROVED)                                                   \
    MOVE(FOLLOWING, ENDED, "drop", APPROVED)                                                       \
    MOVE(STORING, ENDED, "store", BOTH)                                                            \
    MOVE(REFUSED, ENDED, "store", APPROVED)
/* clang-format on */
