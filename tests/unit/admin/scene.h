/*
 * A whole operators' side for one test: configuration, store in a fresh folder, loop and
 * server, and raw requests against it.
 */
#pragma once

#include <check.h>

#include "taskgate/admin/admin.h"
#include "taskgate/task/task.h"

struct scene {
    char folder[64];
    struct loop *loop;
    struct store *store;
    struct admin *admin;
    bool upstream_reachable;
    bool is_answered;         /* by the store */
    enum store_status status; /* of that answer */
    char id[TASK_ID_BYTES];   /* of the task last created */
    int http_status;          /* of the last response */
    char *head, *body;        /* of the last response */
};

/* events_suite.c */
TCase *events_case(void);

/* Tokens: "view", "decide" and "call" and "audit" with the role of their name, and "extra". */
void scene_start(struct scene *scene);
void scene_finish(struct scene *scene);
/* Puts another configuration in force: with or without the token "view", and the text of
 * `approval:`. */
void scene_configure(bool has_viewer, const char *approval);
/* A pending task; its id is in scene->id. */
void scene_create(struct scene *scene, const char *tool, const char *arguments);
/* "/api/v1/tasks/ID" of the task last created and its continuation; valid until the next call. */
const char *scene_task_path(const struct scene *scene, const char *rest);
void scene_change(struct scene *scene, const struct task_change *change);
/* Sends a request and reads the response; `headers` are whole lines or "", `body` may be NULL.
 * Returns the status. */
int scene_ask(struct scene *scene, const char *method, const char *path, const char *headers,
              const char *body);
/* GET with the token "view"; asserts the status. */
void scene_get(struct scene *scene, const char *path, int status);
/* POST of `body` as JSON with the token "decide"; asserts the status. */
void scene_post(struct scene *scene, const char *path, const char *body, int status);
/* Asserts that the last body has, or has not, the text. */
void scene_has(const struct scene *scene, const char *text);
void scene_has_not(const struct scene *scene, const char *text);

#define AS(token) "Authorization: Bearer " token "\r\n"
