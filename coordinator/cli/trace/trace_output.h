/* SPDX-License-Identifier: Apache-2.0
 * The end of a trace: what was recorded becomes a file and a sentence. `cadre trace` and `cadre
 * run` call it. */
#ifndef CADRE_CLI_TRACE_TRACE_OUTPUT_H
#define CADRE_CLI_TRACE_TRACE_OUTPUT_H

#include <stdio.h>

#include "coordinator/cli/trace/trace_conclusion.h"

/* The file, of a trace or of curves: a temporary one beside it until it is whole, so that what
 * fails leaves what was there; unless it is a pipe or a device. Zeroed: closed. */
struct trace_output {
    const char *path; /* borrowed; "-": standard output */
    char *temporary;  /* owned */
    FILE *file;
};

/* False: errno. */
bool trace_output_open(struct trace_output *output, const char *path);
/* What was written to the file is whole: gives it its name. False: errno. */
bool trace_output_commit(struct trace_output *output);
/* Removes what is not whole; a zeroed or closed one is allowed. */
void trace_output_close(struct trace_output *output);

/* Puts the spans in order and on one clock, concludes, writes the file and gives it its name.
 * False: errno, ENOMEM too. The conclusion is the caller's to free, also then. */
bool trace_output_finish(struct trace_output *output, struct trace_store *store, uint64_t job,
    struct trace_conclusion *ret_conclusion, char ret_sentence[TRACE_SENTENCE_BYTES]);

/* Prints to standard error, behind `who`, what is not in it and how well its clocks agree. */
void trace_output_notes(const struct trace_store *store, const char *who, FILE *out);

#endif
