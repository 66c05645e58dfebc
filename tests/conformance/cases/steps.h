/* SPDX-License-Identifier: Apache-2.0
 * Steps of distributed input, as lists over workers of lists over their replicas. */
#ifndef CADRE_TESTS_CONFORMANCE_STEPS_H
#define CADRE_TESTS_CONFORMANCE_STEPS_H

#include "cadre/parameter_server.h"
#include "datasets.h"
#include "worker/library/input/distribution/distributed_input.h"

#define WORKERS_MAX  1024
#define REPLICAS_MAX 64
#define STEPS_MAX    100000

struct steps {
    json_t *list;        /* of steps; the reader's reference, which the case releases */
    cadre_status status; /* why it ended: OUT_OF_RANGE, an error, or CADRE_OK: enough were read */
    bool early;          /* the error came before any step */
};

/* Inputs of all workers of a cluster that is only described, in this process. */
struct cluster {
    struct conformance_case *self;
    uint32_t workers;
    uint32_t replicas; /* of each */
    struct distributed_input **inputs;
    const char *structure;
};

/* Zeroed inputs for so many workers; released with the case. */
void cluster_make(struct conformance_case *self, uint32_t workers, uint32_t replicas,
    const char *structure, struct cluster *ret_cluster);

/* Reads at most `most` steps, as the runtime agrees on them. */
void cluster_read(struct cluster *cluster, uint64_t most, struct steps *ret_steps);

/* A batch of this process as such a step; the caller's reference. */
json_t *public_step(const cadre_per_replica *batch, const char *structure);

/* The same through the public functions, in a strategy of this process. */
void public_read(struct conformance_case *self, cadre_distributed_dataset *distributed,
    const char *structure, uint64_t most, struct steps *ret_steps);

/* cadre_init, once for all cases. */
bool case_library(struct conformance_case *self);

/* A mirrored strategy of so many replicas, which ends with the case; NULL: it could not be made,
 * and the case has failed. One at a time. In a closure it is its worker's. */
cadre_strategy *case_strategy(struct conformance_case *self, uint32_t replicas);

/* The same, of replicas on GPUs: every `stride`th, from the first one on. */
cadre_strategy *case_strategy_gpus(
    struct conformance_case *self, uint32_t replicas, uint32_t stride);

/* One that a case names: "mirrored" (and NULL) and "central_storage" have `replicas`, "one_device"
 * and "default" one. */
cadre_strategy *case_strategy_of(
    struct conformance_case *self, const char *strategy, uint32_t replicas);

/* The same with parameter servers: so many workers and servers are threads of this process; its
 * parameters are cut into so many shards, 0: not at all. */
#define CASE_WORKERS "5"
#define CASE_SERVERS "2"
cadre_strategy *case_servers(struct conformance_case *self, uint64_t shards);

/* Compares with "steps", "steps_prefix", "then" and "error" of what is expected. */
bool steps_check(struct conformance_case *self, const struct steps *steps);

/* As many steps as have to be read for that. */
uint64_t steps_wanted(const json_t *expect);

#endif
