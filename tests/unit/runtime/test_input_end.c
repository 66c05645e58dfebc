/* SPDX-License-Identifier: Apache-2.0
 * A dataset ends although a function of the program does not return, and is freed once it does. */
#include <pthread.h>
#include <stdlib.h>

#include "training.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

#define LONG_US (UINT64_C(60) * 1000 * 1000) /* never waited for to its end */

/* A generator that stops before element `holds_at` until the gate opens. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t holds_at;
    bool held;
    bool open;
    int ended; /* passes */
};

struct pass {
    struct gate *gate;
    int64_t next;
};

static cadre_status begin(uint64_t epoch, void **ret_pass, void *user)
{
    struct pass *pass = calloc(1, sizeof *pass);
    (void)epoch;
    pass->gate = user;
    *ret_pass = pass;
    return CADRE_OK;
}

static cadre_status next(void *of, cadre_element *ret_out, void *user)
{
    struct pass *pass = of;
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    while (pass->next == gate->holds_at && !gate->open) {
        gate->held = true;
        pthread_cond_broadcast(&gate->changed);
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    ret_out->count = 1;
    return cadre_tensor_from_i64(pass->next++, &ret_out->tensors[0]);
}

static void end(void *of, void *user)
{
    struct gate *gate = user;
    free(of);
    pthread_mutex_lock(&gate->lock);
    gate->ended++;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static cadre_distributed_dataset *distribute(
    cadre_strategy *strategy, struct gate *gate, bool through_threads)
{
    static const cadre_element_spec spec = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    cadre_dataset *data = cadre_dataset_generator(&(cadre_generator){
        .output = &spec, .begin = begin, .next = next, .end = end, .user = gate});
    if (through_threads) {
        data = cadre_dataset_prefetch(data, 4);
    }
    data = cadre_dataset_batch(data, 2, false);
    cadre_distributed_dataset *distributed;
    assert_public_ok(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    assert_true(cadre_next_epoch(distributed, 1, NULL));
    pthread_mutex_lock(&gate->lock);
    while (!gate->held) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    return distributed;
}

static void open_and_wait(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    while (gate->ended == 0) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static void one_that_is_held_is_left(void **state)
{
    (void)state;
    for (int through_threads = 0; through_threads < 2; through_threads++) {
        struct gate gate = {.holds_at = 3};
        cadre_strategy *strategy = training_strategy(1);
        cadre_distributed_dataset *data = distribute(strategy, &gate, through_threads == 1);
        strategy->input->dataset_count = 0; /* ended here, not with the strategy */
        assert_false(distributed_retire(data, 1000));
        cadre_strategy_release(strategy);
        assert_int_equal(gate.ended, 0);
        open_and_wait(&gate); /* the memory checkers see whether all is freed */
    }
}

static void one_that_returns_is_waited_for(void **state)
{
    (void)state;
    struct gate gate = {.holds_at = 3};
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, &gate, false);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    strategy->input->dataset_count = 0;
    assert_true(distributed_retire(data, LONG_US));
    assert_int_equal(gate.ended, 1);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_held_is_left),
        cmocka_unit_test(one_that_returns_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
