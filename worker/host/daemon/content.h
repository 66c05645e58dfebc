/* SPDX-License-Identifier: Apache-2.0
 * The contents in this host's cache, which are used only after they were hashed from what the
 * disk gives. For threads of the pool: nothing here touches the daemon. */
#ifndef CADRE_WORKER_DAEMON_CONTENT_H
#define CADRE_WORKER_DAEMON_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"

enum content_state {
    CONTENT_INTACT,
    CONTENT_NOT_CACHED, /* it is not in the cache */
    CONTENT_DAMAGED,    /* its bytes do not have its hash */
    CONTENT_REMOVED     /* the same, and this call removed it from the cache */
};

/* Copies the content at `from` to `to`, which is made, and hashes the very bytes that are
 * written. Any error: `to` may be incomplete; *ret_state is CONTENT_INTACT unless `from` is the
 * cause (DATA_LOSS, NOT_FOUND), and what is damaged is removed from the cache. */
cadre_status content_copy(const char *from, const uint8_t sha256[SHA256_BYTES], const char *to,
    bool executable, enum content_state *ret_state, struct cadre_error *error);

/* A check of one content, piece by piece, so that no thread is held for long. */
struct content_check;

/* Of the content at `path`, which is copied; nothing is opened yet. NULL: no memory. */
struct content_check *content_check_open(const char *path, const uint8_t sha256[SHA256_BYTES]);
/* Reads the next `bytes` of it, from the disk rather than from the system's memory where the
 * file system allows that. False: that was the last piece, or it cannot be read; then *ret_state
 * is the result, and what is damaged is removed from the cache. */
bool content_check_piece(
    struct content_check *check, uint64_t bytes, enum content_state *ret_state);
/* Ends the check at any piece; NULL is fine. */
void content_check_close(struct content_check *check);

#endif
