/* SPDX-License-Identifier: Apache-2.0
 * Crews: what the tasks of a job are, and TaskMembers, who of them is where. */
#include "common/wire/codec.h"

void encode_ps_job(Cadre__V1__PsJob *wire, const struct ps_job *ps_job)
{
    cadre__v1__ps_job__init(wire);
    wire->workers = ps_job->workers;
    wire->servers = ps_job->servers;
    wire->evaluators = ps_job->evaluators;
    wire->backups = ps_job->backups;
}

struct ps_job decode_ps_job(struct decoder *decoder, const Cadre__V1__PsJob *wire)
{
    if (wire == NULL) {
        return (struct ps_job){0};
    }
    return (struct ps_job){
        .workers = decode_u32(decoder, "PsJob.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .servers = decode_u32(decoder, "PsJob.servers", wire->servers, 1, LIMIT_TASKS_PER_JOB),
        .evaluators =
            decode_u32(decoder, "PsJob.evaluators", wire->evaluators, 0, PS_JOB_EVALUATORS_MAX),
        .backups = wire->backups,
    };
}

void encode_members(struct encoder *encoder, Cadre__V1__TaskMembers *wire,
    Cadre__V1__Generation *generation, const struct task_members *members)
{
    size_t count = members->member_count;
    cadre__v1__task_members__init(wire);
    encode_generation(generation, members->generation);
    wire->generation = generation;
    wire->key = (ProtobufCBinaryData){.len = LIMIT_JOB_KEY_BYTES, .data = (uint8_t *)members->key};
    Cadre__V1__TaskMember **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__TaskMember *entries = encoder_array(encoder, count, sizeof *entries);
    if (list == NULL || entries == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct task_member *from = &members->members[i];
        cadre__v1__task_member__init(&entries[i]);
        entries[i].slot = from->slot;
        entries[i].incarnation = from->incarnation;
        entries[i].attempts = from->attempts;
        entries[i].here = from->here;
        entries[i].address = (char *)from->address;
        entries[i].backed_number = from->backed.number;
        entries[i].backed_by = from->backed.by;
        list[i] = &entries[i];
    }
    wire->members = list;
    wire->n_members = count;
}

static struct task_member decode_member(
    struct decoder *decoder, const Cadre__V1__TaskMember *wire, uint32_t least)
{
    struct task_member member = {
        .slot = decode_u32(decoder, "TaskMember.slot", wire->slot, least, LIMIT_TASKS_PER_JOB - 1),
        .incarnation = wire->incarnation,
        .attempts = wire->attempts,
        .here = wire->here,
        .address = decode_address(decoder, "TaskMember.address", wire->address),
        .backed = {.number = wire->backed_number, .by = wire->backed_by},
    };
    if (member.here && (member.incarnation == 0 || member.attempts == 0)) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "TaskMember.here",
            "is true of slot %u, which was not started", member.slot);
    }
    return member;
}

void decode_members(
    struct decoder *decoder, const Cadre__V1__TaskMembers *wire, struct task_members *ret_members)
{
    *ret_members = (struct task_members){
        .generation = decode_generation(decoder, "TaskMembers.generation", wire->generation)};
    decode_fixed_bytes(
        decoder, "TaskMembers.key", wire->key, ret_members->key, LIMIT_JOB_KEY_BYTES);
    if (wire->n_members == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "TaskMembers.members",
            "is empty; a crew has a chief at least");
        return;
    }
    if (!decode_count(decoder, "TaskMembers.members", wire->n_members, LIMIT_TASKS_PER_JOB)) {
        return;
    }
    struct task_member *members = decode_array(decoder, wire->n_members, sizeof *members);
    if (members == NULL) {
        return;
    }
    decoder->list = "TaskMembers.members";
    for (size_t i = 0; i < wire->n_members && decoder->status == CADRE_OK; i++) {
        decoder->entry = i;
        members[i] = decode_member(decoder, wire->members[i], i == 0 ? 0 : members[i - 1].slot + 1);
    }
    decoder->list = NULL;
    ret_members->members = members;
    ret_members->member_count = wire->n_members;
}
