/* SPDX-License-Identifier: Apache-2.0
 * Messages between a worker daemon (agent) and the coordinator on their one stream. Frames are
 * bound to the stream on which they arrived: a frame queued for an older stream or incarnation must
 * not reach its successor (rule 12). */
#ifndef CADRE_MODEL_AGENT_MESSAGE_H
#define CADRE_MODEL_AGENT_MESSAGE_H

#include "common/pure/log_mark.h"
#include "common/model/gpus.h"
#include "common/model/task_message.h"
#include "common/model/term.h"
#include "common/model/versions.h"

/* Of the agent stream: what this version of Cadre serves, as coordinator and as daemon. A hello has
 * the daemon's range, and the welcome the version that is used on the stream, the newest of both;
 * without a common one the coordinator refuses the daemon with both ranges in the message. */
#define AGENT_PROTOCOL_OLDEST  8
#define AGENT_PROTOCOL_VERSION 9
#define AGENT_PROTOCOL_RANGE                                                                       \
    ((struct version_range){.oldest = AGENT_PROTOCOL_OLDEST, .newest = AGENT_PROTOCOL_VERSION})

/* From this version on the coordinator may send AGENT_DOWN_KEEPALIVE. */
#define AGENT_PROTOCOL_KEEPALIVE 9

/* Entries for tasks that an agent has: for those that run, and for those that are still being
 * killed, or that ended and are kept until they are collected. A start beyond that is refused. */
#define AGENT_ENTRIES(slots) (2 * (slots))

/* ---- agent -> coordinator ---- */

struct agent_hello {
    uint32_t protocol_version; /* the oldest that it serves; a coordinator that knows no ranges
                                * takes it for the only one */
    uint32_t protocol_newest;  /* 0: protocol_version */
    const char *library_version;
    const char *name; /* unique in the cluster; a second daemon with a live one's name is refused */
    const char *host;
    uint64_t boot_nonce; /* drawn at start of the daemon */
    uint32_t slots;
    uint32_t cpus;
    uint64_t memory_bytes;
    uint64_t orphan_us; /* without a coordinator for so long, it ends its tasks; 0: not given */
    bool draining;      /* takes no new tasks; AGENT_UP_DRAINING reports it on a running stream */
    const struct task_ref *tasks; /* that have an entry here */
    size_t task_count;
    const struct job_id *kept; /* jobs of whose parameter servers it keeps the memory */
    size_t kept_count;
    struct gpus gpus;    /* omitted is 0 */
    struct term seen;    /* the newest coordinator that the daemon has accepted */
    uint64_t seen_index; /* the highest log_index that it has received in that term; 0: none */
};

struct agent_fetch {
    struct task_ref task;
    struct task_fetch fetch;
};

struct agent_usage {
    struct task_ref task;
    struct resource_usage usage;
};

struct agent_heartbeat {
    const struct agent_fetch *fetches; /* of tasks that are being prepared, as far as it is new */
    size_t fetch_count;
    const struct agent_usage *usages; /* of tasks that run, as far as it is new */
    size_t usage_count;
    struct resource_usage host; /* with them */
};

/* The local tasks of one generation, folded: the least of each watermark over them, but the largest
 * `wanted`. Of no task (`tasks` is 0): it claims nothing, and is also of a generation that is
 * broken up; what one of them consumed of the cursor's epoch in its steps below `applied`. */
struct agent_arrived {
    struct job_id job;
    struct generation generation;
    uint32_t tasks; /* local members that it counts: all of this worker's roster entries, or 0 */
    uint64_t up_to;
    uint64_t applied;
    uint64_t wanted;      /* as in task_arrive; sent also before every member has arrived */
    uint32_t wanted_slot; /* the member with the largest `wanted`; when wanted is not 0 */
    struct cursor cursor;
    struct consumption
        consumption; /* of the member that has applied least: at one position all hold the same */
    struct verified verified; /* the newest that a member reports: it compared those of all */
};

struct agent_task_started {
    struct task_ref task;
    uint32_t pid;
};

/* The process has exited, or never started (exit.text gives the reason, code is 126 or 127). */
struct agent_task_gone {
    struct task_ref task;
    struct task_exit exit;
    cadre_status cause; /* why it never started; OK: it did, or a daemon of before does not say */
    uint64_t damaged_step; /* the checkpoint that it was to go on from is damaged in its folder, see
                            * exit.text; 0: it was not read, or is whole */
};

/* Its whole log and outputs are at the coordinator and nothing of it is left on the host. */
struct agent_task_collected {
    struct task_ref task;
    cadre_status code; /* not OK: outputs could not be collected, text gives the reason */
    const char *text;
};

struct agent_relay_up {
    struct task_ref task;
    struct task_up up; /* never TASK_UP_ARRIVE, which is folded into agent_arrived */
};

struct agent_log {
    struct task_ref task;
    uint64_t offset;
    const uint8_t *bytes;
    size_t size_bytes;
    const struct log_mark *marks; /* of the bytes; none: of an earlier version */
    size_t mark_count;
};

enum agent_up_type {
    AGENT_UP_HELLO = 1,
    AGENT_UP_HEARTBEAT,
    AGENT_UP_DRAINING, /* takes no new tasks; leaves when the last is collected */
    AGENT_UP_ARRIVED,
    AGENT_UP_TASK_STARTED,
    AGENT_UP_TASK_GONE,
    AGENT_UP_TASK_COLLECTED,
    AGENT_UP_RELAY,
    AGENT_UP_LOG
};

struct agent_up {
    enum agent_up_type type;
    uint64_t certificate_ends_us; /* wall clock; with a hello or heartbeat; 0: unchanged, or none */
    union {
        struct agent_hello hello;
        struct agent_heartbeat heartbeat;
        struct agent_arrived arrived;
        struct agent_task_started started;
        struct agent_task_gone gone;
        struct agent_task_collected collected;
        struct agent_relay_up relay_up;
        struct agent_log log;
    };
};

/* ---- coordinator -> agent ---- */

struct agent_welcome {
    struct worker_id worker;
    uint64_t lease_us; /* a heartbeat at least every third of it */
    struct term term;  /* the coordinator's; the daemon refuses one older than what it has seen, or
                        * a twin */
    uint32_t protocol_version; /* of this stream; 0: that of the hello */
    uint64_t silence_us;       /* it sends something at least every third of it; 0: not promised */
    uint64_t log_index; /* of the newest entry of the log that the coordinators share; 0: none */
};

struct agent_start {
    struct task_ref task;
    uint32_t task_count; /* of the job, at most: job_spec.workers */
    struct job_spec spec;
    bool restores;                    /* the job goes on from a checkpoint: */
    struct checkpoint_ref checkpoint; /* to be at hand before the task's process is started */
    /* Of a parameter server: the incarnation of its slot whose memory it takes over, if the daemon
     * has that; 0: it begins with empty memory. */
    uint64_t predecessor;
};

/* Ends the job's local tasks (slot given: only that one): SIGTERM, after grace SIGKILL of the whole
 * group. */
struct agent_stop {
    struct job_id job;
    bool one;
    struct task_ref task; /* when one */
    uint64_t grace_us;
};

/* For one task, or for every local task of the generation. */
struct agent_relay_down {
    struct job_id job;
    bool one;
    struct task_ref task; /* when one */
    struct task_down down;
};

struct agent_log_ack {
    struct task_ref task;
    uint64_t offset; /* bytes below are stored (or dropped at the log limit) */
};

/* Nothing else was to be sent for a while. */
struct agent_keepalive {
    uint64_t log_index; /* as in agent_welcome */
};

enum agent_down_type {
    AGENT_DOWN_WELCOME = 1,
    AGENT_DOWN_REFUSED,
    AGENT_DOWN_START,
    AGENT_DOWN_STOP,
    AGENT_DOWN_RELAY,
    AGENT_DOWN_LOG_ACK,
    AGENT_DOWN_FORGET, /* remove what is kept between attempts of the job's tasks */
    AGENT_DOWN_KEEPALIVE
};

struct agent_down {
    enum agent_down_type type;
    union {
        struct agent_welcome welcome;
        struct task_refused refused;
        struct agent_start start;
        struct agent_stop stop;
        struct agent_relay_down relay_down;
        struct agent_log_ack log_ack;
        struct job_id forget;
        struct agent_keepalive keepalive;
    };
};

#endif
