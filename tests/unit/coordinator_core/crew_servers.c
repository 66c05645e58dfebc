/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/crew_servers.h"

#include "tests/lib/test.h"

static struct crew_server *server_of(struct crew_world *world, uint64_t incarnation)
{
    assert_true(incarnation < INCARNATIONS);
    return &world->servers[incarnation];
}

void crew_server_starts(
    struct crew_world *world, struct task_ref ref, uint32_t worker, uint64_t predecessor)
{
    *server_of(world, ref.incarnation) =
        (struct crew_server){.worker = worker, .predecessor = predecessor};
}

void crew_servers_drop(struct crew_world *world, uint32_t worker)
{
    for (size_t i = 0; i < INCARNATIONS; i++) {
        world->servers[i].dropped |= world->servers[i].worker == worker;
    }
}

void crew_server_hears(struct crew_world *world, uint64_t incarnation, struct task_backed backed)
{
    struct crew_server *self = server_of(world, incarnation);
    self->told = backed;
    if (self->memory != 0) {
        backing_heard(&self->backing, &backed);
    }
}

/* The life of this incarnation, when it is there and of the same generation; NULL. */
static struct crew_server *peer(
    struct crew_world *world, const struct life *life, uint64_t incarnation)
{
    for (size_t i = 0; i < LIVES && incarnation != 0; i++) {
        const struct life *other = &world->lives[i];
        if (other->state == HERE && other->ref.incarnation == incarnation &&
            generation_equal(other->generation, life->generation)) {
            return server_of(world, incarnation);
        }
    }
    return NULL;
}

/* Who is behind it, as it was told; 0: nobody is there. */
static uint64_t behind(const struct life *life)
{
    uint32_t first = crew_first(&crew_world_spec.crew, ROLE_SERVER);
    uint32_t slot = first + (life->ref.slot - first + 1) % crew_world_spec.crew.servers;
    for (size_t i = 0; i < life->member_count; i++) {
        if (life->members[i].slot == slot && life->members[i].here) {
            return life->members[i].incarnation;
        }
    }
    return 0;
}

static void begin_with(struct crew_world *world, struct life *life, uint64_t memory, uint64_t value)
{
    struct crew_server *self = server_of(world, life->ref.incarnation);
    struct crew_answered *answered = &world->answered[life->ref.slot];
    self->memory = memory != 0 ? memory : ++world->memory_last;
    self->value = value;
    backing_begin(&self->backing, &(struct task_backed){.by = self->told.by});
    if (memory == 0) {
        *answered = (struct crew_answered){.memory = self->memory};
        world->empty++;
    }
    assert_true(self->memory == answered->memory); /* no older one comes back */
    assert_true(self->value >= answered->value);
    answered->holder = life->ref.incarnation;
}

static void begin(struct crew_world *world, struct life *life)
{
    struct crew_server *self = server_of(world, life->ref.incarnation);
    struct crew_server *before =
        self->predecessor == 0 ? NULL : server_of(world, self->predecessor);
    if (before != NULL && before->memory != 0 && !before->dropped &&
        generation_equal(before->generation, life->generation)) {
        begin_with(world, life, before->memory, before->value);
    } else if (self->told.by == 0 || behind(life) != self->told.by) {
        begin_with(world, life, 0, 0);
    } else {
        struct crew_server *holder = peer(world, life, self->told.by);
        if (holder == NULL || prng_chance(&world->prng, 1, 3)) {
            return; /* it hangs, or is cut off: it is waited for */
        }
        holder->copy.of = life->ref.incarnation;
        holder->copy.attached = holder->copy.whole ? life->ref.incarnation : 0;
        begin_with(world, life, holder->copy.whole ? holder->copy.memory : 0, holder->copy.value);
        self->with = holder->copy.whole ? self->told.by : 0;
        world->promoted += holder->copy.whole;
    }
    self->generation = life->generation;
}

static void change(struct crew_world *world, struct life *life)
{
    struct crew_server *self = server_of(world, life->ref.incarnation);
    struct crew_answered *answered = &world->answered[life->ref.slot];
    struct crew_server *holder = peer(world, life, self->with);
    self->value++;
    if (holder != NULL && holder->copy.attached == life->ref.incarnation) {
        holder->copy.value = self->value;
    } else {
        self->with = 0;
    }
    if (backing_allows(&self->backing, self->with) && self->memory == answered->memory) {
        assert_int_equal(answered->holder, life->ref.incarnation);
        answered->value = self->value;
        world->answers++;
    }
}

static void give_all(struct crew_world *world, struct life *life)
{
    struct crew_server *self = server_of(world, life->ref.incarnation);
    uint64_t incarnation = behind(life);
    struct crew_server *holder = peer(world, life, incarnation);
    if (self->with == 0 && holder != NULL && holder->copy.of <= life->ref.incarnation) {
        holder->copy = (struct crew_copy){.whole = !prng_chance(&world->prng, 1, 10),
            .memory = self->memory,
            .value = self->value,
            .of = life->ref.incarnation,
            .attached = life->ref.incarnation};
        self->with = holder->copy.whole ? incarnation : 0; /* else it is cut off in the middle */
    }
}

static void say(struct crew_world *world, const struct life *life)
{
    const struct crew_server *self = server_of(world, life->ref.incarnation);
    crew_world_said(
        world, life, &(struct task_up){.type = TASK_UP_BACKED, .backed = self->backing.said});
}

void crew_server_acts(struct crew_world *world, struct life *life)
{
    struct crew_server *self = server_of(world, life->ref.incarnation);
    if (life->generation.number == 0) {
        return; /* it has not heard of anybody */
    }
    if (self->memory == 0) {
        begin(world, life);
        return;
    }
    switch (prng_below(&world->prng, 12)) {
    case 0:
        self->with = 0; /* the connection is lost */
        break;
    case 1:
    case 2:
        give_all(world, life);
        break;
    default:
        change(world, life);
        break;
    }
    if (backing_consider(&self->backing, self->with) ||
        (!self->backing.recorded && prng_chance(&world->prng, 1, 3))) {
        say(world, life);
    }
}
