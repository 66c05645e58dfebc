/* SPDX-License-Identifier: Apache-2.0
 * A program's end of its task's socket, played by the test itself. */
#ifndef CADRE_TESTS_UNIT_AGENT_CLIENT_H
#define CADRE_TESTS_UNIT_AGENT_CLIENT_H

#include "common/wire/frame.h"
#include "tests/unit/agent/stage.h"

struct client {
    int fd;
    struct frame_reader reader;
    bool greeted; /* the preamble was taken */
    bool ended;
};

/* To the task of attempt 0. */
struct client client_open(struct stage *stage);
void client_close(struct client *client);
void client_send(struct client *client, const void *bytes, size_t size);
void client_greet(struct client *client);
void client_send_up(struct client *client, const struct task_up *up);

/* The first message of a program. */
extern const struct task_up client_hello;

#endif
