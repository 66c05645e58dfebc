/* SPDX-License-Identifier: Apache-2.0
 * Private to the publishing of a checkpoint: shared by publish*.c only. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_STATE_H
#define CADRE_WORKER_DAEMON_PUBLISH_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/checkpoint/content.h"
#include "worker/host/daemon/daemon.h"
#include "common/rpc/file_work.h"
#include "worker/host/daemon/publish.h"

/* Contents under way at once: while one is read here, another is on the network, and others are
 * being written to the coordinator's disk. */
#define PUBLISH_LANES 4

/* A checkpoint in the output folder of a task. */
struct publish_source {
    char *folder; /* <task>/out */
    char *path;   /* of the manifest, beneath it */
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
    /* set by publish_load(): */
    char *manifest;
    struct checkpoint_content content;
    int fd; /* of the file of tensors; -1: not open */
    struct stat files[PUBLISHED_FILES];
};

enum publish_content_state {
    CONTENT_UNKNOWN = 0, /* the coordinator was not queried yet */
    CONTENT_MISSING,
    CONTENT_SENDING, /* it, or an equal one, is in a lane */
    CONTENT_STORED
};

/* Sends one content after the other. */
struct publish_lane {
    struct publish *publish;
    bool busy;
    size_t content;
    const uint8_t *bytes; /* of the content: the manifest's, or `block` */
    size_t size;
    size_t sent;
    uint8_t *block; /* NULL until it is needed */
    struct rpc_call *call;
    struct file_work read;
    ssize_t got; /* by it */
};

struct publish {
    struct task_files *task; /* NULL: cancelled; the last call or thread under way frees this */
    struct daemon *daemon;
    uint64_t position;
    struct publish_source source;
    bool loaded;
    size_t content_count; /* the blocks, then the manifest */
    uint8_t *states;      /* of each: an enum publish_content_state */
    size_t queried;       /* contents whose state the coordinator has reported */
    size_t querying;      /* in the query under way */
    struct publish_lane lanes[PUBLISH_LANES];
    unsigned in_flight;  /* calls and threads that are under way */
    bool waits;          /* the link broke: nothing is begun before the next one */
    bool relinked;       /* a new link came while calls were under way */
    uint64_t sent_bytes; /* of all contents, for the log */
    struct cadre_error error;
    void (*sent)(struct publish *publish, cadre_status status, const char *text);
    struct rpc_call *call; /* the query under way */
    struct file_work work;
};

/* publish_load.c: reads and checks the manifest and opens its file; in a thread of the pool. */
cadre_status publish_load(struct publish_source *source, struct cadre_error *error);
/* Frees what publish_load() read, and closes the file. */
void publish_source_free(struct publish_source *source);

/* The hash of one of its contents: the blocks in their order, then the manifest. */
const uint8_t *publish_hash(const struct publish_source *source, size_t content);

/* publish_send.c: starts to send as many missing contents as there are free lanes; the manifest
 * is sent last and alone. False: the coordinator has all of them. Each one that is begun counts
 * in in_flight, until sent(publish, status, text) is called, on the loop and once: perhaps
 * before this returns, when it cannot begin. OK: it has arrived; UNAVAILABLE: the link broke.
 * With publish->error set, the publishing ends for that reason. `publish` is not touched
 * afterwards. */
bool publish_send_some(struct publish *publish,
    void (*sent)(struct publish *publish, cadre_status status, const char *text));
/* Sends the bytes in daemon->packed; a failure is reported by the call's end. */
bool publish_send_packed(struct publish *publish, struct rpc_call *call);

#endif
