/* SPDX-License-Identifier: Apache-2.0
 * Prints what tasks wrote to standard output: as bytes, lines or JSON objects. */
#ifndef CADRE_CLI_LOG_PRINTER_H
#define CADRE_CLI_LOG_PRINTER_H

#include <stdbool.h>

#include "cadre/client.h"
#include "coordinator/cli/render/line_splitter.h"
#include "coordinator/cli/render/terminal.h"

#define LOG_PRINTER_STREAMS 3 /* indexed by cadre_log_stream */

struct log_printer_options {
    bool one_task; /* its bytes are written unchanged, without a newline of ours */
    bool raw;      /* control characters are not escaped on a terminal */
    bool timestamps;
    bool json;
};

struct log_printer {
    uint64_t job;
    struct log_printer_options options;
    struct log_printer_stream {
        struct log_printer *printer;
        struct line_splitter line_splitter;
        cadre_log *first_bytes; /* for --json, by task: of the line that comes; else NULL */
    } streams[LOG_PRINTER_STREAMS];
    struct escaper escaper;
    bool escapes; /* standard output is a terminal, and its bytes are not raw */
    bool closed;  /* standard output takes no more */
};

/* For a job of `tasks` tasks; false: out of memory. */
bool log_printer_open(struct log_printer *printer, uint64_t job, uint32_t tasks,
    const struct log_printer_options *options);
void log_printer_close(struct log_printer *printer);
/* A cadre_log_fn; `user` is the printer. */
bool log_printer_add(const cadre_log *log, void *user);

#endif
