/* SPDX-License-Identifier: Apache-2.0
 * A ps job whose servers are plain memory of the test: what worker/library/ps/client/client.h and
 * worker/library/runtime/ps_job/ps_job.h promise, without connections. (The linker puts these
 * functions in place of those.) It checks what it is asked, and keeps count. */
#ifndef CADRE_TESTS_SERVED_FAKE_SERVERS_H
#define CADRE_TESTS_SERVED_FAKE_SERVERS_H

#include "cadre/cadre.h"
#include "cadre/served.h"
#include "worker/library/runtime/ps_job/ps_job.h"

#define FAKE_SERVERS_MAX 8

/* The strategy has so many servers from now on, all of them empty. */
void fake_attach(cadre_strategy *strategy, uint32_t servers, const cadre_partitioner *partitioner);
/* Ends both. */
void fake_release(cadre_strategy *strategy);

/* What this process is to be from now on; the servers stay. */
void fake_become(enum role role);

/* Calls, requests and the largest request's bytes since they were attached. */
struct fake_counts {
    uint64_t calls;
    uint64_t requests;
    uint64_t keys; /* taken and given back */
    size_t largest;
};
struct fake_counts fake_counts(void);

/* The last push: as the server got it. */
const struct push *fake_last_push(void);
/* Where the last call's first request had its rows. */
const void *fake_last_memory(void);

/* A shard's own memory, which tests read and write. */
void *fake_rows(uint32_t server, uint32_t shard);
double *fake_slot(uint32_t server, uint32_t shard, uint32_t slot);
uint64_t *fake_updates(uint32_t server, uint32_t shard);
uint64_t *fake_steps(uint32_t server, uint32_t shard);
uint64_t *fake_version(uint32_t server, uint32_t shard);

/* Notes bytes on server 0. */
void fake_note(const char *name, const void *bytes, size_t size);

cadre_status __wrap_client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, struct cadre_error *error);
cadre_status __wrap_ps_job_push_key(
    uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error);
void __wrap_ps_job_push_done(uint64_t closure);
uint64_t __wrap_ps_job_done_watermark(void);
const struct directory_self *__wrap_directory_self(const struct directory *directory);

#endif
