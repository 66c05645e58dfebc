/* SPDX-License-Identifier: Apache-2.0
 * Inside the publishing of a checkpoint, shared by its files only. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_H
#define CADRE_WORKER_DAEMON_PUBLISH_H

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

enum publish_state {
    CONTENT_UNKNOWN = 0, /* the coordinator is to be asked */
    CONTENT_MISSING,
    CONTENT_MOVING, /* it, or an equal one, is in a lane */
    CONTENT_THERE
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
    uint8_t *states;      /* of each: an enum publish_state */
    size_t asked;         /* contents of which the coordinator has told */
    size_t asking;        /* in the question in hand */
    struct publish_lane lanes[PUBLISH_LANES];
    unsigned hands;      /* calls and threads that are under way */
    bool waits;          /* the link broke: nothing is begun before the next one */
    bool linked_again;   /* it came while something was in hand */
    uint64_t sent_bytes; /* of all contents, for the log */
    struct cadre_error error;
    struct rpc_call *call; /* the question in hand */
    struct file_work work;
};

/* publish_load.c: reads and checks the manifest and opens its file; in a thread of the pool. */
cadre_status publish_load(struct publish_source *source, struct cadre_error *error);
void publish_source_free(struct publish_source *source);

/* publish.c */
const uint8_t *publish_hash(const struct publish *publish, size_t content);
/* One of the hands is free. False: nobody wants the rest, and the memory may be gone. */
bool publish_hand_free(struct publish *publish);
/* A call is over: true when it went well. Else nothing of `publish` may be touched any more. */
bool publish_call_over(struct publish *publish, cadre_status status, const char *text);
/* Sends what lies in daemon->packed; when that fails, the call's end tells. */
bool publish_send_packed(struct publish *publish, struct rpc_call *call);
/* What comes next? */
void publish_go_on(struct publish *publish);
void publish_end(struct publish *publish, cadre_status status, const char *text);

/* publish_send.c: as many missing contents as there are lanes for; the manifest goes last and
 * alone. False: all of them are there. */
bool publish_send_some(struct publish *publish);

#endif
