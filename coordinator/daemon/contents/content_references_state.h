/* SPDX-License-Identifier: Apache-2.0
 * What content_references.c and content_references_worker.c share. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_STATE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/sha256.h"
#include "common/pure/map.h"
#include "coordinator/daemon/contents/content_references.h"

/* ---- content_refcounts.c: how often each content is referenced, by hash ---- */

struct content_refcount {
    struct sha256 hash;
    uint32_t count; /* 0: it is not referenced any more */
    bool used;      /* the entry holds a hash */
};

struct content_refcounts {
    struct content_refcount *entries; /* a power of two of them, or NULL */
    size_t capacity;
    size_t used;
};

/* Counts one reference. False: no memory, and nothing changed. */
bool content_refcounts_add(struct content_refcounts *counts, const struct sha256 *hash);

/* Removes one reference that was added; returns how many are left. */
uint32_t content_refcounts_drop(struct content_refcounts *counts, const struct sha256 *hash);
/* The number of references. */
uint32_t content_refcounts_of(const struct content_refcounts *counts, const struct sha256 *hash);
/* Frees the table; a zeroed one is allowed. */
void content_refcounts_free(struct content_refcounts *counts);

enum referrer_kind { REFERRER_JOB, REFERRER_CHECKPOINT };

struct referrer {
    enum referrer_kind kind;
    struct job_id job;
    struct sha256 manifest; /* of a checkpoint */
    struct sha256 *hashes;  /* each is counted once for this referrer; the manifest is the first */
    size_t count;
    uint64_t bytes; /* of a checkpoint's files; 0: not used */
    bool seen;      /* in the refresh in progress */
};

/* A part of a job's checkpoint that the engine received. */
struct pending_part {
    struct job_id job;
    struct core_checkpoint checkpoint;
};

/* A checkpoint whose manifest has to be read: its blocks are not known yet. */
struct unread_manifest {
    struct job_id job;
    struct core_checkpoint checkpoint;
    struct artifact_references references;
    struct cadre_error error;
};

/* More are read by the next ones. */
#define MANIFESTS_READ_MAX 64

struct content_references {
    struct unread_manifest *unread_manifest; /* the thread's while the work runs */
    size_t unread_count;
    bool is_incomplete; /* since the last refresh the blocks of some checkpoint are not known */
    struct file_work work;
    bool built; /* there was a first refresh */
    struct pending_part *checkpoint_parts;
    size_t part_count;
    size_t part_capacity;
    struct map checkpoint_parts_by_key;
    struct referrer *referrers;
    size_t count;
    size_t capacity;
    struct map by_key;
    struct content_refcounts counts;
    uint64_t compared;
};

static inline struct sha256 content_references_hash(const uint8_t bytes[LIMIT_SHA256_BYTES])
{
    struct sha256 hash;
    memcpy(hash.bytes, bytes, SHA256_BYTES);
    return hash;
}

#endif
