/* SPDX-License-Identifier: Apache-2.0
 * An object: "cadre-log-head 1 TERM COUNT\n", then the name of each segment, a line each. */
#include "coordinator/daemon/logs/log_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"

#define MAGIC "cadre-log-head 1 "

void log_head_of(
    const struct log_segment *segments, size_t count, uint64_t term, struct log_head *ret_head)
{
    size_t named = count < LOG_HEAD_SEGMENTS ? count : LOG_HEAD_SEGMENTS;
    *ret_head = (struct log_head){.term = term, .count = named};
    memcpy(ret_head->segments, segments + (count - named), named * sizeof *segments);
}

size_t log_head_pack(const struct log_head *head, char ret_text[LOG_HEAD_BYTES_MAX])
{
    char name[LOG_SEGMENT_NAME_BYTES];
    size_t at = (size_t)snprintf(
        ret_text, LOG_HEAD_BYTES_MAX, MAGIC "%016" PRIx64 " %zu\n", head->term, head->count);
    for (size_t i = 0; i < head->count; i++) {
        log_segment_name(&head->segments[i], name);
        at += (size_t)snprintf(ret_text + at, LOG_HEAD_BYTES_MAX - at, "%s\n", name);
    }
    CADRE_ASSERT(at < LOG_HEAD_BYTES_MAX);
    return at;
}

/* The line at *text, without its end; *text is behind it then. */
static bool take_name(const char **text, struct log_segment *ret_segment)
{
    char name[LOG_SEGMENT_NAME_BYTES];
    size_t length = strcspn(*text, "\n");
    if (length >= sizeof name || (*text)[length] != '\n') {
        return false;
    }
    memcpy(name, *text, length);
    name[length] = '\0';
    *text += length + 1;
    return log_segment_parse(name, ret_segment);
}

bool log_head_unpack(const char *text, struct log_head *ret_head)
{
    int length = 0;
    *ret_head = (struct log_head){0};
    if (sscanf(text, MAGIC "%16" SCNx64 " %zu%n", &ret_head->term, &ret_head->count, &length) !=
            2 ||
        text[length] != '\n' || ret_head->count > LOG_HEAD_SEGMENTS) {
        return false;
    }
    text += length + 1;
    for (size_t i = 0; i < ret_head->count; i++) {
        if (!take_name(&text, &ret_head->segments[i])) {
            return false;
        }
    }
    return *text == '\0';
}

bool log_head_lets(const struct log_head *head, const struct log_segment *listed)
{
    if (head->count == 0) {
        return true;
    }
    const struct log_segment *last = &head->segments[head->count - 1];
    return listed->end <= head->segments[0].begin || listed->term > head->term ||
           (listed->term == head->term && listed->begin >= last->end);
}
