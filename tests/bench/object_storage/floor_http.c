/* SPDX-License-Identifier: Apache-2.0
 * Heads of requests are taken apart, heads of answers are put together. */
#include "floor_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void take_range(const char *value, struct request *request)
{
    char *end = NULL;
    if (strncasecmp(value, "bytes=", 6) != 0) {
        return;
    }
    request->has_range = true;
    request->first = strtoull(value + 6, &end, 10);
    request->last = end[0] == '-' && end[1] != '\0' ? strtoull(end + 1, NULL, 10) : UINT64_MAX;
}

static void take_header(const char *line, struct request *request)
{
    const char *value = strchr(line, ':');
    if (value == NULL) {
        return;
    }
    size_t name_bytes = (size_t)(value - line);
    value += 1 + strspn(value + 1, " ");
    if (name_bytes == 14 && strncasecmp(line, "content-length", 14) == 0) {
        request->body_bytes = strtoull(value, NULL, 10);
    } else if (name_bytes == 5 && strncasecmp(line, "range", 5) == 0) {
        take_range(value, request);
    } else if (name_bytes == 6 && strncasecmp(line, "expect", 6) == 0) {
        request->expects = true;
    } else if (name_bytes == 10 && strncasecmp(line, "connection", 10) == 0) {
        request->closes = strncasecmp(value, "close", 5) == 0;
    }
}

/* "/bucket/a/b%20c?query" */
static bool take_target(char *target, struct request *request)
{
    char *query = strchr(target, '?');
    if (query != NULL) {
        *query++ = '\0';
        snprintf(request->query, sizeof request->query, "%s", query);
    }
    const char *path = target + strspn(target, "/");
    size_t bucket_bytes = strcspn(path, "/");
    snprintf(request->bucket, sizeof request->bucket, "%.*s", (int)bucket_bytes, path);
    path += bucket_bytes;
    path += *path == '/' ? 1 : 0;
    size_t used = 0;
    for (; *path != '\0' && used + 4 < sizeof request->key; path++) {
        if (*path == '/') {
            memcpy(request->key + used, "%2F", 3);
            used += 3;
        } else {
            request->key[used++] = *path;
        }
    }
    request->key[used] = '\0';
    return request->bucket[0] != '\0' && request->bucket[0] != '.' && request->key[0] != '.';
}

bool floor_request_parse(char *head, struct request *ret_request)
{
    char *rest = NULL;
    char *line = strtok_r(head, "\r\n", &rest);
    memset(ret_request, 0, sizeof *ret_request);
    if (line == NULL) {
        return false;
    }
    size_t method_bytes = strcspn(line, " ");
    if (line[method_bytes] == '\0' || method_bytes >= sizeof ret_request->method) {
        return false;
    }
    memcpy(ret_request->method, line, method_bytes);
    char *target = line + method_bytes + 1;
    target[strcspn(target, " ")] = '\0';
    while ((line = strtok_r(NULL, "\r\n", &rest)) != NULL) {
        take_header(line, ret_request);
    }
    return take_target(target, ret_request);
}

const char *floor_query(
    const struct request *request, const char *name, char to[static QUERY_BYTES])
{
    size_t bytes = strlen(name);
    for (const char *at = request->query; *at != '\0'; at += *at == '&' ? 1 : 0) {
        size_t length = strcspn(at, "&");
        if (strncmp(at, name, bytes) == 0 && (length == bytes || at[bytes] == '=')) {
            const char *value = at + bytes + (length == bytes ? 0 : 1);
            snprintf(to, QUERY_BYTES, "%.*s", (int)(at + length - value), value);
            return to;
        }
        at += length;
    }
    return NULL;
}

static void write_head(struct reply *reply, const char *status, const char *headers, uint64_t bytes)
{
    int length =
        snprintf(reply->head, sizeof reply->head, "HTTP/1.1 %s\r\nContent-Length: %llu\r\n%s\r\n",
            status, (unsigned long long)bytes, headers);
    reply->head_bytes = length > 0 ? (size_t)length : 0;
    reply->head_sent = 0;
}

void floor_reply(
    struct reply *reply, const char *status, const char *headers, char *body, size_t body_bytes)
{
    *reply = (struct reply){.file = -1, .body = body, .body_bytes = body_bytes};
    write_head(reply, status, headers, body_bytes);
}

void floor_reply_file(struct reply *reply, const char *status, const char *headers, int file,
    uint64_t at, uint64_t bytes)
{
    *reply = (struct reply){.file = file, .file_at = (int64_t)at, .file_left = bytes};
    write_head(reply, status, headers, bytes);
}

void floor_reply_end(struct reply *reply)
{
    free(reply->body);
    if (reply->file >= 0) {
        close(reply->file);
    }
    *reply = (struct reply){.file = -1};
}
