/*
 * Loads the libraries that a configuration needs beside the program itself.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"

/* Loads what calls to its servers and to whom it notifies will need; reads files. */
bool libraries_load(const struct config *config, struct error *error);
