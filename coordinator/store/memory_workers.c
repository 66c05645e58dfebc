/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/memory_workers.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"

bool memory_workers_has(const struct store_record *record)
{
    return record->record != NULL && (record->record->type == CORE_RECORD_DRAINED ||
                                         record->record->type == CORE_RECORD_UNDRAINED ||
                                         record->record->type == CORE_RECORD_CULPRIT);
}

static cadre_status prepare_drains(
    struct memory_workers *workers, size_t records, struct cadre_error *error)
{
    size_t needed = workers->drain_count + records;
    if (needed <= workers->drain_capacity) {
        return CADRE_OK;
    }
    struct core_drained *grown =
        fault_point("store.allocate") ? NULL : realloc(workers->drains, 2 * needed * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the record of a drain");
    }
    workers->drains = grown;
    workers->drain_capacity = 2 * needed;
    return CADRE_OK;
}

cadre_status memory_workers_prepare(
    struct memory_workers *workers, size_t records, struct cadre_error *error)
{
    CADRE_TRY(prepare_drains(workers, records, error));
    size_t needed = workers->culprit_count + records;
    if (needed <= workers->culprit_capacity) {
        return CADRE_OK;
    }
    struct core_culprit *grown = fault_point("store.allocate")
                                     ? NULL
                                     : realloc(workers->culprits, 2 * needed * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the record of a worker");
    }
    workers->culprits = grown;
    workers->culprit_capacity = 2 * needed;
    return CADRE_OK;
}

static void apply_culprit(struct memory_workers *workers, const struct core_culprit *culprit)
{
    size_t at = 0;
    while (
        at < workers->culprit_count && strcmp(workers->culprits[at].worker, culprit->worker) != 0) {
        at++;
    }
    if (culprit->times > 0) {
        workers->culprit_count += at == workers->culprit_count ? 1 : 0;
        workers->culprits[at] = *culprit;
    } else if (at < workers->culprit_count) {
        workers->culprits[at] = workers->culprits[--workers->culprit_count];
    }
}

static void apply_drain(struct memory_workers *workers, const struct core_record *record)
{
    size_t at = 0;
    while (at < workers->drain_count &&
           strcmp(workers->drains[at].worker, record->drained.worker) != 0) {
        at++;
    }
    if (record->type == CORE_RECORD_DRAINED) {
        workers->drain_count += at == workers->drain_count ? 1 : 0;
        workers->drains[at] = record->drained;
    } else if (at < workers->drain_count) {
        workers->drains[at] = workers->drains[--workers->drain_count];
    }
}

void memory_workers_apply(struct memory_workers *workers, const struct core_record *record)
{
    if (record->type == CORE_RECORD_CULPRIT) {
        apply_culprit(workers, &record->culprit);
    } else {
        apply_drain(workers, record);
    }
}

void memory_workers_free(struct memory_workers *workers)
{
    free(workers->drains);
    free(workers->culprits);
    *workers = (struct memory_workers){0};
}
