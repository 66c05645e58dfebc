/* SPDX-License-Identifier: Apache-2.0
 * Prints what tasks wrote, for `cadre logs`. The lines of stdout and stderr of a task are put
 * together apart, so that a line of one does not end up in a line of the other. */
#include "coordinator/cli/log_printer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/json.h"

static void print_bytes(uint32_t task, const char *bytes, size_t size, void *user)
{
    (void)task;
    struct log_printer *printer = ((struct log_printer_stream *)user)->printer;
    printer->closed = printer->closed || fwrite(bytes, 1, size, stdout) != size;
}

/* A later line of the same bytes begins where this one ends. */
static void print_json(uint32_t task, const char *text_line, size_t size, void *user)
{
    struct log_printer_stream *stream = user;
    struct log_printer *printer = stream->printer;
    cadre_log *first = &stream->first_bytes[task];
    printer->closed =
        printer->closed ||
        !json_print_compact(json_of_text_line(printer->job, first, text_line, size), stdout);
    first->offset += size;
    first->left_out = 0;
}

bool log_printer_open(struct log_printer *printer, uint64_t job, uint32_t tasks,
    const struct log_printer_options *options)
{
    const struct text_style text_style = terminal_style_of(stdout);
    *printer = (struct log_printer){
        .job = job, .options = *options, .escapes = text_style.columns > 0 && !options->raw};
    for (int i = 0; i < LOG_PRINTER_STREAMS; i++) {
        struct log_printer_stream *stream = &printer->streams[i];
        stream->printer = printer;
        stream->first_bytes = options->json ? calloc(tasks + 1U, sizeof(cadre_log)) : NULL;
        if (!line_splitter_open(&stream->line_splitter, tasks, &text_style,
                options->json ? print_json : print_bytes, stream) ||
            (options->json && stream->first_bytes == NULL)) {
            return false;
        }
        stream->line_splitter.prefix = !options->one_task;
        stream->line_splitter.timestamps = options->timestamps;
        stream->line_splitter.bare = options->json;
        stream->line_splitter.clean = printer->escapes && !options->json;
    }
    return true;
}

void log_printer_close(struct log_printer *printer)
{
    for (int i = 0; i < LOG_PRINTER_STREAMS; i++) {
        line_splitter_close(&printer->streams[i].line_splitter);
        free(printer->streams[i].first_bytes);
    }
}

/* The bytes of one task, escaped on a terminal. */
static void add_bytes(struct log_printer *printer, const cadre_log *log)
{
    char cleaned[ESCAPER_GROWTH * 1024 + 16];
    if (!printer->escapes) {
        print_bytes(log->task, log->bytes, log->size, &printer->streams[0]);
        return;
    }
    size_t at = 0;
    do {
        size_t take = log->size - at < 1024 ? log->size - at : 1024;
        bool end = log->end && at + take == log->size;
        print_bytes(log->task, cleaned,
            escaper_add(&printer->escaper, log->bytes + at, take, end, cleaned),
            &printer->streams[0]);
        at += take;
    } while (at < log->size);
}

/* Line by line, so that the offset of each is that of its first byte. */
static void add_json(struct log_printer_stream *stream, const cadre_log *log)
{
    for (size_t at = 0; at < log->size;) {
        const char *newline = memchr(log->bytes + at, '\n', log->size - at);
        size_t size = newline != NULL ? (size_t)(newline + 1 - log->bytes) - at : log->size - at;
        if (line_splitter_begins(&stream->line_splitter, log->task)) {
            cadre_log *first = &stream->first_bytes[log->task];
            *first = *log;
            first->offset = log->offset + at;
            first->left_out = at == 0 ? log->left_out : 0;
        }
        line_splitter_add(&stream->line_splitter, log->task, log->bytes + at, size);
        at += size;
    }
}

static void end_text_lines(struct log_printer *printer, uint32_t task)
{
    for (int i = 0; i < LOG_PRINTER_STREAMS; i++) {
        line_splitter_end(&printer->streams[i].line_splitter, task);
    }
}

/* Reports a gap on standard error; in JSON it is in the object of the next line. */
static void print_hole(const cadre_log *log)
{
    fflush(stdout);
    fprintf(stderr,
        "cadre logs: task %" PRIu32 ": %" PRIu64
        " bytes are left out here; the coordinator keeps the beginning and the newest end of a "
        "log (--log-limit)\n",
        log->task, log->left_out);
}

bool log_printer_add(const cadre_log *log, void *user)
{
    struct log_printer *printer = user;
    const struct log_printer_options *options = &printer->options;
    struct log_printer_stream *stream = &printer->streams[log->stream];
    bool unchanged = options->one_task && !options->json && !options->timestamps;
    if (log->left_out > 0) {
        end_text_lines(printer, log->task);
        if (!options->json) {
            print_hole(log);
        }
    }
    line_splitter_stamp(&stream->line_splitter, log->task, log->received_us);
    if (unchanged) {
        add_bytes(printer, log);
    } else if (options->json) {
        if (log->task < stream->line_splitter.task_count) {
            add_json(stream, log);
        }
    } else {
        line_splitter_add(&stream->line_splitter, log->task, log->bytes, log->size);
    }
    if (log->end) {
        end_text_lines(printer, log->task);
    }
    printer->closed = printer->closed || fflush(stdout) != 0;
    return !printer->closed;
}
