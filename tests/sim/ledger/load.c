/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/model/versions.h"
#include "common/pure/assert.h"

#define POSITION UINT64_C(100000000) /* jobs go on from here, so numbers have their length */
#define BATCH    1024
#define SAVE_US  (600 * SECOND_US)
#define JOB_US   (3600 * SECOND_US)
#define CHURN_US 20000 /* between two messages of tasks whose job ends: at most */
#define ADDRESS  "10.11.12.13:40123/5e1c07a9d2f4"

/* ---- what the coordinator sends ---- */

static struct job *job_of(struct load *load, struct job_id id)
{
    CADRE_ASSERT(id.n <= load->id_max);
    return &load->items[load->by_id[id.n]];
}

static void on_down(void *user, struct link_id link, const struct agent_down *down)
{
    struct load *load = user;
    if (down->type == AGENT_DOWN_START) {
        const struct task_ref *task = &down->start.task;
        struct job *job = job_of(load, task->job);
        load->placed[(size_t)(job - load->items) * load->tasks + task->slot] =
            (struct placed){link, task->incarnation};
    } else if (down->type == AGENT_DOWN_RELAY) {
        struct job *job = job_of(load, down->relay_down.job);
        const struct task_down *body = &down->relay_down.down;
        if (body->type == TASK_DOWN_PLAN) {
            job->generation = body->plan.generation;
            job->released = body->plan.resume;
        } else if (body->type == TASK_DOWN_RELEASE) {
            job->released = body->release.up_to;
        }
    }
}

static void on_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    (void)user;
    (void)code;
    fprintf(stderr, "ledger_scale: worker %llu is refused: %s\n", (unsigned long long)link.n, text);
    exit(1);
}

static void on_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    (void)user;
    (void)call;
    (void)job;
    (void)queued_before;
    if (code != CADRE_OK) {
        fprintf(stderr, "ledger_scale: %s\n", text);
        exit(1);
    }
}

static void on_job(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static void on_dropped(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    (void)user;
    (void)job;
    (void)checkpoint;
}

static const struct engine_sink sink = {.down = on_down,
    .refuse = on_refuse,
    .answer = on_answer,
    .job_changed = on_job,
    .job_forgotten = on_job,
    .checkpoint_dropped = on_dropped};

/* ---- what workers and tasks send, each in a turn of its own ---- */

static void up(struct load *load, struct link_id link, const struct agent_up *message)
{
    engine_agent_up(load->log.engine, load->log.now_us, link, message);
    leader_flush(&load->log);
}

struct task_ref load_task(const struct load *load, uint32_t job, uint32_t slot)
{
    return (struct task_ref){.job = load->items[job].id,
        .slot = slot,
        .incarnation = load->placed[(size_t)job * load->tasks + slot].incarnation};
}

void load_worker_hello(struct load *load, uint64_t link, const struct task_ref *task)
{
    char name[32];
    snprintf(name, sizeof name, "node-%05llu.cluster", (unsigned long long)link);
    up(load, (struct link_id){link},
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "1.0.0",
                .name = name,
                .host = name,
                .boot_nonce = link,
                .slots = 1,
                .cpus = 64,
                .memory_bytes = UINT64_C(1) << 38,
                .tasks = task,
                .task_count = task != NULL ? 1 : 0}});
}

static void task_says(struct load *load, uint32_t job, uint32_t slot, const struct task_up *message)
{
    up(load, load->placed[(size_t)job * load->tasks + slot].link,
        &(struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {.task = load_task(load, job, slot), .up = *message}});
}

void load_task_hello(struct load *load, uint32_t job, uint32_t slot)
{
    const struct job *of = &load->items[job];
    task_says(load, job, slot,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .library_version = "1.0.0",
                .pid = 41123,
                .replicas = 1,
                .mesh_address = ADDRESS,
                .generation = of->generation,
                .position = of->released,
                .released = of->released,
                .arrived = of->released,
                .clean = true}});
}

static void job_hello(struct load *load, uint32_t job)
{
    for (uint32_t slot = 0; slot < load->tasks; slot++) {
        const struct agent_up started = {.type = AGENT_UP_TASK_STARTED,
            .started = {.task = load_task(load, job, slot), .pid = 41123}};
        up(load, load->placed[(size_t)job * load->tasks + slot].link, &started);
        load_task_hello(load, job, slot);
        task_says(load, job, slot,
            &(struct task_up){.type = TASK_UP_STREAM,
                .stream = {.stream = 1, .name = "train", .samples = 50000000, .shares = true}});
    }
}

void load_step(struct load *load, uint32_t job)
{
    const struct job *of = &load->items[job];
    const uint64_t at = of->released;
    for (uint32_t slot = 0; slot < load->tasks; slot++) {
        up(load, load->placed[(size_t)job * load->tasks + slot].link,
            &(struct agent_up){.type = AGENT_UP_ARRIVED,
                .arrived = {.job = of->id,
                    .generation = of->generation,
                    .tasks = 1,
                    .up_to = at + 1,
                    .applied = at,
                    .wanted = at + 1,
                    .wanted_slot = slot,
                    .cursor = {.stream = 1, .epoch = 12, .first = POSITION, .begin = POSITION},
                    .consumption = {.steps = at - POSITION,
                        .samples = (at - POSITION) * BATCH,
                        .consumed = {UINT64_MAX / 3, UINT64_MAX / 5},
                        .expected = {UINT64_MAX / 3, UINT64_MAX / 5},
                        .provable = true}}});
    }
}

static void save(struct load *load, uint32_t job)
{
    const struct job *of = &load->items[job];
    for (uint32_t slot = 0; slot < load->tasks && of->released > POSITION; slot++) {
        task_says(load, job, slot, /* of all but the chief it has no effect */
            &(struct task_up){.type = TASK_UP_PART,
                .part = {.generation = of->generation,
                    .position = of->released - 1,
                    .path = "checkpoints/step-000100000000/manifest",
                    .size_bytes = 4000,
                    .sha256 = {1},
                    .digest = UINT64_MAX / 11,
                    .compared = true}});
    }
}

static void submit(struct load *load, uint32_t job)
{
    static const char *const arguments[] = {"--data", "/data/imagenet", "--epochs", "90"};
    static const char *const environment[] = {"OMP_NUM_THREADS=8", "TZ=UTC"};
    const struct job_spec spec = {.name = "resnet-50",
        .program = {.name = "train", .sha256 = {1}, .size_bytes = 1000000, .executable = true},
        .arguments = arguments,
        .argument_count = 4,
        .environment = environment,
        .environment_count = 2,
        .workers = load->tasks,
        .strategy = "",
        .checkpoint_folder = "",
        .checkpoint_every = 1000,
        .max_restarts = 3};
    const struct core_checkpoint from = {.generation = {1, 77},
        .position = POSITION,
        .path = "checkpoints/step-000100000000/manifest",
        .manifest_bytes = 4000};
    load->items[job] = (struct job){.id = {++load->id_max}};
    load->by_id[load->id_max] = job;
    engine_submit_restored(
        load->log.engine, load->log.now_us, (struct call_id){load->id_max}, &spec, &from);
    leader_flush(&load->log);
}

/* ---- the load ---- */

void load_begin_engine(struct load *load)
{
    const struct core_limits limits = {.workers_max = load->jobs * load->tasks,
        .jobs_max = load->jobs + 1,
        .tasks_max = (load->jobs + 1) * load->tasks};
    leader_begin_engine(&load->log, &limits, &sink);
}

void load_open(struct load *load, const char *path, uint32_t jobs, uint32_t tasks)
{
    *load = (struct load){.jobs = jobs, .tasks = tasks, .churning = UINT32_MAX};
    load->items = calloc(jobs, sizeof *load->items);
    load->by_id = calloc(2 * (size_t)jobs + 2, sizeof *load->by_id);
    load->placed = calloc((size_t)jobs * tasks, sizeof *load->placed);
    CADRE_ASSERT(load->items != NULL && load->by_id != NULL && load->placed != NULL);
    leader_open(&load->log, path);
    load_begin_engine(load);
    for (uint64_t link = 1; link <= (uint64_t)jobs * tasks; link++) {
        load_worker_hello(load, link, NULL);
        leader_advance(&load->log, 100);
    }
    for (uint32_t job = 0; job < jobs; job++) {
        submit(load, job);
        leader_advance(&load->log, 1000);
    }
    leader_advance(&load->log, 2 * SECOND_US);
    for (uint32_t job = 0; job < jobs; job++) {
        job_hello(load, job);
        leader_advance(&load->log, 1000);
    }
    leader_advance(&load->log, 2 * SECOND_US);
}

void load_close(struct load *load)
{
    leader_close(&load->log);
    free(load->items);
    free(load->by_id);
    free(load->placed);
}

/* One job ends and another one begins, a message of each of its tasks at a time. */
static void churn(struct load *load)
{
    uint32_t job = load->churning;
    uint32_t number = load->stage++;
    uint32_t slot = number % load->tasks;
    struct link_id link = load->placed[(size_t)job * load->tasks + slot].link;
    switch (number / load->tasks) {
    case 0:
        task_says(load, job, slot,
            &(struct task_up){.type = TASK_UP_REPORT,
                .report = {.generation = load->items[job].generation,
                    .position = load->items[job].released,
                    .clean = true,
                    .reason = REPORT_FINISHED,
                    .text = ""}});
        break;
    case 1:
        up(load, link,
            &(struct agent_up){
                .type = AGENT_UP_TASK_GONE, .gone = {.task = load_task(load, job, slot)}});
        break;
    case 2:
        up(load, link,
            &(struct agent_up){.type = AGENT_UP_TASK_COLLECTED,
                .collected = {.task = load_task(load, job, slot), .text = ""}});
        break;
    case 3:
        if (slot == 0) {
            submit(load, job);
        }
        break;
    default:
        job_hello(load, job);
        load->churning = UINT32_MAX;
        break;
    }
}

void load_run(struct load *load, uint64_t step_us, uint64_t seconds, bool churns)
{
    uint64_t began_us = load->log.now_us;
    uint64_t saved_us = began_us, ended_us = began_us + SECOND_US, message_us = began_us;
    uint64_t churn_us = JOB_US / load->jobs / (4 * load->tasks + 4);
    uint32_t saves = load->jobs / 2, ends = 0;
    churn_us = churn_us < CHURN_US ? churn_us : CHURN_US;
    for (uint64_t n = 0; load->log.now_us < began_us + seconds * SECOND_US; n++) {
        uint32_t job = (uint32_t)(n % load->jobs);
        if (job != load->churning) {
            load_step(load, job);
        }
        leader_advance(&load->log, step_us / load->jobs);
        if (load->log.now_us >= saved_us + SAVE_US / load->jobs) {
            saved_us += SAVE_US / load->jobs;
            save(load, saves++ % load->jobs);
        }
        if (churns && load->churning == UINT32_MAX && load->log.now_us >= ended_us) {
            ended_us += JOB_US / load->jobs;
            load->churning = ends++ % load->jobs;
            load->stage = 0;
        }
        if (load->churning != UINT32_MAX && load->log.now_us >= message_us + churn_us) {
            message_us = load->log.now_us;
            churn(load);
        }
    }
}
