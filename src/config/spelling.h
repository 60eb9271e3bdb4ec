/*
 * Keys that may be written in two ways: brought into one before the tree is read.
 */
#pragma once

#include "document.h"

/* `auth: {upstream: {exchange: {...}}}` becomes `auth: {upstream: exchange, exchange: {...}}`. Any
 * other mapping stays, and is refused when it is read. */
void spelling_normalize(struct node *root);
