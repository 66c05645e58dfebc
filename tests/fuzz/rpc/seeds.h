/* SPDX-License-Identifier: Apache-2.0
 * What a valid client and a valid worker say to a coordinator: the messages that mutations begin
 * with. They name jobs and tasks that exist, as far as the fuzzer has received them. */
#ifndef CADRE_TESTS_FUZZ_SEEDS_H
#define CADRE_TESTS_FUZZ_SEEDS_H

#include "common/pure/prng.h"
#include "common/wire/methods.h"
#include "common/wire/wire.h"

#define SEED_TASKS_MAX 64

/* What is known of the coordinator. */
struct seed_world {
    uint64_t jobs; /* submitted so far: 1 to this */
    /* Of the present stream of Join: the newest tasks that it was ordered to start, and how far
     * they are: 1 has a process, 2 has sent its Hello. */
    struct task_ref tasks[SEED_TASKS_MAX];
    int stages[SEED_TASKS_MAX];
    size_t task_count;
    struct generation generation; /* the newest that it planned for those, and its job */
    struct job_id planned;
    uint64_t plans; /* that were seen */
};

struct seed_method {
    const char *path;
    enum method_shape shape;
    const char *kind; /* of its requests, as in tests/unit/wire/samples.h; NULL: an empty message */
};

extern const struct seed_method seed_methods[];
extern const size_t seed_method_count;

/* The content that every submitted job has as its program. */
extern const char seed_program[];

/* A valid message of this method, into an empty buffer. `first` on its stream. */
void seed_message(struct prng *prng, struct seed_world *world, const struct seed_method *method,
    bool first, struct wire_buffer *buffer);

/* The one message that uploads seed_program. */
void seed_blob(struct wire_buffer *buffer);

/* Learns from a message of Agents.Join. */
void seed_learn(struct seed_world *world, const void *bytes, size_t size);

#endif
