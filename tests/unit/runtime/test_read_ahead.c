/* SPDX-License-Identifier: Apache-2.0
 * What is read ahead of pipelines that a function makes: nothing, unless it or the options set
 * that. */
#include <pthread.h>

#include "training.h"

/* Counts the elements that are read. */
struct source {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t read;
    int64_t prefetch; /* of the function's dataset; 0: none */
};

static cadre_status count(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct source *source = user;
    pthread_mutex_lock(&source->lock);
    source->read++;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->lock);
    ret_out->count = 1;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static cadre_status make(const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    static const cadre_element_spec rows = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    struct source *source = user;
    (void)context;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 200, 1), 2, false);
    data = cadre_dataset_map(data, count, source, &(cadre_map_options){.output = &rows});
    *ret_data = source->prefetch > 0 ? cadre_dataset_prefetch(data, source->prefetch) : data;
    return CADRE_OK;
}

/* Waits until so many were read, and they are not more. */
static void assert_read(struct source *source, int64_t wanted)
{
    pthread_mutex_lock(&source->lock);
    while (source->read < wanted) {
        pthread_cond_wait(&source->changed, &source->lock);
    }
    assert_int_equal(source->read, wanted);
    pthread_mutex_unlock(&source->lock);
}

/* Two replicas take an element each in a step; `ahead` are read besides. */
static void assert_ahead(int64_t prefetch, const cadre_input_options *options, int64_t ahead)
{
    enum { STEPS = 20 };
    struct source source = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .prefetch = prefetch};
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(
        cadre_distribute_datasets_from_function(strategy, make, &source, options, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    for (int64_t step = 0; step < STEPS; step++) {
        assert_public_ok(cadre_next(data, &batch));
        assert_read(&source, 2 * (step + 1) + ahead);
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, batch, 0, NULL));
        assert_read(&source, 2 * (step + 1) + ahead);
    }
    cadre_strategy_release(strategy);
}

static void a_function_that_asks_for_nothing_is_not_read_ahead(void **state)
{
    (void)state;
    assert_ahead(0, NULL, 0);
}

static void its_own_prefetch_is_all_there_is(void **state)
{
    (void)state;
    assert_ahead(2, NULL, 2);
    assert_ahead(5, NULL, 5);
}

static void the_options_read_steps_ahead(void **state)
{
    (void)state;
    assert_ahead(0, &(cadre_input_options){.prefetch = 1}, 2);
    assert_ahead(0, &(cadre_input_options){.prefetch = 3}, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_that_asks_for_nothing_is_not_read_ahead),
        cmocka_unit_test(its_own_prefetch_is_all_there_is),
        cmocka_unit_test(the_options_read_steps_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
