/* SPDX-License-Identifier: Apache-2.0
 * Structured logs of a program: one event is one line on stderr and one write(2), whatever its
 * values hold. */
#ifndef CADRE_BASE_LOG_H
#define CADRE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The prefix keeps clear of <syslog.h>, which owns LOG_INFO and its like. */
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* TEXT: "info 17:11:35.123 agent task started job=3 task=0". JSON: one object a line, the keys
 * flat. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_options {
    unsigned level;  /* enum log_level: events below it are dropped */
    unsigned format; /* enum log_format */
    int fd;          /* where lines go; 0 means 2, standard error */
};

enum log_field_type { LOG_FIELD_END, LOG_FIELD_TEXT, LOG_FIELD_U64, LOG_FIELD_I64, LOG_FIELD_BOOL };

/* Build these with the LOG_ macros below, never by hand. */
struct log_field {
    const char *key;
    enum log_field_type type;
    union {
        const char *text;
        uint64_t u64;
        int64_t i64;
        bool truth;
    } value;
};

/* Keys are lower-case identifiers. A NULL text is written as "-" (JSON: null). */
#define LOG_STR(name, word)                                                                        \
    ((struct log_field){.key = (name), .type = LOG_FIELD_TEXT, .value.text = (word)})
#define LOG_U64(name, number)                                                                      \
    ((struct log_field){.key = (name), .type = LOG_FIELD_U64, .value.u64 = (number)})
#define LOG_I64(name, number)                                                                      \
    ((struct log_field){.key = (name), .type = LOG_FIELD_I64, .value.i64 = (number)})
#define LOG_BOOL(name, condition)                                                                  \
    ((struct log_field){.key = (name), .type = LOG_FIELD_BOOL, .value.truth = (condition)})
#define LOG_END ((struct log_field){.type = LOG_FIELD_END})

/* Writes one event:
 *     log_event(LOG_LEVEL_INFO, "agent", "task started", LOG_U64("job", 3), LOG_STR("name", n),
 * LOG_END); The fields are a typed array, so a value of the wrong type does not compile; LOG_END is
 * needed where there is no field, and harmless elsewhere. Values are escaped, and cut after 1,000
 * bytes. */
#define log_event(level, component, message, ...)                                                  \
    log_write((level), (component), (message), (const struct log_field[]){__VA_ARGS__, LOG_END})

/* Sets how this process logs; to be called once, before its threads start. Without it: text from
 * info up. In text, colours are used only on a terminal and only while NO_COLOR is unset or empty.
 * When standard error is the journal's (JOURNAL_STREAM is set), lines start with its <priority> and
 * carry no time. */
void log_open(const struct log_options *options);

struct iovec;

/* How fields get to the journal: sd_journal_sendv() of libsystemd, which this library does not
 * link. Set before log_open(). Where standard error is the journal's, each event is then sent
 * with its fields, and journalctl finds them: CADRE_JOB=3. MESSAGE is the event's text line,
 * PRIORITY its level, CADRE_COMPONENT the component, and CADRE_<KEY> each field, in upper case.
 * What cannot be sent so is written as a line. */
void log_set_journal(int (*send)(const struct iovec *fields, int count));

/* True when an event of this level would be written: guards work done only for the log. */
bool log_enabled(enum log_level level);

/* What log_event() expands to. Never fails and never blocks on a lock; a line that cannot be
 * written is lost. Thread-safe; not for signal handlers. */
void log_write(enum log_level level, const char *component, const char *message,
    const struct log_field *fields);

/* How often the same event is logged when a program produces it again and again: the first few
 * times, then once a minute, with how many were left out. Pure: the time is an argument. */

#define LOG_RATELIMIT_BURST 8

/* All zero before the first. */
struct log_ratelimit {
    unsigned logged;
    uint64_t last_us;
    uint64_t suppressed;
};

/* False: the event is left out. True: it is logged, and *ret_suppressed were left out before it. */
bool log_ratelimit_allow(
    struct log_ratelimit *log_ratelimit, uint64_t now_us, uint64_t *ret_suppressed);

#endif
