/* SPDX-License-Identifier: Apache-2.0
 * Follows the frames that a connection sends (RFC 9113, section 4.1) to know where one begins.
 * Called by sockets.c. */
#include "common/rpc/window_updates.h"

#include <string.h>

#define FRAME_HEADER_BYTES 9
#define FRAME_SETTINGS     4
#define FRAME_WINDOW       8
#define SETTING_BYTES      6
#define SETTINGS_BYTES_MAX 1024
#define STREAM_ID_MASK     0x7fffffffU

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#define PREFACE_BYTES (sizeof preface - 1)

static uint32_t read_number(const uint8_t *bytes, size_t count)
{
    uint32_t number = 0;
    for (size_t i = 0; i < count; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

static void write_number(uint8_t *bytes, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(number >> (8 * (count - 1 - i)));
    }
}

/* ---- keeping back ---- */

static bool keep_one(struct rpc_window_updates *updates, uint32_t stream, uint32_t bytes)
{
    size_t at = 0;
    while (at < updates->count && updates->kept[at].stream != stream) {
        at++;
    }
    if (bytes > RPC_WINDOW_UPDATES_BYTES_MAX ||
        updates->kept_bytes + bytes > RPC_WINDOW_UPDATES_BYTES_MAX ||
        at == RPC_WINDOW_UPDATES_MAX) {
        return false;
    }
    if (at == updates->count) {
        updates->kept[at].stream = stream;
        updates->kept[at].bytes = 0;
        updates->count++;
    }
    updates->kept[at].bytes += bytes;
    updates->kept_bytes += bytes;
    return true;
}

bool rpc_window_updates_keep(
    struct rpc_window_updates *updates, const struct iovec *buffers, size_t count)
{
    uint8_t frames[RPC_WINDOW_UPDATES_MAX * RPC_WINDOW_UPDATE_BYTES];
    size_t size = 0;
    bool is_between_frames = updates->begun && !updates->foreign && updates->preface_bytes == 0 &&
                             updates->header_bytes == 0;
    for (size_t i = 0; i < count && is_between_frames; i++) {
        if (buffers[i].iov_len > sizeof frames - size) {
            return false;
        }
        memcpy(frames + size, buffers[i].iov_base, buffers[i].iov_len);
        size += buffers[i].iov_len;
    }
    if (!is_between_frames || size == 0 || size % RPC_WINDOW_UPDATE_BYTES != 0) {
        return false;
    }
    struct rpc_window_updates after = *updates;
    for (size_t at = 0; at < size; at += RPC_WINDOW_UPDATE_BYTES) {
        const uint8_t *frame = frames + at;
        uint32_t stream = read_number(frame + 5, 4) & STREAM_ID_MASK;
        uint32_t bytes = read_number(frame + FRAME_HEADER_BYTES, 4) & STREAM_ID_MASK;
        if (read_number(frame, 3) != 4 || frame[3] != FRAME_WINDOW ||
            !keep_one(&after, stream, bytes)) {
            return false;
        }
    }
    *updates = after;
    return true;
}

size_t rpc_window_updates_take(struct rpc_window_updates *updates,
    uint8_t out[RPC_WINDOW_UPDATES_MAX * RPC_WINDOW_UPDATE_BYTES])
{
    size_t size = 0;
    for (size_t i = 0; i < updates->count; i++) {
        write_number(out + size, 3, 4);
        out[size + 3] = FRAME_WINDOW;
        out[size + 4] = 0;
        write_number(out + size + 5, 4, updates->kept[i].stream);
        write_number(out + size + FRAME_HEADER_BYTES, 4, updates->kept[i].bytes);
        size += RPC_WINDOW_UPDATE_BYTES;
    }
    updates->count = 0;
    updates->kept_bytes = 0;
    return size;
}

/* ---- following what is sent ---- */

/* A client sends its preface first, a server a frame with settings; encrypted bytes are neither.
 * gRPC sends more than a frame's header at once. */
static void begin(struct rpc_window_updates *updates, const uint8_t *bytes, size_t count)
{
    updates->begun = true;
    if (count >= PREFACE_BYTES && memcmp(bytes, preface, PREFACE_BYTES) == 0) {
        updates->preface_bytes = PREFACE_BYTES;
        return;
    }
    updates->foreign = count < FRAME_HEADER_BYTES || bytes[3] != FRAME_SETTINGS ||
                       read_number(bytes, 3) > SETTINGS_BYTES_MAX ||
                       read_number(bytes, 3) % SETTING_BYTES != 0;
}

/* Returns how many bytes of these belong to the same piece: the preface, a header, or content. */
static size_t follow(struct rpc_window_updates *updates, const uint8_t *bytes, size_t count)
{
    size_t take = count;
    if (updates->preface_bytes > 0) {
        take = count < updates->preface_bytes ? count : updates->preface_bytes;
        updates->preface_bytes -= (uint8_t)take;
    } else if (updates->header_bytes < FRAME_HEADER_BYTES) {
        size_t due = FRAME_HEADER_BYTES - (size_t)updates->header_bytes;
        take = count < due ? count : due;
        memcpy(updates->header + updates->header_bytes, bytes, take);
        updates->header_bytes += (uint8_t)take;
        updates->left = read_number(updates->header, 3);
    } else {
        take = count < updates->left ? count : updates->left;
        updates->left -= (uint32_t)take;
    }
    if (updates->header_bytes == FRAME_HEADER_BYTES && updates->left == 0) {
        updates->header_bytes = 0;
    }
    return take;
}

void rpc_window_updates_sent(
    struct rpc_window_updates *updates, const struct iovec *buffers, size_t count, size_t sent)
{
    for (size_t i = 0; i < count && sent > 0 && !updates->foreign; i++) {
        const uint8_t *bytes = buffers[i].iov_base;
        size_t left = buffers[i].iov_len < sent ? buffers[i].iov_len : sent;
        sent -= left;
        if (!updates->begun && left > 0) {
            begin(updates, bytes, left);
        }
        while (left > 0 && !updates->foreign) {
            size_t took = follow(updates, bytes, left);
            bytes += took;
            left -= took;
        }
    }
}
