/*
 * From a YAML tree to the structs of a configuration, as the table of keys says.
 */
#pragma once

#include "document.h"
#include "taskgate/config/config.h"

/* Fills `config`, which is zeroed, with the values of the file and the defaults of missing keys.
 * Reports unknown and missing keys and bad values; their members stay zero. */
void read_document(const struct report *report, const struct node *root, struct config *config);
