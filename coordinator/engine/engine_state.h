/* SPDX-License-Identifier: Apache-2.0
 * The engine's inside, shared by its files only. */
#ifndef CADRE_COORDINATOR_ENGINE_STATE_H
#define CADRE_COORDINATOR_ENGINE_STATE_H

#include "coordinator/engine/directory.h"
#include "coordinator/engine/engine.h"

/* What people are told of a worker and the core does not need. */
struct worker_detail {
    struct worker_id id;
    char name[LIMIT_NAME_BYTES];
    char host[LIMIT_NAME_BYTES];
    char version[LIMIT_NAME_BYTES];
    uint32_t cpus;
    uint64_t memory_bytes;
    uint64_t joined_us;
};

struct engine {
    struct engine_options options;
    struct engine_sink sink;
    void *user;
    struct store *store;
    void *core_memory;
    struct core *core;
    uint64_t now_us;
    struct core_actions turn; /* of this turn, records among them */
    bool speaking;            /* in the sink: no event may come now */
    struct directory directory;
    struct directory_entry *submitting; /* waits for the id that the core gives it in this step */
    struct job_id *changed;             /* jobs of which watchers are told, once, in this turn */
    size_t changed_count;
    size_t changed_capacity;
    struct worker_detail *details; /* in order of id */
    size_t detail_count;
    size_t detail_capacity;
    struct task_info *task_infos; /* what engine_job_info handed out last */
    uint8_t secret[STORE_SECRET_BYTES];
    cadre_status broken; /* a turn could not be prepared: told by the next flush */
    struct cadre_error broken_error;
};

/* turn.c: nothing more is decided; the next flush (also the one that is running) says why. */
void engine_break(struct engine *engine, const struct cadre_error *error);

/* turn.c: an answer that the core has no part in, spoken in order with the rest of the turn. */
void engine_answer(struct engine *engine, struct call_id call, cadre_status code, const char *text);

/* turn.c: watchers are told of the job when the rest of the turn is said. */
void engine_note_changed(struct engine *engine, struct job_id job);

/* turn.c: one core_step, and as many ticks as it asks for now; takes notice of what came out. */
void engine_step(struct engine *engine, const struct core_event *event);

/* speak.c: one action that is no record. */
void engine_speak(struct engine *engine, const struct core_action *action);

/* speak.c: the roster of a job's generation as the store keeps it; *ret_bytes is malloc'ed. */
cadre_status engine_pack_roster(struct engine *engine, struct job_id job, uint8_t **ret_bytes,
    size_t *ret_size, struct cadre_error *error);

/* info.c: what a hello told about the host, and what the core knows of a task now. */
void engine_note_worker(
    struct engine *engine, struct worker_id worker, const struct agent_hello *hello);
void engine_note_task(struct engine *engine, struct job_id job, uint32_t slot);

#endif
