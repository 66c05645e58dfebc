/* SPDX-License-Identifier: Apache-2.0
 * Which states two replicas' digests tell apart, and which they do not. */
#include <string.h>

#include "training.h"
#include "worker/library/runtime/state/layout/state_hash.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static const struct state_hash_turn all_of_it = {.number = 0, .of = 1};

static uint64_t digest_of(const cadre_strategy *strategy, uint32_t local)
{
    struct cadre_error error = {0};
    struct state_hashes hashes = {0};
    assert_ok(state_hash_all(strategy, local, &hashes, &error), &error);
    uint64_t digest = state_digest(&hashes);
    assert_true(digest != 0);
    state_hashes_clear(&hashes);
    return digest;
}

static cadre_variable *numbers(cadre_strategy *strategy, const char *name,
    cadre_synchronization synchronization, cadre_aggregation aggregation)
{
    const int64_t count = 1000;
    const cadre_variable_options options = {
        .synchronization = synchronization, .aggregation = aggregation};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 1, &count, &options, &variable));
    return variable;
}

static void one_bit_of_one_component_tells_it_apart(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *variable = numbers(strategy, "w", 0, CADRE_AGGREGATION_NONE);
    assert_int_equal(variable->component_count, 3);
    uint64_t whole = digest_of(strategy, 0);
    assert_int_equal(digest_of(strategy, 1), whole);
    assert_int_equal(digest_of(strategy, 2), whole);
    uint8_t *bytes = variable->components[1].value;
    for (size_t at = 0; at < variable->bytes; at += 333) {
        bytes[at] ^= 4;
        assert_true(digest_of(strategy, 1) != whole);
        assert_int_equal(digest_of(strategy, 0), whole);
        assert_int_equal(digest_of(strategy, 2), whole);
        bytes[at] ^= 4;
    }
    assert_int_equal(digest_of(strategy, 1), whole);
    cadre_strategy_release(strategy);
}

/* Replicas add to their own components of a variable that is combined when read: those differ. */
static void of_what_is_combined_when_read_the_total_counts(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = numbers(strategy, "sum", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM);
    uint64_t whole = digest_of(strategy, 0);
    memset(sum->components[1].value, 1, sum->bytes);
    assert_int_equal(digest_of(strategy, 1), whole);
    memset(sum->total.value, 1, sum->bytes);
    assert_true(digest_of(strategy, 0) != whole);
    assert_int_equal(digest_of(strategy, 0), digest_of(strategy, 1));
    cadre_strategy_release(strategy);
}

static void strings_and_registered_state_count(void **state)
{
    (void)state;
    uint64_t mine = 7;
    const int64_t count = 2;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *words;
    assert_public_ok(
        cadre_variable_create(strategy, "words", CADRE_STRING, 1, &count, NULL, &words));
    assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
    static const cadre_string values[3][2] = {
        {{"ab", 2}, {"c", 1}}, {{"a", 1}, {"bc", 2}}, {{"ab", 2}, {"c\0", 2}}};
    uint64_t seen[4];
    for (int i = 0; i < 3; i++) {
        cadre_tensor *strings;
        assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &count, values[i], &strings));
        assert_public_ok(cadre_variable_assign(NULL, words, CADRE_ASSIGN, strings));
        cadre_tensor_release(strings);
        seen[i] = digest_of(strategy, 1);
        assert_int_equal(digest_of(strategy, 0), seen[i]);
    }
    mine ^= 1;
    seen[3] = digest_of(strategy, 0);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
    char text[STATE_TENSOR_TEXT_BYTES];
    assert_string_equal(state_tensor_text(strategy, 0, text), "variable 'words'");
    assert_string_equal(state_tensor_text(strategy, 1, text), "the registered state 'mine'");
    cadre_strategy_release(strategy);
}

/* Two variables of the same bytes that change their names are not the same state. */
static void names_count_too(void **state)
{
    (void)state;
    static const char *const names[3][2] = {{"a", "b"}, {"a", "c"}, {"b", "a"}};
    uint64_t seen[3];
    for (int i = 0; i < 3; i++) {
        cadre_strategy *strategy = training_strategy(1);
        for (int j = 0; j < 2; j++) {
            cadre_variable *variable = numbers(strategy, names[i][j], 0, CADRE_AGGREGATION_NONE);
            memset(variable->components[0].value, names[i][j][0], variable->bytes);
        }
        seen[i] = digest_of(strategy, 0);
        cadre_strategy_release(strategy);
    }
    assert_true(seen[0] != seen[1]);
    assert_int_equal(seen[0], seen[2]); /* the order in which they are made is no matter */
    cadre_strategy *strategy = training_strategy(1);
    assert_true(digest_of(strategy, 0) != 0); /* of nothing, too */
    cadre_strategy_release(strategy);
}

/* What a replica has from another one of its task is what it would have hashed itself. */
static void what_is_the_tasks_is_hashed_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct state_hashes first = {0};
    struct state_hashes second = {0};
    uint64_t mine = 7;
    cadre_strategy *strategy = training_strategy(2);
    (void)numbers(strategy, "own", 0, CADRE_AGGREGATION_NONE);
    (void)numbers(strategy, "total", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM);
    assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
    assert_ok(state_hash_prepare(strategy, &first, &error), &error);
    assert_ok(state_hash_shared(strategy, all_of_it, &first, &error), &error);
    assert_ok(state_hash_prepare(strategy, &second, &error), &error);
    state_hash_share(strategy, &first, &second);
    assert_ok(state_hash_own(strategy, 1, all_of_it, &second, &error), &error);
    assert_ok(state_hash_own(strategy, 0, all_of_it, &first, &error), &error);
    assert_int_equal(state_digest(&first), digest_of(strategy, 0));
    assert_int_equal(state_digest(&second), digest_of(strategy, 1));
    state_hashes_clear(&first);
    state_hashes_clear(&second);
    cadre_strategy_release(strategy);
}

/* --- in turns --- */

#define OF 4 /* turns */

static cadre_variable *large(cadre_strategy *strategy, const char *name, int64_t count)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_U8, 1, &count, NULL, &variable));
    return variable;
}

static uint64_t in_turn(
    const cadre_strategy *strategy, struct state_hashes *hashes, uint32_t number)
{
    struct cadre_error error = {0};
    const struct state_hash_turn turn = {.number = number % OF, .of = OF};
    assert_ok(state_hash_prepare(strategy, hashes, &error), &error);
    assert_ok(state_hash_shared(strategy, turn, hashes, &error), &error);
    assert_ok(state_hash_own(strategy, 1, turn, hashes, &error), &error);
    return state_digest(hashes);
}

/* Memory that changes without a write is hashed within as many turns as there are, whichever of its
 * bytes that is. */
static void what_none_wrote_is_hashed_in_turns(void **state)
{
    (void)state;
    const size_t size = 11 * 65536 + 17;
    struct state_hashes hashes = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = large(strategy, "frozen", (int64_t)size);
    (void)large(strategy, "tiny", 3);
    uint8_t *bytes = variable->components[1].value;
    uint64_t calm = in_turn(strategy, &hashes, 0);
    assert_int_equal(calm, digest_of(strategy, 1));
    assert_int_equal(hashes.hashed, size + 3); /* the first time all of it */
    uint32_t number = 1;
    for (size_t at = 0; at < size; at += 65535) {
        size_t hashed = 0;
        uint32_t found = 0;
        bytes[at] ^= 16;
        uint64_t flipped = digest_of(strategy, 1);
        for (uint32_t i = 1; i <= OF; i++) {
            uint64_t digest = in_turn(strategy, &hashes, number++);
            assert_true(digest == calm || digest == flipped);
            found = found == 0 && digest != calm ? i : found;
            assert_true((found != 0) == (digest != calm));
            hashed += hashes.hashed;
        }
        assert_in_range(found, 1, OF);
        assert_int_equal(hashed, size + 3); /* all of it, once */
        bytes[at] ^= 16;
        for (uint32_t i = 1; i <= OF; i++) {
            (void)in_turn(strategy, &hashes, number++);
        }
        assert_int_equal(state_digest(&hashes), calm);
    }
    state_hashes_clear(&hashes);
    cadre_strategy_release(strategy);
}

static cadre_status write_last_byte(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *variable = user;
    uint8_t *bytes = cadre_variable_write(replica, variable);
    if (bytes == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    bytes[cadre_variable_count(variable) - 1]++;
    return CADRE_OK;
}

static void apply_last_byte(cadre_replica *replica, void *user)
{
    (void)write_last_byte(replica, NULL, NULL, user);
}

static cadre_status apply_later(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_on_apply(replica, apply_last_byte, user);
}

static cadre_status fail_after_a_write(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_status status = write_last_byte(replica, inputs, outputs, user);
    return status == CADRE_OK ? cadre_fail(CADRE_CANCELLED, "on purpose") : status;
}

/* In whatever way a variable is written, the next turn hashes all of it. */
static void what_was_written_is_hashed_at_once(void **state)
{
    (void)state;
    static const cadre_replica_function ways[] = {write_last_byte, apply_later, fail_after_a_write};
    const size_t size = 9 * 65536;
    struct state_hashes hashes = {0};
    uint64_t mine = 7;
    cadre_strategy *strategy = training_strategy(2);
    (void)large(strategy, "frozen", (int64_t)size);
    cadre_variable *written = large(strategy, "written", (int64_t)size);
    assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
    uint32_t number = 0;
    (void)in_turn(strategy, &hashes, number++);
    for (size_t i = 0; i < 3 * sizeof ways / sizeof ways[0]; i++) {
        cadre_status status = cadre_run(strategy, ways[i % 3], written, NULL, 0, NULL);
        assert_int_equal(status, i % 3 < 2 ? CADRE_OK : CADRE_CANCELLED);
        mine++;
        assert_int_equal(in_turn(strategy, &hashes, number++), digest_of(strategy, 1));
        assert_in_range(hashes.hashed, size + sizeof mine, size + size / 2);
    }
    cadre_tensor *value;
    const int64_t count = (int64_t)size;
    assert_public_ok(cadre_tensor_create(CADRE_U8, 1, &count, &value));
    memset(cadre_tensor_data(value), 9, size);
    assert_public_ok(cadre_variable_assign(NULL, written, CADRE_ASSIGN, value));
    cadre_tensor_release(value);
    assert_int_equal(in_turn(strategy, &hashes, number++), digest_of(strategy, 1));
    state_hashes_clear(&hashes);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bit_of_one_component_tells_it_apart),
        cmocka_unit_test(of_what_is_combined_when_read_the_total_counts),
        cmocka_unit_test(strings_and_registered_state_count),
        cmocka_unit_test(names_count_too),
        cmocka_unit_test(what_is_the_tasks_is_hashed_once),
        cmocka_unit_test(what_none_wrote_is_hashed_in_turns),
        cmocka_unit_test(what_was_written_is_hashed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
