/* SPDX-License-Identifier: Apache-2.0
 * A client of HTTP/2 over a Unix socket that can do wrong what a library never does: half-closed
 * streams that go on, wrong lengths, flags that no setting allows, cut connections. One connection
 * at a time; what a server sends is read as far as the fuzzer uses it. */
#ifndef CADRE_TESTS_FUZZ_HTTP2_H
#define CADRE_TESTS_FUZZ_HTTP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_STREAMS_MAX 32

struct h2_stream {
    uint32_t id;
    bool ended;     /* the server has ended or reset it */
    bool answered;  /* at least one message came */
    uint8_t *bytes; /* DATA that came and was not taken yet */
    size_t size;
};

struct h2 {
    int fd; /* -1: cut, by either end */
    uint32_t next_id;
    struct h2_stream streams[H2_STREAMS_MAX];
    size_t stream_count;
    uint8_t *in;
    size_t in_size;
    size_t sent_data; /* DATA bytes on the connection; no window is kept, so they stay few */
};

/* False: no server listens there. */
bool h2_open(struct h2 *h2, const char *path);
void h2_close(struct h2 *h2);

/* Begins a call: POST `path` with gRPC's headers. NULL: the connection is gone or full. */
struct h2_stream *h2_call(struct h2 *h2, const char *path);

/* A DATA frame of any content. */
void h2_data(
    struct h2 *h2, const struct h2_stream *stream, const void *bytes, size_t size, bool end);

/* A message with gRPC's prefix: its flag, and the length that it claims. */
void h2_message(struct h2 *h2, const struct h2_stream *stream, uint8_t flag, uint32_t claimed,
    const void *bytes, size_t size, bool end);

void h2_reset(struct h2 *h2, const struct h2_stream *stream);

/* Reads what came, waiting for at most `timeout_ms` for the first of it. False: nothing came. */
bool h2_read(struct h2 *h2, int timeout_ms);

#endif
