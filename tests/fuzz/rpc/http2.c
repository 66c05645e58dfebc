/* SPDX-License-Identifier: Apache-2.0 */
#include "http2.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum frame {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_WINDOW = 8
};

#define HEAD_BYTES     9
#define FLAG_END       0x1
#define FLAG_ACK       0x1
#define FLAG_HEADERS   0x4
#define IN_BYTES       ((size_t)1 << 20)
#define STREAM_BYTES   ((size_t)1 << 20)
#define FRAME_MAX      16384
#define WRITE_PATIENCE 10000

static void cut(struct h2 *h2)
{
    if (h2->fd >= 0) {
        close(h2->fd);
    }
    h2->fd = -1;
}

/* The server reads always, if only to drop; while it does not, what it says is read. */
static void put(struct h2 *h2, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (h2->fd >= 0 && size > 0) {
        ssize_t count = send(h2->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
            cut(h2);
        } else {
            struct pollfd ready = {.fd = h2->fd, .events = POLLOUT | POLLIN};
            if (poll(&ready, 1, WRITE_PATIENCE) <= 0) {
                cut(h2);
            } else if ((ready.revents & POLLIN) != 0) {
                h2_read(h2, 0);
            }
        }
    }
}

static void put_frame(
    struct h2 *h2, enum frame type, uint8_t flags, uint32_t stream, const void *bytes, size_t size)
{
    const uint8_t head[HEAD_BYTES] = {(uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size,
        (uint8_t)type, flags, (uint8_t)(stream >> 24), (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8), (uint8_t)stream};
    put(h2, head, sizeof head);
    put(h2, bytes, size);
}

bool h2_open(struct h2 *h2, const char *path)
{
    static const uint8_t settings[] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    static const uint8_t window[] = {0x7f, 0xff, 0, 0};
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *h2 = (struct h2){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .next_id = 1};
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(h2->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        cut(h2);
        return false;
    }
    h2->in = malloc(IN_BYTES);
    put(h2, preface, sizeof preface - 1);
    put_frame(h2, FRAME_SETTINGS, 0, 0, settings, sizeof settings);
    put_frame(h2, FRAME_WINDOW, 0, 0, window, sizeof window);
    return true;
}

void h2_close(struct h2 *h2)
{
    cut(h2);
    for (size_t i = 0; i < h2->stream_count; i++) {
        free(h2->streams[i].bytes);
    }
    free(h2->in);
    *h2 = (struct h2){.fd = -1};
}

/* A header field as HPACK's literal without indexing, both texts as they are. */
static size_t put_header(uint8_t *at, const char *name, const char *value)
{
    size_t names = strlen(name);
    size_t values = strlen(value);
    at[0] = 0;
    at[1] = (uint8_t)names;
    memcpy(at + 2, name, names);
    at[2 + names] = (uint8_t)values;
    memcpy(at + 3 + names, value, values);
    return 3 + names + values;
}

struct h2_stream *h2_call(struct h2 *h2, const char *path)
{
    uint8_t block[1024];
    if (h2->fd < 0 || h2->stream_count == H2_STREAMS_MAX) {
        return NULL;
    }
    size_t size = put_header(block, ":method", "POST");
    size += put_header(block + size, ":scheme", "http");
    size += put_header(block + size, ":path", path);
    size += put_header(block + size, ":authority", "localhost");
    size += put_header(block + size, "te", "trailers");
    size += put_header(block + size, "content-type", "application/grpc");
    struct h2_stream *stream = &h2->streams[h2->stream_count++];
    *stream = (struct h2_stream){.id = h2->next_id, .bytes = malloc(STREAM_BYTES)};
    h2->next_id += 2;
    put_frame(h2, FRAME_HEADERS, FLAG_HEADERS, stream->id, block, size);
    return stream;
}

void h2_data(
    struct h2 *h2, const struct h2_stream *stream, const void *bytes, size_t size, bool end)
{
    const uint8_t *at = bytes;
    do {
        size_t part = size < FRAME_MAX ? size : FRAME_MAX;
        put_frame(h2, FRAME_DATA, end && part == size ? FLAG_END : 0, stream->id, at, part);
        h2->sent_data += part;
        at += part;
        size -= part;
    } while (size > 0);
}

void h2_message(struct h2 *h2, const struct h2_stream *stream, uint8_t flag, uint32_t claimed,
    const void *bytes, size_t size, bool end)
{
    uint8_t *whole = malloc(size + 5);
    whole[0] = flag;
    for (int i = 0; i < 4; i++) {
        whole[1 + i] = (uint8_t)(claimed >> (24 - 8 * i));
    }
    if (size > 0) {
        memcpy(whole + 5, bytes, size);
    }
    h2_data(h2, stream, whole, size + 5, end);
    free(whole);
}

void h2_reset(struct h2 *h2, const struct h2_stream *stream)
{
    static const uint8_t cancel[] = {0, 0, 0, 8};
    put_frame(h2, FRAME_RESET, 0, stream->id, cancel, sizeof cancel);
}

/* ---- what the server says ---- */

static struct h2_stream *find(struct h2 *h2, uint32_t id)
{
    size_t at = (id - 1) / 2;
    return id % 2 == 1 && at < h2->stream_count ? &h2->streams[at] : NULL;
}

static void take_frame(struct h2 *h2, const uint8_t *head, const uint8_t *bytes, size_t size)
{
    uint32_t id = (uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
                  (uint32_t)head[7] << 8 | head[8];
    struct h2_stream *stream = find(h2, id);
    uint8_t flags = head[4];
    if (head[3] == FRAME_SETTINGS && (flags & FLAG_ACK) == 0) {
        put_frame(h2, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
    } else if (head[3] == FRAME_PING && (flags & FLAG_ACK) == 0) {
        put_frame(h2, FRAME_PING, FLAG_ACK, 0, bytes, size);
    } else if (stream != NULL) {
        if (head[3] == FRAME_DATA && size > 0) {
            stream->answered = true;
            if (size <= STREAM_BYTES - stream->size) {
                memcpy(stream->bytes + stream->size, bytes, size);
                stream->size += size;
            }
        }
        stream->ended = stream->ended || head[3] == FRAME_RESET ||
                        (head[3] <= FRAME_HEADERS && (flags & FLAG_END) != 0);
    }
}

bool h2_read(struct h2 *h2, int timeout_ms)
{
    struct pollfd ready = {.fd = h2->fd, .events = POLLIN};
    if (h2->fd < 0 || poll(&ready, 1, timeout_ms) <= 0) {
        return false;
    }
    ssize_t count = recv(h2->fd, h2->in + h2->in_size, IN_BYTES - h2->in_size, MSG_DONTWAIT);
    if (count <= 0) {
        cut(h2);
        return false;
    }
    size_t at = 0;
    h2->in_size += (size_t)count;
    while (h2->in_size - at >= HEAD_BYTES) {
        const uint8_t *head = h2->in + at;
        size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (h2->in_size - at - HEAD_BYTES < size) {
            break;
        }
        at += HEAD_BYTES + size;
        take_frame(h2, head, head + HEAD_BYTES, size);
    }
    memmove(h2->in, h2->in + at, h2->in_size - at);
    h2->in_size -= at;
    return true;
}
