/* SPDX-License-Identifier: Apache-2.0
 * One table of all message kinds, and of samples that together set every field of every one. What
 * is true of all messages (round trip, cuts, mutations) is tested by walking it. */
#ifndef CADRE_TESTS_UNIT_WIRE_SAMPLES_H
#define CADRE_TESTS_UNIT_WIRE_SAMPLES_H

#include <protobuf-c/protobuf-c.h>

#include "common/wire/wire.h"

struct kind {
    const char *name;
    const ProtobufCMessageDescriptor *descriptor;
    cadre_status (*pack)(
        const void *message, struct wire_buffer *buffer, struct cadre_error *error);
    /* Unpacks, and when that succeeds packs what came out. *ret_unpacked tells how far it came. */
    cadre_status (*repack)(const void *bytes, size_t size, struct wire_arena *arena,
        struct wire_buffer *buffer, bool *ret_unpacked, struct cadre_error *error);
};

struct sample {
    const char *name;
    const struct kind *kind;
    const void *message;
};

extern const struct kind kinds[];
extern const size_t kind_count;
extern const struct sample samples[];
extern const size_t sample_count;

/* Pieces for tests that bend one field. */
extern const struct job_spec sample_spec;
extern const struct job_info sample_info;
extern const struct verify_response sample_verify;
extern const struct task_up sample_values;
extern const struct metrics_response sample_metrics;
extern const struct task_up sample_hello;
extern const struct task_up sample_arrive;
extern const struct task_down sample_plan;
extern const struct task_down sample_part;
extern const struct task_down sample_release;
extern const struct agent_up sample_agent_hello;
extern const struct agent_up sample_agent_arrived;

#endif
