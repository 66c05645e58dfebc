/* SPDX-License-Identifier: Apache-2.0
 * A job's proof: the ledger's records, fetched page by page, and the verdicts that follow from
 * them. */
#ifndef CADRE_VIEW_VERIFICATION_H
#define CADRE_VIEW_VERIFICATION_H

#include "cadre/client.h"
#include "common/wire/wire.h"

/* The records of `response`, not judged yet: a result for cadre_result_release() that owns `arena`,
 * in which the texts of `response` live. NULL: out of memory, and `arena` is still the caller's. */
cadre_verification *verification_new(
    const struct verify_response *response, struct wire_arena *arena);

/* Fills in the verdicts of a cadre_verification, as far as the options ask for them; takes long for
 * large sources. */
void verification_evaluate(cadre_verification *verification, const cadre_verify_options *options);

/* The pages of one proof, put together again: what was committed when the first one was made, also
 * of a job that went on meanwhile; see common/model/client_message.h. */

/* A stream as the first page describes it. */
struct audit_stream {
    uint64_t oldest; /* of its epochs, as far as the page has them */
    struct verify_epoch newest;
};

/* All zero at first. */
struct audit_pages {
    struct verify_response all; /* but its arrays, which are these: */
    struct wire_arena *arena;   /* of the first page: owns the names */
    struct verify_generation *generations;
    struct verify_epoch *epochs;
    struct verified *verified;
    size_t generation_capacity;
    size_t epoch_capacity;
    size_t verified_capacity;
    struct audit_stream streams[LIMIT_STREAMS];
    size_t stream_count;
    uint64_t generation_max; /* the newest of the first page's time */
    struct verified newest;  /* of the first page's time; all zero: none was verified */
    struct verify_from next; /* the page to fetch next */
    bool begun;              /* there was a page, ... */
    bool followed;           /* ... and another one */
    bool whole;              /* all pages were fetched */
    unsigned restarts;       /* since the job began again at a checkpoint */
};

/* Takes the answer to `next`. ABORTED: committed steps were taken away between two pages,
 * AUDIT_RESTARTS_MAX times. */
cadre_status audit_pages_add(
    struct audit_pages *pages, const void *data, size_t length, struct cadre_error *error);

/* An estimate of the number of epochs, exact once all pages are there. */
uint64_t audit_pages_estimate(const struct audit_pages *pages);

/* The whole of them as a result, not judged yet. NULL: out of memory. */
cadre_verification *audit_pages_result(struct audit_pages *pages);

/* Releases all pages; a zeroed one is allowed. */
void audit_pages_free(struct audit_pages *pages);

#endif
