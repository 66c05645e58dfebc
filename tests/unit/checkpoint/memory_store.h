/* SPDX-License-Identifier: Apache-2.0
 * An object store in memory in place of common/storage's client, for programs that are linked with
 * it. For them there are no files but those that they open without common/storage. */
#ifndef CADRE_TESTS_MEMORY_STORE_H
#define CADRE_TESTS_MEMORY_STORE_H

#include "common/storage/storage.h"

/* What a test may look at, and set. */
struct memory_store {
    unsigned reads;         /* calls of storage_read */
    unsigned reads_at_once; /* the most of them at one time */
    unsigned reads_wanted;  /* at one time: those behind the beginning wait for that, a minute */
    uint64_t read_bytes;
    unsigned uploads;    /* that have begun and not ended */
    const char *refused; /* what begins so is PERMISSION_DENIED for all calls; NULL: nothing */
    const char *away;    /* and UNAVAILABLE */
    bool uploads_are_not_listed;   /* storage_uploads_clear is PERMISSION_DENIED */
    struct storage_client *client; /* of the last call */
};

extern struct memory_store memory_store;

/* Empties it. */
void memory_store_clear(void);
/* The bytes of an object, valid until it is written; NULL: there is none. */
const char *memory_store_find(const char *path, size_t *ret_bytes);
/* Changes a byte. */
void memory_store_flip(const char *path, size_t at);

#endif
