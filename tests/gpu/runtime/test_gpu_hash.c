/* SPDX-License-Identifier: Apache-2.0
 * Hashes of memory on a device are those of the same bytes on the host, and so are the states of
 * replicas on both. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "gpu_training.h"
#include "worker/library/device/memory_hash.h"
#include "worker/library/runtime/state/layout/state_hash.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define PIECES_MAX 90
#define CHUNKS_MAX 8

static struct prng prng = {.state = 11};

/* --- memory --- */

struct piece {
    size_t size;
    struct hash_turn turn;
    uint8_t *bytes;
    uint64_t wanted[CHUNKS_MAX];
    uint64_t got[CHUNKS_MAX];
};

static void make_piece(struct piece *piece, size_t size, struct hash_turn turn)
{
    *piece = (struct piece){.size = size, .turn = turn, .bytes = malloc(size + 8)};
    assert_non_null(piece->bytes);
    assert_in_range(hash_chunk_count(size), 1, CHUNKS_MAX);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t drawn = prng_next(&prng);
        memcpy(piece->bytes + i, &drawn, sizeof drawn);
    }
}

/* The chunks of this turn are hashed, and no others are touched. */
static void check_pieces(struct piece *pieces, size_t count)
{
    struct cadre_error error = {0};
    struct device *device;
    struct device_hashed hashed[PIECES_MAX];
    void *memory[PIECES_MAX];
    size_t wanted = 0;
    size_t got = 0;
    assert_ok(device_open(0, &device, &error), &error);
    for (size_t i = 0; i < count; i++) {
        struct piece *piece = &pieces[i];
        wanted += hash_chunks(piece->bytes, piece->size, piece->turn, piece->wanted);
        assert_ok(device->ops->memory_get(0, piece->size + 1, device->compute, &memory[i], &error),
            &error);
        assert_ok(device_copy(memory[i], device, piece->bytes, NULL, piece->size, &error), &error);
        hashed[i] = (struct device_hashed){
            .data = memory[i], .size = piece->size, .turn = piece->turn, .chunks = piece->got};
    }
    assert_ok(device_hash(device, hashed, count, &got, &error), &error);
    assert_int_equal(got, wanted);
    for (size_t i = 0; i < count; i++) {
        assert_memory_equal(pieces[i].got, pieces[i].wanted, sizeof pieces[i].got);
        device->ops->memory_give(0, memory[i], device->compute);
        free(pieces[i].bytes);
    }
}

static void any_size_has_the_hashes_of_the_host(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024,
        HASH_CHUNK_BYTES - 1, HASH_CHUNK_BYTES, HASH_CHUNK_BYTES + 1, 2 * HASH_CHUNK_BYTES,
        5 * HASH_CHUNK_BYTES + 240, 8 * HASH_CHUNK_BYTES};
    static struct piece pieces[PIECES_MAX];
    const size_t count = sizeof sizes / sizeof sizes[0];
    for (size_t stride = 1; stride < 4; stride++) {
        for (size_t i = 0; i < count; i++) {
            make_piece(&pieces[i], sizes[i],
                (struct hash_turn){
                    .first = prng_uniform(&prng, (uint32_t)stride), .stride = stride});
            if (i % 3 == 0) { /* by itself */
                struct piece alone;
                make_piece(&alone, sizes[i], (struct hash_turn){.first = 0, .stride = stride});
                check_pieces(&alone, 1);
            }
        }
        check_pieces(pieces, count);
    }
    assert_ok(device_hash(NULL, NULL, 0, NULL, NULL), &(struct cadre_error){0});
}

/* More than is copied to the host at a time. */
static void many_short_ones(void **state)
{
    (void)state;
    static struct piece pieces[PIECES_MAX];
    for (size_t i = 0; i < PIECES_MAX; i++) {
        size_t size = HASH_CHUNK_BYTES - 1 - prng_uniform(&prng, 9000);
        make_piece(&pieces[i], i % 17 == 3 ? 0 : size, (struct hash_turn){.first = 0, .stride = 1});
    }
    check_pieces(pieces, PIECES_MAX);
}

/* --- states --- */

#define LARGE (11 * 65536 + 20)
#define OF    4

static const char *const lists[][3] = {
    {"GPU:0", NULL}, {"GPU:0", "GPU:1", NULL}, {"GPU:0", "CPU:0", NULL}, {"CPU:0", "GPU:0", NULL}};

static cadre_variable *bytes_of(cadre_strategy *strategy, const char *name, int64_t count)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 1, .seed = 5}};
    cadre_variable *variable;
    const int64_t dims[] = {count / 4};
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 1, dims, &options, &variable));
    return variable;
}

static uint64_t digest_of(cadre_strategy *strategy, uint32_t local, struct state_hashes *hashes,
    struct state_hash_turn turn)
{
    struct cadre_error error = {0};
    assert_ok(state_hash_prepare(strategy, hashes, &error), &error);
    assert_ok(state_hash_shared(strategy, turn, hashes, &error), &error);
    assert_ok(state_hash_own(strategy, local, turn, hashes, &error), &error);
    return state_digest(hashes);
}

/* One bit of the memory on a device. */
static void flip(const struct variable_component *component, size_t at)
{
    struct cadre_error error = {0};
    uint8_t byte;
    uint8_t *there = (uint8_t *)component->value + at;
    assert_ok(device_copy(&byte, NULL, there, component->device, 1, &error), &error);
    byte ^= 32;
    assert_ok(device_copy(there, component->device, &byte, NULL, 1, &error), &error);
}

static cadre_status add(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_assign_literal(replica, user, CADRE_ASSIGN_ADD, 0.5);
}

static void check_turns(cadre_strategy *strategy, uint32_t local, cadre_variable *frozen)
{
    const struct state_hash_turn all = {.number = 0, .of = 1};
    struct state_hashes hashes = {0};
    struct state_hashes fresh = {0};
    const struct variable_component *component = &frozen->components[local];
    uint64_t calm = digest_of(strategy, local, &hashes, all);
    for (size_t at = 3; at < LARGE; at += 3 * 65536) {
        uint32_t found = 0;
        size_t hashed = 0;
        flip(component, at);
        for (uint32_t i = 0; i < OF; i++) {
            uint64_t digest = digest_of(
                strategy, local, &hashes, (struct state_hash_turn){.number = i, .of = OF});
            found += digest != calm ? 1 : 0;
            hashed += hashes.hashed;
        }
        assert_in_range(found, 1, OF);
        assert_int_equal(hashed, LARGE + 400);
        assert_int_equal(state_digest(&hashes), digest_of(strategy, local, &fresh, all));
        flip(component, at);
        assert_int_equal(digest_of(strategy, local, &hashes, all), calm);
    }
    state_hashes_clear(&hashes);
    state_hashes_clear(&fresh);
}

static void replicas_on_devices_and_on_processors_hash_alike(void **state)
{
    (void)state;
    const struct state_hash_turn turn = {.number = 1, .of = OF};
    for (size_t at = 0; at < sizeof lists / sizeof lists[0]; at++) {
        if (!gpu_has(lists[at])) {
            continue;
        }
        struct state_hashes hashes[2] = {{0}, {0}};
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *written = bytes_of(strategy, "written", 400);
        cadre_variable *frozen = bytes_of(strategy, "frozen", LARGE);
        uint64_t last = 0;
        for (int step = 0; step < 3; step++) {
            uint64_t first = digest_of(strategy, 0, &hashes[0], turn);
            for (uint32_t local = 1; local < strategy->local_replicas; local++) {
                assert_int_equal(digest_of(strategy, local, &hashes[local], turn), first);
            }
            assert_true(first != last); /* what was written is hashed in any turn */
            assert_true(step == 0 || hashes[0].hashed < LARGE / 2);
            last = first;
            assert_public_ok(cadre_run(strategy, add, written, NULL, 0, NULL));
        }
        for (uint32_t local = 0; local < strategy->local_replicas; local++) {
            if (frozen->components[local].device != NULL) {
                check_turns(strategy, local, frozen);
            }
        }
        state_hashes_clear(&hashes[0]);
        state_hashes_clear(&hashes[1]);
        cadre_strategy_release(strategy);
    }
}

int main(void)
{
    gpu_require(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size_has_the_hashes_of_the_host),
        cmocka_unit_test(many_short_ones),
        cmocka_unit_test(replicas_on_devices_and_on_processors_hash_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
