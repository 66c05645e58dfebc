/* SPDX-License-Identifier: Apache-2.0
 * Numbers above 2^32 in every field of 64 bits: each comes back whole, by itself, through all
 * messages. A job that lives long, or an operator's clock, gets there; a test with small numbers
 * does not see where one is cut. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/unit/wire/round_trip.h"
#include "tests/unit/wire/samples.h"

#define ABOVE (UINT64_C(1) << 32)

/* Those that are never so large: they are refused. */
static const char *const narrow[] = {"TaskPart.size_bytes", "CheckpointRef.manifest_bytes",
    "LogMark.offset", "TaskTrace.limit_us", "TraceRequest.steps", "TraceRequest.limit_us"};

/* Those that may not pass another one, or have to be equal to it: that one is raised with them. */
static const struct {
    const char *field;
    const char *other;
} bound[] = {
    {"TaskArrive.applied", "TaskArrive.up_to"},
    {"AgentArrived.applied", "AgentArrived.up_to"},
    {"TaskFetch.done_bytes", "TaskFetch.whole_bytes"},
    {"Cursor.first", "Cursor.begin"},
    {"Divergence.verified", "Divergence.position"},
    {"SeriesBucket.first_step", "SeriesBucket.last_step"},
    {"SeriesBucket.not_finite", "SeriesBucket.count"},
    {"TraceSpan.begin_ns", "TraceSpan.end_ns"},
    {"TraceSpan.arrived_ns", "TraceSpan.end_ns"},
    {"TaskTrace.first", "TaskTrace.end"},
    {"TraceResponse.first", "TraceResponse.end"},
    {"AgentStart.predecessor", "TaskRef.incarnation"},
    {"AgentLog.offset", "LogMark.offset"},
    {"LogChunk.offset", "LogMark.offset"},
    {"AgentStop.job", "TaskRef.job"},
    {"AgentRelayDown.job", "TaskRef.job"},
    {"TaskRef.job", "AgentStop.job"},
    {"TaskRef.job", "AgentRelayDown.job"},
};

/* The fields of 64 bits that a message has, with their values. */
struct wide {
    const ProtobufCMessageDescriptor *of;
    const ProtobufCFieldDescriptor *field;
    uint64_t *value;
};

#define WIDE_MAX 512
static struct wide wide[WIDE_MAX];
static size_t wide_count;

static bool is_wide(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_UINT64 || field->type == PROTOBUF_C_TYPE_FIXED64 ||
           field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_SINT64;
}

static size_t count_of(
    const ProtobufCFieldDescriptor *field, const uint8_t *base, const uint8_t *member)
{
    const void *quantifier = base + field->quantifier_offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return *(const size_t *)quantifier;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        return *(const uint32_t *)quantifier == field->id;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(void *const *)(const void *)member != NULL;
    }
    return field->label != PROTOBUF_C_LABEL_OPTIONAL || *(const protobuf_c_boolean *)quantifier;
}

static void find_wide(ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    uint8_t *base = (uint8_t *)message;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        uint8_t *member = base + field->offset;
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        void *items = repeated ? *(void **)(void *)member : member;
        for (size_t item = 0; item < count_of(field, base, member); item++) {
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                find_wide(((ProtobufCMessage **)items)[item]);
            } else if (is_wide(field)) {
                assert_true(wide_count < WIDE_MAX);
                wide[wide_count++] = (struct wide){descriptor, field, (uint64_t *)items + item};
            }
        }
    }
}

static bool is_named(const struct wide *one, const char *name)
{
    char own[128];
    snprintf(own, sizeof own, "%s.%s", one->of->short_name, one->field->name);
    return strcmp(own, name) == 0;
}

static bool is_narrow(const struct wide *one)
{
    bool found = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(narrow); i++) {
        found = found || is_named(one, narrow[i]);
    }
    return found;
}

static bool is_bound(const struct wide *one, const struct wide *other)
{
    bool found = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(bound); i++) {
        found = found || (is_named(one, bound[i].field) && is_named(other, bound[i].other));
    }
    return found;
}

/* What was unpacked is packed again: the same, to the last bit. */
static bool comes_back(const struct sample *sample, const ProtobufCMessage *message)
{
    bool unpacked;
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(message, bytes);
    wire_buffer_clear(&again);
    wire_arena_reset(arena);
    cadre_status status = sample->kind->repack(bytes, size, arena, &again, &unpacked, &error);
    bool same = again.size == size && memcmp(again.bytes, bytes, size) == 0;
    free(bytes);
    if (status == CADRE_OK && !same) {
        (void)cadre_error_set(&error, CADRE_INTERNAL, "it does not come back as it was");
    }
    return status == CADRE_OK && same;
}

static void raise_bound(const struct wide *one, bool raised)
{
    for (size_t i = 0; i < wide_count; i++) {
        if (is_bound(one, &wide[i])) {
            *wide[i].value += raised ? ABOVE : 0 - ABOVE;
        }
    }
}

/* Raises each field by 2^32: cut, it would be the same as before. */
static void try_each(const struct sample *sample, const ProtobufCMessage *message)
{
    for (size_t i = 0; i < wide_count; i++) {
        if (*wide[i].value >= ABOVE) {
            continue; /* the sample itself has a large one */
        }
        *wide[i].value += ABOVE;
        raise_bound(&wide[i], true);
        if (comes_back(sample, message) == is_narrow(&wide[i])) {
            fail_msg("%s: %s.%s above 2^32: %s", sample->name, wide[i].of->short_name,
                wide[i].field->name, error.text);
        }
        raise_bound(&wide[i], false);
        *wide[i].value -= ABOVE;
    }
}

static void numbers_above_32_bits_come_back(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t i = 0; i < sample_count; i++) {
        wire_buffer_clear(&packed);
        assert_ok(samples[i].kind->pack(samples[i].message, &packed, &error), &error);
        ProtobufCMessage *message =
            protobuf_c_message_unpack(samples[i].kind->descriptor, NULL, packed.size, packed.bytes);
        assert_non_null(message);
        wide_count = 0;
        find_wide(message);
        try_each(&samples[i], message);
        tried += wide_count;
        protobuf_c_message_free_unpacked(message, NULL);
    }
    assert_true(tried > sample_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_above_32_bits_come_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
