/* SPDX-License-Identifier: Apache-2.0
 * Uploads that are whole, put into the object store of --contents. In threads. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_RECEIVED_OBJECTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_RECEIVED_OBJECTS_H

#include "coordinator/daemon/contents/artifacts.h"

/* Puts a content that is in `temporary`, open as `fd`; that file becomes the copy `target`. */
cadre_status received_content_put(const struct daemon *daemon, const struct sha256 *hash, int fd,
    const char *temporary, const char *target, struct cadre_error *error);

struct received_output {
    struct job_id job;
    const char *name;             /* below the job's outputs; NULL: no memory for it */
    int fd;                       /* of its bytes */
    const struct artifacts *kept; /* NULL: it has bytes; else it refers to a file: */
    const uint8_t *checkpoint;    /* of the checkpoint with this manifest */
    uint64_t refers_bytes;
};

/* Puts an output, over one of its name. *ret_replaced: the bytes of that one, where they are
 * counted. */
cadre_status received_output_put(const struct daemon *daemon, const struct received_output *output,
    uint64_t *ret_replaced, struct cadre_error *error);

#endif
