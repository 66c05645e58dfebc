/* SPDX-License-Identifier: Apache-2.0
 * The values of the sample messages from a coordinator to a worker daemon. Included by samples.c
 * alone. */
#ifndef CADRE_TESTS_UNIT_WIRE_SAMPLES_AGENT_H
#define CADRE_TESTS_UNIT_WIRE_SAMPLES_AGENT_H

#include "tests/unit/wire/samples_values.h"

static const struct agent_down welcome = {.type = AGENT_DOWN_WELCOME,
    .welcome = {.worker = {11},
        .lease_us = 10000000,
        .term = {1, 2, 3},
        .protocol_version = 4,
        .silence_us = 5,
        .log_index = 6}};
static const struct agent_down agent_refused = {
    .type = AGENT_DOWN_REFUSED, .refused = {.code = CADRE_ALREADY_EXISTS, .text = "name in use"}};
/* The spec is a copy: constant initialisers cannot name another object. */
static const struct agent_down start = {
    .type = AGENT_DOWN_START,
    .start =
        {
            .task = TASK,
            .task_count = LIMIT_TASKS_PER_JOB,
            .spec = {.name = "digits", .program = {.name = "p"}, .workers = 1, .strategy = ""},
        },
};
static const struct agent_down start_tasks = {
    .type = AGENT_DOWN_START,
    .start =
        {
            .task = TASK,
            .task_count = LIMIT_TASKS_PER_JOB,
            .spec = {.name = "digits", .program = {.name = "p"}, .workers = 1, .strategy = ""},
            .restores = true,
            .checkpoint =
                {
                    .position = 5001,
                    .shared = true,
                    .path = "checkpoint-5001.json",
                    .manifest_bytes = LIMIT_MANIFEST_BYTES,
                    .manifest_sha256 = HASH(11),
                },
        },
};
static const struct agent_down stop = {
    .type = AGENT_DOWN_STOP,
    .stop = {.job = {7}, .one = true, .task = TASK, .grace_us = 5000000},
};
static const struct agent_down stop_all = {.type = AGENT_DOWN_STOP, .stop = {.job = {7}}};
static const struct agent_down relay_down = {
    .type = AGENT_DOWN_RELAY,
    .relay_down =
        {
            .job = {7},
            .one = true,
            .task = TASK,
            .down = {.type = TASK_DOWN_GOODBYE, .generation = GENERATION},
        },
};
static const struct agent_down tell_all = {
    .type = AGENT_DOWN_RELAY,
    .relay_down =
        {
            .job = {7},
            .down =
                {
                    .type = TASK_DOWN_RELEASE,
                    .release =
                        {
                            .generation = GENERATION,
                            .up_to = 801,
                            .checkpoint_at = POSITION_NONE,
                            .halt_at = POSITION_NONE,
                            .published = POSITION_NONE,
                        },
                },
        },
};
static const struct agent_down log_ack = {
    .type = AGENT_DOWN_LOG_ACK, .log_ack = {.task = TASK, .offset = 901}};

static const struct agent_down start_server = {
    .type = AGENT_DOWN_START,
    .start =
        {
            .task = {.job = {7}, .slot = 1, .incarnation = 1602},
            .task_count = 2,
            .spec = {.name = "digits", .program = {.name = "p"}, .workers = 2, .strategy = ""},
            .predecessor = 1601,
        },
};
static const struct agent_down forget = {.type = AGENT_DOWN_FORGET, .forget = {1501}};
static const struct agent_down keepalive = {
    .type = AGENT_DOWN_KEEPALIVE, .keepalive = {.log_index = 1502}};

#endif
