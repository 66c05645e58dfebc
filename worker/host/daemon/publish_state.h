/* SPDX-License-Identifier: Apache-2.0
 * Inside the publishing of a checkpoint, shared by its files only. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_STATE_H
#define CADRE_WORKER_DAEMON_PUBLISH_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/checkpoint/content.h"
#include "worker/host/daemon/daemon.h"
#include "common/rpc/file_work.h"
#include "worker/host/daemon/published.h"

/* Contents on their way at once: while one is read here, another travels, and others are brought to
 * the disk there. */
#define PUBLISH_LANES 4

/* A checkpoint in the output folder of a task. */
struct publish_source {
    char *folder; /* <task>/out */
    char *path;   /* of the manifest, below it */
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
    /* once it is loaded: */
    char *manifest;
    struct checkpoint_content content;
    int fd; /* of the file of tensors; -1: not open */
    struct stat files[PUBLISHED_FILES];
};

enum publish_content_state {
    CONTENT_UNKNOWN = 0, /* the coordinator is to be asked */
    CONTENT_MISSING,
    CONTENT_SENDING, /* it, or an equal one, is in a lane */
    CONTENT_STORED
};

/* What carries one content after the other. */
struct publish_lane {
    struct publish *publish;
    bool busy;
    size_t content;
    const uint8_t *bytes; /* of it: the manifest's, or in `block` */
    size_t size;
    size_t sent;
    uint8_t *block; /* NULL until it is needed */
    struct rpc_call *call;
    struct file_work read;
    ssize_t got; /* by it */
};

struct publish {
    struct task_files *task; /* NULL: nobody wants it; the end of what is in hand frees this */
    struct daemon *daemon;
    uint64_t position;
    struct publish_source source;
    bool loaded;
    size_t content_count; /* the blocks, then the manifest */
    uint8_t *states;      /* of each: an enum publish_content_state */
    size_t queried;       /* contents of which the coordinator has told */
    size_t querying;      /* in the question in hand */
    struct publish_lane lanes[PUBLISH_LANES];
    unsigned in_flight;  /* calls and threads that are under way */
    bool waits;          /* the link broke: nothing is begun before the next one */
    bool relinked;       /* it came while something was in hand */
    uint64_t sent_bytes; /* of all contents, for the log */
    struct cadre_error error;
    void (*sent)(struct publish *publish, cadre_status status, const char *text);
    struct rpc_call *call; /* the question in hand */
    struct file_work work;
};

/* publish_load.c: reads and checks the manifest and opens its file; in a thread of the pool. */
cadre_status publish_load(struct publish_source *source, struct cadre_error *error);
void publish_source_free(struct publish_source *source);

/* Of one of its contents: the blocks in their order, then the manifest. */
const uint8_t *publish_hash(const struct publish_source *source, size_t content);

/* publish_send.c: as many missing contents as there are lanes for; the manifest goes last and
 * alone. False: all of them are there. Each that is begun has one of the hands, and gives it back
 * by sent(publish, status, text), on the loop and once: perhaps before this returns, when it cannot
 * begin. OK: it has arrived; UNAVAILABLE: the link broke. With publish->error set, the publishing
 * ends for that reason. Nothing of `publish` is touched afterwards. */
bool publish_send_some(struct publish *publish,
    void (*sent)(struct publish *publish, cadre_status status, const char *text));
/* Sends what lies in daemon->packed; when that fails, the call's end tells. */
bool publish_send_packed(struct publish *publish, struct rpc_call *call);

#endif
