/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/core_inside.h"

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
#define NEVER_US   (UINT64_MAX / 2) /* nobody could replace a task that hangs */

struct place {
    struct link_id link; /* 0: nobody is there */
    bool held;           /* a task of the job is there: */
    struct task_ref task;
    bool unstarted; /* and the core has not heard yet that it runs */
};

struct core_inside {
    struct core_inside_events events;
    struct core_inside_options options;
    void *memory;
    struct core *core;
    struct core_action *items; /* [CORE_ACTIONS_PER_STEP_MAX] */
    uint64_t link_last;
    struct job_id job;
    struct place *places; /* [tasks] */
    /* What the last plan said; messages point into it. */
    struct roster_entry *roster;            /* [tasks] */
    char (*addresses)[LIMIT_ADDRESS_BYTES]; /* [tasks] */
    uint64_t key_number;                    /* of the generation that `key` is of */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    struct task_member *members; /* [tasks]; of a crew */
    bool crew_ends;              /* its chief was told that it may go: who leaves has ended */
    struct stream_position streams[LIMIT_STREAMS];
    char text[LIMIT_TEXT_BYTES];
};

/* Links are numbered so that they tell the place. */
static uint32_t place_of(const struct core_inside *inside, struct link_id link)
{
    return (uint32_t)(link.n % inside->options.tasks);
}

static bool is_on(const struct core_inside *inside, struct link_id link)
{
    return link.n != 0 && inside->places[place_of(inside, link)].link.n == link.n;
}

/* --- what is said --- */

/* Each generation has a key of its own. Whoever hears of it in the clear learns nothing of the
 * others. */
static void draw_key(struct core_inside *inside, struct generation generation)
{
    if (inside->key_number != generation.number) {
        inside->key_number = generation.number;
        ssize_t drawn = getrandom(inside->key, sizeof inside->key, 0);
        CADRE_ASSERT(drawn == (ssize_t)sizeof inside->key); /* so few bytes are never cut */
    }
}

static void fill_plan(
    struct core_inside *inside, const struct core_job_view *job, struct task_plan *plan)
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

/* To all members of the generation, or the one that the action names. Each task has a worker of its
 * own. */
static void tell_members(struct core_inside *inside, const struct core_action *action,
    const struct core_job_view *job, const struct task_down *down)
{
    for (uint32_t i = 0; i < job->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(inside->core, inside->job, i, &worker, &link, &members);
        CADRE_ASSERT(members <= 1);
        bool meant = !action->tell_job.one || link.n == action->tell_job.link.n;
        if (meant && members == 1 && is_on(inside, link)) {
            inside->events.down(place_of(inside, link), down, inside->events.user);
        }
    }
}

/* --- to a crew, whose tasks but the chief are in no roster --- */

/* The chief hears of all, the others of the chief and the servers. */
static void fill_members(struct core_inside *inside, const struct core_job_view *job,
    uint32_t to_slot, struct task_members *ret_members)
{
    CADRE_ASSERT(job->tasks <= inside->options.tasks);
    size_t count = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct core_task_view task;
        enum role role = crew_role(&job->crew, slot);
        core_job_task(inside->core, inside->job, slot, &task);
        if (to_slot == 0 || role == ROLE_CHIEF || role == ROLE_SERVER) {
            memcpy(inside->addresses[slot], task.mesh_address, LIMIT_ADDRESS_BYTES);
            inside->members[count++] = (struct task_member){.slot = slot,
                .incarnation = task.incarnation,
                .lives = task.lives,
                .here = task.here,
                .address = inside->addresses[slot]};
        }
    }
    draw_key(inside, job->generation);
    *ret_members = (struct task_members){
        .generation = job->generation, .members = inside->members, .member_count = count};
    memcpy(ret_members->key, inside->key, sizeof ret_members->key);
}

static void tell_crew(
    struct core_inside *inside, const struct core_action *action, const struct core_job_view *job)
{
    enum core_tell tell = action->tell_job.tell;
    struct task_down down = {.type = tell == CORE_TELL_MEMBERS ? TASK_DOWN_MEMBERS : TASK_DOWN_BYE,
        .generation = action->tell_job.generation};
    if (!job->formed || !generation_equal(job->generation, action->tell_job.generation)) {
        return; /* it is over, and its tasks are being started again */
    }
    for (uint32_t slot = tell == CORE_TELL_MEMBERS ? 0 : 1; slot < job->tasks; slot++) {
        struct core_task_view task;
        core_job_task(inside->core, inside->job, slot, &task);
        bool server = crew_role(&job->crew, slot) == ROLE_SERVER;
        bool meant = tell == CORE_TELL_MEMBERS
                         ? !action->tell_job.one || slot == action->tell_job.slot
                         : server == (tell == CORE_TELL_BYE_SERVERS);
        if (!meant || !task.here || !is_on(inside, task.link)) {
            continue;
        }
        if (tell == CORE_TELL_MEMBERS) {
            fill_members(inside, job, slot, &down.members);
        }
        inside->events.down(place_of(inside, task.link), &down, inside->events.user);
    }
    if (tell == CORE_TELL_BYE_SERVERS && inside->events.done != NULL) {
        inside->events.done(inside->events.user);
    }
}

/* The content of what is told to the job is what the core holds now. */
static void tell_job(struct core_inside *inside, const struct core_action *action)
{
    struct core_job_view job;
    struct task_down down = {.generation = action->tell_job.generation};
    enum core_tell tell = action->tell_job.tell;
    bool states = tell == CORE_TELL_PLAN || tell == CORE_TELL_RELEASE;
    if (!core_job(inside->core, inside->job, &job) ||
        (states && !generation_equal(job.generation, action->tell_job.generation))) {
        return; /* it ended, or a newer generation was made, in the same step */
    }
    switch (tell) {
    case CORE_TELL_PLAN:
        down.type = TASK_DOWN_PLAN;
        fill_plan(inside, &job, &down.plan);
        break;
    case CORE_TELL_RELEASE:
        down.type = TASK_DOWN_RELEASE;
        fill_release(&job, &down.release);
        break;
    case CORE_TELL_ABORT:
        down.type = TASK_DOWN_ABORT;
        memcpy(inside->text, action->tell_job.reason, sizeof inside->text);
        down.reason = inside->text;
        break;
    case CORE_TELL_BYE:
        down.type = TASK_DOWN_BYE;
        break;
    case CORE_TELL_MEMBERS:
    case CORE_TELL_BYE_CREW:
    case CORE_TELL_BYE_SERVERS:
        tell_crew(inside, action, &job);
        return;
    }
    tell_members(inside, action, &job, &down);
    bool last = !crew_is(&job.crew); /* of a crew the servers are */
    inside->crew_ends = inside->crew_ends || (tell == CORE_TELL_BYE && !last);
    if (tell == CORE_TELL_BYE && last && !action->tell_job.one && inside->events.done != NULL) {
        inside->events.done(inside->events.user);
    }
}

static void tell_task(struct core_inside *inside, const struct core_action *action)
{
    struct core_job_view job;
    struct task_down down = {.type = action->tell_task.type};
    if (!is_on(inside, action->tell_task.link)) {
        return;
    }
    if (down.type == TASK_DOWN_REFUSED) {
        memcpy(inside->text, action->tell_task.text, sizeof inside->text);
        down.refused = (struct task_refused){.code = action->tell_task.code, .text = inside->text};
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
    inside->events.down(place_of(inside, action->tell_task.link), &down, inside->events.user);
}

/* --- who is where --- */

/* Those that were placed: of the whole job, or on this link. */
static void start(struct core_inside *inside, const struct link_id *link)
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
        uint32_t at = place_of(inside, task.link);
        struct place *place = &inside->places[at];
        place->held = true;
        place->unstarted = true;
        place->task =
            (struct task_ref){.job = inside->job, .slot = slot, .incarnation = task.incarnation};
        inside->events.placed(at, slot, task.incarnation, inside->events.user);
    }
}

static void stop(struct core_inside *inside, struct link_id link)
{
    if (is_on(inside, link) && inside->events.stop != NULL) {
        inside->events.stop(place_of(inside, link), inside->events.user);
    }
}

static void stop_all(struct core_inside *inside)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        stop(inside, inside->places[i].link);
    }
}

static void record(struct core_inside *inside, const struct core_record *record)
{
    if (record->type == CORE_RECORD_ENDING && record->ended.state == JOB_FAILED &&
        inside->events.fails != NULL) {
        inside->events.fails(record->ended.code, record->ended.text, inside->events.user);
    }
}

static void carry_out(struct core_inside *inside, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        inside->job = action->answer.job;
        break;
    case CORE_ACTION_START_JOB:
        inside->job = action->job;
        start(inside, NULL);
        break;
    case CORE_ACTION_START_AGAIN:
        start(inside, &action->start_again.link);
        break;
    case CORE_ACTION_TELL_JOB:
        tell_job(inside, action);
        break;
    case CORE_ACTION_TELL_TASK:
        tell_task(inside, action);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_all(inside);
        break;
    case CORE_ACTION_STOP_TASK:
        stop(inside, action->stop_task.link);
        break;
    case CORE_ACTION_REFUSE:
        stop(inside, action->refuse.link);
        break;
    case CORE_ACTION_RECORD:
        record(inside, &action->record);
        break;
    case CORE_ACTION_WELCOME:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
    case CORE_ACTION_FORGET_JOB:
        break; /* nobody asks, and nothing is kept */
    }
}

/* --- events --- */

static void step_once(struct core_inside *inside, const struct core_event *event)
{
    struct core_actions out = {.items = inside->items, .capacity = CORE_ACTIONS_PER_STEP_MAX};
    core_step(inside->core, event, &out);
    CADRE_ASSERT(out.count <= out.capacity);
    for (size_t i = 0; i < out.count; i++) {
        carry_out(inside, &out.items[i]);
    }
}

/* The event, then what it left to be done now. */
static void step(struct core_inside *inside, const struct core_event *event)
{
    step_once(inside, event);
    while (core_wake_us(inside->core) <= event->now_us) {
        step_once(inside, &(struct core_event){.type = CORE_EVENT_TICK, .now_us = event->now_us});
    }
}

static void say(
    struct core_inside *inside, uint32_t place, const struct agent_up *up, uint64_t now_us)
{
    struct core_event event; /* most of it are other kinds of events, and is not cleared */
    event.type = CORE_EVENT_AGENT_UP;
    event.now_us = now_us;
    event.agent.link = inside->places[place].link;
    event.agent.up = up;
    step(inside, &event);
}

/* Who is on a place runs already. */
static void say_started(struct core_inside *inside, uint64_t now_us)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        struct place *place = &inside->places[i];
        if (place->unstarted) {
            place->unstarted = false;
            say(inside, i,
                &(struct agent_up){.type = AGENT_UP_TASK_STARTED,
                    .started = {.task = place->task, .pid = (uint32_t)getpid()}},
                now_us);
        }
    }
}

void core_inside_join(struct core_inside *inside, uint32_t place, uint64_t now_us)
{
    CADRE_ASSERT(place < inside->options.tasks);
    CADRE_ASSERT(inside->places[place].link.n == 0);
    uint64_t link = ++inside->link_last * inside->options.tasks + place;
    inside->places[place] = (struct place){.link = {link}};
    say(inside, place,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = CADRE_VERSION,
                .name = inside->options.name(place, inside->options.user),
                .host = "",
                .boot_nonce = link,
                .slots = 1,
                .cpus = 1}},
        now_us);
    say_started(inside, now_us);
}

void core_inside_begin(struct core_inside *inside, uint64_t now_us)
{
    step(inside, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                     .now_us = now_us,
                     .submit = {.call = {1},
                         .spec = {.tasks = inside->options.tasks,
                             .tasks_min = inside->options.tasks,
                             .crew = inside->options.crew},
                         .restores = inside->options.restored > 0,
                         .checkpoint = {.position = inside->options.restored}}});
    say_started(inside, now_us);
}

static void fill_arrived(const struct core_inside *inside, uint32_t slot,
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
        .feed = arrive->feed,
        .verified = arrive->verified};
}

void core_inside_up(
    struct core_inside *inside, uint32_t place, const struct task_up *up, uint64_t now_us)
{
    CADRE_ASSERT(place < inside->options.tasks);
    const struct place *at = &inside->places[place];
    bool for_people = up->type == TASK_UP_PROGRESS || up->type == TASK_UP_SHARDS;
    if (!at->held || at->link.n == 0 || for_people) {
        return;
    }
    struct agent_up said;
    if (up->type == TASK_UP_ARRIVE) {
        said.type = AGENT_UP_ARRIVED;
        fill_arrived(inside, at->task.slot, &up->arrive, &said.arrived);
    } else {
        said.type = AGENT_UP_SAID;
        said.said.task = at->task;
        said.said.up = *up;
    }
    say(inside, place, &said, now_us);
    say_started(inside, now_us);
}

void core_inside_leave(struct core_inside *inside, uint32_t place, uint64_t now_us)
{
    CADRE_ASSERT(place < inside->options.tasks);
    struct link_id link = inside->places[place].link;
    if (link.n != 0 && inside->crew_ends && inside->places[place].held) {
        say(inside, place,
            &(struct agent_up){
                .type = AGENT_UP_TASK_GONE, .gone = {.task = inside->places[place].task}},
            now_us);
    }
    inside->places[place] = (struct place){.held = false};
    if (link.n != 0) {
        step(inside, &(struct core_event){
                         .type = CORE_EVENT_LINK_DOWN, .now_us = now_us, .link_down = link});
    }
}

void core_inside_heartbeat(struct core_inside *inside, uint64_t now_us)
{
    for (uint32_t i = 0; i < inside->options.tasks; i++) {
        if (inside->places[i].link.n != 0) {
            say(inside, i, &(struct agent_up){.type = AGENT_UP_HEARTBEAT}, now_us);
        }
    }
}

void core_inside_tick(struct core_inside *inside, uint64_t now_us)
{
    step(inside, &(struct core_event){.type = CORE_EVENT_TICK, .now_us = now_us});
    say_started(inside, now_us);
}

uint64_t core_inside_wake_us(const struct core_inside *inside)
{
    return core_wake_us(inside->core);
}

/* --- lifetime --- */

void core_inside_close(struct core_inside *inside)
{
    if (inside != NULL) {
        free(inside->memory);
        free(inside->items);
        free(inside->places);
        free(inside->roster);
        free(inside->addresses);
        free(inside->members);
        free(inside);
    }
}

cadre_status core_inside_open(const struct core_inside_options *options,
    const struct core_inside_events *events, struct core_inside **ret_inside,
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
    struct core_inside *inside = calloc(1, sizeof *inside);
    *ret_inside = NULL;
    if (inside != NULL) {
        inside->memory = calloc(1, core_bytes(&core_options.limits));
        inside->items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof *inside->items);
        inside->places = calloc(options->tasks, sizeof *inside->places);
        inside->roster = calloc(options->tasks, sizeof *inside->roster);
        inside->addresses = calloc(options->tasks, sizeof *inside->addresses);
        inside->members = calloc(options->tasks, sizeof *inside->members);
    }
    if (inside == NULL || inside->memory == NULL || inside->items == NULL ||
        inside->places == NULL || inside->roster == NULL || inside->addresses == NULL ||
        inside->members == NULL) {
        core_inside_close(inside);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the coordinator inside the program");
    }
    inside->events = *events;
    inside->options = *options;
    inside->core = core_init(inside->memory, &core_options);
    step(inside, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE});
    *ret_inside = inside;
    return CADRE_OK;
}
