/* SPDX-License-Identifier: Apache-2.0
 * How fast a coordinator that follows another one applies the entries of their log to its ledger:
 * from the bytes of an entry to its committed rows.
 *
 *     bench_apply FOLDER [ENTRIES]    prints NAME=NUMBER, microseconds an entry */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/base/clock.h"
#include "common/wire/wire.h"
#include "coordinator/entries/entry_batch.h"
#include "coordinator/store/store.h"

#define JOBS          1000u
#define TASKS         10000u
#define PATH_MAX_SIZE 1024
#define STEP_PAGES    64 /* as in snapshot_files.c */

struct stand {
    const char *folder;
    struct store *store;
    struct store_position at;
    struct wire_buffer bytes; /* of all entries that wait, one after another */
    size_t *ends;
    struct entry_batch batch;
};

static void check(cadre_status status, const struct cadre_error *error)
{
    if (status != CADRE_OK) {
        fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
}

static void apply_records(struct stand *stand, const struct store_record *records, size_t count)
{
    struct cadre_error error;
    stand->at.index++;
    check(stand->store->ops->apply(stand->store, records, count, &stand->at, &error), &error);
}

/* Jobs of which each has a plan. */
static void add_jobs(struct stand *stand)
{
    for (uint64_t job = 1; job <= JOBS; job++) {
        const struct store_placement member = {.incarnation = 1};
        struct core_record records[2] = {
            {.type = CORE_RECORD_JOB, .job = {job}}, {.type = CORE_RECORD_PLAN, .job = {job}}};
        records[0].submitted.spec = (struct core_job_spec){.tasks = TASKS, .tasks_min = 1};
        records[1].plan.generation = (struct generation){1, job};
        const struct store_record stored[] = {
            {.record = &records[0], .wall_us = 1, .spec = "spec", .spec_bytes = 4},
            {.record = &records[1], .wall_us = 1, .placements = &member, .target_count = 1}};
        apply_records(stand, stored, 2);
    }
}

/* What is recorded of steps of a job: its watermark, and what it consumed. */
static void write_step(struct stand *stand, uint64_t number)
{
    struct cadre_error error;
    const struct cursor cursor = {.stream = 1, .epoch = 12, .first = 980000, .begin = 980000};
    const struct job_id job = {number % JOBS + 1};
    const struct core_record watermark = {.type = CORE_RECORD_WATERMARK,
        .job = job,
        .watermark = {.generation = {1, job.n}, .up_to = 1000000 + number, .cursor = cursor}};
    const struct core_record consumed = {.type = CORE_RECORD_CONSUMED,
        .job = job,
        .consumption = {.cursor = cursor,
            .consumption = {.steps = 20000 + number,
                .samples = 5120000,
                .consumed = {UINT64_MAX / 3, UINT64_MAX / 5},
                .expected = {UINT64_MAX / 7, UINT64_MAX / 9},
                .provable = true}}};
    const struct store_record records[] = {{.record = &watermark}, {.record = &consumed}};
    check(log_entry_write(ledger_format_newest(), records, 2, &stand->bytes, &error), &error);
}

/* Entries in transactions of `batch`; microseconds an entry. */
static double apply_steps(struct stand *stand, size_t count, size_t batch)
{
    struct cadre_error error;
    wire_buffer_clear(&stand->bytes);
    for (size_t i = 0; i < count; i++) {
        write_step(stand, i);
        stand->ends[i] = stand->bytes.size;
    }
    uint64_t began_us = clock_monotonic_us();
    for (size_t i = 0; i < count; i += batch) {
        entry_batch_clear(&stand->batch);
        for (size_t k = i; k < i + batch && k < count; k++) {
            size_t from = k > 0 ? stand->ends[k - 1] : 0;
            check(entry_batch_add(&stand->batch, (const uint8_t *)stand->bytes.bytes + from,
                      stand->ends[k] - from, &error),
                &error);
        }
        apply_records(stand, stand->batch.records, stand->batch.count);
    }
    return (double)(clock_monotonic_us() - began_us) / (double)count;
}

/* The start of a job with many tasks. */
static double apply_starts(struct stand *stand, size_t count)
{
    static struct store_placement placements[TASKS];
    static char names[TASKS][16];
    struct cadre_error error;
    uint64_t sum_us = 0;
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        snprintf(names[slot], sizeof names[slot], "worker-%u", slot);
        placements[slot] = (struct store_placement){.slot = slot,
            .incarnation = slot + 1,
            .attempts = 1,
            .attempts_generation = 1,
            .worker = names[slot]};
    }
    for (uint64_t job = 1; job <= count; job++) {
        const struct core_record started = {
            .type = CORE_RECORD_STARTED, .job = {job}, .incarnation_max = TASKS};
        const struct store_record record = {
            .record = &started, .wall_us = 1, .placements = placements, .target_count = TASKS};
        wire_buffer_clear(&stand->bytes);
        check(log_entry_write(ledger_format_newest(), &record, 1, &stand->bytes, &error), &error);
        uint64_t began_us = clock_monotonic_us();
        entry_batch_clear(&stand->batch);
        check(
            entry_batch_add(&stand->batch, stand->bytes.bytes, stand->bytes.size, &error), &error);
        apply_records(stand, stand->batch.records, stand->batch.count);
        sum_us += clock_monotonic_us() - began_us;
    }
    return (double)sum_us / (double)count;
}

/* Milliseconds of the longest step of a copy as the leader makes it, between whose steps the loop
 * turns. */
static double copy_in_steps(struct stand *stand)
{
    char path[PATH_MAX_SIZE];
    struct cadre_error error;
    struct store_copy *copy = NULL;
    uint64_t longest_us = 0;
    snprintf(path, sizeof path, "%s/steps.db", stand->folder);
    check(store_sqlite_copy_begin(stand->store, path, &copy, &error), &error);
    for (bool whole = false; !whole;) {
        uint64_t began_us = clock_monotonic_us();
        check(store_sqlite_copy_step(copy, STEP_PAGES, &whole, &error), &error);
        uint64_t took_us = clock_monotonic_us() - began_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
    }
    store_sqlite_copy_end(copy);
    (void)unlink(path);
    return (double)longest_us / 1e3;
}

/* Milliseconds of a copy of all of it; its size in MB. */
static double copy(struct stand *stand, double *ret_mb)
{
    char path[PATH_MAX_SIZE];
    struct cadre_error error;
    snprintf(path, sizeof path, "%s/copy.db", stand->folder);
    uint64_t began_us = clock_monotonic_us();
    check(store_sqlite_copy(stand->store, path, &error), &error);
    double took_ms = (double)(clock_monotonic_us() - began_us) / 1e3;
    FILE *file = fopen(path, "rb");
    *ret_mb = file != NULL && fseek(file, 0, SEEK_END) == 0 ? (double)ftell(file) / 1e6 : 0;
    if (file != NULL) {
        fclose(file);
    }
    return took_ms;
}

static void check_sqlite(sqlite3 *database, bool good)
{
    if (!good) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(database));
        exit(1);
    }
}

/* The least that SQLite takes for it: transactions of one row of numbers each. */
static double write_rows(const char *folder, size_t count)
{
    static const char *const texts[] = {"BEGIN IMMEDIATE",
        "INSERT OR REPLACE INTO watermark VALUES(?1, ?2, 3, 4, 5, 6, 7, 8, 9)", "COMMIT"};
    sqlite3_stmt *statements[3];
    char path[PATH_MAX_SIZE];
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/floor.db", folder);
    check_sqlite(NULL, sqlite3_open(path, &database) == SQLITE_OK);
    check_sqlite(database,
        sqlite3_exec(database,
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE watermark(job INTEGER PRIMARY KEY, b, c, d, e, f, g, h, i)",
            NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < 3; i++) {
        check_sqlite(database,
            sqlite3_prepare_v2(database, texts[i], -1, &statements[i], NULL) == SQLITE_OK);
    }
    uint64_t began_us = clock_monotonic_us();
    for (size_t i = 0; i < count; i++) {
        sqlite3_bind_int64(statements[1], 1, (sqlite3_int64)(i % JOBS));
        sqlite3_bind_int64(statements[1], 2, (sqlite3_int64)i);
        for (int k = 0; k < 3; k++) {
            check_sqlite(database, sqlite3_step(statements[k]) == SQLITE_DONE);
            sqlite3_reset(statements[k]);
        }
    }
    double each_us = (double)(clock_monotonic_us() - began_us) / (double)count;
    for (int i = 0; i < 3; i++) {
        sqlite3_finalize(statements[i]);
    }
    sqlite3_close(database);
    return each_us;
}

int main(int argc, char **argv)
{
    static const size_t batches[] = {1, 8, ENTRY_BATCH_MAX};
    static struct stand stand;
    struct cadre_error error;
    char path[PATH_MAX_SIZE];
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
    if (argc < 2 || count < 20) {
        fprintf(stderr, "usage: bench_apply FOLDER [ENTRIES, at least 20]\n");
        return 2;
    }
    stand.folder = argv[1];
    stand.ends = calloc(count, sizeof *stand.ends);
    snprintf(path, sizeof path, "%s/ledger.db", stand.folder);
    check(store_sqlite_open(path, &stand.store, &error), &error);
    if (stand.ends == NULL) {
        return 1;
    }
    add_jobs(&stand);
    printf("floor.us=%.2f\n", write_rows(stand.folder, count));
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        printf("step_%zu.us=%.2f\n", batches[i], apply_steps(&stand, count, batches[i]));
    }
    printf("start.us=%.0f\n", apply_starts(&stand, count / 1000 + 1));
    double mb;
    printf("copy.ms=%.1f\n", copy(&stand, &mb));
    printf("copy.mb=%.1f\n", mb);
    printf("copy.step.ms=%.2f\n", copy_in_steps(&stand));
    entry_batch_free(&stand.batch);
    wire_buffer_free(&stand.bytes);
    free(stand.ends);
    stand.store->ops->close(stand.store);
    return 0;
}
