/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's core inside a program: makes a worker, a link and messages for each task,
 * and feeds the core's actions back as events. session_local.c and cluster_lead.c call it. */
#include "worker/library/runtime/task/embedded_core.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/core/core.h"

#define FORM_US    (60 * CADRE_US_PER_S)
#define REPORT_US  (5 * CADRE_US_PER_S)
#define GRACE_US   (10 * CADRE_US_PER_S)
#define COLLECT_US CADRE_US_PER_S
#define NEVER_US   (UINT64_MAX / 2) /* because there is no replacement for a task that hangs */

struct embedded_worker {
    struct link_id link; /* 0: disconnected */
    bool held;           /* a task of the job is on it: */
    struct task_ref task;
    bool unstarted; /* and the core has not received yet that it runs */
};

struct embedded_core {
    struct embedded_core_events events;
    struct embedded_core_options options;
    void *memory;
    struct core *core;
    struct core_action *items; /* [CORE_ACTIONS_PER_STEP_MAX] */
    uint64_t link_last;
    struct job_id job;
    struct embedded_worker *workers; /* [tasks] */
    /* From the last plan; messages point into it. */
    struct roster_entry *roster;            /* [tasks] */
    char (*addresses)[LIMIT_ADDRESS_BYTES]; /* [tasks] */
    uint64_t key_number;                    /* of the generation that `key` is of */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    struct task_member *members; /* [tasks]; of a ps job */
    bool ps_job_ends;            /* its chief may exit: a task that disconnects has ended */
    struct stream_position streams[LIMIT_STREAMS];
    char text[LIMIT_TEXT_BYTES];
};

/* A link's number contains the index of its worker. */
static uint32_t worker_index_of(const struct embedded_core *inside, struct link_id link)
{
    return (uint32_t)(link.n % inside->options.tasks);
}

static bool is_on(const struct embedded_core *inside, struct link_id link)
{
    return link.n != 0 && inside->workers[worker_index_of(inside, link)].link.n == link.n;
}

/* --- messages to tasks --- */

/* Each generation has a key of its own, so that one that was read on the wire reveals no other. */
static void draw_key(struct embedded_core *inside, struct generation generation)
{
    if (inside->key_number != generation.number) {
        inside->key_number = generation.number;
        ssize_t drawn = getrandom(inside->key, sizeof inside->key, 0);
        CADRE_ASSERT(drawn == (ssize_t)sizeof inside->key); /* getrandom fills up to 256 bytes */
    }
}

static void fill_plan(
    struct embedded_core *inside, const struct core_job_view *job, struct task_plan *plan)
{
    CADRE_ASSERT(job->roster <= inside->options.tasks);
    for (uint32_t rank = 0; rank < job->roster; rank++) {
        struct core_task_view task;
        core_job_task(
            inside->core, inside->job, core_job_member(inside->core, inside->job, rank), &task);
        memcpy(inside->addresses[rank], task.mesh_address, LIMIT_ADDRESS_BYTES);
        inside->roster[rank] = (struct roster_entry){.slot = task.slot,
            .incarnation = task.incarnation,
            .replicas = task.replicas,
            .mesh_address = inside->addresses[rank]};
    }
    draw_key(inside, job->generation);
    *plan = (struct task_plan){
        .generation = job->generation,
        .roster = inside->roster,
        .roster_count = job->roster,
        .resume = job->resume,
        .source = job->source,
        .checkpoint_at = job->checkpoint_at,
        .halt_at = job->halt_at,
        .halt_kind = job->halt_kind,
        .halt_stream = job->halt_stream,
    };
    memcpy(plan->key, inside->key, sizeof plan->key);
}

static void fill_release(const struct core_job_view *job, struct task_release *release)
{
    *release = (struct task_release){
        .generation = job->generation,
        .up_to = job->released,
        .checkpoint_at = job->checkpoint_at,
        .halt_at = job->halt_at,
        .halt_kind = job->halt_kind,
        .halt_stream = job->halt_stream,
        .published = job->published,
    };
}

/* To all members of the generation, or to the one that the action names. Each task has its own
 * worker. */
static void send_members_down(struct embedded_core *inside, const struct core_action *action,
    const struct core_job_view *job, const struct task_down *down)
{
    for (uint32_t i = 0; i < job->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(inside->core, inside->job, i, &worker, &link, &members);
        CADRE_ASSERT(members <= 1);
        bool meant = !action->notify_job.one || link.n == action->notify_job.link.n;
        if (meant && members == 1 && is_on(inside, link)) {
            inside->events.down(worker_index_of(inside, link), down, inside->events.user);
        }
    }
}

/* --- to a ps job, whose tasks but the chief are in no roster --- */

/* The chief receives all tasks, the others the chief and the servers. */
static void fill_members(struct embedded_core *inside, const struct core_job_view *job,
    uint32_t to_slot, struct task_members *ret_members)
{
    CADRE_ASSERT(job->tasks <= inside->options.tasks);
    size_t count = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct core_task_view task;
        enum role role = ps_job_role(&job->ps_job, slot);
        core_job_task(inside->core, inside->job, slot, &task);
        if (to_slot == 0 || role == ROLE_CHIEF || role == ROLE_SERVER) {
            memcpy(inside->addresses[slot], task.mesh_address, LIMIT_ADDRESS_BYTES);
            inside->members[count++] = (struct task_member){.slot = slot,
                .incarnation = task.incarnation,
                .attempts = task.attempts,
                .here = task.here,
                .address = inside->addresses[slot]};
        }
    }
    draw_key(inside, job->generation);
    *ret_members = (struct task_members){
        .generation = job->generation, .members = inside->members, .member_count = count};
    memcpy(ret_members->key, inside->key, sizeof ret_members->key);
}

static void send_ps_job(
    struct embedded_core *inside, const struct core_action *action, const struct core_job_view *job)
{
    enum core_message message = action->notify_job.message;
    struct task_down down = {
        .type = message == CORE_MESSAGE_MEMBERS ? TASK_DOWN_MEMBERS : TASK_DOWN_GOODBYE,
        .generation = action->notify_job.generation};
    if (!job->formed || !generation_equal(job->generation, action->notify_job.generation)) {
        return; /* the attempt is over, and its tasks are being started again */
    }
    for (uint32_t slot = message == CORE_MESSAGE_MEMBERS ? 0 : 1; slot < job->tasks; slot++) {
        struct core_task_view task;
        core_job_task(inside->core, inside->job, slot, &task);
        bool server = ps_job_role(&job->ps_job, slot) == ROLE_SERVER;
        bool meant = message == CORE_MESSAGE_MEMBERS
                         ? !action->notify_job.one || slot == action->notify_job.slot
                         : server == (message == CORE_MESSAGE_GOODBYE_SERVERS);
        if (!meant || !task.here || !is_on(inside, task.link)) {
            continue;
        }
        if (message == CORE_MESSAGE_MEMBERS) {
            fill_members(inside, job, slot, &down.members);
        }
        inside->events.down(worker_index_of(inside, task.link), &down, inside->events.user);
    }
    if (message == CORE_MESSAGE_GOODBYE_SERVERS && inside->events.done != NULL) {
        inside->events.done(inside->events.user);
    }
}

/* The message to the job is made from the state of the core. */
static void notify_job(struct embedded_core *inside, const struct core_action *action)
{
    struct core_job_view job;
    struct task_down down = {.generation = action->notify_job.generation};
    enum core_message message = action->notify_job.message;
    bool states = message == CORE_MESSAGE_PLAN || message == CORE_MESSAGE_RELEASE;
    if (!core_job(inside->core, inside->job, &job) ||
        (states && !generation_equal(job.generation, action->notify_job.generation))) {
        return; /* it ended, or a newer generation was made, in the same step */
    }
    switch (message) {
    case CORE_MESSAGE_PLAN:
        down.type = TASK_DOWN_PLAN;
        fill_plan(inside, &job, &down.plan);
        break;
    case CORE_MESSAGE_RELEASE:
        down.type = TASK_DOWN_RELEASE;
        fill_release(&job, &down.release);
        break;
    case CORE_MESSAGE_ABORT:
        down.type = TASK_DOWN_ABORT;
        memcpy(inside->text, action->notify_job.reason, sizeof inside->text);
        down.reason = inside->text;
        break;
    case CORE_MESSAGE_GOODBYE:
        down.type = TASK_DOWN_GOODBYE;
        break;
    case CORE_MESSAGE_MEMBERS:
    case CORE_MESSAGE_GOODBYE_WORKERS:
    case CORE_MESSAGE_GOODBYE_SERVERS:
        send_ps_job(inside, action, &job);
        return;
    }
    send_members_down(inside, action, &job, &down);
    bool last = !ps_job_is_set(&job.ps_job); /* in a ps job the servers end last */
    inside->ps_job_ends = inside->ps_job_ends || (message == CORE_MESSAGE_GOODBYE && !last);
    if (message == CORE_MESSAGE_GOODBYE && last && !action->notify_job.one &&
        inside->events.done != NULL) {
        inside->events.done(inside->events.user);
    }
}

static void notify_task(struct embedded_core *inside, const struct core_action *action)
{
    struct core_job_view job;
    struct task_down down = {.type = action->notify_task.type};
    if (!is_on(inside, action->notify_task.link)) {
        return;
    }
    if (down.type == TASK_DOWN_REFUSED) {
        memcpy(inside->text, action->notify_task.text, sizeof inside->text);
        down.refused =
            (struct task_refused){.code = action->notify_task.code, .text = inside->text};
    } else if (down.type == TASK_DOWN_WARM) {
        uint32_t count = 0;
        while (count < LIMIT_STREAMS &&
               core_job_stream(inside->core, inside->job, count, &inside->streams[count])) {
            count++;
        }
        if (!core_job(inside->core, inside->job, &job)) {
            return;
        }
        down.warm = (struct task_warm){
            .streams = inside->streams, .stream_count = count, .tasks = job.roster};
    }
    inside->events.down(
        worker_index_of(inside, action->notify_task.link), &down, inside->events.user);
}

/* --- placement --- */

/* The tasks that were placed: all of the job's, or those on this link. */
static void task_embedded_core_start(struct embedded_core *inside, const struct link_id *link)
{
    struct core_job_view job;
    if (!core_job(inside->core, inside->job, &job)) {
        return;
    }
    for (uint32_t slot = 0; slot < job.tasks; slot++) {
        struct core_task_view task;
        core_job_task(inside->core, inside->job, slot, &task);
        if (task.state != TASK_STARTING || !is_on(inside, task.link) ||
            (link != NULL && task.link.n != link->n)) {
            continue;
        }
        uint32_t at = worker_index_of(inside, task.link);
        struct embedded_worker *worker = &inside->workers[at];
        worker->held = true;
        worker->unstarted = true;
        worker->task =
            (struct task_ref){.job = inside->job, .slot = slot, .incarnation = task.incarnation};
        inside->events.placed(at, slot, task.incarnation, inside->events.user);
    }
}

static void embedded_core_stop(struct embedded_core *inside, struct link_id link)
{
    if (is_on(inside, link) && inside->events.stop != NULL) {
        inside->events.stop(worker_index_of(inside, link), inside->events.user);
    }
}

static void stop_all(struct embedded_core *inside)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        embedded_core_stop(inside, inside->workers[i].link);
    }
}

static void embedded_core_record(struct embedded_core *inside, const struct core_record *record)
{
    if (record->type == CORE_RECORD_ENDING && record->ended.state == JOB_FAILED &&
        inside->events.fails != NULL) {
        inside->events.fails(record->ended.code, record->ended.text, inside->events.user);
    }
}

static void carry_out(struct embedded_core *inside, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        inside->job = action->answer.job;
        break;
    case CORE_ACTION_START_JOB:
        inside->job = action->job;
        task_embedded_core_start(inside, NULL);
        break;
    case CORE_ACTION_START_TASKS:
        task_embedded_core_start(inside, &action->start_tasks.link);
        break;
    case CORE_ACTION_NOTIFY_JOB:
        notify_job(inside, action);
        break;
    case CORE_ACTION_NOTIFY_TASK:
        notify_task(inside, action);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_all(inside);
        break;
    case CORE_ACTION_STOP_TASK:
        embedded_core_stop(inside, action->stop_task.link);
        break;
    case CORE_ACTION_REFUSE:
        embedded_core_stop(inside, action->refuse.link);
        break;
    case CORE_ACTION_RECORD:
        embedded_core_record(inside, &action->record);
        break;
    case CORE_ACTION_WELCOME:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
    case CORE_ACTION_FORGET_JOB:
        break; /* there is no client, and no store */
    }
}

/* --- events --- */

static void step_once(struct embedded_core *inside, const struct core_event *event)
{
    struct core_actions out = {.items = inside->items, .capacity = CORE_ACTIONS_PER_STEP_MAX};
    core_step(inside->core, event, &out);
    CADRE_ASSERT(out.count <= out.capacity);
    for (size_t i = 0; i < out.count; i++) {
        carry_out(inside, &out.items[i]);
    }
}

/* Steps the core by one event, then by those that its actions cause at once. */
static void embedded_core_step(struct embedded_core *inside, const struct core_event *event)
{
    step_once(inside, event);
    while (core_wake_us(inside->core) <= event->now_us) {
        step_once(inside, &(struct core_event){.type = CORE_EVENT_TICK, .now_us = event->now_us});
    }
}

static void embedded_core_say(
    struct embedded_core *inside, uint32_t worker_index, const struct agent_up *up, uint64_t now_us)
{
    struct core_event event; /* most of it is for other kinds of events, and is not cleared */
    event.type = CORE_EVENT_AGENT_UP;
    event.now_us = now_us;
    event.agent.link = inside->workers[worker_index].link;
    event.agent.up = up;
    embedded_core_step(inside, &event);
}

/* The task of a connected worker runs already. */
static void send_started(struct embedded_core *inside, uint64_t now_us)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        struct embedded_worker *worker = &inside->workers[i];
        if (worker->unstarted) {
            worker->unstarted = false;
            embedded_core_say(inside, i,
                &(struct agent_up){.type = AGENT_UP_TASK_STARTED,
                    .started = {.task = worker->task, .pid = (uint32_t)getpid()}},
                now_us);
        }
    }
}

void embedded_core_connect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us)
{
    CADRE_ASSERT(worker_index < inside->options.tasks);
    CADRE_ASSERT(inside->workers[worker_index].link.n == 0);
    uint64_t link = ++inside->link_last * inside->options.tasks + worker_index;
    inside->workers[worker_index] = (struct embedded_worker){.link = {link}};
    embedded_core_say(inside, worker_index,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_OLDEST,
                .protocol_newest = AGENT_PROTOCOL_VERSION,
                .library_version = CADRE_VERSION,
                .name = inside->options.name(worker_index, inside->options.user),
                .host = "",
                .boot_nonce = link,
                .slots = 1,
                .cpus = 1}},
        now_us);
    send_started(inside, now_us);
}

void embedded_core_start(struct embedded_core *inside, uint64_t now_us)
{
    embedded_core_step(inside, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                                   .now_us = now_us,
                                   .submit = {.call = {1},
                                       .spec = {.tasks = inside->options.tasks,
                                           .tasks_min = inside->options.tasks,
                                           .ps_job = inside->options.ps_job},
                                       .restores = inside->options.restored > 0,
                                       .checkpoint = {.position = inside->options.restored}}});
    send_started(inside, now_us);
}

static void fill_arrived(const struct embedded_core *inside, uint32_t slot,
    const struct task_arrive *arrive, struct agent_arrived *arrived)
{
    *arrived = (struct agent_arrived){.job = inside->job,
        .generation = arrive->generation,
        .tasks = 1,
        .up_to = arrive->up_to,
        .applied = arrive->applied,
        .wanted = arrive->wanted,
        .wanted_slot = slot,
        .cursor = arrive->cursor,
        .consumption = arrive->consumption,
        .verified = arrive->verified};
}

void embedded_core_receive(
    struct embedded_core *inside, uint32_t worker_index, const struct task_up *up, uint64_t now_us)
{
    CADRE_ASSERT(worker_index < inside->options.tasks);
    const struct embedded_worker *at = &inside->workers[worker_index];
    bool for_people = up->type == TASK_UP_PROGRESS || up->type == TASK_UP_SHARDS ||
                      up->type == TASK_UP_VALUES || up->type == TASK_UP_SPANS;
    if (!at->held || at->link.n == 0 || for_people) {
        return;
    }
    struct agent_up relay_up;
    if (up->type == TASK_UP_ARRIVE) {
        relay_up.type = AGENT_UP_ARRIVED;
        fill_arrived(inside, at->task.slot, &up->arrive, &relay_up.arrived);
    } else {
        relay_up.type = AGENT_UP_RELAY;
        relay_up.relay_up.task = at->task;
        relay_up.relay_up.up = *up;
    }
    embedded_core_say(inside, worker_index, &relay_up, now_us);
    send_started(inside, now_us);
}

void embedded_core_disconnect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us)
{
    CADRE_ASSERT(worker_index < inside->options.tasks);
    struct link_id link = inside->workers[worker_index].link;
    if (link.n != 0 && inside->ps_job_ends && inside->workers[worker_index].held) {
        embedded_core_say(inside, worker_index,
            &(struct agent_up){
                .type = AGENT_UP_TASK_GONE, .gone = {.task = inside->workers[worker_index].task}},
            now_us);
    }
    inside->workers[worker_index] = (struct embedded_worker){.held = false};
    if (link.n != 0) {
        embedded_core_step(
            inside, &(struct core_event){
                        .type = CORE_EVENT_LINK_DOWN, .now_us = now_us, .link_down = link});
    }
}

void embedded_core_heartbeat(struct embedded_core *inside, uint64_t now_us)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        if (inside->workers[i].link.n != 0) {
            embedded_core_say(inside, i, &(struct agent_up){.type = AGENT_UP_HEARTBEAT}, now_us);
        }
    }
}

void embedded_core_tick(struct embedded_core *inside, uint64_t now_us)
{
    embedded_core_step(inside, &(struct core_event){.type = CORE_EVENT_TICK, .now_us = now_us});
    send_started(inside, now_us);
}

uint64_t embedded_core_wake_us(const struct embedded_core *inside)
{
    return core_wake_us(inside->core);
}

/* --- lifetime --- */

void embedded_core_close(struct embedded_core *inside)
{
    if (inside != NULL) {
        free(inside->memory);
        free(inside->items);
        free(inside->workers);
        free(inside->roster);
        free(inside->addresses);
        free(inside->members);
        free(inside);
    }
}

cadre_status embedded_core_open(const struct embedded_core_options *options,
    const struct embedded_core_events *events, struct embedded_core **ret_inside,
    struct cadre_error *error)
{
    CADRE_ASSERT(options->tasks > 0);
    CADRE_ASSERT(options->name != NULL);
    CADRE_ASSERT(events->placed != NULL);
    CADRE_ASSERT(events->down != NULL);
    struct core_options core_options = {
        .limits = {.workers_max = options->tasks, .jobs_max = 1, .tasks_max = options->tasks},
        .seed = clock_wall_us() ^ ((uint64_t)getpid() << 40),
        .lease_us = options->lease_us,
        .grace_us = GRACE_US,
        .collect_us = COLLECT_US,
        .form_us = FORM_US,
        .report_us = REPORT_US,
        .wait_us = options->wait_us,
        .stall_us = NEVER_US,
        .slow_factor = 1000,
        .slow_us = NEVER_US,
    };
    struct embedded_core *inside = calloc(1, sizeof *inside);
    *ret_inside = NULL;
    if (inside != NULL) {
        inside->memory = calloc(1, core_bytes(&core_options.limits));
        inside->items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof *inside->items);
        inside->workers = calloc(options->tasks, sizeof *inside->workers);
        inside->roster = calloc(options->tasks, sizeof *inside->roster);
        inside->addresses = calloc(options->tasks, sizeof *inside->addresses);
        inside->members = calloc(options->tasks, sizeof *inside->members);
    }
    if (inside == NULL || inside->memory == NULL || inside->items == NULL ||
        inside->workers == NULL || inside->roster == NULL || inside->addresses == NULL ||
        inside->members == NULL) {
        embedded_core_close(inside);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the coordinator inside the program");
    }
    inside->events = *events;
    inside->options = *options;
    inside->core = core_init(inside->memory, &core_options);
    embedded_core_step(inside, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE});
    *ret_inside = inside;
    return CADRE_OK;
}
