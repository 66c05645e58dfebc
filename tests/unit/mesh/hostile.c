/* SPDX-License-Identifier: Apache-2.0
 * Playing the other task. */
#include "tests/unit/mesh/hostile.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/speed.h"
#include "worker/library/mesh/connect/address.h"

void hostile_receive(int fd, void *bytes, size_t size)
{
    assert_int_equal(recv(fd, bytes, size, MSG_WAITALL), (ssize_t)size);
}

void hostile_send(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

void hostile_connect(struct hostile *hostile)
{
    struct cadre_error error;
    const char *text = hostile->members[0].address;
    struct mesh_sockaddr to;
    assert_ok(mesh_address_parse(text, &to, &error), &error);
    if (hostile->local) {
        to = mesh_address_local(text);
    }
    if (hostile->fd >= 0) {
        close(hostile->fd);
    }
    hostile->fd = socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(hostile->fd, (struct sockaddr *)&to.storage, to.bytes), 0);
}

void hostile_post(struct hostile *hostile, bool local)
{
    struct cadre_error error;
    *hostile = (struct hostile){.key = {9, 8, 7}, .local = local, .fd = -1};
    assert_ok(mesh_listener_open(
                  "127.0.0.1", NULL, &hostile->listener, hostile->members[0].address, &error),
        &error);
    hostile->members[0].replicas = hostile->members[1].replicas = 1;
    snprintf(hostile->members[1].address, sizeof hostile->members[1].address, "%s",
        local ? "127.0.0.1:9/001122334455" : "127.0.0.2:9/001122334455");
    struct mesh_config config = {
        .generation = HOSTILE_GENERATION,
        .nonce = HOSTILE_NONCE,
        .members = hostile->members,
        .member_count = 2,
        .listener = hostile->listener,
        .form_deadline_us = clock_monotonic_us() + speed_scaled_us(20 * CADRE_US_PER_S),
        .collective_timeout_us = speed_scaled_us(10 * CADRE_US_PER_S),
    };
    memcpy(config.key, hostile->key, sizeof config.key);
    assert_ok(mesh_host_ops.form_post(&config, &hostile->mesh, &error), &error);
    hostile_connect(hostile);
}

cadre_status hostile_step(struct hostile *hostile, struct cadre_error *error)
{
    struct pollfd ready = {.fd = mesh_host_ops.form_fd(hostile->mesh), .events = POLLIN};
    assert_true(poll(&ready, 1, (int)(speed_scaled_us(10 * CADRE_US_PER_S) / CADRE_US_PER_MS)) > 0);
    return mesh_host_ops.form_test(hostile->mesh, error);
}

void hostile_step_until_readable(struct hostile *hostile)
{
    struct cadre_error error;
    struct pollfd ready = {.fd = hostile->fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 0) {
        assert_int_equal(hostile_step(hostile, &error), CADRE_PENDING);
    }
}

/* Two tasks of one replica each. */
static uint64_t roster(const struct hostile *hostile)
{
    uint64_t other_host = hostile->local ? 0 : UINT64_C(1) << 32;
    return prng_mix(prng_mix(prng_mix(2) ^ 1) ^ 1 ^ other_host);
}

void hostile_greet(struct hostile *hostile, uint8_t hello[HANDSHAKE_HELLO_BYTES],
    uint8_t reply[HANDSHAKE_REPLY_BYTES])
{
    struct cadre_error error;
    struct handshake_hello words = {.generation = HOSTILE_GENERATION,
        .nonce = HOSTILE_NONCE,
        .roster = roster(hostile),
        .from_rank = 1};
    assert_ok(mesh_handshake_hello_make(&words, hello, &error), &error);
    hostile_send(hostile->fd, hello, HANDSHAKE_HELLO_BYTES);
    hostile_step_until_readable(hostile);
    hostile_receive(hostile->fd, reply, HANDSHAKE_REPLY_BYTES);
    assert_true(mesh_handshake_mac_valid(
        hostile->key, HANDSHAKE_ACCEPTOR, hello, reply, reply + HANDSHAKE_CHALLENGE_BYTES));
}

void hostile_authenticate(struct hostile *hostile)
{
    struct cadre_error error;
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    hostile_greet(hostile, hello, reply);
    mesh_handshake_mac(hostile->key, HANDSHAKE_CONNECTOR, hello, reply, mac);
    hostile_send(hostile->fd, mac, sizeof mac);
    struct pollfd ready = {.fd = hostile->fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 0) {
        (void)hostile_step(hostile, &error); /* PENDING, or OK where no more steps are due */
    }
    hostile_receive(hostile->fd, mac, sizeof mac);
    assert_true(mesh_handshake_mac_valid(hostile->key, HANDSHAKE_WELCOME, hello, reply, mac));
}

cadre_status hostile_finish(struct hostile *hostile, struct cadre_error *error)
{
    cadre_status status = mesh_host_ops.form_test(hostile->mesh, error);
    while (status == CADRE_PENDING) {
        status = hostile_step(hostile, error);
    }
    return status;
}

void hostile_leave(struct hostile *hostile)
{
    mesh_host_ops.close(hostile->mesh);
    mesh_listener_close(hostile->listener);
    if (hostile->fd >= 0) {
        close(hostile->fd);
    }
}
