/*
 * The moves of an invocation, in one list: invocation.c makes its table of it, the picture in
 * docs/architecture.md is drawn from it (scripts/invocation.mjs).
 *
 * MOVE(from, to, name, of): `of` says whose move it is: an EXECUTION's, a DETACHED call's, or of
 * BOTH. A move that is not listed is forbidden. No move leads from RUNNING, POLLING or STORING back
 * to a state of an execution before it: so nothing is sent twice (design invariant 4),
 * except, at RUNNING and once, a call that the server has not looked at because it had forgotten
 * its session (execution_session.c).
 */
#pragma once

/* clang-format off */
#define INVOCATION_STATES(STATE)                                                                   \
    STATE(OFFERED, "offered")       /* the credentials are held; nothing is under way */           \
    STATE(CHECKING, "checking")     /* whether it is still what was approved */                    \
    STATE(CLAIMING, "claiming")     /* its task is to become `executing` behind the vote that may  \
                                       approve it */                                               \
    STATE(COMMITTING, "committing") /* an execution: its task is to become `executing`; a detached \
                                       call: its task is to exist, while the server works */       \
    STATE(RUNNING, "running")       /* the server works, or may */                                 \
    STATE(POLLING, "polling")       /* the server runs it as a task of its own, which is followed */\
    STATE(STORING, "storing")       /* its outcome is on the way to the store */                   \
    STATE(REFUSED, "refused")       /* nothing was sent; the refusal is on the way to the store */ \
    STATE(ENDED, "ended")           /* nothing is sent or stored any more */

#define INVOCATION_MOVES(MOVE)                                                                     \
    MOVE(OFFERED, CHECKING, "check", EXECUTION)                                                    \
    MOVE(OFFERED, CLAIMING, "claim", EXECUTION)                                                    \
    MOVE(OFFERED, ENDED, "drop", EXECUTION)                                                        \
    MOVE(CHECKING, OFFERED, "wait", EXECUTION)                                                     \
    MOVE(CHECKING, COMMITTING, "commit", EXECUTION)                                                \
    MOVE(CHECKING, REFUSED, "refuse", EXECUTION)                                                   \
    MOVE(CHECKING, ENDED, "drop", EXECUTION)                                                       \
    MOVE(CLAIMING, OFFERED, "wait", EXECUTION)                                                     \
    MOVE(CLAIMING, RUNNING, "run", EXECUTION)                                                      \
    MOVE(CLAIMING, STORING, "refuse", EXECUTION)                                                   \
    MOVE(CLAIMING, ENDED, "drop", EXECUTION)                                                       \
    MOVE(COMMITTING, OFFERED, "wait", EXECUTION)                                                   \
    MOVE(COMMITTING, RUNNING, "run", BOTH)                                                         \
    MOVE(COMMITTING, ENDED, "drop", BOTH)                                                          \
    MOVE(COMMITTING, STORING, "answer", BOTH)                                                      \
    MOVE(RUNNING, COMMITTING, "detach", DETACHED)                                                  \
    MOVE(RUNNING, POLLING, "follow", EXECUTION)                                                    \
    MOVE(RUNNING, STORING, "answer", BOTH)                                                         \
    MOVE(RUNNING, ENDED, "drop", BOTH)                                                             \
    MOVE(POLLING, STORING, "answer", EXECUTION)                                                    \
    MOVE(POLLING, ENDED, "drop", EXECUTION)                                                        \
    MOVE(STORING, ENDED, "store", BOTH)                                                            \
    MOVE(REFUSED, ENDED, "store", EXECUTION)
/* clang-format on */
