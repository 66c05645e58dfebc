/* SPDX-License-Identifier: Apache-2.0
 * Another host that holds the key and then sends what no task sends: an error that names it, never
 * a crash, a hang or a wrong sum. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/unit/mesh/hostile.h"
#include "worker/library/mesh/wire/wire.h"
#include "worker/library/mesh/wire/wire_frame.h"

/* The acceptor's own proof is no proof of the connector, and a wrong one does not end the forming.
 */
static void test_reflected_mac(void **state)
{
    (void)state;
    struct hostile hostile;
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t byte;
    hostile_post(&hostile, false);
    hostile_greet(&hostile, hello, reply);
    hostile_send(hostile.fd, reply + HANDSHAKE_CHALLENGE_BYTES, HANDSHAKE_MAC_BYTES);
    hostile_step_until_readable(&hostile);
    assert_int_equal(recv(hostile.fd, &byte, 1, 0), 0); /* refused: the connection is closed */
    hostile_leave(&hostile);
}

/* A handshake that was listened to opens nothing the next time. */
static void test_replayed_mac(void **state)
{
    (void)state;
    struct hostile hostile;
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    uint8_t byte;
    hostile_post(&hostile, false);
    hostile_greet(&hostile, hello, reply);
    mesh_handshake_mac(hostile.key, HANDSHAKE_CONNECTOR, hello, reply, mac);
    hostile_connect(&hostile);
    hostile_send(hostile.fd, hello, sizeof hello);
    hostile_step_until_readable(&hostile);
    hostile_receive(hostile.fd, reply, sizeof reply);
    hostile_send(hostile.fd, mac, sizeof mac);
    hostile_step_until_readable(&hostile);
    assert_int_equal(recv(hostile.fd, &byte, 1, 0), 0);
    hostile_leave(&hostile);
}

/* What the mesh's leader does meanwhile: a sum, small or large. */
struct reduce {
    struct host_mesh *host;
    size_t bytes;
    cadre_status status;
    struct cadre_error error;
    bool holds;
    char sentence[512];
    uint8_t values[1 << 18];
};

static void *reduce(void *argument)
{
    struct reduce *reduce = argument;
    struct host_mesh *host = reduce->host;
    struct mesh_buffer buffer = {.data = reduce->values, .bytes = reduce->bytes, .dtype = MESH_F32};
    struct layout layout = {.count = 0};
    struct wire_call call = {.sequence = 1,
        .timeout_us = 10 * CADRE_US_PER_S,
        .agreement.first.shape = {
            .kind = MESH_ALL_REDUCE, .dtype = MESH_F32, .count = 1, .bytes = reduce->bytes}};
    struct wire_vector vector = {.layout = &layout, .high = reduce->bytes, .buffers = &buffer};
    (void)mesh_layout_set(&layout, &buffer, 1, &reduce->error);
    if (reduce->bytes <= mesh_wire_small_bytes(host)) {
        reduce->status = mesh_wire_all_reduce_small(host, &call, MESH_SUM, &layout, reduce->values);
    } else {
        reduce->status = mesh_wire_agree(host, &call);
        if (reduce->status == CADRE_OK && mesh_agreement_holds(&call.agreement)) {
            reduce->status = mesh_wire_all_reduce(host, MESH_SUM, &vector);
        }
    }
    reduce->holds = mesh_agreement_holds(&call.agreement);
    mesh_agreement_explain(&call.agreement, reduce->sentence, sizeof reduce->sentence);
    if (reduce->status != CADRE_OK) {
        reduce->status = mesh_host_ops.form_test(&host->mesh, &reduce->error);
    }
    mesh_layout_finish(&layout);
    return NULL;
}

#define LARGE ((size_t)200000) /* more than travels with a frame */

/* Starts the mesh's reduction of `bytes`, takes its frame, and answers with that frame after
 * `change`, then `tail` bytes. */
static void answer(size_t bytes, void (*change)(struct wire_frame *frame), size_t tail,
    bool close_after, cadre_status wanted, const char *part)
{
    struct hostile hostile;
    struct cadre_error error;
    pthread_t thread;
    static struct reduce call;
    uint8_t frame_bytes[WIRE_FRAME_BYTES];
    static uint8_t noise[1 << 18];
    struct wire_frame frame;
    hostile_post(&hostile, false);
    hostile_authenticate(&hostile);
    assert_ok(hostile_finish(&hostile, &error), &error);
    memset(&call, 0, sizeof call);
    call.host = (struct host_mesh *)hostile.mesh;
    call.bytes = bytes;
    assert_int_equal(pthread_create(&thread, NULL, reduce, &call), 0);
    hostile_receive(hostile.fd, frame_bytes, sizeof frame_bytes);
    assert_true(mesh_wire_frame_decode(frame_bytes, &frame));
    assert_int_equal(frame.agreement.first.shape.bytes, bytes);
    frame.rank = 1;
    frame.agreement.first.replica = 1;
    change(&frame);
    mesh_wire_frame_encode(&frame, frame_bytes);
    hostile_send(hostile.fd, frame_bytes, sizeof frame_bytes);
    hostile_send(hostile.fd, noise, tail);
    if (close_after) {
        close(hostile.fd);
        hostile.fd = -1;
    }
    pthread_join(thread, NULL);
    if (wanted == CADRE_INVALID_ARGUMENT) {
        assert_int_equal(call.status, CADRE_OK);
        assert_false(call.holds);
        assert_non_null(strstr(call.sentence, part));
    } else {
        assert_error(call.status, wanted, &call.error, part);
    }
    hostile_leave(&hostile);
}

static void keep(struct wire_frame *frame)
{
    (void)frame;
}

static void claim_much(struct wire_frame *frame)
{
    frame->data_bytes = UINT32_MAX;
}

static void claim_little(struct wire_frame *frame)
{
    frame->data_bytes = 8;
}

static void other_rank(struct wire_frame *frame)
{
    frame->rank = 0;
}

static void other_generation(struct wire_frame *frame)
{
    frame->generation++;
}

static void other_nonce(struct wire_frame *frame)
{
    frame->nonce++;
}

static void later_sequence(struct wire_frame *frame)
{
    frame->sequence += 2;
}

static void no_type(struct wire_frame *frame)
{
    frame->type = (enum wire_frame_type)9;
}

static void fault(struct wire_frame *frame)
{
    frame->type = WIRE_FAULT;
    frame->data_bytes = 40;
    frame->code = 12345;
}

static void long_fault(struct wire_frame *frame)
{
    frame->type = WIRE_FAULT;
    frame->data_bytes = WIRE_REASON_BYTES;
}

static void goodbye(struct wire_frame *frame)
{
    frame->type = WIRE_GOODBYE;
    frame->data_bytes = 0;
}

static void strange_shape(struct wire_frame *frame)
{
    frame->agreement.first.shape.kind = 250;
    frame->agreement.first.shape.op = 250;
    frame->agreement.first.shape.dtype = 250;
}

/* A second record follows, of zeros: the tail. */
static void two_records(struct wire_frame *frame)
{
    frame->agreement.differs = true;
    frame->data_bytes = 0;
}

static void unterminated_text(struct wire_frame *frame)
{
    frame->agreement.first.wrong = true;
    frame->data_bytes = 0;
    memset(frame->agreement.first.text, 'x', sizeof frame->agreement.first.text);
}

static void test_frames(void **state)
{
    (void)state;
    const char *no_frame = "rank 1 sent something that is no frame of this mesh";
    answer(64, claim_much, 100, false, CADRE_DATA_LOSS, no_frame);
    answer(64, other_rank, 64, false, CADRE_DATA_LOSS, no_frame);
    answer(64, other_generation, 64, false, CADRE_DATA_LOSS, no_frame);
    answer(64, other_nonce, 64, false, CADRE_DATA_LOSS, no_frame);
    answer(64, no_type, 64, false, CADRE_DATA_LOSS, no_frame);
    answer(64, later_sequence, 64, false, CADRE_INTERNAL, "is in collective 3, this one in 1");
    answer(64, claim_little, 8, false, CADRE_DATA_LOSS, "sent 8 bytes");
    answer(64, long_fault, 500, false, CADRE_DATA_LOSS, no_frame);
    answer(64, fault, 40, false, CADRE_ABORTED, "rank 1 ended the mesh");
    answer(64, goodbye, 0, false, CADRE_ABORTED, "rank 1 closed its mesh before collective 1");
    answer(64, strange_shape, 64, false, CADRE_INVALID_ARGUMENT, "replica 1 called ?");
    answer(64, two_records, WIRE_RECORD_BYTES, false, CADRE_INVALID_ARGUMENT, "replica 0 called");
    answer(64, unterminated_text, 0, false, CADRE_INVALID_ARGUMENT, "xxx");
    /* More than was due with a frame that does not fit: kept, and never read. */
    answer(64, unterminated_text, 64, false, CADRE_INVALID_ARGUMENT, "xxx");
}

/* Ends of the connection at every stage. */
static void test_cut_short(void **state)
{
    (void)state;
    const char *closed = "rank 1 closed its connection";
    answer(64, keep, 63, true, CADRE_ABORTED, closed);
    answer(64, keep, 0, true, CADRE_ABORTED, closed);
    answer(64, two_records, 9, true, CADRE_ABORTED, closed);
    answer(LARGE, keep, 0, true, CADRE_ABORTED, closed);
    answer(LARGE, keep, 50000, true, CADRE_ABORTED, closed);
}

/* A frame in one-byte pieces is still a frame. */
static void test_crumbs(void **state)
{
    (void)state;
    struct hostile hostile;
    struct cadre_error error;
    pthread_t thread;
    static struct reduce call;
    uint8_t bytes[WIRE_FRAME_BYTES + 64];
    struct wire_frame frame;
    hostile_post(&hostile, false);
    hostile_authenticate(&hostile);
    assert_ok(hostile_finish(&hostile, &error), &error);
    memset(&call, 0, sizeof call);
    call.host = (struct host_mesh *)hostile.mesh;
    call.bytes = 64;
    assert_int_equal(pthread_create(&thread, NULL, reduce, &call), 0);
    hostile_receive(hostile.fd, bytes, sizeof bytes);
    assert_true(mesh_wire_frame_decode(bytes, &frame));
    frame.rank = 1;
    mesh_wire_frame_encode(&frame, bytes);
    for (size_t i = 0; i < 16; i++) {
        float one = (float)i;
        memcpy(bytes + WIRE_FRAME_BYTES + 4 * i, &one, sizeof one);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        hostile_send(hostile.fd, bytes + i, 1);
    }
    pthread_join(thread, NULL);
    assert_int_equal(call.status, CADRE_OK);
    assert_true(call.holds);
    for (size_t i = 0; i < 16; i++) {
        float sum;
        memcpy(&sum, call.values + 4 * i, sizeof sum);
        assert_true(sum == (float)i);
    }
    hostile_leave(&hostile);
}

static bool has_ended(void *data)
{
    struct cadre_error error;
    struct hostile *hostile = data;
    return mesh_host_ops.form_test(hostile->mesh, &error) != CADRE_OK;
}

/* While no replica is in a collective: frames, then the end of the connection. */
static void hang_up(
    const struct wire_frame *frame, size_t tail, cadre_status wanted, const char *part)
{
    struct hostile hostile;
    struct cadre_error error;
    uint8_t bytes[WIRE_FRAME_BYTES];
    uint8_t noise[WIRE_REASON_BYTES];
    memset(noise, 'n', sizeof noise);
    hostile_post(&hostile, false);
    hostile_authenticate(&hostile);
    assert_ok(hostile_finish(&hostile, &error), &error);
    if (frame != NULL) {
        mesh_wire_frame_encode(frame, bytes);
        hostile_send(hostile.fd, bytes, sizeof bytes);
    }
    hostile_send(hostile.fd, noise, tail);
    close(hostile.fd);
    hostile.fd = -1;
    assert_true(test_wait(has_ended, &hostile, 10 * CADRE_US_PER_S));
    assert_error(mesh_host_ops.form_test(hostile.mesh, &error), wanted, &error, part);
    hostile_leave(&hostile);
}

static void test_end_while_idle(void **state)
{
    (void)state;
    struct wire_frame frame = {
        .generation = HOSTILE_GENERATION, .nonce = HOSTILE_NONCE, .sequence = 1, .rank = 1};
    const char *gone = "rank 1 closed its connection";
    hang_up(NULL, 0, CADRE_ABORTED, gone);
    hang_up(NULL, 100, CADRE_ABORTED, gone);
    frame.type = WIRE_CALL;
    hang_up(&frame, 0, CADRE_ABORTED, gone);
    frame.data_bytes = 100;
    hang_up(&frame, 100, CADRE_ABORTED, gone);
    hang_up(&frame, 3, CADRE_ABORTED, gone);
    frame.data_bytes = UINT32_MAX;
    hang_up(&frame, 100, CADRE_ABORTED, gone);
    frame.type = WIRE_FAULT;
    frame.code = CADRE_DEADLINE_EXCEEDED;
    frame.data_bytes = 7;
    hang_up(&frame, 7, CADRE_DEADLINE_EXCEEDED, "rank 1 ended the mesh: nnnnnnn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflected_mac),
        cmocka_unit_test(test_replayed_mac),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_crumbs),
        cmocka_unit_test(test_end_while_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
