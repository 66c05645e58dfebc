/* SPDX-License-Identifier: Apache-2.0
 * Probes the disk in a thread and refuses what does not fit; all files that store something call
 * it. */
#include "coordinator/daemon/base/disk.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/objects/objects.h"

/* How often it is probed. */
#define PROBE_MS       1000
#define MEBIBYTE_BYTES ((uint64_t)1024 * 1024)

/* A client that checks the health before it submits sees it; calls that only read go on. */
static void update_health(struct daemon *daemon)
{
    struct cadre_error error = {0};
    bool serving =
        daemon->engine != NULL && !daemon->disk.low && !daemon->disk.held && !daemon->disk.away;
    if (daemon->health != NULL &&
        rpc_health_set(daemon->health, METHOD_SERVICE_JOBS, serving, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "disk", "the health of the service could not be set",
            LOG_STR("reason", error.text));
    }
}

static void note_low(struct daemon *daemon, bool low)
{
    struct disk *disk = &daemon->disk;
    if (disk->low == low) {
        return;
    }
    disk->low = low;
    if (low) {
        log_event(LOG_LEVEL_ERROR, "disk",
            "the disk is nearly full: no submissions, uploads, logs and outputs are taken",
            LOG_STR("state", daemon->options.state_dir), LOG_U64("free_bytes", disk->free_bytes),
            LOG_U64("reserve_bytes", daemon->options.disk_reserve_bytes));
    } else {
        log_event(LOG_LEVEL_INFO, "disk", "there is room on the disk again",
            LOG_STR("state", daemon->options.state_dir), LOG_U64("free_bytes", disk->free_bytes));
    }
    update_health(daemon);
}

static void probe_in_thread(void *user)
{
    struct daemon *daemon = user;
    const char *contents = daemon->objects == NULL ? daemon->options.contents_dir : NULL;
    uint64_t bytes = UINT64_MAX;
    daemon->disk.probed = disk_free_bytes(daemon->options.state_dir, &daemon->disk.probed_bytes) &&
                          (contents == NULL || disk_free_bytes(contents, &bytes));
    if (bytes < daemon->disk.probed_bytes) {
        daemon->disk.probed_bytes = bytes;
    }
}

static void apply_probe(struct daemon *daemon)
{
    struct disk *disk = &daemon->disk;
    if (disk->probed) { /* else a failed write shows it */
        disk->free_bytes = disk->probed_bytes;
        disk->granted_bytes = disk->granted_meanwhile_bytes;
        note_low(daemon, disk->free_bytes < daemon->options.disk_reserve_bytes);
    }
}

static void after_probe(void *user)
{
    apply_probe(user);
}

static void disk_probe(struct daemon *daemon)
{
    struct disk *disk = &daemon->disk;
    if (!disk->work.running) {
        disk->granted_meanwhile_bytes = 0;
        file_work_start(&disk->work, &daemon->file_pool, probe_in_thread, after_probe, daemon);
    }
}

/* ---- the object store ---- */

static void try_in_thread(void *user)
{
    objects_try(((struct daemon *)user)->objects);
}

static void note_store(struct daemon *daemon)
{
    bool away = daemon->objects != NULL && objects_are_away(daemon->objects, NULL);
    if (away != daemon->disk.away) {
        daemon->disk.away = away;
        update_health(daemon);
    }
}

static void after_try(void *user)
{
    note_store(user);
}

/* One that is away may be back, and no call may come that would find it. */
static void try_store(struct daemon *daemon)
{
    struct disk *disk = &daemon->disk;
    note_store(daemon);
    if (disk->away && !disk->store_work.running) {
        file_work_start(&disk->store_work, &daemon->file_pool, try_in_thread, after_try, daemon);
    }
}

static void on_timer(uv_timer_t *timer)
{
    disk_probe(timer->data);
    try_store(timer->data);
}

void disk_open(struct daemon *daemon)
{
    uv_timer_init(rpc_loop_uv(daemon->loop), &daemon->disk.timer);
    daemon->disk.timer.data = daemon;
    probe_in_thread(daemon); /* no call waits yet */
    apply_probe(daemon);
    uv_timer_start(&daemon->disk.timer, on_timer, PROBE_MS, PROBE_MS);
}

void disk_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->disk.timer, NULL);
}

cadre_status disk_check_ledger(struct daemon *daemon, struct cadre_error *error)
{
    struct cadre_error reason = {0};
    if (!engine_held(daemon->engine, &reason)) {
        return CADRE_OK;
    }
    if (reason.code == CADRE_UNAVAILABLE) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s", reason.text);
    }
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the coordinator's disk is full: free space in %s; jobs wait until then (%s)",
        daemon->options.state_dir, reason.text);
}

cadre_status disk_check(struct daemon *daemon, uint64_t bytes, struct cadre_error *error)
{
    struct disk *disk = &daemon->disk;
    uint64_t reserve = daemon->options.disk_reserve_bytes;
    uint64_t kept = reserve + disk->granted_bytes;
    struct cadre_error why;
    CADRE_TRY(disk_check_ledger(daemon, error));
    if (daemon->objects != NULL && objects_are_away(daemon->objects, &why)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s", why.text);
    }
    if (reserve == 0 || (disk->free_bytes >= kept && disk->free_bytes - kept >= bytes)) {
        disk->granted_bytes += bytes;
        disk->granted_meanwhile_bytes += bytes;
        return CADRE_OK;
    }
    disk_probe(daemon); /* a retry may find room */
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the coordinator's disk is full: only %" PRIu64 " MiB are free, and %" PRIu64
        " MiB are kept for the ledger (--disk-reserve), and %" PRIu64
        " bytes more are needed: free space in %s",
        (disk->free_bytes > disk->granted_bytes ? disk->free_bytes - disk->granted_bytes : 0) /
            MEBIBYTE_BYTES,
        reserve / MEBIBYTE_BYTES, bytes, daemon->options.state_dir);
}

bool disk_is_full(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG;
}

bool disk_flush(struct daemon *daemon)
{
    struct cadre_error reason = {0};
    bool held = engine_held(daemon->engine, &reason);
    if (held == daemon->disk.held) {
        return false;
    }
    daemon->disk.held = held;
    if (daemon->shared != NULL) { /* then it waits for etcd, and the replica has said so */
        update_health(daemon);
        return true;
    }
    if (held) {
        daemon->disk.held_us = clock_monotonic_us();
        log_event(LOG_LEVEL_ERROR, "disk",
            "the ledger cannot be written: jobs wait, and nothing is sent, until it can",
            LOG_STR("reason", reason.text));
    } else {
        log_event(LOG_LEVEL_INFO, "disk", "the ledger is written again: jobs go on",
            LOG_U64("after_ms", (clock_monotonic_us() - daemon->disk.held_us) / CADRE_US_PER_MS));
    }
    update_health(daemon);
    return true;
}
