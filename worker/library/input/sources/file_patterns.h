/* SPDX-License-Identifier: Apache-2.0
 * Files and objects that patterns of the shell match. */
#ifndef CADRE_WORKER_INPUT_SOURCES_FILE_PATTERNS_H
#define CADRE_WORKER_INPUT_SOURCES_FILE_PATTERNS_H

#include <stddef.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

/* The names that match any of the patterns, each once, sorted by their bytes, as a CADRE_STRING [n]
 * that is the caller's to release. Of objects only those are listed whose names begin as the
 * pattern does before its first wildcard, and no names are held but those that match. Without
 * folders and NAME.cadre-index. NOT_FOUND names a pattern that nothing matches. */
cadre_status file_patterns_find(const char *const patterns[], size_t pattern_count,
    cadre_tensor **ret_names, struct cadre_error *error);

#endif
