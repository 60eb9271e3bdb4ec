/*
 * Slack's reports to POST /slack/interactions: a button that was pressed, or a dialog that was
 * sent. Any thread; pure. Source: Slack's "Verifying requests from Slack", the payloads
 * block_actions and view_submission.
 */
#pragma once

#include "taskgate/approval/ballot.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* How far from now the time of a signature may be. */
#define SLACK_PRESS_WINDOW_MS INT64_C(300000)

/* Of the dialog: its own name, and those of its inputs and their blocks. */
#define DIALOG_CALLBACK "taskgate_reason"
#define DIALOG_REASON "reason"
#define DIALOG_TYPED "typed"

/* Whether Slack has signed these bytes with the app's secret, no more than five minutes ago. Of the
 * headers X-Slack-Request-Timestamp and X-Slack-Signature; in constant time. */
bool slack_press_is_signed(struct str secret, struct str timestamp, struct str signature,
                           struct str body, int64_t now_ms);

enum slack_press_kind {
    SLACK_PRESS_OTHER, /* nothing that the gateway has asked for */
    SLACK_PRESS_BUTTON,
    SLACK_PRESS_DIALOG,
};

/* Texts are owned, and NULL where the payload has none. */
struct slack_press {
    enum slack_press_kind kind;
    char *team, *app, *user;
    char *bot;          /* that has posted the message */
    char *channel, *ts; /* of the message with the button */
    char *task_id;
    char *shown_digest;   /* of the request that the message shows; or NULL */
    char *trigger;        /* opens a dialog, within three seconds */
    char *reason, *typed; /* of a dialog; NULL: it did not ask */
    enum ballot_verb verb;
};

/* The inputs of a dialog: a reason, and a value with this label; NULL: none. */
struct slack_asked {
    bool reason;
    const char *typed;
};

/* Reads a form with the field `payload`. False with `error` when it is none; `press` is empty
 * then. Else slack_press_finish() frees what it holds. */
bool slack_press_read(struct slack_press *press, struct str form, struct error *error);
void slack_press_finish(struct slack_press *press);
