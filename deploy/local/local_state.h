/* SPDX-License-Identifier: Apache-2.0
 * The inside of the embedded cluster, shared by its files only. */
#ifndef CADRE_WORKER_LOCAL_STATE_H
#define CADRE_WORKER_LOCAL_STATE_H

#include <uv.h>

#include "common/wire/wire.h"
#include "coordinator/engine/engine.h"
#include "worker/host/agent/agent.h"
#include "deploy/local/checkpoints.h"
#include "deploy/local/folders.h"
#include "deploy/local/local.h"

/* The one stream there is. */
#define LOCAL_LINK ((struct link_id){1})

/* A message of the engine to the agent, as a stream would carry it. */
struct packed_down {
    struct packed_down *next;
    struct wire_buffer bytes;
};

struct local {
    const struct local_options *options;
    struct local_watch watch;
    void *watch_user;
    uv_loop_t loop;
    uv_prepare_t turn;
    uv_timer_t tick;
    uv_signal_t signals[3];
    struct engine *engine;
    struct agent *agent;
    struct wire_arena *arena;
    struct packed_down *downs;
    struct packed_down **downs_tail;
    char *program; /* absolute */
    struct local_folders folders;
    int guard_fd; /* -1: none */
    struct local_checkpoints checkpoints;
    uint8_t
        named[LIMIT_SHA256_BYTES]; /* the manifest that the user named, which is never replaced */
    struct task_ref damaged_task;  /* was to go on from a checkpoint that is damaged, of: */
    uint64_t damaged_step;
    struct slot_gpus *gpus;
    struct job_id job;
    unsigned interrupts;
    bool ended;
    int exit_code;
    char message[LIMIT_TEXT_BYTES];
    bool broken;
    struct cadre_error error;
};

/* local.c: ends the run with this error; the first one counts. */
void local_break(struct local *local, const struct cadre_error *error);

/* downs.c: puts a message for the agent into the queue. RESOURCE_EXHAUSTED: no memory. */
cadre_status local_queue_down(
    struct local *local, const struct agent_down *down, struct cadre_error *error);

/* sink.c: receives from the engine. */
extern const struct engine_sink local_sink;
/* Hands the oldest message of the queue to the agent; false: there is none. */
bool local_deliver(struct local *local);
/* Frees all messages of the queue. */
void local_drop_messages(struct local *local);

/* agent_callbacks.c: receives from the agent. */
extern const struct agent_callbacks local_agent_callbacks;

/* generations.c: those of the job, in order; the caller frees them. NULL: no memory. */
struct verify_generation *local_generations(struct local *local, size_t *ret_count);

/* gpus.c: fills local->gpus. */
cadre_status local_gpus_open(struct local *local, struct cadre_error *error);

#endif
