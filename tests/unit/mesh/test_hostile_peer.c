/* SPDX-License-Identifier: Apache-2.0
 * A peer that holds the key and then says what no task says: an error that names it, never a crash,
 * a hang or a wrong sum. The peer is this test, which plays rank 1 by hand against a real mesh of
 * rank 0. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/mesh/frame.h"
#include "worker/mesh/handshake.h"
#include "worker/mesh/mesh.h"

#define GENERATION 4
#define NONCE      5

struct stage {
    struct mesh_listener *listener;
    struct mesh *mesh;
    struct mesh_member members[2];
    uint8_t key[MESH_KEY_BYTES];
    int fd; /* the hostile end */
};

static void receive(int fd, void *bytes, size_t size)
{
    assert_int_equal(recv(fd, bytes, size, MSG_WAITALL), (ssize_t)size);
}

static void say(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* One step of the mesh once it can make one. */
static cadre_status step(struct stage *stage)
{
    struct cadre_error error;
    struct pollfd ready = {.fd = mesh_host_ops.form_fd(stage->mesh), .events = POLLIN};
    assert_true(poll(&ready, 1, 10000) > 0);
    return mesh_host_ops.form_test(stage->mesh, &error);
}

static int connect_to_listener(const struct stage *stage)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtoul(strchr(stage->members[0].address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Two tasks of one replica each, on hosts 0 and 1. */
static uint64_t roster(void)
{
    return prng_mix(prng_mix(prng_mix(2) ^ 1) ^ 1 ^ UINT64_C(1) << 32);
}

/* Plays the connector's part up to the proof. */
static void greet(
    struct stage *stage, uint8_t bytes[HANDSHAKE_HELLO_BYTES], uint8_t reply[HANDSHAKE_REPLY_BYTES])
{
    struct cadre_error error;
    struct handshake_hello hello = {
        .generation = GENERATION, .nonce = NONCE, .roster = roster(), .from_rank = 1};
    assert_ok(mesh_handshake_hello_make(&hello, bytes, &error), &error);
    say(stage->fd, bytes, HANDSHAKE_HELLO_BYTES);
    struct pollfd ready = {.fd = stage->fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 0) {
        assert_int_equal(step(stage), CADRE_PENDING);
    }
    receive(stage->fd, reply, HANDSHAKE_REPLY_BYTES);
    assert_true(mesh_handshake_mac_valid(
        stage->key, HANDSHAKE_ACCEPTOR, bytes, reply, reply + HANDSHAKE_CHALLENGE_BYTES));
}

static void post(struct stage *stage)
{
    struct cadre_error error;
    *stage = (struct stage){.key = {9, 8, 7}};
    assert_ok(mesh_listener_open("127.0.0.1", &stage->listener, stage->members[0].address, &error),
        &error);
    stage->members[0].replicas = stage->members[1].replicas = 1;
    memcpy(stage->members[1].address, "127.0.0.1:9", 12);
    struct mesh_config config = {
        .generation = GENERATION,
        .nonce = NONCE,
        .members = stage->members,
        .member_count = 2,
        .listener = stage->listener,
        .form_deadline_us = clock_monotonic_us() + 20 * CADRE_US_PER_S,
        .collective_timeout_us = 10 * CADRE_US_PER_S,
    };
    memcpy(config.key, stage->key, sizeof config.key);
    assert_ok(mesh_host_ops.form_post(&config, &stage->mesh, &error), &error);
    stage->fd = connect_to_listener(stage);
}

static void form(struct stage *stage)
{
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    post(stage);
    greet(stage, hello, reply);
    mesh_handshake_mac(stage->key, HANDSHAKE_CONNECTOR, hello, reply, mac);
    say(stage->fd, mac, sizeof mac);
    cadre_status status = CADRE_PENDING;
    while (status == CADRE_PENDING) {
        status = step(stage);
    }
    assert_int_equal(status, CADRE_OK);
    receive(stage->fd, mac, sizeof mac);
    assert_true(mesh_handshake_mac_valid(stage->key, HANDSHAKE_WELCOME, hello, reply, mac));
}

static void leave(struct stage *stage)
{
    mesh_host_ops.close(stage->mesh);
    mesh_listener_close(stage->listener);
    if (stage->fd >= 0) {
        close(stage->fd);
    }
}

/* The acceptor's own proof is no proof of the connector, and a wrong one does not end the forming.
 */
static void test_reflected_proof(void **state)
{
    (void)state;
    struct stage stage;
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t byte;
    post(&stage);
    greet(&stage, hello, reply);
    say(stage.fd, reply + HANDSHAKE_CHALLENGE_BYTES, HANDSHAKE_MAC_BYTES);
    struct pollfd ready = {.fd = stage.fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 0) {
        assert_int_equal(step(&stage), CADRE_PENDING);
    }
    assert_int_equal(recv(stage.fd, &byte, 1, 0), 0); /* refused: the connection is closed */
    leave(&stage);
}

struct reduce {
    struct mesh *mesh;
    size_t bytes;
    cadre_status status;
    struct cadre_error error;
    float values[1 << 16];
};

static void *reduce(void *argument)
{
    struct reduce *call = argument;
    struct mesh_buffer buffer = {.data = call->values, .bytes = call->bytes, .dtype = MESH_F32};
    call->status =
        mesh_host_ops.all_reduce(call->mesh, 0, MESH_SUM, &buffer, 1, NULL, &call->error);
    return NULL;
}

/* Lets rank 0 reduce `bytes`, takes its frame, and answers with that frame after `change`, then
 * `tail` bytes. */
static void answer(size_t bytes, void (*change)(struct frame *frame), size_t tail, bool close_after,
    cadre_status wanted, const char *part)
{
    struct stage stage;
    pthread_t thread;
    static struct reduce call;
    uint8_t frame_bytes[FRAME_BYTES];
    static uint8_t noise[1 << 16];
    struct frame frame;
    form(&stage);
    call = (struct reduce){.mesh = stage.mesh, .bytes = bytes};
    assert_int_equal(pthread_create(&thread, NULL, reduce, &call), 0);
    receive(stage.fd, frame_bytes, sizeof frame_bytes);
    assert_true(mesh_frame_decode(frame_bytes, &frame));
    assert_int_equal(frame.shape.bytes, bytes);
    frame.rank = 1;
    change(&frame);
    mesh_frame_encode(&frame, frame_bytes);
    say(stage.fd, frame_bytes, sizeof frame_bytes);
    say(stage.fd, noise, tail);
    if (close_after) {
        close(stage.fd);
        stage.fd = -1;
    }
    pthread_join(thread, NULL);
    assert_error(call.status, wanted, &call.error, part);
    leave(&stage);
}

static void keep(struct frame *frame)
{
    (void)frame;
}

static void claim_much(struct frame *frame)
{
    frame->inline_bytes = UINT32_MAX;
}

static void claim_little(struct frame *frame)
{
    frame->inline_bytes = 8;
}

static void other_rank(struct frame *frame)
{
    frame->rank = 0;
}

static void other_generation(struct frame *frame)
{
    frame->generation++;
}

static void other_nonce(struct frame *frame)
{
    frame->nonce++;
}

static void later_sequence(struct frame *frame)
{
    frame->sequence += 2;
}

static void no_type(struct frame *frame)
{
    frame->type = (enum frame_type)9;
}

static void long_problem(struct frame *frame)
{
    frame->type = FRAME_PROBLEM;
    frame->inline_bytes = FRAME_TEXT_BYTES;
}

static void problem(struct frame *frame)
{
    frame->type = FRAME_PROBLEM;
    frame->inline_bytes = FRAME_TEXT_BYTES - 1;
}

static void fault(struct frame *frame)
{
    frame->type = FRAME_FAULT;
    frame->inline_bytes = 40;
    frame->code = 12345;
}

static void strange_shape(struct frame *frame)
{
    frame->shape.kind = 250;
    frame->shape.op = 250;
    frame->shape.dtype = 250;
}

static void test_frames(void **state)
{
    (void)state;
    answer(64, claim_much, 100, false, CADRE_DATA_LOSS, "rank 1 sent something that is no frame");
    answer(64, other_rank, 64, false, CADRE_DATA_LOSS, "no frame of this mesh");
    answer(64, other_generation, 64, false, CADRE_DATA_LOSS, "no frame of this mesh");
    answer(64, other_nonce, 64, false, CADRE_DATA_LOSS, "no frame of this mesh");
    answer(64, no_type, 64, false, CADRE_DATA_LOSS, "no frame of this mesh");
    answer(64, later_sequence, 64, false, CADRE_INTERNAL, "is in collective 3, this one in 1");
    answer(64, claim_little, 8, false, CADRE_DATA_LOSS, "sent 8 bytes");
    answer(64, long_problem, 500, false, CADRE_DATA_LOSS, "no frame of this mesh");
    answer(64, problem, FRAME_TEXT_BYTES - 1, false, CADRE_INVALID_ARGUMENT, "");
    answer(64, fault, 40, false, CADRE_ABORTED, "rank 1 ended the mesh");
    answer(64, strange_shape, 64, false, CADRE_INVALID_ARGUMENT, "rank 1 called ?");
}

/* Ends of the connection at every stage. */
static void test_cut_short(void **state)
{
    (void)state;
    const char *closed = "rank 1 closed its connection in collective 1 (all_reduce)";
    answer(64, keep, 63, true, CADRE_ABORTED, closed);
    answer(64, keep, 0, true, CADRE_ABORTED, closed);
    answer(200000, keep, 0, true, CADRE_ABORTED, closed);
    answer(200000, keep, 50000, true, CADRE_ABORTED, closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflected_proof),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
