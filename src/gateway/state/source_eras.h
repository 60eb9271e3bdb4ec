/*
 * The eras of the protocol that each source's server speaks: what the configuration says, or what
 * was found out by asking. A verdict that a server is modern heals itself by its first errors; one
 * that it is not holds for ten minutes, because a server that learns the modern era still answers
 * `initialize`. Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/config/config.h"

struct source_eras;

struct source_eras *source_eras_create(void);
void source_eras_destroy(struct source_eras *eras); /* NULL is allowed */

/* `*served` gets the CONFIG_ERA_… bits of what the server speaks as far as is known. Legacy is
 * assumed until the server has refused it. False: whether it is modern has to be asked. Of several
 * callers at once only the first is sent to ask while an older verdict is there. Times are
 * monotonic. */
bool source_eras_find(struct source_eras *eras, const struct config_source *source, int64_t now_ms,
                      unsigned *served);
/* Whether the server is known to speak the modern era alone. Costs no lock as long as no server of
 * the process is found to. */
bool source_eras_lacks_sessions(struct source_eras *eras, const struct config_source *source);
/* Whether modern clients are bridged to the server, which speaks the legacy era alone. */
bool source_eras_bridge_down(struct source_eras *eras, const struct config_source *source,
                             int64_t now_ms);
/* Whether modern clients are served: by the server, or by the bridge to it. */
bool source_eras_serves_modern(struct source_eras *eras, const struct config_source *source,
                               int64_t now_ms);
/* Whether the server speaks the era with sessions, as far as is known. */
bool source_eras_has_sessions(struct source_eras *eras, const struct config_source *source,
                              int64_t now_ms);
/* The server has shown that it speaks the era, or that it does not. A new verdict is logged. */
void source_eras_note(struct source_eras *eras, const struct config_source *source,
                      enum config_era era, bool serves, int64_t now_ms);
/* A modern server has told its capabilities: whether it makes tasks of its own. */
void source_eras_note_tasks(struct source_eras *eras, const struct config_source *source,
                            bool makes_tasks);
enum source_tasks { SOURCE_TASKS_UNKNOWN, SOURCE_MAKES_TASKS, SOURCE_LACKS_TASKS };
enum source_tasks source_eras_tasks(struct source_eras *eras, const struct config_source *source);
/* A server of either era has announced its extensions: whether it reads directories of resources.
 */
void source_eras_note_directories(struct source_eras *eras, const struct config_source *source,
                                  bool reads);
/* False: it has not announced any. */
bool source_eras_find_directories(struct source_eras *eras, const struct config_source *source,
                                  bool *reads);
/* A modern request was answered as if nobody there spoke it: the next one asks, unless the verdict
 * is a few seconds old. */
void source_eras_doubt(struct source_eras *eras, const struct config_source *source,
                       int64_t now_ms);
