/* SPDX-License-Identifier: Apache-2.0
 * Requests and answers of the floor's store: as much of HTTP/1.1 as curl and Cadre need. */
#ifndef BENCH_OBJECT_STORAGE_FLOOR_HTTP_H
#define BENCH_OBJECT_STORAGE_FLOOR_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_BYTES  16384
#define NAME_BYTES  1024
#define QUERY_BYTES 8192

struct request {
    char method[8];
    char bucket[NAME_BYTES];
    char key[NAME_BYTES]; /* encoded, also its slashes, so that it is a file's name; "": a bucket */
    char query[QUERY_BYTES]; /* encoded */
    uint64_t body_bytes;
    bool has_range;
    uint64_t first, last; /* UINT64_MAX: to the end */
    bool expects;         /* 100 Continue */
    bool closes;
};

struct reply {
    char head[1024];
    size_t head_bytes, head_sent;
    char *body; /* NULL: none, or the file's */
    size_t body_bytes, body_sent;
    int file; /* -1: none */
    int64_t file_at;
    uint64_t file_left;
};

/* `head` is whole, without its blank line, and is changed. False: it is none. */
bool floor_request_parse(char *head, struct request *ret_request);
/* The value of `name` in the query, as it is there; NULL: it has none. */
const char *floor_query(
    const struct request *request, const char *name, char to[static QUERY_BYTES]);

/* An answer with this body, which it takes over; NULL: none. `headers`: lines that end with CRLF,
 * or "". */
void floor_reply(
    struct reply *reply, const char *status, const char *headers, char *body, size_t body_bytes);
/* One whose body is part of the file, which it takes over. */
void floor_reply_file(struct reply *reply, const char *status, const char *headers, int file,
    uint64_t at, uint64_t bytes);
/* Frees what is left of it. */
void floor_reply_end(struct reply *reply);

#endif
