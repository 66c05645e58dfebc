/* SPDX-License-Identifier: Apache-2.0
 * Crews: what the tasks of a job are, and TaskMembers, who of them is where. */
#include "common/wire/codec.h"

void fill_crew(Cadre__V1__Crew *wire, const struct crew *crew)
{
    cadre__v1__crew__init(wire);
    wire->workers = crew->workers;
    wire->servers = crew->servers;
    wire->evaluators = crew->evaluators;
    wire->backups = crew->backups;
}

struct crew take_crew(struct taker *taker, const Cadre__V1__Crew *wire)
{
    if (wire == NULL) {
        return (struct crew){0};
    }
    return (struct crew){
        .workers = take_u32(taker, "Crew.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .servers = take_u32(taker, "Crew.servers", wire->servers, 1, LIMIT_TASKS_PER_JOB),
        .evaluators = take_u32(taker, "Crew.evaluators", wire->evaluators, 0, CREW_EVALUATORS_MAX),
        .backups = wire->backups,
    };
}

void fill_members(struct packer *packer, Cadre__V1__TaskMembers *wire,
    Cadre__V1__Generation *generation, const struct task_members *members)
{
    size_t count = members->member_count;
    cadre__v1__task_members__init(wire);
    fill_generation(generation, members->generation);
    wire->generation = generation;
    wire->key = (ProtobufCBinaryData){.len = LIMIT_JOB_KEY_BYTES, .data = (uint8_t *)members->key};
    Cadre__V1__TaskMember **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__TaskMember *entries = packer_array(packer, count, sizeof *entries);
    if (list == NULL || entries == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct task_member *from = &members->members[i];
        cadre__v1__task_member__init(&entries[i]);
        entries[i].slot = from->slot;
        entries[i].incarnation = from->incarnation;
        entries[i].lives = from->lives;
        entries[i].here = from->here;
        entries[i].address = (char *)from->address;
        entries[i].backed_number = from->backed.number;
        entries[i].backed_by = from->backed.by;
        list[i] = &entries[i];
    }
    wire->members = list;
    wire->n_members = count;
}

static struct task_member take_member(
    struct taker *taker, const Cadre__V1__TaskMember *wire, uint32_t least)
{
    struct task_member member = {
        .slot = take_u32(taker, "TaskMember.slot", wire->slot, least, LIMIT_TASKS_PER_JOB - 1),
        .incarnation = wire->incarnation,
        .lives = wire->lives,
        .here = wire->here,
        .address = take_address(taker, "TaskMember.address", wire->address),
        .backed = {.number = wire->backed_number, .by = wire->backed_by},
    };
    if (member.here && (member.incarnation == 0 || member.lives == 0)) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "TaskMember.here",
            "is true of slot %u, which was not started", member.slot);
    }
    return member;
}

void take_members(
    struct taker *taker, const Cadre__V1__TaskMembers *wire, struct task_members *ret_members)
{
    *ret_members = (struct task_members){
        .generation = take_generation(taker, "TaskMembers.generation", wire->generation)};
    take_fixed_bytes(taker, "TaskMembers.key", wire->key, ret_members->key, LIMIT_JOB_KEY_BYTES);
    if (wire->n_members == 0) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "TaskMembers.members",
            "is empty; a crew has a chief at least");
        return;
    }
    if (!take_count(taker, "TaskMembers.members", wire->n_members, LIMIT_TASKS_PER_JOB)) {
        return;
    }
    struct task_member *members = take_array(taker, wire->n_members, sizeof *members);
    if (members == NULL) {
        return;
    }
    taker->list = "TaskMembers.members";
    for (size_t i = 0; i < wire->n_members && taker->status == CADRE_OK; i++) {
        taker->entry = i;
        members[i] = take_member(taker, wire->members[i], i == 0 ? 0 : members[i - 1].slot + 1);
    }
    taker->list = NULL;
    ret_members->members = members;
    ret_members->member_count = wire->n_members;
}
