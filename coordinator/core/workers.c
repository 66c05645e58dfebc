/* SPDX-License-Identifier: Apache-2.0
 * Membership: hello and loss of worker daemons. A worker is one life of a daemon,
 * told apart by its boot nonce; declared lost is lost for good (rule 7), the daemon comes back as
 * another worker. */
#include "coordinator/core/parts.h"

static const struct {
    uint8_t may_become; /* bits of enum worker_state */
} worker_moves[] = {
    [WORKER_FREE] = {1 << WORKER_CONNECTED},
    [WORKER_CONNECTED] = {1 << WORKER_CONNECTED | 1 << WORKER_AWAY | 1 << WORKER_FREE},
    [WORKER_AWAY] = {1 << WORKER_CONNECTED | 1 << WORKER_FREE},
};

static void worker_move(struct worker *worker, enum worker_state state)
{
    CADRE_ASSERT((worker_moves[worker->state].may_become >> state & 1) != 0);
    worker->state = state;
}

static uint64_t name_key(const char *name)
{
    uint64_t key = 0;
    for (size_t i = 0; name[i] != '\0'; i++) {
        key = prng_mix(key ^ (unsigned char)name[i]);
    }
    return key;
}

uint32_t worker_by_name(const struct core *core, const char *name)
{
    uint64_t key = name_key(name);
    const struct map *map = &core->workers_by_name;
    for (uint32_t at = map_first(map, key); at != MAP_NONE; at = map_next(map, key, at)) {
        uint32_t worker = map->entries[at].value;
        if (strcmp(core->workers[worker].name, name) == 0) {
            return worker;
        }
    }
    return NONE;
}

uint32_t worker_by_link(const struct core *core, struct link_id link)
{
    return map_get(&core->workers_by_link, link.n);
}

void worker_offer(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    bool offers = w->state != WORKER_FREE && !w->draining && !w->overdue;
    uint32_t total = offers ? w->slots : 0;
    uint32_t unused = w->slots > w->slots_used ? w->slots - w->slots_used : 0;
    uint32_t now_free = offers && w->state == WORKER_CONNECTED ? unused : 0;
    bool same_gpus = w->slot_gpus == w->counted_gpus;
    core->queue_head_known &= total == w->counted_total && same_gpus;
    core->place_due |= total != w->counted_total || now_free != w->counted_free || !same_gpus;
    for (uint32_t gpus = 0; gpus <= w->counted_gpus; gpus++) {
        CADRE_ASSERT(core->slots_total[gpus] >= w->counted_total);
        CADRE_ASSERT(core->slots_free[gpus] >= w->counted_free);
        core->slots_total[gpus] -= w->counted_total;
        core->slots_free[gpus] -= w->counted_free;
    }
    for (uint32_t gpus = 0; gpus <= w->slot_gpus; gpus++) {
        core->slots_total[gpus] += total;
        core->slots_free[gpus] += now_free;
    }
    w->counted_total = total;
    w->counted_free = now_free;
    w->counted_gpus = w->slot_gpus;
    offers_changed(core, worker);
}

bool worker_serves(const struct core *core, uint32_t worker, const struct job *job)
{
    return core->workers[worker].slot_gpus >= job->gpus;
}

void worker_heard(struct core *core, uint32_t worker)
{
    core->workers[worker].heard_us = core->now_us;
}

static void refuse(struct core *core, struct link_id link, cadre_status code, const char *sentence)
{
    struct core_action *action = action_add(core, CORE_ACTION_REFUSE);
    struct text text = text_begin(action->refuse.text, sizeof(action->refuse.text));
    action->refuse.link = link;
    action->refuse.code = code;
    text_add(&text, sentence);
}

void stray_add(struct core *core, struct link_id link, struct task_ref task)
{
    CADRE_ASSERT(core->stray_count < STRAYS_MAX);
    uint32_t at = (core->stray_first + core->stray_count) % STRAYS_MAX;
    core->strays[at] = (struct stray){.link = link, .task = task};
    core->stray_count++;
}

/* Whether this hello is well formed; else `text` says what is wrong and how to mend it. */
static cadre_status hello_check(
    const struct core *core, const struct agent_hello *hello, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (hello->protocol_version != AGENT_PROTOCOL_VERSION) {
        text_add(&text, "the worker speaks agent protocol ");
        text_add_u64(&text, hello->protocol_version);
        text_add(&text, ", this coordinator ");
        text_add_u64(&text, AGENT_PROTOCOL_VERSION);
        text_add(&text, ": install the same version of both");
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->name == NULL || hello->name[0] == '\0' || strlen(hello->name) >= LIMIT_NAME_BYTES) {
        text_add(&text, "a worker's name has 1 to ");
        text_add_u64(&text, LIMIT_NAME_BYTES - 1);
        text_add(&text, " bytes: give another one with --name");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->slots == 0 || hello->slots > LIMIT_SLOTS_PER_WORKER) {
        text_add(&text, "a worker offers 1 to ");
        text_add_u64(&text, LIMIT_SLOTS_PER_WORKER);
        text_add(&text, " slots, not ");
        text_add_u64(&text, hello->slots);
        text_add(&text, ": give another number with --slots");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->gpus.usable > LIMIT_GPUS_PER_WORKER) {
        text_add(&text, "a worker has at most ");
        text_add_u64(&text, LIMIT_GPUS_PER_WORKER);
        text_add(&text, " GPUs, not ");
        text_add_u64(&text, hello->gpus.usable);
        text_add(&text, ": use fewer with --gpus");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->task_count > 2 * LIMIT_SLOTS_PER_WORKER) {
        text_add(&text, "a worker holds at most ");
        text_add_u64(&text, 2 * LIMIT_SLOTS_PER_WORKER);
        text_add(&text, " tasks, not ");
        text_add_u64(&text, hello->task_count);
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->task_count > STRAYS_MAX - core->stray_count) {
        text_add(&text, "many workers came back at once with tasks to be checked: try again");
        return CADRE_UNAVAILABLE;
    }
    return CADRE_OK;
}

/* Binds the worker to the stream. An older stream of it is told to end. */
static void worker_bind(
    struct core *core, uint32_t worker, struct link_id link, const struct agent_hello *hello)
{
    struct worker *w = &core->workers[worker];
    if (w->state == WORKER_CONNECTED && w->link.n != link.n) {
        refuse(core, w->link, CADRE_ABORTED, "the worker came back on a newer stream");
    }
    if (w->link.n != 0) {
        map_remove(&core->workers_by_link, w->link.n, worker);
    }
    map_add(&core->workers_by_link, link.n, worker);
    worker_move(w, WORKER_CONNECTED);
    w->link = link;
    w->expected = false;
    w->overdue = false;
    w->silent = false;
    w->orphan_us = hello->orphan_us;
    w->boot_nonce = hello->boot_nonce;
    w->slots = hello->slots;
    w->slot_gpus = gpus_per_slot(hello->gpus.usable, hello->slots);
    w->heard_us = core->now_us;
    if (w->leaves && !hello->draining) { /* a new daemon, which took over the tasks of that one */
        w->leaves = false;
        drain_ends(core, worker);
    }
    deadline_worker(core, worker);
    worker_offer(core, worker);

    struct core_action *action = action_add(core, CORE_ACTION_WELCOME);
    action->welcome.link = link;
    action->welcome.worker = w->id;
}

/* What the agent holds: those not wanted are ended. */
static void tasks_listed(struct core *core, uint32_t worker, const struct agent_hello *hello)
{
    struct link_id link = core->workers[worker].link;
    for (size_t i = 0; i < hello->task_count; i++) {
        struct job *job;
        struct task *task = task_find(core, worker, hello->tasks[i], &job);
        bool unwanted = task == NULL ||
                        ((job->stopped || task->dismissed != DISMISSED_NOT) && !task->collected);
        if (unwanted) {
            stray_add(core, link, hello->tasks[i]);
        }
        if (task != NULL) {
            task->listed_step = core->steps;
        }
    }
}

/* A returning worker may have missed what was said to its old stream. A task that ran and that it
 * no longer holds is lost; one that it never got is started (again). The rest it asks for itself:
 * it repeats the hellos of its tasks. */
static void party_resume(struct core *core, struct job *job, uint32_t worker, bool expected)
{
    /* After a start of the coordinator nobody knows whether this daemon ever had what it does not
     * list. Before the first plan its task has no state, and is started (again). */
    bool known = !expected || job->generation.number == 0;
    bool again = false;
    for (uint32_t slot = party_first(core, job, worker); slot != NONE;
         slot = party_next(core, job, worker, slot)) {
        const struct task *task = job_task(core, job, slot);
        bool listed = task->listed_step == core->steps;
        bool starts = task->state == TASK_STARTING && task->dismissed == DISMISSED_NOT;
        if (!listed && starts && known && !job->stopped && worker_serves(core, worker, job)) {
            again = true;
        } else if (!listed) {
            task_lose(core, job, slot, "which came back without it");
        }
    }
    if (again) {
        party_again(core, job, party_find(core, job, worker));
    }
}

static void worker_resume(struct core *core, uint32_t worker, bool expected)
{
    struct party_ref ref = core->workers[worker].parties;
    while (ref.job != NONE) {
        struct job *job = &core->jobs[ref.job];
        struct party_ref next = job_party(core, job, ref.party)->next;
        party_resume(core, job, worker, expected);
        ref = next;
    }
}

/* A new life of a daemon, not connected yet. */
static uint32_t worker_add(struct core *core, const char *name)
{
    uint32_t worker = list_take(&core->workers_free);
    if (worker == LIST_NONE) {
        return NONE;
    }
    struct worker *w = &core->workers[worker];
    memset(w, 0, sizeof(*w));
    w->id = (struct worker_id){.n = ++core->worker_last};
    w->parties = (struct party_ref){.job = NONE, .party = NONE};
    memcpy(w->name, name, strlen(name));
    w->drained = drain_of(core, name) != NULL;
    w->draining = w->drained;
    list_append(&core->workers_live, worker);
    map_add(&core->workers_by_name, name_key(w->name), worker);
    return worker;
}

uint32_t worker_expect(struct core *core, const char *name)
{
    uint32_t worker = worker_add(core, name);
    if (worker == NONE) {
        return NONE;
    }
    struct worker *w = &core->workers[worker];
    worker_move(w, WORKER_CONNECTED);
    worker_move(w, WORKER_AWAY);
    w->expected = true;
    w->heard_us = core->now_us;
    deadline_worker(core, worker);
    return worker;
}

static void worker_join(struct core *core, struct link_id link, const struct agent_hello *hello)
{
    uint32_t worker = worker_add(core, hello->name);
    CADRE_ASSERT(worker != NONE);
    worker_bind(core, worker, link, hello);
    tasks_listed(core, worker, hello);
    if (hello->draining) {
        worker_draining(core, worker); /* before anything is placed on it */
    }
}

void worker_hello(struct core *core, struct link_id link, const struct agent_hello *hello)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    cadre_status code = hello_check(core, hello, sentence);
    if (code != CADRE_OK) {
        refuse(core, link, code, sentence);
        return;
    }
    uint32_t worker = worker_by_name(core, hello->name);
    uint32_t bound = worker_by_link(core, link);
    bool returns = worker != NONE && (core->workers[worker].expected ||
                                         core->workers[worker].boot_nonce == hello->boot_nonce);
    if (bound != NONE && (!returns || bound != worker)) {
        refuse(core, link, CADRE_INVALID_ARGUMENT, "a stream belongs to one worker: open another");
        return;
    }
    if (returns) {
        bool expected = core->workers[worker].expected;
        lease_returns(core, worker);
        worker_bind(core, worker, link, hello);
        tasks_listed(core, worker, hello);
        worker_resume(core, worker, expected);
        if (hello->draining) {
            worker_draining(core, worker);
        }
        return;
    }
    if (worker != NONE && core->workers[worker].state == WORKER_CONNECTED) {
        text_add(&text, "a worker named ");
        text_add(&text, hello->name);
        text_add(&text, " is connected already: give this one another name with --name");
        refuse(core, link, CADRE_ALREADY_EXISTS, sentence);
        return;
    }
    if (worker != NONE) {
        worker_lose(core, worker, "which was started anew");
    }
    if (core->workers_free.count == 0) {
        text_add(&text, "the coordinator knows ");
        text_add_u64(&text, core->options.limits.workers_max);
        text_add(&text, " workers already, which is its limit: raise --workers-max");
        refuse(core, link, CADRE_RESOURCE_EXHAUSTED, sentence);
        return;
    }
    worker_join(core, link, hello);
}

/* Members that had reported may have died with their daemon just now: a plan with them would cost a
 * lease. Their reports are said again when the worker is back. */
static void reports_lapse(struct core *core, uint32_t worker)
{
    struct party_ref at = core->workers[worker].parties;
    while (at.job != NONE) {
        struct job *job = &core->jobs[at.job];
        for (uint32_t slot = party_first(core, job, worker);
             job->phase == PHASE_COLLECT && slot != NONE;
             slot = party_next(core, job, worker, slot)) {
            struct task *task = job_task(core, job, slot);
            if (task->usable && task->rank != NONE && task->reported) {
                task_has_to_report_again(job, task);
                regroup_asks_again(core, job);
            }
        }
        at = job_party(core, job, at.party)->next;
    }
}

static void worker_goes_away(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    map_remove(&core->workers_by_link, w->link.n, worker);
    worker_move(w, WORKER_AWAY);
    w->link.n = 0;
    worker_offer(core, worker);
    reports_lapse(core, worker);
}

void worker_hang_up(struct core *core, uint32_t worker, const char *sentence)
{
    refuse(core, core->workers[worker].link, CADRE_UNAVAILABLE, sentence);
    core->workers[worker].silent = true;
    worker_goes_away(core, worker);
}

void worker_link_down(struct core *core, struct link_id link)
{
    uint32_t worker = worker_by_link(core, link);
    if (worker == NONE) {
        return;
    }
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->link.n == link.n);
    worker_goes_away(core, worker);
    w->heard_us = core->now_us;
    deadline_worker(core, worker);
    if (w->leaves && w->parties.job == NONE) {
        worker_lose(core, worker, "which was drained");
    }
}

void worker_lose(struct core *core, uint32_t worker, const char *how)
{
    struct worker *w = &core->workers[worker];
    w->leaves = false;
    while (w->parties.job != NONE) {
        struct job *job = &core->jobs[w->parties.job];
        for (uint32_t slot = party_first(core, job, worker); slot != NONE;
             slot = party_next(core, job, worker, slot)) {
            task_lose(core, job, slot, how);
        }
        uint32_t number = party_find(core, job, worker);
        if (number != NONE) { /* else nothing of its tasks is left to be said */
            party_orphan(core, job, number);
        }
    }
    if (w->state == WORKER_CONNECTED) {
        refuse(core, w->link, CADRE_UNAVAILABLE,
            "the worker was silent for too long and is lost: join again");
        map_remove(&core->workers_by_link, w->link.n, worker);
    }
    map_remove(&core->workers_by_name, name_key(w->name), worker);
    heap_remove(&core->deadlines, worker);
    worker_move(w, WORKER_FREE);
    worker_offer(core, worker);
    list_remove(&core->workers_live, worker);
    list_append(&core->workers_free, worker);
}
