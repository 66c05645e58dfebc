/* SPDX-License-Identifier: Apache-2.0
 * Buckets of gradients: sizes, order, what starts when, and misuse. On the CPU; what is different
 * on a GPU is in tests/gpu/runtime. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/fault.h"
#include "training.h"

#define REPLICAS 2
#define TENSORS  12

struct bucketed {
    cadre_tensor *tensors[REPLICAS][TENSORS];
    size_t count;
    cadre_bucket_options options;
    uint32_t order; /* in which they become ready: i * order + replica, modulo the count */
    size_t missing; /* so many are never reported ready, the last ones */
    size_t other;   /* of replica 1: the buckets' size, where it differs; 0: it does not */
    bool forgets;   /* without a wait */
    atomic_bool summed;
    cadre_buckets *kept;
    cadre_status status[REPLICAS];
};

static void make_tensors(struct bucketed *bucketed)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < TENSORS; i++) {
            const float values[4] = {(float)(i + 100 * r), 1, 2, 3};
            bucketed->tensors[r][i] = training_f32(4, values);
        }
    }
}

static void release_tensors(struct bucketed *bucketed)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < TENSORS; i++) {
            cadre_tensor_release(bucketed->tensors[r][i]);
        }
    }
}

static void assert_summed(const struct bucketed *bucketed, size_t count)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < count; i++) {
            training_assert_f32(
                bucketed->tensors[r][i], 4, (const float[]){(float)(2 * i + 100), 2, 4, 6});
        }
    }
}

static cadre_status send_ready_to_peer(
    const struct bucketed *bucketed, uint32_t id, cadre_buckets *buckets)
{
    for (size_t i = 0; i < bucketed->count; i++) {
        size_t index = bucketed->order == 0 ? i : (i * bucketed->order + id) % bucketed->count;
        if (index < bucketed->count - bucketed->missing) {
            CADRE_TRY(cadre_buckets_ready(buckets, index));
        }
    }
    return CADRE_OK;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct bucketed *bucketed = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_bucket_options options = bucketed->options;
    options.bucket_bytes = id == 1 && bucketed->other > 0 ? bucketed->other : options.bucket_bytes;
    cadre_buckets *buckets;
    CADRE_TRY(cadre_buckets_begin(
        replica, CADRE_SUM, bucketed->tensors[id], bucketed->count, &options, &buckets));
    CADRE_TRY(send_ready_to_peer(bucketed, id, buckets));
    if (id == 0) {
        bucketed->kept = buckets;
    }
    if (bucketed->forgets) {
        return CADRE_OK;
    }
    bucketed->status[id] = cadre_buckets_wait(buckets);
    return bucketed->status[id];
}

static void all_come_to_the_sum_in_any_order_and_size(void **state)
{
    (void)state;
    static const uint32_t orders[] = {0, 5, 7, 11};
    static const size_t sizes[] = {1, 16, 17, 40, 1 << 20, 0};
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (size_t i = 0; i < 4 * 6; i++) {
        struct bucketed bucketed = {.count = i == 0 ? 1 : TENSORS,
            .order = orders[i % 4],
            .options = {.first_bytes = i % 2 == 0 ? 16 : 0, .bucket_bytes = sizes[i / 4]}};
        make_tensors(&bucketed);
        assert_public_ok(cadre_run(strategy, step, &bucketed, NULL, 0, NULL));
        assert_summed(&bucketed, bucketed.count);
        release_tensors(&bucketed);
    }
    struct bucketed none = {.count = 0};
    assert_public_ok(cadre_run(strategy, step, &none, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

/* A first bucket of two tensors, others of three: what comes after them is the sixth collective. */
static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    CADRE_TRY(step(replica, inputs, outputs, user));
    struct bucketed *bucketed = user;
    uint32_t id = cadre_replica_id(replica);
    return cadre_all_reduce(
        replica, id == 0 ? CADRE_SUM : CADRE_MEAN, bucketed->tensors[id], 1, NULL);
}

static void a_bucket_closes_once_it_is_as_large(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct bucketed bucketed = {
        .count = TENSORS - 1, .options = {.first_bytes = 17, .bucket_bytes = 48}}; /* 2, 3, 3, 3 */
    make_tensors(&bucketed);
    assert_public_error(cadre_run(strategy, count_step, &bucketed, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "(collective 5 of step 0)");
    release_tensors(&bucketed);
    cadre_strategy_release(strategy);
}

/* Replica 1 has the sum of the first bucket while replica 0 still computes its last gradient. */
static cadre_status overlap_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct bucketed *bucketed = user;
    uint32_t id = cadre_replica_id(replica);
    const cadre_bucket_options options = {.first_bytes = 1, .bucket_bytes = 1};
    cadre_buckets *buckets;
    CADRE_TRY(
        cadre_buckets_begin(replica, CADRE_SUM, bucketed->tensors[id], 2, &options, &buckets));
    CADRE_TRY(cadre_buckets_ready(buckets, 0));
    if (id == 1) {
        float *first = cadre_tensor_data(bucketed->tensors[1][0]);
        while (*(volatile float *)first != 100) {
            sched_yield();
        }
        atomic_store(&bucketed->summed, true);
    }
    while (!atomic_load(&bucketed->summed)) {
        sched_yield();
    }
    CADRE_TRY(cadre_buckets_ready(buckets, 1));
    return cadre_buckets_wait(buckets);
}

static void a_bucket_starts_when_its_last_gradient_is_ready(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it looks at a sum while that is made */
#endif
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct bucketed bucketed = {.count = 2};
    make_tensors(&bucketed);
    assert_public_ok(cadre_run(strategy, overlap_step, &bucketed, NULL, 0, NULL));
    assert_summed(&bucketed, 2);
    release_tensors(&bucketed);
    cadre_strategy_release(strategy);
}

static void replicas_that_disagree_are_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct bucketed bucketed = {
        .count = 6, .options = {.first_bytes = 16, .bucket_bytes = 32}, .other = 48};
    make_tensors(&bucketed);
    assert_public_error(cadre_run(strategy, step, &bucketed, NULL, 0, NULL), CADRE_INVALID_ARGUMENT,
        "with 3 tensors, the first f32 [4] (collective 2 of step 0)");
    release_tensors(&bucketed);
    cadre_strategy_release(strategy);
}

static void one_that_was_never_ready_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct bucketed bucketed = {
        .count = 6, .missing = 2, .options = {.first_bytes = 16, .bucket_bytes = 32}};
    make_tensors(&bucketed);
    assert_public_error(cadre_run(strategy, step, &bucketed, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "tensor 4 of 6 was not ready");
    release_tensors(&bucketed);
    struct bucketed good = {.count = 6};
    make_tensors(&good);
    assert_public_ok(cadre_run(strategy, step, &good, NULL, 0, NULL));
    assert_summed(&good, 6);
    release_tensors(&good);
    cadre_strategy_release(strategy);
}

/* What was started is waited for when the function returns; a bucket that is not full is none. */
static void unwaited_buckets_end_with_the_function(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (int i = 0; i < 2; i++) {
        struct bucketed bucketed = {.count = 5,
            .missing = 1,
            .forgets = true,
            .options = {.first_bytes = 32, .bucket_bytes = 32}};
        make_tensors(&bucketed);
        assert_public_ok(cadre_run(strategy, step, &bucketed, NULL, 0, NULL));
        assert_summed(&bucketed, 4);
        training_assert_f32(bucketed.tensors[1][4], 4, (const float[]){104, 1, 2, 3});
        assert_public_error(cadre_buckets_ready(bucketed.kept, 4), CADRE_FAILED_PRECONDITION,
            "outside of the replica function");
        release_tensors(&bucketed);
    }
    cadre_strategy_release(strategy);
}

enum misuse { NESTED, TWICE, NO_SUCH, OVER, BAD_OP, NO_LIST, NO_TENSOR };

struct misused {
    struct bucketed bucketed;
    enum misuse what;
};

static cadre_status misuse_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct misused *misused = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *tensors[2] = {misused->bucketed.tensors[id][0], misused->bucketed.tensors[id][1]};
    cadre_buckets *buckets;
    cadre_buckets *more;
    if (misused->what == NO_LIST) {
        return cadre_buckets_begin(replica, CADRE_SUM, NULL, 2, NULL, &buckets);
    }
    tensors[1] = misused->what == NO_TENSOR ? NULL : tensors[1];
    cadre_reduce_op op = misused->what == BAD_OP ? (cadre_reduce_op)77 : CADRE_SUM;
    CADRE_TRY(cadre_buckets_begin(replica, op, tensors, 2, NULL, &buckets));
    switch (misused->what) {
    case NESTED:
        return cadre_buckets_begin(replica, CADRE_SUM, tensors, 2, NULL, &more);
    case TWICE:
        CADRE_TRY(cadre_buckets_ready(buckets, 1));
        return cadre_buckets_ready(buckets, 1);
    case NO_SUCH:
        return cadre_buckets_ready(buckets, 2);
    default:
        break;
    }
    CADRE_TRY(cadre_buckets_ready(buckets, 1));
    CADRE_TRY(cadre_buckets_ready(buckets, 0));
    CADRE_TRY(cadre_buckets_wait(buckets));
    return cadre_buckets_wait(buckets);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    static const struct {
        enum misuse what;
        cadre_status status;
        const char *part;
    } cases[] = {{NESTED, CADRE_FAILED_PRECONDITION, "whose buckets are not over"},
        {TWICE, CADRE_INVALID_ARGUMENT, "tensor 1 of 2 in buckets was reported ready twice"},
        {NO_SUCH, CADRE_INVALID_ARGUMENT, "tensor 2 is not one of the 2"},
        {OVER, CADRE_FAILED_PRECONDITION, "for buckets that are over"},
        {BAD_OP, CADRE_INVALID_ARGUMENT, "77 is not a reduction"},
        {NO_LIST, CADRE_INVALID_ARGUMENT, "tensors"},
        {NO_TENSOR, CADRE_INVALID_ARGUMENT, "tensor 1 of 2 that were to be put into buckets"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_strategy *strategy = training_strategy(REPLICAS);
        struct misused misused = {.what = cases[i].what};
        make_tensors(&misused.bucketed);
        assert_public_error(cadre_run(strategy, misuse_step, &misused, NULL, 0, NULL),
            cases[i].status, cases[i].part);
        release_tensors(&misused.bucketed);
        cadre_strategy_release(strategy);
    }
    cadre_buckets *buckets;
    assert_public_error(cadre_buckets_begin(NULL, CADRE_SUM, NULL, 0, NULL, &buckets),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    assert_public_error(cadre_buckets_wait(NULL), CADRE_INVALID_ARGUMENT, "buckets");
}

static void without_memory_the_step_fails(void **state)
{
    (void)state;
    static const char *const points[] = {"buckets", "buckets.lists"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        cadre_strategy *strategy = training_strategy(REPLICAS);
        struct bucketed bucketed = {.count = 3};
        make_tensors(&bucketed);
        fault_arm(points[i], 1);
        assert_public_error(cadre_run(strategy, step, &bucketed, NULL, 0, NULL),
            CADRE_RESOURCE_EXHAUSTED, "no memory for buckets");
        assert_true(fault_disarm());
        release_tensors(&bucketed);
        make_tensors(&bucketed);
        assert_public_ok(cadre_run(strategy, step, &bucketed, NULL, 0, NULL));
        assert_summed(&bucketed, 3);
        release_tensors(&bucketed);
        cadre_strategy_release(strategy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_come_to_the_sum_in_any_order_and_size),
        cmocka_unit_test(a_bucket_closes_once_it_is_as_large),
        cmocka_unit_test(a_bucket_starts_when_its_last_gradient_is_ready),
        cmocka_unit_test(replicas_that_disagree_are_reported),
        cmocka_unit_test(one_that_was_never_ready_is_named),
        cmocka_unit_test(unwaited_buckets_end_with_the_function),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(without_memory_the_step_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
