/* SPDX-License-Identifier: Apache-2.0
 * Internal to the engine: its state and the functions that its files share. */
#ifndef CADRE_COORDINATOR_ENGINE_STATE_H
#define CADRE_COORDINATOR_ENGINE_STATE_H

#include "coordinator/engine/delayed.h"
#include "coordinator/engine/directory.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/hold.h"
#include "coordinator/engine/lagging.h"
#include "coordinator/engine/placements.h"

/* What listings show of a worker and the core does not use. */
struct worker_detail {
    struct worker_id id;
    char name[LIMIT_NAME_BYTES];
    char host[LIMIT_NAME_BYTES];
    char version[LIMIT_NAME_BYTES];
    uint32_t cpus;
    uint64_t memory_bytes;
    struct gpus *gpus; /* NULL: none was reported, or there was no memory */
    uint64_t joined_us;
    uint64_t certificate_ends_us;
    struct resource_usage usage; /* as it reported it then: */
    uint64_t usage_us;
};

/* Beside a record of the turn. */
struct turn_placements {
    size_t action; /* index of the record in the turn */
    struct placements of;
};

/* What is not kept any more: recorded with the turn, and removed once that is sent, or once the
 * entry of the shared log is stored. */
struct turn_removals {
    struct core_record *items;
    size_t count;
    size_t asked; /* the first of them: engine_forget_job() asked for them */
    size_t capacity;
};

/* Events of this turn. */
struct turn_event;
struct turn_history {
    struct turn_event *items;
    size_t count;
    size_t capacity;
};

/* What engine_history returned last. */
struct history_row;
struct history_page {
    struct history_event *events;
    struct history_row *rows; /* their texts */
    size_t count;
    size_t capacity;
};

/* What engine_verify returned last. */
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

/* Of a shared log: see shared_log.c. */
struct shared_log {
    uint64_t appended; /* entries */
    uint64_t stored;
    uint64_t waited;  /* the newest one that messages wait for */
    uint64_t welcome; /* the one that the newest welcome waits for */
    bool waits;       /* the turn that is sent has such an entry: `waited` */
    struct lagging lagging;
    struct delayed delayed;
    struct wire_buffer packed; /* a message that is delayed */
    struct wire_arena *arena;  /* of one that is sent */
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
    struct turn_history history; /* of this turn: stored after its records */
    bool unsynced;               /* records wait for a sync, since: */
    uint64_t unsynced_us;
    bool ends_unsynced;  /* an end of a task is among them, or that a job is queued again */
    bool surplus;        /* a job may have more checkpoints than it keeps: */
    bool surplus_of_all; /* any of them, or: */
    struct job_id *surplus_of;
    size_t surplus_count;
    size_t surplus_capacity;
    struct turn_removals removals;
    bool sending;    /* in the sink: no event is allowed now */
    bool reads_only; /* of engine_open_reader() */
    struct directory directory;
    struct directory_entry *submitting; /* waits for the id that the core gives it in this step */
    struct job_id *changed;             /* jobs whose watchers are notified, once, in this turn */
    size_t changed_count;
    size_t changed_capacity;
    struct worker_detail *details; /* in order of id */
    size_t detail_count;
    size_t detail_capacity;
    struct task_info *task_infos; /* what engine_job_info returned last */
    struct audit audit;
    struct history_page history_page;
    struct engine_counts counts;
    uint64_t arrived_us; /* the first arrival of this turn was read; 0: none was */
    uint8_t secret[STORE_SECRET_BYTES];
    struct term term;
    bool term_unstored; /* the next turn is to store it */
    struct hold hold;
    struct shared_log log;
    struct job_id stored_max; /* the newest job that is stored: readers show no newer one */
    cadre_status broken;      /* a turn could not be prepared: returned by the next flush */
    struct cadre_error broken_error;
};

/* submit.c: which checkpoints the job still has besides that of position `but`, and how to name
 * one. `from` is NULL when the job was removed, `source` 0 when there was none. */
void engine_describe_kept(const struct directory_entry *from, struct job_id source, uint64_t but,
    char sentence[LIMIT_TEXT_BYTES]);

/* held.c: the turn is stored: it may be sent. */
void engine_note_stored(struct engine *engine);
/* held.c: NULL: there is no such job, or it is not stored yet. */
struct directory_entry *engine_find_stored(const struct engine *engine, struct job_id job);

/* shared_log.c: records of the turn, the events of the turn among them, and of turns before it
 * whose records could wait become an entry of the log, if something waits for them; else events and
 * what could wait do if they are `due`. */
cadre_status engine_log_turn(struct engine *engine, const struct store_record *records,
    size_t count, const struct store_record *events, bool due, struct cadre_error *error);
/* shared_log.c: the entry that the action waits for; 0: it is sent at once. */
uint64_t engine_log_awaited(struct engine *engine, const struct core_action *action);
/* shared_log.c: the same of the notice that the job has changed. */
uint64_t engine_log_awaited_change(
    const struct engine *engine, const struct directory_entry *entry);
/* shared_log.c: keeps it until that entry is stored. */
void engine_log_delay(
    struct engine *engine, const struct delayed_item *item, const void *bytes, size_t size);
void engine_log_delay_down(
    struct engine *engine, uint64_t entry, struct link_id link, const struct agent_down *down);
/* shared_log.c: sends what waits for nothing any more. */
void engine_log_send_stored(struct engine *engine);
/* shared_log.c: whether there is something for it. */
bool engine_log_has_stored(const struct engine *engine);
void engine_log_free(struct shared_log *log);

/* held.c: readers may see the job, or its end. */
void engine_show_submitted(struct engine *engine, struct directory_entry *entry);
void engine_show_ended(struct directory_entry *entry);

/* broken.c: nothing more is decided; the next flush (also the one that is running) returns the
 * error.
 */
void engine_break(struct engine *engine, const struct cadre_error *error);

/* turn.c: an answer without the core, sent in order with the rest of the turn. */
void engine_answer(struct engine *engine, struct call_id call, cadre_status code, const char *text);
/* turn.c: likewise OK, with a job. */
void engine_answer_job(struct engine *engine, struct call_id call, struct job_id job);
/* turn.c: a record of a job that ended, of which the core knows nothing. */
void engine_add_record(struct engine *engine, const struct core_record *record);

/* turn.c: the worker keeps memory or files of a job that does not run. */
void engine_add_forget(struct engine *engine, struct job_id job, struct link_id link);

/* info.c: steps that are committed; of a live job the core may have more than the directory. */
uint64_t engine_position(const struct engine *engine, const struct directory_entry *entry);

/* fetches.c: what the worker on this link, or the program of a task, reports. */
void engine_note_fetch(struct engine *engine, struct link_id link, struct task_ref task,
    const struct task_fetch *fetch);
void engine_note_fetches(
    struct engine *engine, struct link_id link, const struct agent_heartbeat *heartbeat);

/* usages.c: what the worker on this link reports that its tasks and its host use. */
void engine_note_usages(
    struct engine *engine, struct link_id link, const struct agent_heartbeat *heartbeat);
/* info.c: the details of the worker on this link; NULL: there are none. */
struct worker_detail *engine_detail_on_link(struct engine *engine, struct link_id link);

/* turn.c: watchers of the job are notified when the rest of the turn is sent. */
void engine_note_changed(struct engine *engine, struct job_id job);

/* turn.c: one core_step, and the ticks that are due now; applies the actions to the directory. */
void engine_step(struct engine *engine, const struct core_event *event);

/* send.c: one action that is no record. */
void engine_send(struct engine *engine, const struct core_action *action);

/* records.c: applies a record, the action `action` of the turn, to the directory at once. */
void engine_note_record(struct engine *engine, size_t action);
/* records.c: fills the record for the store, when the turn ends. */
void engine_fill_record(
    const struct engine *engine, size_t action, struct store_record *ret_record);
/* records.c: frees what is kept beside the records of the turn. */
void engine_drop_placements(struct engine *engine);

/* history.c: the events that follow from a record; `placements` of a start or a plan, else NULL.
 * The entry is NULL for a record of no job. */
void engine_history_record(struct engine *engine, struct directory_entry *entry,
    const struct core_record *record, const struct placements *placements);
/* history.c: the core's state of the job changed: a stall began or ended. */
void engine_history_changed(struct engine *engine, struct job_id job);
/* history.c: an agent started the process of the task. */
void engine_history_task(struct engine *engine, struct task_ref task);
/* history.c: the daemon of this worker drains itself. */
void engine_history_leaves(struct engine *engine, const char *worker);
/* history.c: reads what is stored of a live job, after a start. */
cadre_status engine_history_restore(
    struct engine *engine, struct directory_entry *entry, struct cadre_error *error);
/* history.c: event `i` of the turn, for the store. */
void engine_history_fill(const struct engine *engine, size_t i, struct store_record *ret_record);
/* history.c: frees the room for the events of a turn. */
void engine_history_free(struct turn_history *history);

/* history_page.c: frees the last page. */
void engine_history_page_free(struct history_page *page);

/* turn.c: when unsynced records must be on the disk; UINT64_MAX: none wait. */
uint64_t engine_sync_due_us(const struct engine *engine);

/* counts.c: what the turn recorded, once it is committed. */
void engine_count_turn(struct engine *engine);
/* counts.c: adds the steps of a job that were committed since the last call. */
void engine_count_steps(struct engine *engine, struct directory_entry *entry);

/* removals.c: the job has more checkpoints than it keeps. */
void engine_note_surplus(struct engine *engine, struct job_id job);
/* removals.c: finds what is not kept beyond this turn: checkpoints, and jobs that ended. It
 * replaces what was found before. */
cadre_status engine_find_removals(struct engine *engine, struct cadre_error *error);
/* removals.c: their records are stored, and no message that waits names them: they go, and the sink
 * is called for each. */
void engine_remove(struct engine *engine);

/* verify.c: frees the last page. */
void engine_audit_free(struct audit *audit);

/* info.c: all of the job but its tasks. */
void engine_fill_basics(
    const struct engine *engine, struct directory_entry *entry, struct job_info *ret_info);

/* info.c: drops the details of workers that the core has removed. */
void engine_forget_workers(struct engine *engine);
/* info.c, after a start: those that are expected, of which only the name is recorded. */
void engine_note_expected(struct engine *engine);
/* info.c: keeps what a hello reports of the host. */
void engine_note_worker(
    struct engine *engine, struct worker_id worker, const struct agent_hello *hello);
/* info.c: when the certificate of the worker on this link expires; 0: none was reported. */
void engine_note_certificate(struct engine *engine, struct link_id link, uint64_t ends_us);
/* info.c: keeps the core's present state of a task. */
void engine_note_task(struct engine *engine, struct job_id job, uint32_t slot);

#endif
