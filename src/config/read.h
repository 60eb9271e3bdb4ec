/*
 * From a YAML tree to the structs of a configuration, as the table of keys says.
 */
#pragma once

#include "document.h"
#include "taskgate/config/config.h"

/* Fills `config`, which is zeroed, with what is there and the defaults of what is not, and
 * reports unknown and missing keys and bad values. What was reported stays zero. */
void read_document(const struct report *report, const struct node *root, struct config *config);
