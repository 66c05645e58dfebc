/* SPDX-License-Identifier: Apache-2.0
 * The table of the uids of --job-uids: which job has which, and the locks by which daemons of
 * one host share the range. Called by isolation.c. */
#include "worker/host/isolate/uids.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/host/isolate/uid_cleanup.h"
#include "worker/host/isolate/process_stat.h"

#define RANGE_MAX 65536

struct uid_slot {
    uint64_t job;      /* 0: no job's */
    unsigned takers;   /* tasks that entered; 0 with a job: kept for it while something runs */
    uint64_t released; /* serial number of its release */
    int claim;         /* a lock that other daemons of the host see; -1: none */
    bool runs;         /* of the last scan */
    bool dirty;        /* files of earlier jobs may be there */
    bool emptied;      /* and is being removed */
    bool refused;      /* something else of this kernel runs under it: no job gets it now */
    struct uid_holder holder; /* while a job has it; a thread's while it is emptied */
    bool lost;                /* its job ended while we were away, and another daemon has it now */
};

struct uids {
    uid_t first;
    size_t count;
    char *claim_folder;
    uint64_t released;
    struct uid_slot slots[];
};

/* Checks the host's own list of users: querying a directory service for each uid of the range
 * would take long. */
static cadre_status check_users(uid_t first, uid_t last, struct cadre_error *error)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user;
    cadre_status status = CADRE_OK;
    while (file != NULL && status == CADRE_OK && (user = fgetpwent(file)) != NULL) {
        if (user->pw_uid >= first && user->pw_uid <= last) {
            status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "--job-uids %u-%u: %u is the user %s of this host; name a range of free ones",
                (unsigned)first, (unsigned)last, (unsigned)user->pw_uid, user->pw_name);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return status;
}

cadre_status uids_open(uid_t first, uid_t last, const char *claim_folder, struct uids **ret_uids,
    struct cadre_error *error)
{
    if (first == 0 || last < first || last - first >= RANGE_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--job-uids %u-%u is no range of 1 to %u uids above 0", (unsigned)first, (unsigned)last,
            RANGE_MAX);
    }
    CADRE_TRY(check_users(first, last, error));
    if (claim_folder != NULL) {
        CADRE_TRY(folder_make(claim_folder, 0700, error));
    }
    size_t count = (size_t)(last - first) + 1;
    struct uids *uids = calloc(1, sizeof *uids + count * sizeof uids->slots[0]);
    char *folder = claim_folder != NULL ? strdup(claim_folder) : NULL;
    if (uids == NULL || (folder == NULL) != (claim_folder == NULL)) {
        free(uids);
        free(folder);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu uids", count);
    }
    uids->first = first;
    uids->count = count;
    uids->claim_folder = folder;
    for (size_t i = 0; i < count; i++) {
        uids->slots[i].claim = -1;
    }
    *ret_uids = uids;
    return CADRE_OK;
}

static uid_t uid_of(const struct uids *uids, const struct uid_slot *slot)
{
    return uids->first + (uid_t)(slot - uids->slots);
}

static void uids_unclaim(struct uid_slot *slot)
{
    if (slot->claim >= 0) {
        close(slot->claim);
        slot->claim = -1;
    }
}

void uids_close(struct uids *uids)
{
    if (uids == NULL) {
        return;
    }
    for (size_t i = 0; i < uids->count; i++) {
        uids_unclaim(&uids->slots[i]);
        uid_holder_close(&uids->slots[i].holder);
    }
    free(uids->claim_folder);
    free(uids);
}

/* Locks the uid. False: another daemon of this host has it. Without a folder no lock is taken. */
static bool isolate_uids_claim(struct uids *uids, struct uid_slot *slot)
{
    char path[4096];
    if (uids->claim_folder == NULL || slot->claim >= 0) {
        return true;
    }
    snprintf(path, sizeof path, "%s/%u", uids->claim_folder, (unsigned)uid_of(uids, slot));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return false;
    }
    slot->claim = fd; /* -1 for a folder that cannot be written: then the uid is not locked */
    return true;
}

static void note_process(struct uids *uids, pid_t pid)
{
    unsigned ids[PROCESS_UIDS];
    bool known = process_uids(pid, ids);
    for (int i = 0; known && i < PROCESS_UIDS; i++) {
        if (ids[i] >= uids->first && ids[i] - uids->first < uids->count) {
            uids->slots[ids[i] - uids->first].runs = true;
        }
    }
}

static void uids_scan(struct uids *uids)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    for (size_t i = 0; i < uids->count; i++) {
        uids->slots[i].runs = false;
    }
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0) {
            note_process(uids, pid);
        }
    }
}

static struct uid_slot *find_job(struct uids *uids, struct job_id job)
{
    for (size_t i = 0; i < uids->count; i++) {
        if (uids->slots[i].job == job.n) {
            return &uids->slots[i];
        }
    }
    return NULL;
}

/* The free one that was released longest ago; `passed` are those that another daemon has. */
static struct uid_slot *find_free(struct uids *uids, uint64_t after)
{
    struct uid_slot *best = NULL;
    for (size_t i = 0; i < uids->count; i++) {
        struct uid_slot *slot = &uids->slots[i];
        bool held = slot->takers > 0 || slot->runs || slot->emptied;
        uint64_t order = slot->released * uids->count + i;
        uint64_t best_order =
            best != NULL ? best->released * uids->count + (size_t)(best - uids->slots) : 0;
        if (!held && order >= after && (best == NULL || order < best_order)) {
            best = slot;
        }
    }
    return best;
}

static struct uid_slot *acquire_free(struct uids *uids)
{
    uint64_t after = 0;
    struct uid_slot *slot;
    uids_scan(uids);
    while ((slot = find_free(uids, after)) != NULL && !isolate_uids_claim(uids, slot)) {
        after = slot->released * uids->count + (size_t)(slot - uids->slots) + 1;
    }
    return slot;
}

cadre_status uids_acquire(
    struct uids *uids, struct job_id job, uid_t *ret_uid, struct cadre_error *error)
{
    struct uid_slot *slot = find_job(uids, job);
    if (slot == NULL && (slot = acquire_free(uids)) != NULL) {
        slot->dirty = true;
    }
    if (slot == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "all %zu uids of --job-uids %u-%u have a job that runs here: give the worker a wider "
            "range",
            uids->count, (unsigned)uids->first, (unsigned)(uids->first + (uid_t)uids->count - 1));
    }
    slot->job = job.n;
    slot->takers++;
    *ret_uid = uid_of(uids, slot);
    return CADRE_OK;
}

void uids_adopt(struct uids *uids, struct job_id job, uid_t uid)
{
    if (uid >= uids->first && uid - uids->first < uids->count) {
        struct uid_slot *slot = &uids->slots[uid - uids->first];
        slot->job = job.n;
        slot->dirty = false; /* all of it is the job's */
        slot->lost = !isolate_uids_claim(uids, slot);
    }
}

bool uids_release(struct uids *uids, struct job_id job, uid_t *ret_uid, bool *ret_ours)
{
    struct uid_slot *slot = find_job(uids, job);
    if (slot == NULL || slot->takers == 0) {
        return false;
    }
    *ret_uid = uid_of(uids, slot);
    slot->takers--;
    if (slot->takers > 0) {
        return false;
    }
    *ret_ours = !slot->lost;
    slot->job = 0;
    slot->emptied = !slot->lost;
    slot->lost = false;
    return true;
}

bool uids_is_clean(const struct uids *uids, uid_t uid)
{
    return !uids->slots[uid - uids->first].dirty;
}

bool uids_begin_empty(struct uids *uids, uid_t uid)
{
    struct uid_slot *slot = &uids->slots[uid - uids->first];
    bool first = slot->dirty && !slot->emptied;
    slot->emptied = slot->dirty;
    return first;
}

void uids_claim(struct uids *uids, uid_t uid)
{
    struct uid_slot *slot = &uids->slots[uid - uids->first];
    slot->refused = !uid_cleanup_claim(uid, &slot->holder);
}

void uids_clear(struct uids *uids, uid_t uid)
{
    uid_cleanup_remove(uid, &uids->slots[uid - uids->first].holder);
}

/* Gives the job of `from` the next free uid. */
static bool uids_move(struct uids *uids, struct uid_slot *from, uid_t *ret_uid)
{
    struct uid_slot *to = acquire_free(uids);
    if (to == NULL) {
        return false; /* its tasks try again */
    }
    to->job = from->job;
    to->takers = from->takers;
    to->dirty = true;
    from->job = 0;
    from->takers = 0;
    from->dirty = false;
    from->released = ++uids->released;
    uids_unclaim(from);
    *ret_uid = uid_of(uids, to);
    return true;
}

bool uids_emptied(struct uids *uids, uid_t uid, uid_t *ret_uid)
{
    struct uid_slot *slot = &uids->slots[uid - uids->first];
    bool refused = slot->refused;
    *ret_uid = uid;
    slot->refused = false;
    slot->emptied = false;
    if (refused && slot->job != 0) {
        return uids_move(uids, slot, ret_uid);
    }
    slot->dirty = false;
    if (slot->job == 0) {
        slot->released = ++uids->released;
        uids_unclaim(slot);
    }
    return true;
}
