/* SPDX-License-Identifier: Apache-2.0
 * What a job takes with it: the options checked, the files hashed, the JobSpec packed. */
#ifndef CADRE_CLIENT_SUBMISSION_H
#define CADRE_CLIENT_SUBMISSION_H

#include "cadre/client.h"
#include "common/base/sha256.h"
#include "common/wire/wire.h"

/* One content, from one of the files that have it. */
struct content {
    char *path;
    struct sha256 hash;
    uint64_t size_bytes;
    bool missing; /* the coordinator does not have it */
};

struct submission {
    struct wire_buffer spec; /* JobSpec */
    struct content *contents;
    size_t content_count; /* each hash once; the program's is the first */
    /* "no ...": what of it an earlier coordinator knows not, as it is in an object store. NULL: it
     * knows all. */
    const char *unknown;
};

/* Reads and hashes program and files, draws the request id, and checks everything by the
 * coordinator's own rules. The submission is released by submission_close() on success and on
 * error. Errors name the file or value. */
cadre_status submission_open(const cadre_submit_options *options, struct submission *ret_submission,
    struct cadre_error *error);

/* Frees what submission_open() made; accepts a zeroed one. */
void submission_close(struct submission *submission);

#endif
