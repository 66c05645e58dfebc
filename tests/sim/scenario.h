/* SPDX-License-Identifier: Apache-2.0
 * The events of a run, drawn from one seed before it starts: the cluster, the programs of the jobs,
 * and the faults. In each scenario most kinds of faults are absent and the others may be frequent
 * (swarm testing). */
#ifndef CADRE_SIM_SCENARIO_H
#define CADRE_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ps_job.h"
#include "common/pure/prng.h"
#include "created.h"

/* Seeds from each of these on also draw the kinds of events that were added last; the other seeds
 * stay what they were. */
#define SCENARIO_WORLD_1 UINT64_C(1000000000)
#define SCENARIO_WORLD_2 UINT64_C(2000000000)
#define SCENARIO_CREATES UINT64_C(4000000000)
#define SCENARIO_KEEPS   UINT64_C(5000000000)
#define SCENARIO_LIES    UINT64_C(6000000000)
#define SCENARIO_HA      UINT64_C(7000000000)
#define SCENARIO_HA_2    UINT64_C(8000000000)

#define SCENARIO_AGENTS_MAX    16384
#define SCENARIO_SLOTS_MAX     3
#define SCENARIO_JOBS_MAX      8
#define SCENARIO_SEGMENTS_MAX  5
#define SCENARIO_DEATHS_MAX    4
#define SCENARIO_FAULTS_MAX    64
#define SCENARIO_STEPS_MAX     64
#define SCENARIO_PS_TASKS_MAX  12
#define SCENARIO_REPLICAS_MAX  5
#define SCENARIO_STREAMS       3 /* 0: steps without samples; 1: training; 2: evaluation */
#define SCENARIO_BASES_MAX     3
#define SCENARIO_CREATIONS_MAX 6

#define SCENARIO_LEASE_US   UINT64_C(10000000)
#define SCENARIO_FORM_US    UINT64_C(60000000)
#define SCENARIO_GRACE_US   UINT64_C(2000000)
#define SCENARIO_COLLECT_US UINT64_C(30000000)
#define SCENARIO_ORPHAN_US  UINT64_C(40000000)
#define SCENARIO_REWIND_US  UINT64_C(35000000)
#define SCENARIO_REPORT_US  UINT64_C(3000000)
#define SCENARIO_WAIT_US    UINT64_C(120000000)
#define SCENARIO_STALL_US   UINT64_C(25000000)
#define SCENARIO_SLOW_US    UINT64_C(3000000)
#define SCENARIO_PPM_MAX    10000 /* clocks are off by 1% at most */
#define SCENARIO_RETRY_US   UINT64_C(1000000)

/* A link that is away for less is not noticed by a job; for more, its tasks are lost. */
#define SCENARIO_BLINK_US  UINT64_C(2000000)
#define SCENARIO_OUTAGE_US (3 * SCENARIO_LEASE_US)

/* The least time of a cut of the coordinator: less than a lease, and more than the patience. */
#define SCENARIO_CUT_LEAST_US UINT64_C(5000000)
#define SCENARIO_CUT_MOST_US  UINT64_C(60000000)

/* After so long a coordinator notices a dead link by itself. */
#define SCENARIO_HALF_OPEN_US UINT64_C(60000000)

/* Some steps of one epoch, taken without another between them. */
struct scenario_segment {
    uint32_t stream;
    uint64_t epoch;
    uint64_t steps; /* of the dataset */
    uint64_t from;  /* 0, or the step at which the program returns to the epoch */
    uint64_t taken; /* the program leaves after so many; at most the rest */
};

/* A call that creates a variable, or finds it: once between two steps, as the step at position
 * `from`; or in each step of the stream from there on, in its replica function. */
struct scenario_creation {
    uint32_t name; /* that the program gives it, of LAYOUT_NAMES */
    bool between;
    uint32_t stream;
    uint64_t from;
};

enum death_kind {
    DEATH_SIGNAL = 1,
    DEATH_STATUS,
    DEATH_QUIT, /* exits with status 0 where it should not */
    DEATH_PREPARE
};

enum death_when {
    DEATH_AT_START = 1,  /* before its hello */
    DEATH_BEFORE_STEP,   /* outside the collective of step `step` */
    DEATH_IN_COLLECTIVE, /* inside the first, or between the two of a step */
    DEATH_BETWEEN_STEPS, /* inside a collective outside of steps, before step `step` */
    DEATH_APPLYING,
    DEATH_FINISHED /* between cadre_finish and bye */
};

/* The end of one incarnation of the task of a slot. */
struct scenario_death {
    enum death_kind kind;
    enum death_when when;
    uint32_t slot;
    uint64_t step;
    int32_t code; /* status or signal */
};

struct scenario_job {
    uint64_t submit_us;
    uint64_t cancel_us; /* 0: never */
    uint32_t tasks;
    uint32_t tasks_min;
    uint32_t gpus; /* of each task */
    struct ps_job ps_job;
    int32_t priority;
    uint32_t max_restarts;
    uint64_t wait_us;      /* 0: the default, which is long */
    uint64_t limit_us;     /* it may run no longer; 0: no limit */
    bool plain;            /* never calls cadre_init: runs for a while and exits with 0 */
    bool streamed;         /* an epoch's length is unknown before all tasks agree on its end */
    bool stubborn;         /* ignores SIGTERM */
    uint32_t reconnect_in; /* before one in so many steps its socket breaks; 0: never */
    uint64_t compute_us;
    uint64_t slow_slot;
    uint32_t replicas;    /* of each task */
    uint32_t batch;       /* samples of a step, over all replicas */
    bool provable;        /* the chief knows what each step should consume */
    bool bucketed;        /* writes a part of its state before the last collective of a step */
    uint32_t collectives; /* of a step: 1 or 2 */
    uint32_t setup;       /* collectives before its first step, of every new start */
    uint8_t between_steps[SCENARIO_STEPS_MAX + 1]; /* collectives between step p - 1 and p */
    uint64_t save_at;          /* the first of them is cadre_save; UINT64_MAX: none */
    uint64_t checkpoint_every; /* 0: only at the end */
    bool shared;               /* the checkpoint folder is one that all hosts see */
    bool keeps_state; /* plain programs: each step ends with a save, and when tasks join, leave or
                       * are lost all begin again from one */
    uint64_t restore_at; /* it goes on from another job's checkpoint of this position; 0: no */
    struct scenario_segment segments[SCENARIO_SEGMENTS_MAX];
    uint32_t segment_count;
    uint64_t steps; /* positions in all */
    /* Names of the variables that it creates before its first step; then those of steps. None: it
     * creates nothing in steps, and its variables are not checked. */
    uint32_t bases[SCENARIO_BASES_MAX];
    uint32_t base_count;
    struct scenario_creation creations[SCENARIO_CREATIONS_MAX];
    uint32_t creation_count;
    /* The program of this slot calls cadre_finish after so many steps, fewer than the others take;
     * UINT32_MAX: all take the same. */
    uint32_t short_slot;
    uint64_t short_steps;
    bool short_data; /* because its data end there, else it leaves the epoch */
    /* The function of this slot fails in this step, each time; UINT32_MAX: none. */
    uint32_t failing_slot;
    uint64_t failing_step;
    struct scenario_death deaths[SCENARIO_DEATHS_MAX];
    uint32_t death_count;
};

enum fault_kind {
    FAULT_BLINK = 1,   /* a link breaks */
    FAULT_OUTAGE,      /* a host is cut off for longer than its lease */
    FAULT_MUTE,        /* one direction of a link is silent for a while, then heals or breaks */
    FAULT_HOST,        /* a host crashes and comes back */
    FAULT_DAEMON,      /* a daemon is killed; its tasks run on until the next one comes */
    FAULT_KILL,        /* kill -9 of a task */
    FAULT_STOP,        /* SIGSTOP of a task, perhaps SIGCONT */
    FAULT_MESH,        /* connections of a mesh break, no task dies */
    FAULT_DRAIN,       /* a client drains a worker; it is restarted afterwards */
    FAULT_SIGTERM,     /* SIGTERM to a daemon */
    FAULT_COORDINATOR, /* kill -9 of the coordinator; the store is as written */
    FAULT_TAIL,        /* its host crashes: what was not fsynced may be lost */
    FAULT_PREEMPT,     /* a task has to leave its machine: its whole job saves, and leaves */
    FAULT_SAVE,        /* a client, or a task, wants a checkpoint */
    FAULT_RESTART,     /* a daemon goes and comes back, and takes its tasks over */
    FAULT_CUT,         /* the coordinator is cut off from all hosts, or from half of them */
    FAULT_DAMAGE,      /* a job's newest checkpoint cannot be read any more */
    /* Of seeds from SCENARIO_WORLD_1 on. */
    FAULT_FULL,    /* the disk of the ledger is full for a while */
    FAULT_DISK,    /* the next commit fails: the coordinator ends, and is started again */
    FAULT_ONE_WAY, /* one side's messages are lost, of one host's link or of all */
    FAULT_PAUSE,   /* the coordinator or a daemon, or its machine, is paused */
    FAULT_SECOND,  /* a second coordinator runs for a while, on an older copy of the ledger */
    /* Of seeds from SCENARIO_WORLD_2 on. */
    FAULT_SUPERSEDE, /* a copy of the ledger is started with --supersede, and serves all */
    FAULT_JOIN,      /* a worker comes that was never there; of no drawn scenario */
    /* Of several coordinators: seeds from SCENARIO_HA on. */
    FAULT_KILL_LEADER, /* kill -9 of the one that leads, mostly */
    FAULT_LATE,        /* it is paused between its look at the time to send and the sending */
    FAULT_CUT_STORE,   /* one is cut off from the store, one way or both */
    FAULT_CUT_LEADER,  /* and from workers */
    FAULT_NO_QUORUM,   /* the store does not answer */
    FAULT_SLOW_COPY,   /* the disk of one is slow: it lags */
    FAULT_HAND_OVER,   /* SIGTERM to the one that leads */
    /* Of seeds from SCENARIO_HA_2 on. */
    FAULT_RESTORE,   /* the store is restored from a backup */
    FAULT_FULL_COPY, /* the disk of one, which mostly leads, is full */
    FAULT_KINDS
};

struct scenario_fault {
    enum fault_kind kind;
    uint64_t at_us;
    uint32_t agent;
};

struct scenario {
    uint32_t agents;
    uint32_t slots[SCENARIO_AGENTS_MAX];
    uint32_t gpus[SCENARIO_AGENTS_MAX];
    uint64_t join_us[SCENARIO_AGENTS_MAX];
    uint32_t slots_total;
    struct scenario_job jobs[SCENARIO_JOBS_MAX];
    uint32_t job_count;
    struct scenario_fault faults[SCENARIO_FAULTS_MAX];
    uint32_t fault_count;
    uint64_t delay_us;         /* of a message: at least this */
    uint64_t jitter_us;        /* and at most so much more */
    uint64_t turn_us;          /* longest turn of the coordinator: several events, one commit */
    uint64_t sync_us;          /* between fsyncs of what may lag */
    uint32_t duplicate_in;     /* one in so many cumulative messages comes twice; 0: none */
    uint32_t form_fails_in;    /* one in so many meshes does not form, no task dead; 0: none */
    uint32_t publish_fails_in; /* one in so many uploads of a checkpoint fails; 0: none */
    bool terse;                /* messages that a newer one of the turn outdates are not sent */
    uint64_t heal_us;          /* no fault at or after it */
    uint64_t lie_us;           /* the ledger's disk lies from then on; 0: it does not */
    uint64_t lie_shows_us;     /* its host crashes */
    /* Several coordinators. */
    uint32_t replicas; /* 0: one alone */
    uint64_t log_lease_us;
    uint64_t log_delay_us; /* of a request to the store, one way, and of its answer */
    uint32_t log_slow_in;  /* one in so many takes up to a lease; 0: none */
    uint32_t log_loses_in; /* one in so many is lost; 0: none */
    bool clocks_in_bound;  /* of the coordinators */
    int32_t replica_ppm[SCENARIO_REPLICAS_MAX];
    uint64_t replica_offset_us[SCENARIO_REPLICAS_MAX];
    uint64_t snapshot_bytes; /* one is due after so many bytes of entries; 0: never */
    uint64_t snapshot_after_us;
    uint64_t snapshot_keep_us;
    uint64_t snapshot_takes_us; /* to make or to install one: at most */
    uint32_t snapshot_fails_in; /* one in so many; 0: none */
    uint32_t backup_in;         /* after one in so many transactions; 0: none */
    /* How much faster than virtual time the clocks run, in millionths. */
    int32_t coordinator_ppm;
    int32_t ppm[SCENARIO_AGENTS_MAX];
};

/* Which of the worlds, from 0, a seed draws from; WORLD_HA has several coordinators, WORLD_HA_2
 * also snapshots, backups and ps jobs. */
#define WORLD_HA   6
#define WORLD_HA_2 7
int scenario_world(uint64_t seed);
/* The first seed of a world. */
uint64_t scenario_first(int world);
/* Draws all of it. `agents` is at least 2. */
void scenario_draw(struct scenario *scenario, struct prng *prng, uint32_t agents, int world);

/* replicas/scenario_replicas.c: what several coordinators add to it, drawn apart. */
void scenario_draw_replicas(struct scenario *scenario, struct prng prng, int world);

/* One job of `workers` tasks on as many workers, of which one may be missing; the only fault is a
 * task that is killed in the middle. */
void scenario_scale(struct scenario *scenario, struct prng *prng, uint32_t workers);

/* One elastic job of three tasks on four workers of one slot, a few steps, no faults. From this
 * variant on its steps create variables. */
#define SCENARIO_TINY_CREATES 12
/* One of its variants, from 0. */
void scenario_tiny(struct scenario *scenario, uint32_t variant);

/* One elastic job of two or three tasks and four steps on three workers of one slot, of which one
 * is not there before it joins. */
#define COMBINED_JOINER 2
/* One of its variants, from 0. */
void scenario_combined(struct scenario *scenario, uint32_t variant);

#endif
