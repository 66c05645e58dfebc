/* SPDX-License-Identifier: Apache-2.0
 * Internal to agent_core: the table of local tasks and of their generations, and the functions that
 * its files share. */
#ifndef CADRE_WORKER_AGENT_TABLE_H
#define CADRE_WORKER_AGENT_TABLE_H

#include "worker/core/agent_core.h"

#define GROUP_NONE UINT32_MAX

struct agent_part {
    struct task_part part; /* its path is `path` */
    char path[LIMIT_FILE_NAME_BYTES];
};

/* What a task last sent, kept to be sent again on a new link. Apart from struct agent_task, which
 * is walked often. */
struct agent_resend {
    struct task_exit exit;
    cadre_status cause; /* of an end without a process; OK: not known */
    cadre_status collected_code;
    char collected_text[LIMIT_TEXT_BYTES];
    struct task_hello hello; /* updated by what it sent and received since */
    char library_version[LIMIT_NAME_BYTES];
    char mesh_address[LIMIT_ADDRESS_BYTES];
    bool has_report;
    struct task_report report;
    char report_text[LIMIT_TEXT_BYTES];
    bool has_join;
    struct task_join join;
    bool has_preempt;
    struct task_preempt preempt;
    bool has_part;          /* `part` is to be sent again */
    struct agent_part part; /* the newest that is published */
    bool publishing;
    struct agent_part next;    /* it is being published, or will be once more: publish_at_us */
    uint32_t publish_failures; /* of `next` */
    uint32_t part_repeats;     /* of `part`, since it was sent first */
    uint64_t published_end; /* of the job: its newest published position, plus 1; 0: none known */
};

/* A dataset of a job. Every task reports the same: it is kept once. */
struct agent_stream {
    struct job_id job; /* 0: this entry is free */
    struct task_stream stream;
    char name[LIMIT_NAME_BYTES];
};

struct agent_task {
    enum agent_task_phase phase;
    struct task_ref ref;
    uint32_t pid;
    uint32_t group;      /* its generation here, or GROUP_NONE */
    bool prepared;       /* files are ready; the spawn waits until an older incarnation has exited
                          */
    bool spawning;       /* AGENT_ACTION_SPAWN was appended */
    bool stopping;       /* to be stopped as soon as it runs */
    bool adopted;        /* an earlier incarnation of the daemon recorded its generation; its next
                          * hello reports it */
    bool over;           /* adopted after its end: its last output is being read */
    bool connected;      /* it sent hello on its present connection */
    bool is_ps_task;     /* of a ps job and not its chief: in no roster, addressed by name */
    bool arrived;        /* at least once in its generation */
    uint64_t grace_us;   /* of `stopping` */
    uint64_t kill_at_us; /* of TERMINATING */
    uint64_t publish_at_us; /* when its publication, or its part, is repeated; 0: it is not */
    uint64_t ended;         /* serial of the end; the oldest is removed first */
    uint64_t up_to;
    uint64_t applied;
    struct cursor cursor;
    struct consumption consumption;
};

/* What an epoch that a member left has consumed, in its steps below `applied`. */
struct agent_consumed {
    struct cursor cursor;
    uint64_t applied;
    struct consumption consumption;
};

/* The local members of one generation. */
struct agent_group {
    struct job_id job; /* 0: this entry is free */
    struct generation generation;
    uint32_t members;      /* of the roster, here */
    uint32_t arrived;      /* of them, at least once */
    uint32_t behind_up_to; /* members at the folded minimum */
    uint32_t behind_applied;
    uint32_t behind_begin; /* in the run of `cursor` */
    bool folded;           /* the minimum was sent */
    bool broken;           /* a member was removed: the minima stay at its position */
    uint64_t up_to;
    uint64_t applied;
    uint64_t wanted; /* the largest `wanted` of a member */
    uint32_t wanted_slot;
    struct cursor cursor;
    struct consumption consumption; /* of the member that has applied least */
    struct verified verified;       /* the newest that a member reports */
    struct agent_consumed consumed[AGENT_CONSUMED_MAX];
    uint32_t consumed_count; /* the newest is the last */
    uint32_t consumed_sent;  /* of them, the oldest: since the last welcome */
};

struct agent_core {
    struct agent_options options;
    uint64_t now_us;
    uint32_t entries;
    bool link_up;
    bool linked; /* welcomed on the link that is up */
    bool draining;
    bool left;
    uint64_t heartbeat_us;
    uint64_t heartbeat_at_us;
    uint64_t orphan_at_us; /* UINT64_MAX: linked, or done */
    uint64_t drain_at_us;  /* UINT64_MAX: not draining, or done */
    uint64_t ended;
    struct agent_task *tasks;     /* places */
    struct agent_resend *resend;  /* places */
    struct agent_group *groups;   /* places */
    struct agent_stream *streams; /* AGENT_STREAMS(slots) */
};

/* agent_table.c */
/* NULL: no entry of this incarnation. */
struct agent_task *agent_find(struct agent_core *core, struct task_ref ref);
/* What the task last sent; beside its entry, never NULL. */
struct agent_resend *agent_resend_of(const struct agent_core *core, const struct agent_task *task);
/* Of a task that is in a generation. */
struct agent_group *agent_group_of(const struct agent_core *core, const struct agent_task *task);
/* Of the generation that it is in here, or of one that this daemon has no group of (rule 13). */
bool agent_is_current(
    const struct agent_core *core, const struct agent_task *task, struct generation generation);
/* Appends an action for the task; the rest of it is zero. Valid until the next append. */
struct agent_action *agent_append(
    struct agent_actions *out, enum agent_action_type type, struct task_ref ref);
/* NULL while there is no welcomed link: the state behind it is sent after the next welcome. */
struct agent_up *agent_send(const struct agent_core *core, struct agent_actions *out,
    enum agent_up_type type, struct task_ref ref);
/* Sends a task's frame on to the coordinator, unless no link is welcomed. */
void agent_send_relay(const struct agent_core *core, struct task_ref ref,
    const struct task_up *relay_up, struct agent_actions *out);
/* Copies up to a whole UTF-8 character that fits in `size` bytes; NULL is "". */
void agent_copy_text(char *to, size_t size, const char *from);

/* agent_entries.c */
/* Frees the entry, its place in a generation, and the streams of its job if it was the last. */
void agent_forget_task(struct agent_core *core, struct agent_task *task, struct agent_actions *out);
/* Tasks that have a process, or are about to. */
uint32_t agent_slots_used(const struct agent_core *core);
/* A free entry; else that of the task which was collected longest ago, because the coordinator
 * starts no other task here before it has received that. NULL: there is none. */
struct agent_task *agent_take_entry(
    struct agent_core *core, struct task_ref ref, struct agent_actions *out);
/* Whether it is an incarnation of the slot that `ref` names. */
bool agent_is_of_slot(const struct agent_task *task, struct task_ref ref);
/* Each prepared task with a free slot is spawned. A start may come while tasks that the coordinator
 * has given up are still being killed: it waits for them. */
void agent_spawn_ready(struct agent_core *core, struct agent_actions *out);

/* agent_start.c */
/* A START: takes an entry and prepares the task, or answers why not. */
void agent_start(
    struct agent_core *core, const struct agent_start *start, struct agent_actions *out);
/* PREPARED: spawned as soon as a slot is free. */
void agent_prepared(struct agent_core *core, struct task_ref ref, struct agent_actions *out);
/* FAILED: the task has ended without a process. */
void agent_failed(struct agent_core *core, struct task_ref ref, const struct task_exit *exit,
    cadre_status cause, struct agent_actions *out);
/* SPAWNED: the task runs as `pid`; a stop that came before takes effect. */
void agent_spawned(
    struct agent_core *core, struct task_ref ref, uint32_t pid, struct agent_actions *out);
/* ADOPTED, before the first link. */
void agent_adopted(struct agent_core *core, const struct agent_start *start, uint32_t pid,
    bool ended, struct agent_actions *out);
/* Sends that the task runs, and its pid. */
void agent_send_started(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out);

/* agent_end.c */
/* A STOP: of one task, or of all local tasks of a job. */
void agent_stop(struct agent_core *core, const struct agent_stop *stop, struct agent_actions *out);
/* SIGTERM, and SIGKILL after the grace; sooner when an earlier stop has an earlier deadline. */
void agent_end_task(
    struct agent_core *core, struct agent_task *task, uint64_t grace_us, struct agent_actions *out);
/* SIGTERM to all local tasks, for an orphaned or a drained daemon. */
void agent_end_all(struct agent_core *core, struct agent_actions *out);
/* SIGKILL to each task whose grace has ended. */
void agent_kill_overdue(struct agent_core *core, struct agent_actions *out);
/* Its last process has exited: the end is sent, and its log and outputs are collected. */
void agent_become_gone(struct agent_core *core, struct agent_task *task,
    const struct task_exit *exit, struct agent_actions *out);
/* EXITED. */
void agent_gone(struct agent_core *core, struct task_ref ref, const struct task_exit *exit,
    struct agent_actions *out);
/* COLLECTED: sends it; the entry stays until it is acknowledged. */
void agent_collected(struct agent_core *core, struct task_ref ref, cadre_status code,
    const char *text, struct agent_actions *out);
/* Sends how the task ended. */
void agent_send_gone(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out);
/* Sends that all of its log and outputs are at the coordinator, or why not. */
void agent_send_collected(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out);
/* For a task that has no entry here. */
void agent_send_not_here(
    const struct agent_core *core, struct task_ref ref, const char *why, struct agent_actions *out);

/* agent_relay.c */
/* TASK_UP: a frame from a local task. */
void agent_on_task_up(struct agent_core *core, struct task_ref ref, const struct task_up *up,
    struct agent_actions *out);
/* A message for one local task, or for all of a generation. */
void agent_relay_down(
    struct agent_core *core, const struct agent_relay_down *relay_down, struct agent_actions *out);
/* Hello, join and notice of a connected task once more. */
void agent_resend_task(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out);
/* Its report and its part, behind what they rely on: what its epochs consumed. */
void agent_resend_report(
    struct agent_core *core, const struct agent_task *task, struct agent_actions *out);
/* Sends the failure of the program of a task that has ended, if the task reported one. */
void agent_send_failure(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out);

/* agent_keep.c */
/* A part: published once, then sent; a shared one is sent at once. */
void agent_on_part(struct agent_core *core, struct agent_task *task, const struct task_part *part,
    struct agent_actions *out);
/* PUBLISHED: sends the part, if the task's generation is still the part's. One that failed is
 * published once more after a pause, as long as the task has a process. */
void agent_published(
    struct agent_core *core, struct task_ref ref, cadre_status code, struct agent_actions *out);
/* Publishes once more, when it is time, what failed, or what was sent and is not published: the
 * coordinator may have found that it cannot be read, or had no room. */
void agent_publish_due(struct agent_core *core, struct agent_actions *out);
/* A RELEASE for the task: what its job has published is not repeated. */
void agent_note_published(
    struct agent_core *core, struct agent_task *task, const struct task_release *release);
/* The task's process is gone: nothing waits for a publication that failed. */
void agent_publish_stop(struct agent_core *core, struct agent_task *task);
/* Keeps a dataset of a job, once; if none of the entries is free, it is not sent again. */
void agent_keep_stream(
    struct agent_core *core, struct job_id job, const struct task_stream *stream);
/* All that are kept once more, each through a connected task of its job. */
void agent_send_streams(const struct agent_core *core, struct agent_actions *out);
/* When no process of the job is left here. */
void agent_drop_streams(struct agent_core *core, struct job_id job);

/* agent_fold.c */
/* The group of a generation, made when it does not exist; each group without a task is free. */
uint32_t agent_group_join(struct agent_core *core, struct job_id job, struct generation generation);
/* The task leaves its generation; the minima stay at its position. */
void agent_group_remove(struct agent_core *core, struct agent_task *task);
/* An adopted task is a member of the generation that its hello names. */
void agent_group_rejoin(
    struct agent_core *core, struct agent_task *task, struct generation generation);
/* The local members changed: the fold starts again. */
void agent_group_reset(struct agent_core *core, uint32_t group);
/* An arrival of a local task; sends the folded one when a minimum rises. */
void agent_arrive(struct agent_core *core, struct agent_task *task,
    const struct task_arrive *arrive, struct agent_actions *out);
/* Sends the folded arrival of a generation. */
void agent_send_arrived(
    const struct agent_core *core, const struct agent_group *group, struct agent_actions *out);

/* agent_consumed.c */
/* Before the task's arrival of the run `to` is taken: it may leave an epoch. */
void agent_consumed_keep(
    struct agent_group *group, const struct agent_task *task, const struct cursor *to);
/* What was not sent since the last welcome. */
void agent_consumed_send(
    const struct agent_core *core, struct agent_group *group, struct agent_actions *out);
/* The same, and what the task has consumed of the epoch that it is in: before its report. */
void agent_consumed_report(
    struct agent_core *core, const struct agent_task *task, struct agent_actions *out);

#endif
