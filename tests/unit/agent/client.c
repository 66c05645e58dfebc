/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/client.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct client client_open(struct stage *stage)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct client client = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    assert_true(client.fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s0", stage->folder);
    assert_int_equal(connect(client.fd, (struct sockaddr *)&address, sizeof address), 0);
    return client;
}

void client_close(struct client *client)
{
    close(client->fd);
    frame_reader_free(&client->reader);
}

void client_send(struct client *client, const void *bytes, size_t size)
{
    assert_int_equal(send(client->fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

void client_greet(struct client *client)
{
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(preamble);
    client_send(client, preamble, sizeof preamble);
}

void client_send_up(struct client *client, const struct task_up *up)
{
    struct wire_buffer frame = {0};
    struct cadre_error error = {0};
    assert_ok(frame_pack_task_up(up, &frame, &error), &error);
    client_send(client, frame.bytes, frame.size);
    wire_buffer_free(&frame);
}

const struct task_up client_hello = {.type = TASK_UP_HELLO,
    .hello = {.frame_version = TASK_FRAME_VERSION,
        .library_version = "1",
        .pid = 1,
        .replicas = 1,
        .mesh_address = "127.0.0.1:1",
        .clean = true}};
