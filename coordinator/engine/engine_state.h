/* SPDX-License-Identifier: Apache-2.0
 * The engine's inside, shared by its files only. */
#ifndef CADRE_COORDINATOR_ENGINE_STATE_H
#define CADRE_COORDINATOR_ENGINE_STATE_H

#include "coordinator/engine/directory.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/hold.h"
#include "coordinator/engine/placements.h"

/* What people are told of a worker and the core does not need. */
struct worker_detail {
    struct worker_id id;
    char name[LIMIT_NAME_BYTES];
    char host[LIMIT_NAME_BYTES];
    char version[LIMIT_NAME_BYTES];
    uint32_t cpus;
    uint64_t memory_bytes;
    struct gpus *gpus; /* NULL: of none anything is known, or there was no memory */
    uint64_t joined_us;
    uint64_t certificate_ends_us;
};

/* What is kept beside a record. */
struct turn_placements {
    size_t action; /* index of the record in the turn */
    struct placements of;
};

/* What engine_verify handed out last. */
struct audit {
    struct verify_generation *generations;
    struct verify_epoch *epochs;
    struct audit_stream *streams;
    struct verified *verified;
    size_t generation_count;
    size_t epoch_count;
    size_t stream_count;
    size_t verified_count;
    size_t generation_capacity;
    size_t epoch_capacity;
    size_t stream_capacity;
    size_t verified_capacity;
};

struct engine {
    struct engine_options options;
    struct engine_sink sink;
    void *user;
    struct store *store;
    void *core_memory;
    struct core *core;
    uint64_t now_us;
    struct core_actions turn;           /* of this turn, records among them */
    struct turn_placements *placements; /* of this turn, in order of action */
    size_t target_count;
    size_t placement_capacity;
    bool unsynced; /* records wait for a sync, since: */
    uint64_t unsynced_us;
    bool surplus;        /* a job may have more checkpoints than it keeps: */
    bool surplus_of_all; /* any of them, or: */
    struct job_id *surplus_of;
    size_t surplus_count;
    size_t surplus_capacity;
    bool surplus_jobs;   /* more jobs may have ended than are kept */
    uint64_t surplus_us; /* not to be tried before */
    bool sending;        /* in the sink: no event may come now */
    struct directory directory;
    struct directory_entry *submitting; /* waits for the id that the core gives it in this step */
    struct job_id *changed;             /* jobs of which watchers are told, once, in this turn */
    size_t changed_count;
    size_t changed_capacity;
    struct worker_detail *details; /* in order of id */
    size_t detail_count;
    size_t detail_capacity;
    struct task_info *task_infos; /* what engine_job_info handed out last */
    struct audit audit;
    struct engine_counts counts;
    uint64_t arrived_us; /* the first arrival of this turn was read; 0: none was */
    uint8_t secret[STORE_SECRET_BYTES];
    struct term term;
    bool term_unstored; /* the next turn is to store it */
    struct hold hold;
    struct job_id stored_max; /* the newest job that is stored: readers tell of no newer one */
    cadre_status broken;      /* a turn could not be prepared: told by the next flush */
    struct cadre_error broken_error;
};

/* submit.c: which checkpoints the job still has but that of position `but`, and how to name one.
 * `from` is NULL when the job is not known any more, `source` 0 when it never was. */
void engine_describe_kept(const struct directory_entry *from, struct job_id source, uint64_t but,
    char sentence[LIMIT_TEXT_BYTES]);

/* held.c: the turn is stored: it may be spoken. */
void engine_note_stored(struct engine *engine);
/* held.c: NULL: there is no such job, or it is not stored yet. */
struct directory_entry *engine_find_stored(const struct engine *engine, struct job_id job);

/* turn.c: nothing more is decided; the next flush (also the one that is running) says why. */
void engine_break(struct engine *engine, const struct cadre_error *error);

/* turn.c: an answer that the core has no part in, spoken in order with the rest of the turn. */
void engine_answer(struct engine *engine, struct call_id call, cadre_status code, const char *text);

/* turn.c: the worker keeps something of a job that does not run. */
void engine_add_forget(struct engine *engine, struct job_id job, struct link_id link);

/* info.c: steps that are committed; of a live job the core may know of more than the directory. */
uint64_t engine_position(const struct engine *engine, const struct directory_entry *entry);

/* turn.c: watchers are told of the job when the rest of the turn is said. */
void engine_note_changed(struct engine *engine, struct job_id job);

/* turn.c: one core_step, and as many ticks as it asks for now; takes notice of what came out. */
void engine_step(struct engine *engine, const struct core_event *event);

/* send.c: one action that is no record. */
void engine_send(struct engine *engine, const struct core_action *action);

/* records.c: takes notice of what the core decided, the action `action` of the turn, at once. */
void engine_note_record(struct engine *engine, size_t action);
/* records.c: the same for the store, when the turn ends. */
void engine_fill_record(
    const struct engine *engine, size_t action, struct store_record *ret_record);
void engine_drop_placements(struct engine *engine);

/* turn.c: when unsynced records must be on the disk; UINT64_MAX: none wait. */
uint64_t engine_sync_due_us(const struct engine *engine);

/* counts.c: what the turn recorded, once it is committed. */
void engine_count_turn(struct engine *engine);
void engine_count_steps(struct engine *engine, struct directory_entry *entry);

/* checkpoints.c: the job has more than it keeps. */
void engine_note_surplus(struct engine *engine, struct job_id job);
/* checkpoints.c: those that are beyond what their job keeps are forgotten, and the sink is told. */
cadre_status engine_drop_surplus(struct engine *engine, struct cadre_error *error);

/* forget.c: those beyond what is kept. */
cadre_status engine_forget_surplus(struct engine *engine, struct cadre_error *error);

/* verify.c */
void engine_audit_free(struct audit *audit);

/* info.c: all of the job but its tasks. */
void engine_fill_basics(
    const struct engine *engine, struct directory_entry *entry, struct job_info *ret_info);

/* info.c: what a hello told about the host, and what the core knows of a task now. */
void engine_forget_workers(struct engine *engine);
/* After a start: those that are expected, of which nothing but the name is known. */
void engine_note_expected(struct engine *engine);
void engine_note_worker(
    struct engine *engine, struct worker_id worker, const struct agent_hello *hello);
/* When the certificate of the worker on this link expires; 0: nothing was told. */
void engine_note_certificate(struct engine *engine, struct link_id link, uint64_t ends_us);
void engine_note_task(struct engine *engine, struct job_id job, uint32_t slot);

#endif
