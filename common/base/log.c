/* SPDX-License-Identifier: Apache-2.0
 * An event is built as one line on the stack and written with one call. JSON is written by hand
 * here: a log call must not allocate, and the task runtime should not carry a JSON library for
 * it. The journal gets the same event as fields. */
#include "common/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/utf8.h"

#define LOG_BUFFER_BYTES  8192
#define VALUE_BYTES 1000

static struct {
    unsigned level;
    unsigned format;
    int fd;
    bool colour;
    bool terminal;
    bool journal;
    int (*send)(const struct iovec *fields, int count); /* NULL: lines only */
    bool sends;
} logger = {.level = LOG_LEVEL_INFO, .format = LOG_FORMAT_TEXT, .fd = STDERR_FILENO};

static const struct {
    const char *name;
    const char *colour;
    char priority; /* as syslog(3) counts */
} levels[] = {
    [LOG_LEVEL_DEBUG] = {"debug", "\033[2m", '7'},
    [LOG_LEVEL_INFO] = {"info", "\033[32m", '6'},
    [LOG_LEVEL_WARNING] = {"warning", "\033[33m", '4'},
    [LOG_LEVEL_ERROR] = {"error", "\033[31m", '3'},
};

/* The event being built; what does not fit is dropped, the closing bytes always fit. */
struct log_buffer {
    char bytes[LOG_BUFFER_BYTES];
    size_t used;
};

#define LOG_BUFFER_RESERVE 8

void log_set_journal(int (*send)(const struct iovec *fields, int count))
{
    logger.send = send;
}

/* JOURNAL_STREAM is "<device>:<inode>" of the stream that systemd gave to the first process of a
 * service: a child that was given another one inherits the variable, too. */
static bool is_journal(int fd)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device = 0;
    unsigned long long inode = 0;
    struct stat status;
    return text != NULL && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
           fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void log_open(const struct log_options *options)
{
    const char *no_colour = getenv("NO_COLOR");
    logger.level = options->level;
    logger.format = options->format;
    logger.fd = options->fd != 0 ? options->fd : STDERR_FILENO;
    logger.terminal = isatty(logger.fd) == 1;
    logger.colour = logger.terminal && (no_colour == NULL || no_colour[0] == '\0');
    logger.journal = !logger.terminal && getenv("JOURNAL_STREAM") != NULL;
    logger.sends = logger.send != NULL && is_journal(logger.fd);
}

bool log_enabled(enum log_level level)
{
    return (unsigned)level >= logger.level;
}

static void log_put(struct log_buffer *out, const char *bytes, size_t size)
{
    if (size <= LOG_BUFFER_BYTES - LOG_BUFFER_RESERVE - out->used) {
        memcpy(out->bytes + out->used, bytes, size);
        out->used += size;
    }
}

static void put_text(struct log_buffer *out, const char *text)
{
    log_put(out, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put_format(
    struct log_buffer *out, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof text) {
        log_put(out, text, (size_t)length);
    }
}

/* One character that must be escaped. JSON has no way to write a byte that is not UTF-8. */
static void put_escape(struct log_buffer *out, char c, bool json)
{
    unsigned char byte = (unsigned char)c;
    switch (c) {
    case '\n':
        put_text(out, "\\n");
        return;
    case '\t':
        put_text(out, "\\t");
        return;
    case '\r':
        put_text(out, "\\r");
        return;
    case '"':
    case '\\':
        put_format(out, "\\%c", c);
        return;
    default:
        put_format(out, json ? (byte < 0x80 ? "\\u%04x" : "\\ufffd") : "\\x%02x", byte);
    }
}

static void put_escaped(struct log_buffer *out, const char *text, bool json)
{
    size_t size = strnlen(text, VALUE_BYTES + 1);
    size_t shown = size > VALUE_BYTES ? VALUE_BYTES : size;
    for (size_t at = 0; at < shown;) {
        size_t length = utf8_printable(text + at, size - at);
        if (length == 0 || text[at] == '"' || text[at] == '\\') {
            put_escape(out, text[at++], json);
        } else {
            log_put(out, text + at, length);
            at += length;
        }
    }
    if (size > VALUE_BYTES) {
        put_text(out, "...");
    }
}

static bool is_bare_word(const char *text)
{
    size_t length = strnlen(text, VALUE_BYTES);
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~' || strchr("\"\\=", text[i]) != NULL) {
            return false;
        }
    }
    return length > 0;
}

static void put_quoted(struct log_buffer *out, const char *text, bool json)
{
    put_text(out, "\"");
    put_escaped(out, text, json);
    put_text(out, "\"");
}

static void put_value(struct log_buffer *out, const struct log_field *field, bool json)
{
    switch (field->type) {
    case LOG_FIELD_U64:
        put_format(out, "%" PRIu64, field->value.u64);
        return;
    case LOG_FIELD_I64:
        put_format(out, "%" PRId64, field->value.i64);
        return;
    case LOG_FIELD_BOOL:
        put_text(out, field->value.truth ? "true" : "false");
        return;
    case LOG_FIELD_TEXT:
    case LOG_FIELD_END:
        break;
    }
    if (field->value.text == NULL) {
        put_text(out, json ? "null" : "-");
    } else if (!json && is_bare_word(field->value.text)) {
        put_text(out, field->value.text);
    } else {
        put_quoted(out, field->value.text, json);
    }
}

/* A person at a terminal reads the local time of day; a file gets the whole instant in UTC. */
static void put_time(struct log_buffer *out, bool short_form)
{
    uint64_t now_us = clock_wall_us();
    time_t seconds = (time_t)(now_us / CADRE_US_PER_S);
    unsigned milliseconds = (unsigned)(now_us % CADRE_US_PER_S / CADRE_US_PER_MS);
    struct tm calendar;
    char text[32];
    if (short_form) {
        localtime_r(&seconds, &calendar);
        strftime(text, sizeof text, "%H:%M:%S", &calendar);
    } else {
        gmtime_r(&seconds, &calendar);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &calendar);
    }
    put_format(out, "%s.%03u%s", text, milliseconds, short_form ? "" : "Z");
}

static void build_text(struct log_buffer *out, enum log_level level, const char *component,
    const char *message, const struct log_field *fields)
{
    if (logger.journal) {
        put_format(out, "<%c>", levels[level].priority);
    } else {
        put_format(out, "%s%-7s%s ", logger.colour ? levels[level].colour : "", levels[level].name,
            logger.colour ? "\033[0m" : "");
        put_time(out, logger.terminal);
        put_text(out, " ");
    }
    put_text(out, component);
    put_text(out, ": ");
    put_escaped(out, message, false);
    for (; fields->type != LOG_FIELD_END; fields++) {
        put_text(out, " ");
        put_text(out, fields->key);
        put_text(out, "=");
        put_value(out, fields, false);
    }
    out->bytes[out->used++] = '\n';
}

static void build_json(struct log_buffer *out, enum log_level level, const char *component,
    const char *message, const struct log_field *fields)
{
    if (logger.journal) {
        put_format(out, "<%c>", levels[level].priority);
    }
    put_text(out, "{\"time\":\"");
    put_time(out, false);
    put_format(out, "\",\"level\":\"%s\",\"component\":", levels[level].name);
    put_quoted(out, component, true);
    put_text(out, ",\"message\":");
    put_quoted(out, message, true);
    for (; fields->type != LOG_FIELD_END; fields++) {
        struct log_buffer field = {.used = 0};
        put_text(&field, ",");
        put_quoted(&field, fields->key, true);
        put_text(&field, ":");
        put_value(&field, fields, true);
        log_put(out, field.bytes,
            field.used); /* whole or not at all, so that the object stays well formed */
    }
    memcpy(out->bytes + out->used, "}\n", 2);
    out->used += 2;
}

/* ---- the journal ---- */

#define JOURNAL_FIELDS_MAX 24

struct journal_entry {
    struct log_buffer text; /* of all fields, one behind the other */
    struct iovec fields[JOURNAL_FIELDS_MAX];
    int count;
};

static void end_field(struct journal_entry *entry, size_t from)
{
    if (entry->count < JOURNAL_FIELDS_MAX) {
        entry->fields[entry->count++] =
            (struct iovec){entry->text.bytes + from, entry->text.used - from};
    }
}

/* "CADRE_JOB=3". The value as it is, but cut as in a line: the journal takes any bytes. */
static void add_field(struct journal_entry *entry, const struct log_field *field)
{
    size_t from = entry->text.used;
    put_text(&entry->text, "CADRE_");
    for (const char *key = field->key; *key != '\0'; key++) {
        bool lower = *key >= 'a' && *key <= 'z';
        bool kept = (*key >= 'A' && *key <= 'Z') || (*key >= '0' && *key <= '9');
        log_put(&entry->text, lower ? &(char){(char)(*key - 'a' + 'A')} : kept ? key : "_", 1);
    }
    put_text(&entry->text, "=");
    if (field->type == LOG_FIELD_TEXT && field->value.text != NULL) {
        log_put(&entry->text, field->value.text, strnlen(field->value.text, VALUE_BYTES));
    } else {
        put_value(&entry->text, field, false);
    }
    end_field(entry, from);
}

static bool send_to_journal(enum log_level level, const char *component,
    const struct log_field *fields, const struct log_buffer *out)
{
    struct journal_entry entry;
    struct log_buffer message;
    entry.text.used = 0;
    entry.count = 0;
    message.used = 0;
    put_text(&message, "MESSAGE=");
    log_put(&message, out->bytes + 3, out->used - 4); /* without "<6>" and the newline */
    entry.fields[entry.count++] = (struct iovec){message.bytes, message.used};
    put_format(&entry.text, "PRIORITY=%c", levels[level].priority);
    end_field(&entry, 0);
    size_t from = entry.text.used;
    put_format(&entry.text, "SYSLOG_IDENTIFIER=%s", program_invocation_short_name);
    end_field(&entry, from);
    from = entry.text.used;
    put_format(&entry.text, "CADRE_COMPONENT=%s", component);
    end_field(&entry, from);
    for (; fields->type != LOG_FIELD_END; fields++) {
        add_field(&entry, fields);
    }
    return logger.send(entry.fields, entry.count) >= 0;
}

void log_write(enum log_level level, const char *component, const char *message,
    const struct log_field *fields)
{
    if (!log_enabled(level)) {
        return;
    }
    int saved_errno = errno;
    struct log_buffer out;
    out.used = 0;
    if (logger.format == LOG_FORMAT_JSON) {
        build_json(&out, level, component, message, fields);
    } else {
        build_text(&out, level, component, message, fields);
    }
    size_t sent = 0;
    if (logger.sends && send_to_journal(level, component, fields, &out)) {
        sent = out.used;
    }
    while (sent < out.used) {
        ssize_t count = write(logger.fd, out.bytes + sent, out.used - sent);
        if (count < 0 && errno != EINTR) {
            break;
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    errno = saved_errno;
}
