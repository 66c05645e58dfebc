/* SPDX-License-Identifier: Apache-2.0
 * An agent core on a stage: short functions that feed it one event each, and a transcript of what
 * it does. After every step its invariants are checked. Tasks are written
 * j<job>.<slot>.<incarnation>. */
#ifndef CADRE_TESTS_WORKER_CORE_AGENT_FIXTURE_H
#define CADRE_TESTS_WORKER_CORE_AGENT_FIXTURE_H

#include "tests/lib/test.h"
#include "transcript.h"
#include "worker/core/agent_core.h"

#define SLOTS    2
#define GRACE_US 1000

static const struct generation FIRST = {.number = 1, .nonce = 77};

struct fixture {
    struct agent_core *core;
    struct agent_actions actions;
    struct transcript transcript;
    uint64_t now_us;
};

struct fixture *fixture_open(void);
void fixture_close(struct fixture *fixture);
void step(struct fixture *fixture, struct agent_event event);
void expect(struct fixture *fixture, const char *transcript);
struct task_ref task_of(uint64_t job, uint32_t slot, uint64_t incarnation);
void happens(struct fixture *fixture, enum agent_event_type type, struct task_ref task);
void plain(struct fixture *fixture, enum agent_event_type type);
void down(struct fixture *fixture, const struct agent_down *message);
void welcome(struct fixture *fixture);
void start(struct fixture *fixture, struct task_ref task);
void stop_one(struct fixture *fixture, struct task_ref task);
void exits(struct fixture *fixture, struct task_ref task, int code);
void expect_output(struct fixture *fixture, struct task_ref task, const struct task_up *up);
void sends_hello(struct fixture *fixture, struct task_ref task);
void arrives(struct fixture *fixture, struct task_ref task, uint64_t up_to, uint64_t applied);
void plan(struct fixture *fixture, uint64_t job);
void release(struct fixture *fixture, uint64_t job, struct generation generation);
void runs(struct fixture *fixture, struct task_ref task);

/* Two tasks of job 1, slots 0 and 1, in the first generation; slot 2 is elsewhere. */
struct fixture *fixture_two_members(void);

#endif
