/* SPDX-License-Identifier: Apache-2.0
 * Parameter servers of one job in this process, and their clients: as if a coordinator had sent
 * everybody who is where. */
#ifndef CADRE_TESTS_PS_SERVER_RIG_H
#define CADRE_TESTS_PS_SERVER_RIG_H

#include <pthread.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/server/server.h"

#define RIG_SERVERS     3
#define RIG_PATIENCE_US (30 * CADRE_US_PER_S)

struct rig {
    struct ps_job ps_job;
    struct generation generation;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    struct directory *directory; /* of worker 0, which asks */
    struct directory *directories[RIG_SERVERS];
    struct server *servers[RIG_SERVERS];
    char addresses[RIG_SERVERS][LIMIT_ADDRESS_BYTES];
    char given[RIG_SERVERS][LIMIT_ADDRESS_BYTES]; /* instead of its own; "": none */
    uint64_t incarnations[RIG_SERVERS];           /* 0: it is not here */
    uint32_t attempts[RIG_SERVERS];
    uint32_t threads;
    struct client *client;
    /* What a coordinator records of them, and says at once. */
    pthread_mutex_t lock;
    struct task_backed backed[RIG_SERVERS];
    bool disconnected; /* it is away: messages are neither received nor sent */
    struct rig_reporter {
        struct rig_reporter *before;
        struct rig *rig;
        uint32_t index;
        uint64_t incarnation;
    } * reporters; /* of all that ever were: some are stranded */
};

void rig_open(struct rig *rig, uint32_t servers, uint32_t threads);
void rig_open_backed(struct rig *rig, uint32_t servers, uint32_t threads);
void rig_close(struct rig *rig);

/* Starts a server (again) on that memory, -1: its own; and tells. */
void rig_start(struct rig *rig, uint32_t index, int memory_fd);
void rig_stop(struct rig *rig, uint32_t index);
/* A server that lives on while the coordinator takes it for lost: it receives nothing any more, and
 * its messages are ignored. The index is free for another one. To be ended by the caller. */
struct rig_partitioned {
    struct server *server;
    struct directory *directory;
};
void rig_partition(struct rig *rig, uint32_t index, struct rig_partitioned *ret_partitioned);
void rig_end_partitioned(struct rig_partitioned *partitioned);
/* From now on, or no longer: what changed meanwhile is sent then. */
void rig_disconnect(struct rig *rig, bool disconnected);
/* Each of them has a copy of all that it holds. */
void rig_await_backed(struct rig *rig);
/* Full state to everybody. */
void rig_send_members(struct rig *rig);
/* A directory of a task of this job, with the members. */
struct directory *rig_directory(struct rig *rig, uint32_t slot, uint64_t incarnation);
struct client *rig_client(struct rig *rig, uint64_t wait_timeout_us);
/* Of another directory than the rig's. */
struct client *rig_client_of(struct directory *directory, uint64_t wait_timeout_us);
struct link_terms rig_terms(const struct rig *rig, uint32_t slot);

/* A shard of f32 rows that is trained by SGD with rate 1. */
struct store_spec rig_spec(const char *name, uint64_t rows, uint64_t row_elements);
uint32_t rig_create_with(struct rig *rig, uint32_t server, const struct store_spec *spec,
    const struct optimizer_rule *rule);
/* With SGD of rate 1. */
uint32_t rig_create(struct rig *rig, uint32_t server, const struct store_spec *spec);

/* All of these bytes over a link of the test's own, of whatever frame they are a part. */
void rig_send_all(struct link *link, const void *bytes, size_t size);
/* One request of the rig's client, which must succeed. */
void rig_call(struct rig *rig, struct request *request);

#endif
