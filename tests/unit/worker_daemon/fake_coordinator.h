/* SPDX-License-Identifier: Apache-2.0
 * A coordinator that keeps contents, and fails where a test sets that. */
#ifndef CADRE_TESTS_UNIT_WORKER_DAEMON_FAKE_COORDINATOR_H
#define CADRE_TESTS_UNIT_WORKER_DAEMON_FAKE_COORDINATOR_H

#include "common/base/sha256.h"
#include "common/model/limits.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"
#include "tests/lib/test.h"

#define BLOBS_MAX 32

struct blob {
    struct sha256 hash;
    uint8_t *bytes;
    size_t size;
};

#define OUTPUTS_MAX 8

/* A file that a task left, as it came. */
struct output {
    char path[64];
    uint64_t size_bytes; /* the size in its header */
    uint64_t got_bytes;
    bool referred;
    uint8_t checkpoint[LIMIT_SHA256_BYTES];
    bool ended;
};

struct coordinator {
    struct rpc_server *server;
    char address[TEST_PATH_BYTES];
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
    unsigned asks;
    unsigned puts; /* that were kept */
    unsigned gets;
    struct output outputs[OUTPUTS_MAX]; /* in order of coming */
    unsigned output_count;
    struct output settled; /* of objects: the first that came counts; its hash is `checkpoint` */
    unsigned settled_count;
    unsigned forgets; /* references that are refused, from now */
    unsigned coming;  /* puts that are under way */
    unsigned coming_max;
    /* The next so many calls are answered well; then each ends with this, if it is not OK. */
    unsigned good_calls;
    cadre_status refusal;
    bool corrupts; /* what it gives out */
    bool hangs;    /* nothing is given out */
    unsigned cancels;
};

void coordinator_open(struct coordinator *coordinator, struct rpc_loop *loop);
void coordinator_close(struct coordinator *coordinator);
struct blob *coordinator_find(struct coordinator *coordinator, const uint8_t *sha256);
void coordinator_put(struct coordinator *coordinator, const void *bytes, size_t size);
void coordinator_lose(struct coordinator *coordinator, const uint8_t *sha256);

#endif
