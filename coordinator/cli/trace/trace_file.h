/* SPDX-License-Identifier: Apache-2.0
 * A trace as a file for ui.perfetto.dev and chrome://tracing (Trace Event Format, the JSON object
 * form). No I/O but on the FILE it is given. */
#ifndef CADRE_CLI_TRACE_TRACE_FILE_H
#define CADRE_CLI_TRACE_TRACE_FILE_H

#include <stdio.h>

#include "coordinator/cli/trace/trace_store.h"

/* Of an aligned store with its waits. `conclusion` is text for people. False: not all of it could
 * be written, or no memory. */
bool trace_file_write(
    const struct trace_store *store, uint64_t job, const char *conclusion, FILE *out);

/* "all_reduce"; "kind 40" of a later version is in `room`. */
const char *trace_kind_text(uint32_t kind, char room[24]);

#endif
