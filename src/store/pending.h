/*
 * How many tasks are undecided or run without a decision, per owner and in all, and the bytes of
 * their requests per owner, for the limits. The counts are rows, changed in the transaction of each
 * change: a create counts what every process has committed, and counting ten thousand tasks would
 * be the slowest part of it.
 */
#pragma once

#include "operation.h"

/* A task has come into being, or left `from`; its request is still there. false: the database has
 * failed. */
bool pending_note_created(struct batch *batch, const struct task *task);
bool pending_note_left(struct batch *batch, const struct task *task); /* its owner */
bool pending_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* Its request was as long before. */
bool pending_note_edited(struct batch *batch, const struct task *task, size_t bytes_before);
/* Those of an owner and of all, with what this batch has changed. */
bool pending_count(struct batch *batch, const char *owner, struct limited_counts *counts);
/* Writes the counts of all, once, before the commit: the row would else be written by each
 * operation. */
bool pending_write(struct batch *batch);
