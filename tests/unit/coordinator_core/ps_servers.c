/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/ps_servers.h"

#include "tests/lib/test.h"

static struct ps_server *server_of(struct ps_world *world, uint64_t incarnation)
{
    assert_true(incarnation < INCARNATIONS);
    return &world->servers[incarnation];
}

void ps_server_start(
    struct ps_world *world, struct task_ref ref, uint32_t worker, uint64_t predecessor)
{
    *server_of(world, ref.incarnation) =
        (struct ps_server){.worker = worker, .predecessor = predecessor};
}

void ps_servers_drop(struct ps_world *world, uint32_t worker)
{
    for (size_t i = 0; i < INCARNATIONS; i++) {
        world->servers[i].dropped |= world->servers[i].worker == worker;
    }
}

void ps_server_receive(struct ps_world *world, uint64_t incarnation, struct task_backed backed)
{
    struct ps_server *self = server_of(world, incarnation);
    self->notified = backed;
    if (self->memory != 0) {
        backup_record_confirmed(&self->backup_record, &backed);
    }
}

/* The process of this incarnation, if it runs and is of the same generation; or NULL. */
static struct ps_server *peer(
    struct ps_world *world, const struct attempt *attempt, uint64_t incarnation)
{
    for (size_t i = 0; i < ATTEMPTS && incarnation != 0; i++) {
        const struct attempt *other = &world->attempts[i];
        if (other->state == HERE && other->ref.incarnation == incarnation &&
            generation_equal(other->generation, attempt->generation)) {
            return server_of(world, incarnation);
        }
    }
    return NULL;
}

/* The server behind it, by its newest MEMBERS; 0: none. */
static uint64_t behind(const struct attempt *attempt)
{
    uint32_t first = ps_job_first_slot(&ps_world_spec.ps_job, ROLE_SERVER);
    uint32_t slot = first + (attempt->ref.slot - first + 1) % ps_world_spec.ps_job.servers;
    for (size_t i = 0; i < attempt->member_count; i++) {
        if (attempt->members[i].slot == slot && attempt->members[i].here) {
            return attempt->members[i].incarnation;
        }
    }
    return 0;
}

static void begin_with(
    struct ps_world *world, struct attempt *attempt, uint64_t memory, uint64_t value)
{
    struct ps_server *self = server_of(world, attempt->ref.incarnation);
    struct ps_answered *answered = &world->answered[attempt->ref.slot];
    self->memory = memory != 0 ? memory : ++world->memory_last;
    self->value = value;
    backup_record_begin(&self->backup_record, &(struct task_backed){.by = self->notified.by});
    if (memory == 0) {
        *answered = (struct ps_answered){.memory = self->memory};
        world->empty++;
    }
    assert_true(self->memory == answered->memory); /* no older one comes back */
    assert_true(self->value >= answered->value);
    answered->holder = attempt->ref.incarnation;
}

static void begin(struct ps_world *world, struct attempt *attempt)
{
    struct ps_server *self = server_of(world, attempt->ref.incarnation);
    struct ps_server *before = self->predecessor == 0 ? NULL : server_of(world, self->predecessor);
    if (before != NULL && before->memory != 0 && !before->dropped &&
        generation_equal(before->generation, attempt->generation)) {
        begin_with(world, attempt, before->memory, before->value);
    } else if (self->notified.by == 0 || behind(attempt) != self->notified.by) {
        begin_with(world, attempt, 0, 0);
    } else {
        struct ps_server *holder = peer(world, attempt, self->notified.by);
        if (holder == NULL || prng_chance(&world->prng, 1, 3)) {
            return; /* it hangs, or is cut off: it is waited for */
        }
        holder->copy.of = attempt->ref.incarnation;
        holder->copy.attached = holder->copy.whole ? attempt->ref.incarnation : 0;
        begin_with(
            world, attempt, holder->copy.whole ? holder->copy.memory : 0, holder->copy.value);
        self->with = holder->copy.whole ? self->notified.by : 0;
        world->promoted += holder->copy.whole;
    }
    self->generation = attempt->generation;
}

static void change(struct ps_world *world, struct attempt *attempt)
{
    struct ps_server *self = server_of(world, attempt->ref.incarnation);
    struct ps_answered *answered = &world->answered[attempt->ref.slot];
    struct ps_server *holder = peer(world, attempt, self->with);
    self->value++;
    if (holder != NULL && holder->copy.attached == attempt->ref.incarnation) {
        holder->copy.value = self->value;
    } else {
        self->with = 0;
    }
    if (backup_record_allows(self->backup_record.counted, self->with) &&
        self->memory == answered->memory) {
        assert_int_equal(answered->holder, attempt->ref.incarnation);
        answered->value = self->value;
        world->answers++;
    }
}

static void give_all(struct ps_world *world, struct attempt *attempt)
{
    struct ps_server *self = server_of(world, attempt->ref.incarnation);
    uint64_t incarnation = behind(attempt);
    struct ps_server *holder = peer(world, attempt, incarnation);
    if (self->with == 0 && holder != NULL && holder->copy.of <= attempt->ref.incarnation) {
        holder->copy = (struct ps_copy){.whole = !prng_chance(&world->prng, 1, 10),
            .memory = self->memory,
            .value = self->value,
            .of = attempt->ref.incarnation,
            .attached = attempt->ref.incarnation};
        self->with = holder->copy.whole ? incarnation : 0; /* else it is cut off in the middle */
    }
}

static void say(struct ps_world *world, const struct attempt *attempt)
{
    const struct ps_server *self = server_of(world, attempt->ref.incarnation);
    ps_world_relay(world, attempt,
        &(struct task_up){.type = TASK_UP_BACKED, .backed = self->backup_record.sent});
}

void ps_server_act(struct ps_world *world, struct attempt *attempt)
{
    struct ps_server *self = server_of(world, attempt->ref.incarnation);
    if (attempt->generation.number == 0) {
        return; /* it has received no MEMBERS */
    }
    if (self->memory == 0) {
        begin(world, attempt);
        return;
    }
    switch (prng_uniform(&world->prng, 12)) {
    case 0:
        self->with = 0; /* the connection is lost */
        break;
    case 1:
    case 2:
        give_all(world, attempt);
        break;
    default:
        change(world, attempt);
        break;
    }
    if (backup_record_update(&self->backup_record, self->with) ||
        (!self->backup_record.recorded && prng_chance(&world->prng, 1, 3))) {
        say(world, attempt);
    }
}
