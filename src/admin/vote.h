/*
 * One vote of an operator: to the store, and what its answer means. Of a single decision and of
 * many at once.
 */
#pragma once

#include "pending_reply.h"
#include "reply.h"
#include "taskgate/approval/ballot.h"

struct decision {
    enum ballot_verb verb;
    bool withdraws;
    const char *log_line; /* when it decides, or withdraws */
};

extern const struct decision vote_approve, vote_reject, vote_withdraw;

/* The ballot's verdict on that vote. */
enum ballot_refusal vote_judge(const struct pending_reply *pending, const struct task *task);
/* Whether that vote, an approval, may be the one that decides. */
bool vote_may_decide(const struct pending_reply *pending, const struct task *task);
/* Gives the vote of pending->who, by pending's decision, reason and emergency. */
void vote_cast(const struct pending_reply *pending, struct str id, struct store_call call);
/* The path of the value that had to be typed, where the vote was refused for that; else NULL. The
 * caller frees it. */
char *vote_typed_path(const struct pending_reply *pending, const struct store_reply *reply);
/* Tells the log and the metrics of a vote that was counted. */
void vote_note(const struct pending_reply *pending, const struct task *task);
/* Of the answer to a vote that was counted: 202 while others are missing, else 200. */
int vote_status(const struct pending_reply *pending, const struct store_reply *reply);
/* Of a refused one. */
enum reply_error vote_error(enum ballot_refusal refusal);
