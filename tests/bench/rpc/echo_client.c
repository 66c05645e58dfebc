/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_client.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/channel.h"

#define WAIT_TIMEOUT_US (10 * CADRE_US_PER_S)

struct drive {
    struct rpc_channel *channel;
    struct samples *samples;
    bool streams;
    uint64_t end_us;
    int open;
    bool done;
};

struct slot {
    struct drive *drive;
    uint64_t sent_us;
};

static void start(struct slot *slot);

static void send_one(struct slot *slot, struct rpc_call *call)
{
    static const char message[MESSAGE_BYTES];
    slot->sent_us = clock_monotonic_us();
    cadre_status status = rpc_call_send(call, message, sizeof message, NULL);
    CADRE_ASSERT(status == CADRE_OK);
}

static void got_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct slot *slot = user;
    (void)data;
    CADRE_ASSERT(length == MESSAGE_BYTES);
    if (slot->drive->streams) {
        uint64_t now_us = clock_monotonic_us();
        samples_add(slot->drive->samples, now_us - slot->sent_us);
        if (now_us >= slot->drive->end_us) {
            rpc_call_cancel(call);
        } else {
            send_one(slot, call);
        }
    }
}

static void got_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct slot *slot = user;
    struct drive *drive = slot->drive;
    (void)call;
    (void)text;
    uint64_t now_us = clock_monotonic_us();
    if (!drive->streams) {
        CADRE_ASSERT(status == CADRE_OK);
        samples_add(drive->samples, now_us - slot->sent_us);
        if (now_us < drive->end_us) {
            start(slot);
            return;
        }
    }
    drive->done = --drive->open == 0;
}

static void start(struct slot *slot)
{
    static const struct rpc_client_ops ops = {.on_message = got_message, .on_status = got_status};
    struct drive *drive = slot->drive;
    struct rpc_call *call;
    const struct rpc_call_options options = {
        .path = drive->streams ? ECHO_CHAT : ECHO_UNARY,
        .client_streams = drive->streams,
        .server_streams = drive->streams,
        .wait_for_ready = true,
        .ops = &ops,
        .user = slot,
    };
    cadre_status status = rpc_channel_call(drive->channel, &options, &call, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    send_one(slot, call);
}

void echo_drive(struct rpc_loop *loop, const char *address, struct rpc_tls *tls, bool streams,
    int concurrency, uint64_t end_us, struct samples *samples)
{
    static struct slot slots[CONCURRENCY_MAX];
    struct drive drive = {
        .samples = samples, .streams = streams, .end_us = end_us, .open = concurrency};
    cadre_status status = rpc_channel_open(
        loop, address, &(struct rpc_channel_options){.tls = tls}, &drive.channel, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    for (int i = 0; i < concurrency; i++) {
        slots[i].drive = &drive;
        start(&slots[i]);
    }
    status = rpc_loop_run_until(loop, &drive.done, end_us + WAIT_TIMEOUT_US);
    CADRE_ASSERT(status == CADRE_OK); /* or the server died */
    rpc_channel_close(drive.channel);
}

static void joined(const void *data, size_t length, void *user)
{
    (void)data;
    (void)user;
    CADRE_ASSERT(length == MESSAGE_BYTES);
}

void echo_join(struct rpc_loop *loop, const char *address, struct rpc_tls *tls, uint64_t end_us,
    struct samples *samples)
{
    static const struct rpc_call_options call = {.path = ECHO_UNARY, .wait_for_ready = true};
    const struct rpc_channel_options options = {.tls = tls};
    struct rpc_buffer message;
    rpc_buffer_alloc(&message, MESSAGE_BYTES);
    rpc_buffer_commit(&message, MESSAGE_BYTES);
    uint64_t began_us;
    uint64_t now_us = clock_monotonic_us();
    do {
        struct rpc_channel *channel;
        began_us = now_us;
        cadre_status status = rpc_channel_open(loop, address, &options, &channel, NULL);
        CADRE_ASSERT(status == CADRE_OK);
        status = rpc_channel_call_blocking(channel, &call, &message, joined, NULL, NULL);
        CADRE_ASSERT(status == CADRE_OK);
        rpc_channel_close(channel);
        now_us = clock_monotonic_us();
        samples_add(samples, now_us - began_us);
    } while (now_us < end_us);
    rpc_buffer_free(&message);
}
