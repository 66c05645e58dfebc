/* SPDX-License-Identifier: Apache-2.0
 * A task core on a stage: short functions that feed it one event each, and a transcript of what it
 * does. After every step its invariants are checked. It is slot 1, incarnation 5; the rosters have
 * slot 0 at rank 0 and it at rank 1. */
#ifndef CADRE_TESTS_WORKER_CORE_TASK_FIXTURE_H
#define CADRE_TESTS_WORKER_CORE_TASK_FIXTURE_H

#include "tests/lib/test.h"
#include "transcript.h"
#include "worker/core/task_core.h"

static const struct generation FIRST = {.number = 1, .nonce = 77};
static const struct generation SECOND = {.number = 2, .nonce = 78};

struct fixture {
    struct task_core core;
    struct transcript transcript;
};

struct fixture fixture_make(void);
/* Connected, in the first generation, input of stream 1 for `steps` steps, nothing released. */
struct fixture fixture_running(uint64_t steps);
void step(struct fixture *fixture, const struct task_event *event);
void expect(struct fixture *fixture, const char *transcript);
void forget(struct fixture *fixture);

/* Events of the shell. */
void simple(struct fixture *fixture, enum task_event_type type, uint64_t position);
void ready(
    struct fixture *fixture, uint32_t stream, uint64_t first, uint64_t steps, uint64_t position);
void apply_step(struct fixture *fixture, uint64_t position);
void peer_error(struct fixture *fixture, const char *text);

/* Messages to the task. */
void down(struct fixture *fixture, const struct task_down *message);
void sent(struct fixture *fixture, enum task_down_type type, struct generation generation);
void plan_from(
    struct fixture *fixture, struct generation generation, uint64_t resume, uint32_t source);
void release(struct fixture *fixture, uint64_t up_to);
void release_halt(struct fixture *fixture, struct generation generation, uint64_t up_to,
    uint64_t halt_at, enum halt_kind kind, uint32_t stream);

#endif
