/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves: VerifyRequest and VerifyResponse. */
#include "common/wire/rows.h"

/* At their longest, tags and lengths counted: a generation has three numbers of 10 bytes, one of 9
 * and two small ones; an epoch has a name and eleven numbers of at most 10 bytes; a verified
 * position two numbers. */
#define GENERATION_BYTES_MAX 64
#define EPOCH_BYTES_MAX      (LIMIT_NAME_BYTES + 192)
#define VERIFIED_BYTES_MAX   24
#define JOB_BYTES_MAX        16384
_Static_assert(JOB_BYTES_MAX + LIMIT_PAGE_GENERATIONS * GENERATION_BYTES_MAX +
                       LIMIT_PAGE_EPOCHS * EPOCH_BYTES_MAX +
                       LIMIT_PAGE_VERIFIED * VERIFIED_BYTES_MAX <=
                   LIMIT_FRAME_BYTES,
    "the longest verify_response fits");

/* All zero: the first page, or none. */
static bool from_is_given(const void *model)
{
    const struct verify_from *from = model;
    return from->generation != 0 || from->stream != 0 || from->epoch != 0 || from->position != 0;
}

WIRE_MODEL(VerifyFrom, struct verify_from);

ROWS(VerifyFrom) = {
    COPY(VerifyFrom, generation),
    STREAM(VerifyFrom, stream),
    COPY(VerifyFrom, epoch),
    POSITION(VerifyFrom, position),
};
static TABLE_WITH(VerifyFrom, verify_from, .is_given = from_is_given);

ROWS(VerifyRequest) = {
    JOB(VerifyRequest, id, id.n),
    MESSAGE_OR_NONE(VerifyRequest, from, VerifyFrom),
};
TABLE_WITH(VerifyRequest, verify_request, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(VerifyGeneration) = {
    MESSAGE(VerifyGeneration, generation, Generation),
    POSITION(VerifyGeneration, resume),
    BOOL(VerifyGeneration, restarted),
    NUMBER(VerifyGeneration, members, 0, LIMIT_TASKS_PER_JOB),
    COPY(VerifyGeneration, planned_us),
};
TABLE(VerifyGeneration, verify_generation);

WIRE_MODEL(VerifyEpoch, struct verify_epoch);

ROWS(VerifyEpoch) = {
    STREAM(VerifyEpoch, stream),
    TEXT(VerifyEpoch, name, decode_name_or_empty),
    BOOL(VerifyEpoch, shares),
    POSITION(VerifyEpoch, source_samples),
    MESSAGE_OR_NONE(VerifyEpoch, cursor, Cursor),
    MESSAGE_OR_NONE(VerifyEpoch, consumption, Consumption),
};
static TABLE(VerifyEpoch, verify_epoch);

ROWS(VerifyResponse) = {
    MESSAGE(VerifyResponse, job, JobInfo),
    POSITION(VerifyResponse, committed),
    BOOL(VerifyResponse, more),
    MESSAGE_OR_NONE(VerifyResponse, next, VerifyFrom),
    MESSAGES(VerifyResponse, generations, VerifyGeneration, generations, generation_count,
        LIMIT_PAGE_GENERATIONS),
    MESSAGES(VerifyResponse, epochs, VerifyEpoch, epochs, epoch_count, LIMIT_PAGE_EPOCHS),
    MESSAGES(VerifyResponse, verified, Verified, verified, verified_count, LIMIT_PAGE_VERIFIED),
};
TABLE_WITH(VerifyResponse, verify_response, .limit_bytes = LIMIT_FRAME_BYTES);
