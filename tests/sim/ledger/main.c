/* SPDX-License-Identifier: Apache-2.0
 * ledger_scale: what the ledger that coordinators share costs with many workers; see README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "load.h"

#define KEEP_S     600.0 /* --ha-keep */
#define COMPACT_S  600.0 /* until etcd compacts, with a retention of 5 min */
#define SNAPSHOT_B (64.0 * 1024 * 1024)
#define HELLO_US   20 /* from one worker's hello to the next one's */
#define MIB        (1024.0 * 1024)
/* Bounds of one entry in steady state. */
#define WATERMARK_BYTES_MAX 48
#define TASK_BYTES_MAX      200
#define OTHER_BYTES_MAX     2000
#define PATH_BYTES          64

static void print_rates(const struct load *load, uint64_t step_us, double seconds)
{
    const struct leader_counts *counts = &load->log.counts;
    double rate = (double)counts->bytes / seconds;
    double log_rate = (double)counts->entry_bytes / seconds;
    double every_s = log_rate * 3600 > SNAPSHOT_B ? SNAPSHOT_B / log_rate : 3600;
    printf("%6u x %-6u %7.3f %8.2f %8.2f %10.0f %9.1f %9.1f %9.0f %9.0f %8.1f\n", load->jobs,
        load->tasks, (double)step_us / 1e6, (double)counts->transactions / seconds,
        (double)counts->entries / seconds, rate, (double)counts->largest / 1024,
        log_rate * 3600 / MIB, every_s,
        (double)counts->stored / seconds * (KEEP_S + every_s + COMPACT_S) / MIB,
        1e3 * counts->apply_s / seconds);
}

/* Not even when they pile up in one: of each job there is its newest watermark, and beside them
 * what a job records when it starts, saves or ends. */
static bool entries_are_small(const struct load *load)
{
    return load->log.counts.largest <= WATERMARK_BYTES_MAX * (uint64_t)load->jobs +
                                           TASK_BYTES_MAX * (uint64_t)load->tasks + OTHER_BYTES_MAX;
}

static void measure(struct load *load, uint64_t step_us, uint64_t seconds, bool churns)
{
    load_run(load, step_us, 8, false);
    load->log.counts = (struct leader_counts){0};
    uint64_t began_us = load->log.now_us;
    load_run(load, step_us, seconds, churns);
    print_rates(load, step_us, (double)(load->log.now_us - began_us) / 1e6);
    CADRE_ASSERT(entries_are_small(load));
}

static void print_start(const struct load *load)
{
    const struct leader_counts *counts = &load->log.counts;
    printf("%6u x %-6u all join and start: %llu transactions, %llu entries, %.1f MiB, largest "
           "%.1f KiB\n",
        load->jobs, load->tasks, (unsigned long long)counts->transactions,
        (unsigned long long)counts->entries, (double)counts->bytes / MIB,
        (double)counts->largest / 1024);
}

static cadre_status look_at(void *user, const struct store_job *job, struct cadre_error *error)
{
    (void)user;
    (void)job;
    (void)error;
    return CADRE_OK;
}

/* Another coordinator takes over: its core from its copy, then all workers and tasks. What the one
 * before it has stays in memory, because another process would not reuse that. */
static void measure_takeover(struct load *load, const char *path)
{
    struct cadre_error error;
    leader_advance(&load->log, 2 * SECOND_US); /* all is in the log, and in the copy */
    struct engine *before = load->log.engine;
    load->log.engine = NULL;
    CADRE_ASSERT(store_sqlite_copy(load->log.store, path, &error) == CADRE_OK);
    CADRE_ASSERT(store_sqlite_open(path, &load->log.store, &error) == CADRE_OK);
    double read_s = leader_cpu_s();
    CADRE_ASSERT(load->log.store->ops->load(load->log.store, look_at, NULL, &error) == CADRE_OK);
    double start_s = leader_cpu_s();
    load_begin_engine(load);
    double restored_s = leader_cpu_s();
    for (uint32_t n = 0; n < load->jobs * load->tasks; n++) {
        struct task_ref task = load_task(load, n / load->tasks, n % load->tasks);
        load_worker_hello(load, load->placed[n].link.n, &task);
        load_task_hello(load, n / load->tasks, n % load->tasks);
        leader_advance(&load->log, HELLO_US);
    }
    double hellos_s = leader_cpu_s();
    leader_advance(&load->log, SECOND_US);
    uint64_t released = load->items[0].released;
    load_step(load, 0);
    leader_advance(&load->log, SECOND_US);
    CADRE_ASSERT(load->items[0].released == released + 1); /* the job goes on */
    printf("%6u x %-6u taking over, CPU ms: the core from the copy %.0f (reading its jobs alone "
           "%.0f), hellos of workers and tasks %.0f\n",
        load->jobs, load->tasks, 1e3 * (restored_s - start_s), 1e3 * (start_s - read_s),
        1e3 * (hellos_s - restored_s));
    engine_close(before);
}

static void run(const char *folder, uint32_t jobs, uint32_t tasks, const uint64_t *steps_us,
    uint64_t seconds, bool churns)
{
    char path[PATH_BYTES], copy[PATH_BYTES];
    static struct load load;
    snprintf(path, sizeof path, "%s/ledger.sqlite", folder);
    snprintf(copy, sizeof copy, "%s/copy.sqlite", folder);
    load_open(&load, path, jobs, tasks);
    print_start(&load);
    for (size_t i = 0; steps_us[i] != 0; i++) {
        measure(&load, steps_us[i], seconds, churns);
    }
    measure_takeover(&load, copy);
    load_close(&load);
    unlink(path);
    unlink(copy);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/cadre-ledger-scale-XXXXXX";
    uint32_t workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    if (workers < 8 || mkdtemp(folder) == NULL) {
        fprintf(stderr, "usage: ledger_scale [WORKERS], 8 or more\n");
        return 2;
    }
    printf("%-15s %7s %8s %8s %10s %9s %9s %9s %9s %8s\n", "jobs x tasks", "step s", "trans/s",
        "entries/s", "bytes/s", "KiB most", "MiB/h log", "snap s", "MiB etcd", "apply ms");
    run(folder, 1, workers < LIMIT_TASKS_PER_JOB ? workers : LIMIT_TASKS_PER_JOB,
        (const uint64_t[]){1000000, 0}, 10, false);
    run(folder, workers / 8, 8, (const uint64_t[]){5000000, 1000000, 200000, 0}, 25, true);
    run(folder, workers, 1, (const uint64_t[]){5000000, 1000000, 200000, 0}, 25, true);
    rmdir(folder);
    return 0;
}
