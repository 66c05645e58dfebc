/* SPDX-License-Identifier: Apache-2.0
 * What happens in a run, drawn from one seed before it starts: the cluster, the programs of the
 * jobs, and the faults. Swarm style: in each scenario most kinds of faults are absent and the
 * others may be violent. */
#ifndef CADRE_SIM_SCENARIO_H
#define CADRE_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pure/prng.h"

#define SCENARIO_AGENTS_MAX 256
#define SCENARIO_SLOTS_MAX  3
#define SCENARIO_JOBS_MAX   8
#define SCENARIO_EPOCHS_MAX 5
#define SCENARIO_FAULTS_MAX 24

#define SCENARIO_LEASE_US   UINT64_C(10000000)
#define SCENARIO_FORM_US    UINT64_C(60000000)
#define SCENARIO_GRACE_US   UINT64_C(2000000)
#define SCENARIO_COLLECT_US UINT64_C(30000000)
#define SCENARIO_ORPHAN_US  UINT64_C(25000000)

/* A link that is away for less is not noticed by a job; for more, its tasks are lost. */
#define SCENARIO_BLINK_US  UINT64_C(2000000)
#define SCENARIO_OUTAGE_US (3 * SCENARIO_LEASE_US)

struct scenario_epoch {
    uint32_t stream;
    uint64_t epoch;
    uint64_t steps; /* as the data has them */
    uint64_t from;  /* 0, or where the program goes on with an epoch that it has left */
    uint64_t taken; /* the program leaves after so many; at most the rest */
};

enum death_kind {
    DEATH_NONE = 0,
    DEATH_SIGNAL,
    DEATH_STATUS,
    DEATH_QUIT, /* exits with status 0 where it should not */
    DEATH_PREPARE
};

enum death_when {
    DEATH_AT_START = 1,  /* before it said hello */
    DEATH_BEFORE_STEP,   /* outside the collective of step `step` */
    DEATH_IN_COLLECTIVE, /* inside it */
    DEATH_APPLYING,
    DEATH_FINISHED /* between cadre_finish and bye */
};

struct scenario_job {
    uint64_t submit_us;
    uint64_t cancel_us; /* 0: never */
    uint32_t tasks;
    int32_t priority;
    bool plain;            /* never calls cadre_init: runs for a while and exits with 0 */
    bool streamed;         /* batches come one by one: READY rises with the position */
    bool stubborn;         /* ignores SIGTERM */
    uint32_t reconnect_in; /* before one in so many steps its socket breaks; 0: never */
    uint64_t compute_us;
    uint64_t slow_slot;
    struct scenario_epoch epochs[SCENARIO_EPOCHS_MAX];
    uint32_t epoch_count;
    uint64_t steps; /* positions in all */
    /* The program of this slot calls cadre_finish after so many steps, fewer than the others take;
     * UINT32_MAX: all take the same. */
    uint32_t short_slot;
    uint64_t short_steps;
    bool short_data; /* because its data end there, else it leaves the epoch */
    enum death_kind death;
    enum death_when death_when;
    uint32_t death_slot;
    uint64_t death_step;
    int32_t death_code; /* status or signal */
};

enum fault_kind { FAULT_BLINK = 1, FAULT_OUTAGE, FAULT_HOST, FAULT_DRAIN, FAULT_COORDINATOR };

struct scenario_fault {
    enum fault_kind kind;
    uint64_t at_us;
    uint32_t agent;
};

struct scenario {
    uint32_t agents;
    uint32_t slots[SCENARIO_AGENTS_MAX];
    uint64_t join_us[SCENARIO_AGENTS_MAX];
    uint32_t slots_total;
    struct scenario_job jobs[SCENARIO_JOBS_MAX];
    uint32_t job_count;
    struct scenario_fault faults[SCENARIO_FAULTS_MAX];
    uint32_t fault_count;
    uint64_t delay_us;  /* of a message: at least this */
    uint64_t jitter_us; /* and at most so much more */
    uint64_t turn_us;   /* longest turn of the coordinator: several events, one commit */
    uint64_t heal_us;   /* no fault at or after it */
};

/* Draws all of it. `agents` is at least 2. */
void scenario_draw(struct scenario *scenario, struct prng *prng, uint32_t agents);

#endif
