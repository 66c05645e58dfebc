/* SPDX-License-Identifier: Apache-2.0
 * What `cadre trace --json` prints. */
#ifndef CADRE_CLI_TRACE_JSON_TRACE_H
#define CADRE_CLI_TRACE_JSON_TRACE_H

#include <jansson.h>

#include "coordinator/cli/trace/trace_conclusion.h"

/* The caller's to json_decref(); NULL: no memory. */
json_t *json_of_trace(const struct trace_store *store, const struct trace_conclusion *conclusion,
    uint64_t job, const char *file, const char *sentence);

#endif
