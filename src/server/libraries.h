/*
 * Loads the libraries that a configuration needs beside the program itself.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"

/* Loads the libraries for calls to its servers and endpoints; reads files. */
bool libraries_load(const struct config *config, struct error *error);
