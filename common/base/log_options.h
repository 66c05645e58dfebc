/* SPDX-License-Identifier: Apache-2.0
 * The rows for --log-level and --log-format that every daemon's option table contains. */
#ifndef CADRE_BASE_LOG_OPTIONS_H
#define CADRE_BASE_LOG_OPTIONS_H

#include "common/base/log.h"
#include "common/base/options.h"

static const char *const log_level_names[] = {"debug", "info", "warning", "error", NULL};
static const char *const log_format_names[] = {"text", "json", NULL};

/* Two rows for a table of the struct `values`, whose `member` is a struct log_options. */
#define LOG_OPTION_ROWS(values, member)                                                            \
    {OPTION_ROW(CHOICE, "log-level", values, member.level, "LEVEL", "info"),                       \
        .environment = "CADRE_LOG_LEVEL", .choices = log_level_names, .group = "Logging",          \
        .help = "Write events of this level and above to standard error."},                        \
    {                                                                                              \
        OPTION_ROW(CHOICE, "log-format", values, member.format, "FORMAT", "text"),                 \
            .environment = "CADRE_LOG_FORMAT", .choices = log_format_names,                        \
            .help = "A line per event for people, or a JSON object."                               \
    }

#endif
