/* SPDX-License-Identifier: Apache-2.0
 * What is true of every message: it survives the way out and in, every field of it, and nothing
 * that comes in instead of it (cut, mutated, blown up) does any harm. */
#include <stdlib.h>
#include <string.h>

#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "cadre/v1/task.pb-c.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "common/wire/codec.h"
#include "common/wire/tables.h"
#include "tests/unit/wire/round_trip.h"
#include "tests/unit/wire/samples.h"

static void pack_sample(const struct sample *sample)
{
    wire_buffer_clear(&packed);
    if (sample->kind->pack(sample->message, &packed, &error) != CADRE_OK) {
        fail_msg("%s: %s", sample->name, error.text);
    }
}

static void every_sample_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sample_count; i++) {
        bool unpacked;
        pack_sample(&samples[i]);
        wire_buffer_clear(&again);
        wire_arena_reset(arena);
        if (samples[i].kind->repack(packed.bytes, packed.size, arena, &again, &unpacked, &error) !=
            CADRE_OK) {
            fail_msg("%s: %s", samples[i].name, error.text);
        }
        assert_int_equal(again.size, packed.size);
        if (packed.size > 0) {
            assert_memory_equal(again.bytes, packed.bytes, packed.size);
        }
    }
}

/* ---- every field of every message is set in some sample ---- */

#define FIELDS_MAX 1024
static const ProtobufCFieldDescriptor *seen[FIELDS_MAX];
static size_t seen_count;
static const ProtobufCMessageDescriptor *walked[128];
static size_t walked_count;

static bool is_seen(const ProtobufCFieldDescriptor *field)
{
    for (size_t i = 0; i < seen_count; i++) {
        if (seen[i] == field) {
            return true;
        }
    }
    return false;
}

static bool is_set(const ProtobufCFieldDescriptor *field, const uint8_t *member)
{
    static const uint8_t zero[sizeof(ProtobufCBinaryData)];
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(void *const *)(const void *)member != NULL;
    case PROTOBUF_C_TYPE_STRING:
        return **(char *const *)(const void *)member != '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)(const void *)member)->len > 0;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return memcmp(member, zero, 8) != 0;
    default:
        return memcmp(member, zero, 4) != 0;
    }
}

static void note_fields(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    const uint8_t *base = (const uint8_t *)message;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        const uint8_t *member = base + field->offset;
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = 1;
        if (repeated) {
            count = *(const size_t *)(const void *)(base + field->quantifier_offset);
        } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            count = *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id;
        }
        if (count == 0 || (!repeated && !is_set(field, member))) {
            continue;
        }
        if (!is_seen(field)) {
            assert_true(seen_count < FIELDS_MAX);
            seen[seen_count++] = field;
        }
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            ProtobufCMessage *const *children =
                repeated ? *(ProtobufCMessage *const *const *)(const void *)member
                         : (ProtobufCMessage *const *)(const void *)member;
            for (size_t child = 0; child < count; child++) {
                note_fields(children[child]);
            }
        }
    }
}

static void require_fields(const ProtobufCMessageDescriptor *descriptor)
{
    for (size_t i = 0; i < walked_count; i++) {
        if (walked[i] == descriptor) {
            return;
        }
    }
    assert_true(walked_count < CADRE_COUNT_OF(walked));
    walked[walked_count++] = descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (!is_seen(field)) {
            fail_msg("no sample sets %s.%s, or packing forgets it", descriptor->name, field->name);
        }
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            require_fields(field->descriptor);
        }
    }
}

/* With every_sample_comes_back: no field is forgotten by packing or unpacking. */
static void every_field_is_packed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sample_count; i++) {
        pack_sample(&samples[i]);
        ProtobufCMessage *message =
            protobuf_c_message_unpack(samples[i].kind->descriptor, NULL, packed.size, packed.bytes);
        assert_non_null(message);
        note_fields(message);
        protobuf_c_message_free_unpacked(message, NULL);
    }
    for (size_t i = 0; i < kind_count; i++) {
        require_fields(kinds[i].descriptor);
    }
}

/* ---- fields land where they belong: two equal mistakes would pass the round trip ---- */

static void arrive_and_hello_say_what_they_mean(void **state)
{
    (void)state;
    struct wire_buffer buffer = {0};
    assert_ok(wire_pack_task_up(&sample_arrive, &buffer, &error), &error);
    Cadre__V1__TaskUp *up = cadre__v1__task_up__unpack(NULL, buffer.size, buffer.bytes);
    assert_non_null(up);
    assert_int_equal(up->message_case, CADRE__V1__TASK_UP__MESSAGE_ARRIVE);
    assert_int_equal(up->arrive->generation->number, 4);
    assert_true(up->arrive->generation->nonce == UINT64_C(0xfedcba9876543210));
    assert_int_equal(up->arrive->up_to, 201);
    assert_int_equal(up->arrive->applied, 199);
    assert_int_equal(up->arrive->wanted, 200);
    assert_int_equal(up->arrive->cursor->stream, 21);
    assert_int_equal(up->arrive->cursor->epoch, 22);
    assert_int_equal(up->arrive->cursor->first, 23);
    assert_int_equal(up->arrive->cursor->steps, 24);
    assert_int_equal(up->arrive->cursor->begin, 25);
    assert_int_equal(up->arrive->consumption->steps, 26);
    assert_int_equal(up->arrive->consumption->samples, 27);
    assert_int_equal(up->arrive->consumption->consumed_low, 28);
    assert_true(up->arrive->consumption->consumed_high == UINT64_MAX);
    assert_int_equal(up->arrive->consumption->expected->low, 29);
    assert_int_equal(up->arrive->consumption->expected->high, 30);
    cadre__v1__task_up__free_unpacked(up, NULL);
    wire_buffer_clear(&buffer);
    assert_ok(wire_pack_task_up(&sample_hello, &buffer, &error), &error);
    up = cadre__v1__task_up__unpack(NULL, buffer.size, buffer.bytes);
    assert_non_null(up);
    assert_int_equal(up->hello->position, 101);
    assert_int_equal(up->hello->released, 102);
    assert_int_equal(up->hello->arrived, 103);
    assert_int_equal((int)up->hello->reason, CADRE__V1__REPORT_REASON__REPORT_REASON_PEER_ERROR);
    assert_true(up->hello->clean && up->hello->frozen);
    cadre__v1__task_up__free_unpacked(up, NULL);
    wire_buffer_free(&buffer);
}

/* Said once a step by every task: packed from the stack into a buffer that has grown. */
static void arrivals_and_releases_take_no_memory(void **state)
{
    (void)state;
    static const struct roster_entry roster[64];
    struct task_down long_plan = sample_plan;
    struct wire_buffer buffer = {0};
    struct encoder encoder;
    packer_open(&encoder, &buffer, &error);
    assert_non_null(packer_fill(&encoder, &wire_table_AgentUp, &sample_agent_arrived));
    assert_null(encoder.scratch);
    packer_open(&encoder, &buffer, &error);
    assert_non_null(packer_fill(&encoder, &wire_table_TaskUp, &sample_arrive));
    assert_non_null(packer_fill(&encoder, &wire_table_TaskDown, &sample_release));
    assert_null(encoder.scratch);
    long_plan.plan.roster = roster;
    long_plan.plan.roster_count = CADRE_COUNT_OF(roster);
    const ProtobufCMessage *plan = packer_fill(&encoder, &wire_table_TaskDown, &long_plan);
    assert_non_null(encoder.scratch); /* a long list needs some: it would be seen */
    assert_ok(encoder_finish(&encoder, plan, LIMIT_FRAME_BYTES), &error);
    wire_buffer_free(&buffer);
}

static void plan_and_release_say_what_they_mean(void **state)
{
    (void)state;
    struct wire_buffer buffer = {0};
    assert_ok(wire_pack_task_down(&sample_plan, &buffer, &error), &error);
    Cadre__V1__TaskDown *down = cadre__v1__task_down__unpack(NULL, buffer.size, buffer.bytes);
    assert_non_null(down);
    assert_int_equal(down->plan->n_roster, 2);
    assert_int_equal(down->plan->roster[0]->slot, 16383);
    assert_int_equal(down->plan->roster[0]->incarnation, 9);
    assert_int_equal(down->plan->resume, 401);
    assert_int_equal(down->plan->source, 1);
    assert_int_equal(down->plan->checkpoint_at, 402);
    assert_int_equal(down->plan->halt_at, 403);
    assert_int_equal((int)down->plan->halt_kind, CADRE__V1__HALT_KIND__HALT_KIND_REGROUP);
    assert_int_equal(down->plan->halt_stream, 404);
    cadre__v1__task_down__free_unpacked(down, NULL);
    wire_buffer_clear(&buffer);
    assert_ok(wire_pack_task_down(&sample_release, &buffer, &error), &error);
    down = cadre__v1__task_down__unpack(NULL, buffer.size, buffer.bytes);
    assert_non_null(down);
    assert_int_equal(down->release->up_to, 501);
    assert_int_equal(down->release->checkpoint_at, 502);
    assert_int_equal(down->release->halt_at, 503);
    assert_int_equal(down->release->halt_stream, 504);
    assert_int_equal(down->release->published, 505);
    cadre__v1__task_down__free_unpacked(down, NULL);
    wire_buffer_free(&buffer);
}

static void job_info_says_what_it_means(void **state)
{
    (void)state;
    struct wire_buffer buffer = {0};
    assert_ok(wire_pack_job_info(&sample_info, &buffer, &error), &error);
    Cadre__V1__JobInfo *info = cadre__v1__job_info__unpack(NULL, buffer.size, buffer.bytes);
    assert_non_null(info);
    assert_int_equal(info->id, 7);
    assert_int_equal((int)info->state, CADRE__V1__JOB_STATE__JOB_STATE_FAILED);
    assert_int_equal(info->code, CADRE_ABORTED);
    assert_int_equal(info->submitted_us, 1001);
    assert_int_equal(info->started_us, 1002);
    assert_int_equal(info->ended_us, 1003);
    assert_int_equal(info->position, 1004);
    assert_int_equal(info->generation, 1005);
    assert_int_equal(info->workers, 3);
    assert_int_equal(info->workers_min, 2);
    assert_int_equal(info->roster, 16384);
    assert_int_equal(info->restarts, 1006);
    assert_int_equal(info->exit_code, 139);
    assert_int_equal(info->progress->epoch, 1);
    assert_int_equal(info->progress->epochs, 20);
    assert_int_equal(info->progress->step, 5);
    assert_int_equal(info->progress->steps, 45);
    cadre__v1__job_info__free_unpacked(info, NULL);
    wire_buffer_free(&buffer);
}

/* Absence has a value in the model: no task, any stream, nothing published. */
static void absence_says_what_it_means(void **state)
{
    (void)state;
    struct wire_arena *own = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct wire_buffer buffer = {0};
    struct roster_entry roster = {.incarnation = 1, .replicas = 1, .mesh_address = ""};
    struct task_down down = {
        .type = TASK_DOWN_PLAN,
        .plan =
            {
                .generation = {1, 2},
                .roster = &roster,
                .roster_count = 1,
                .source = SOURCE_NONE,
                .checkpoint_at = POSITION_NONE,
                .halt_at = 5,
                .halt_kind = HALT_REGROUP,
                .halt_stream = STREAM_ANY,
            },
    };
    struct task_down unpacked;
    assert_non_null(own);
    assert_ok(wire_pack_task_down(&down, &buffer, &error), &error);
    assert_ok(wire_unpack_task_down(buffer.bytes, buffer.size, own, &unpacked, &error), &error);
    assert_true(unpacked.plan.source == SOURCE_NONE && unpacked.plan.halt_stream == STREAM_ANY);
    down.plan.source = 0;
    down.plan.halt_stream = 0;
    wire_buffer_clear(&buffer);
    assert_ok(wire_pack_task_down(&down, &buffer, &error), &error);
    assert_ok(wire_unpack_task_down(buffer.bytes, buffer.size, own, &unpacked, &error), &error);
    assert_true(unpacked.plan.source == 0 && unpacked.plan.halt_stream == 0);
    down = (struct task_down){.type = TASK_DOWN_RELEASE,
        .release = {.generation = {1, 2},
            .checkpoint_at = POSITION_NONE,
            .halt_at = POSITION_NONE,
            .published = POSITION_NONE}};
    wire_buffer_clear(&buffer);
    assert_ok(wire_pack_task_down(&down, &buffer, &error), &error);
    assert_ok(wire_unpack_task_down(buffer.bytes, buffer.size, own, &unpacked, &error), &error);
    assert_true(unpacked.release.published == POSITION_NONE);
    wire_arena_free(own);
    wire_buffer_free(&buffer);
}

/* ---- input that is not what it should be ---- */

static void cut_messages_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < sample_count; i++) {
        pack_sample(&samples[i]);
        for (size_t size = 0; size < packed.size; size++) {
            /* A copy of its own, so that reading one byte too many is seen. */
            uint8_t *cut = malloc(size > 0 ? size : 1);
            bool unpacked;
            assert_non_null(cut);
            memcpy(cut, packed.bytes, size);
            wire_buffer_clear(&again);
            wire_arena_reset(arena);
            error.text[0] = '\0';
            cadre_status status =
                samples[i].kind->repack(cut, size, arena, &again, &unpacked, &error);
            assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT ||
                        status == CADRE_RESOURCE_EXHAUSTED);
            assert_true(status == CADRE_OK || error.text[0] != '\0');
            free(cut);
        }
    }
}

static size_t mutate(struct prng *prng, uint8_t *bytes, size_t size, size_t capacity)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x12};
    size_t changes = 1 + prng_uniform(prng, 4);
    for (size_t i = 0; i < changes && size > 0; i++) {
        size_t at = prng_uniform(prng, size);
        switch (prng_uniform(prng, 5)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << prng_uniform(prng, 8));
            break;
        case 1:
            bytes[at] = telling[prng_uniform(prng, sizeof telling)];
            break;
        case 2:
            memmove(bytes + at, bytes + at + 1, size - at - 1);
            size--;
            break;
        case 3: {
            size_t span = 1 + prng_uniform(prng, size - at < 16 ? size - at : 16);
            if (size + span <= capacity) {
                memmove(bytes + at + span, bytes + at, size - at);
                size += span;
            }
            break;
        }
        default:
            size = at;
        }
    }
    return size;
}

/* What was unpacked can be packed and unpacked again, and is then the same. */
static void check_stable(
    const struct sample *sample, const uint8_t *bytes, size_t size, size_t *accepted)
{
    bool unpacked;
    wire_buffer_clear(&again);
    wire_arena_reset(arena);
    cadre_status status = sample->kind->repack(bytes, size, arena, &again, &unpacked, &error);
    if (!unpacked) {
        assert_true(status == CADRE_INVALID_ARGUMENT || status == CADRE_RESOURCE_EXHAUSTED);
        return;
    }
    (*accepted)++;
    if (status != CADRE_OK) {
        fail_msg("%s was accepted but cannot be packed: %s", sample->name, error.text);
    }
    wire_buffer_clear(&packed);
    wire_arena_reset(arena);
    if (sample->kind->repack(again.bytes, again.size, arena, &packed, &unpacked, &error) !=
        CADRE_OK) {
        fail_msg("%s was accepted, but not again: %s", sample->name, error.text);
    }
    assert_int_equal(packed.size, again.size);
    if (packed.size > 0) {
        assert_memory_equal(packed.bytes, again.bytes, packed.size);
    }
}

static void mutated_messages_do_no_harm(void **state)
{
    (void)state;
    struct prng prng = {.state = 20240601};
    size_t accepted = 0;
    for (size_t i = 0; i < sample_count; i++) {
        pack_sample(&samples[i]);
        size_t original_size = packed.size;
        size_t capacity = original_size + 64;
        uint8_t *original = malloc(capacity);
        assert_non_null(original);
        if (original_size > 0) {
            memcpy(original, packed.bytes, original_size);
        }
        for (size_t round = 0; round < 3000; round++) {
            uint8_t *bytes = malloc(capacity);
            assert_non_null(bytes);
            memcpy(bytes, original, original_size);
            size_t size = mutate(&prng, bytes, original_size, capacity);
            check_stable(&samples[i], bytes, size, &accepted);
            free(bytes);
        }
        free(original);
    }
    /* Both outcomes must occur, else the mutations are too tame or too wild to test anything. */
    assert_true(accepted > sample_count * 100);
    assert_true(accepted < sample_count * 2900);
}

/* 4 MiB of entries of two bytes each would unfold to hundreds of MiB. */
static void a_bomb_meets_the_budget(void **state)
{
    (void)state;
    size_t size = LIMIT_FRAME_BYTES;
    uint8_t *bytes = calloc(size, 1);
    struct list_jobs_response jobs;
    struct agent_up up;
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i += 2) {
        bytes[i] = 0x0a; /* field 1, length 0: an empty JobInfo */
    }
    uint64_t start_us = clock_monotonic_us();
    assert_error(wire_unpack_list_jobs_response(bytes, size, arena, &jobs, &error),
        CADRE_RESOURCE_EXHAUSTED, &error, "ListJobsResponse of 4194304 bytes unpacks to more than");
    for (size_t i = 0; i < size; i += 2) {
        bytes[i] = 0x78; /* field 15 as a number: unknown, and kept by protobuf-c */
    }
    wire_arena_reset(arena);
    assert_error(wire_unpack_agent_up(bytes, size, arena, &up, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "unpacks to more than");
    assert_true(clock_monotonic_us() - start_us < 2000000);
    /* The arena is good for the next message. */
    wire_arena_reset(arena);
    wire_buffer_clear(&packed);
    assert_ok(wire_pack_agent_up(&sample_agent_hello, &packed, &error), &error);
    assert_ok(wire_unpack_agent_up(packed.bytes, packed.size, arena, &up, &error), &error);
    assert_string_equal(up.hello.name, "host-a");
    free(bytes);
}

static void a_small_budget_is_kept(void **state)
{
    (void)state;
    wire_buffer_clear(&packed);
    assert_ok(wire_pack_job_info(&sample_info, &packed, &error), &error);
    bool done = false;
    for (size_t budget = 0; !done && budget < 16384; budget += 8) {
        struct wire_arena *small = wire_arena_new(budget);
        struct job_info info;
        assert_non_null(small);
        cadre_status status = wire_unpack_job_info(packed.bytes, packed.size, small, &info, &error);
        done = status == CADRE_OK;
        assert_true(done || status == CADRE_RESOURCE_EXHAUSTED);
        wire_arena_free(small);
    }
    assert_true(done);
}

static void unknown_fields_are_ignored(void **state)
{
    (void)state;
    wire_buffer_clear(&packed);
    struct job_request request = {.id = {7}};
    assert_ok(wire_pack_job_request(&request, &packed, &error), &error);
    assert_true(wire_buffer_reserve(&packed, 3));
    memcpy(packed.bytes + packed.size, "\x98\x06\x01", 3); /* field 99, number 1 */
    request.id.n = 0;
    assert_ok(
        wire_unpack_job_request(packed.bytes, packed.size + 3, arena, &request, &error), &error);
    assert_int_equal(request.id.n, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(every_field_is_packed, setup, teardown),
        cmocka_unit_test(arrive_and_hello_say_what_they_mean),
        cmocka_unit_test(arrivals_and_releases_take_no_memory),
        cmocka_unit_test(plan_and_release_say_what_they_mean),
        cmocka_unit_test(job_info_says_what_it_means),
        cmocka_unit_test(absence_says_what_it_means),
        cmocka_unit_test_setup_teardown(cut_messages_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(mutated_messages_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bomb_meets_the_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(a_small_budget_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_fields_are_ignored, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
