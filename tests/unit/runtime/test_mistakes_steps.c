/* SPDX-License-Identifier: Apache-2.0
 * What a newcomer does in the wrong place, or not alike on all replicas. */
#include "mistakes.h"

/* ---- strategies and contexts ---- */

static cadre_status no_such_device(struct fixture *fixture)
{
    (void)fixture;
    cadre_strategy *strategy;
    return cadre_strategy_one_device("TOASTER:0", &strategy);
}

static cadre_status one_device_twice(struct fixture *fixture)
{
    (void)fixture;
    cadre_strategy *strategy;
    return cadre_strategy_mirrored_devices((const char *const[]){"CPU:0", "CPU:0"}, 2, &strategy);
}

static cadre_status a_scope_left_that_was_not_entered(struct fixture *fixture)
{
    return cadre_scope_leave(fixture->strategy);
}

static cadre_status a_collective_outside_of_a_step(struct fixture *fixture)
{
    return cadre_all_reduce(NULL, CADRE_SUM, &fixture->pair, 1, NULL);
}

static cadre_status a_merge_call_outside_of_a_step(struct fixture *fixture)
{
    (void)fixture;
    return cadre_merge_call(NULL, NULL, NULL, NULL, 0, 0, NULL);
}

static cadre_replica *kept;

static cadre_status keep(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    if (cadre_replica_id(replica) == 0) {
        kept = replica;
    }
    return CADRE_OK;
}

static cadre_status a_replica_behind_its_step(struct fixture *fixture)
{
    CADRE_TRY(cadre_run(fixture->strategy, keep, NULL, NULL, 0, NULL));
    return cadre_all_reduce(kept, CADRE_SUM, &fixture->pair, 1, NULL);
}

static cadre_status a_run_in_a_step(cadre_replica *replica, struct fixture *fixture)
{
    (void)replica;
    return cadre_run(fixture->strategy, keep, NULL, NULL, 0, NULL);
}

static cadre_status a_batch_taken_in_a_step(cadre_replica *replica, struct fixture *fixture)
{
    (void)replica;
    cadre_per_replica *batch;
    return cadre_next(fixture->data, &batch);
}

static cadre_status a_save_in_a_step(cadre_replica *replica, struct fixture *fixture)
{
    (void)replica;
    return cadre_save(fixture->strategy, false);
}

static cadre_status an_update_in_a_step(cadre_replica *replica, struct fixture *fixture)
{
    (void)replica;
    return cadre_variable_update(fixture->strategy, fixture->weight, NULL, NULL, NULL, NULL);
}

/* ---- variables ---- */

static cadre_status create(struct fixture *fixture, const char *name, uint32_t rank)
{
    cadre_variable *variable;
    return cadre_variable_create(fixture->strategy, name, CADRE_F32, rank, NULL, NULL, &variable);
}

static cadre_status a_variable_called_as_a_state(struct fixture *fixture)
{
    static uint8_t passes;
    CADRE_TRY(cadre_state_register(fixture->strategy, "passes", &passes, 1));
    return create(fixture, "state/passes", 0);
}

static cadre_status a_variable_of_one_replica(cadre_replica *replica, struct fixture *fixture)
{
    return cadre_replica_id(replica) == 0 ? create(fixture, "mine", 0) : CADRE_OK;
}

static cadre_status a_variable_for_each_replica(cadre_replica *replica, struct fixture *fixture)
{
    return create(fixture, cadre_replica_id(replica) == 0 ? "first" : "second", 0);
}

static cadre_status grow(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *slot;
    const int64_t rows = 2 + (int64_t)cadre_strategy_position(cadre_replica_strategy(replica));
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_variable_create(NULL, "slot", CADRE_F32, 1, &rows, NULL, &slot);
}

static cadre_status a_variable_that_grows(struct fixture *fixture)
{
    CADRE_TRY(cadre_run(fixture->strategy, grow, NULL, NULL, 0, NULL));
    return cadre_run(fixture->strategy, grow, NULL, NULL, 0, NULL);
}

static cadre_variable *remembered;

static cadre_status remember(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *slot = remembered;
    (void)inputs;
    (void)outputs;
    (void)user;
    if (slot == NULL) {
        CADRE_TRY(cadre_variable_create(NULL, "slot", CADRE_F32, 0, NULL, NULL, &slot));
        CADRE_TRY(cadre_barrier()); /* each has looked */
        if (cadre_replica_id(replica) == 0) {
            remembered = slot;
        }
        return cadre_fail(CADRE_DATA_LOSS, "this step fails");
    }
    return cadre_variable_write(replica, slot) == NULL ? CADRE_FAILED_PRECONDITION : CADRE_OK;
}

static cadre_status a_variable_kept_from_a_failed_step(struct fixture *fixture)
{
    remembered = NULL;
    if (cadre_run(fixture->strategy, remember, NULL, NULL, 0, NULL) == CADRE_OK) {
        return CADRE_OK;
    }
    return cadre_run(fixture->strategy, remember, NULL, NULL, 0, NULL);
}

static cadre_status make_in_merge(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)inputs;
    (void)outputs;
    return create(user, "merged", 0);
}

static cadre_status a_variable_made_in_a_merge_call(cadre_replica *replica, struct fixture *fixture)
{
    return cadre_merge_call(replica, make_in_merge, fixture, NULL, 0, 0, NULL);
}

static cadre_status a_variable_without_a_name(struct fixture *fixture)
{
    return create(fixture, "", 0);
}

static cadre_status a_variable_without_dimensions(struct fixture *fixture)
{
    return create(fixture, "shapeless", 2);
}

static cadre_status another_shape_assigned(struct fixture *fixture)
{
    return cadre_variable_assign(NULL, fixture->weight, CADRE_ASSIGN, fixture->triple);
}

static cadre_status another_type_assigned(struct fixture *fixture)
{
    return cadre_variable_assign(NULL, fixture->steps, CADRE_ASSIGN, fixture->scalar);
}

static cadre_status half_a_step(struct fixture *fixture)
{
    return cadre_variable_assign_literal(NULL, fixture->steps, CADRE_ASSIGN_ADD, 0.5);
}

static cadre_status truth_that_is_added(struct fixture *fixture)
{
    return cadre_variable_assign_literal(NULL, fixture->truth, CADRE_ASSIGN_ADD, 1);
}

static cadre_status no_way_to_assign(struct fixture *fixture)
{
    return cadre_variable_assign_literal(NULL, fixture->steps, (cadre_assignment)9, 1);
}

static cadre_status written_outside_of_a_step(struct fixture *fixture)
{
    return cadre_variable_write(NULL, fixture->weight) == NULL ? CADRE_FAILED_PRECONDITION
                                                               : CADRE_OK;
}

static cadre_status rows_of_a_scalar_changed(struct fixture *fixture)
{
    int64_t row = 0;
    cadre_tensor *index;
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, (const int64_t[]){1}, &row, &index));
    const cadre_sparse value = {.values = fixture->pair, .indices = index, .rows = -1};
    return mistakes_release(
        index, cadre_variable_scatter(NULL, fixture->steps, CADRE_SCATTER_ADD, &value));
}

static cadre_status assigned_differently(cadre_replica *replica, struct fixture *fixture)
{
    return cadre_variable_assign_literal(
        replica, fixture->steps, CADRE_ASSIGN, cadre_replica_id(replica));
}

static cadre_status a_sum_of_a_constant(cadre_replica *replica, struct fixture *fixture)
{
    (void)fixture;
    return cadre_variable_assign_literal(replica, fixture->sum, CADRE_ASSIGN, 1);
}

/* ---- collectives ---- */

static cadre_status reduced_by_other_means(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own;
    CADRE_TRY(cadre_tensor_copy(fixture->pair, &own));
    return mistakes_release(
        own, cadre_all_reduce(
                 replica, cadre_replica_id(replica) == 0 ? CADRE_SUM : CADRE_MEAN, &own, 1, NULL));
}

static cadre_status reduced_in_other_shapes(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own;
    CADRE_TRY(
        cadre_tensor_copy(cadre_replica_id(replica) == 0 ? fixture->pair : fixture->triple, &own));
    return mistakes_release(own, cadre_all_reduce(replica, CADRE_SUM, &own, 1, NULL));
}

static cadre_status reduced_by_one_alone(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own;
    if (cadre_replica_id(replica) != 0) {
        return CADRE_OK;
    }
    CADRE_TRY(cadre_tensor_copy(fixture->pair, &own));
    return mistakes_release(own, cadre_all_reduce(replica, CADRE_SUM, &own, 1, NULL));
}

static cadre_status reduced_in_another_order(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own[2];
    CADRE_TRY(cadre_tensor_copy(fixture->pair, &own[0]));
    CADRE_TRY(cadre_tensor_copy(fixture->triple, &own[1]));
    int first = cadre_replica_id(replica) == 0 ? 0 : 1;
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &own[first], 1, NULL);
    if (status == CADRE_OK) {
        status = cadre_all_reduce(replica, CADRE_SUM, &own[1 - first], 1, NULL);
    }
    cadre_tensor_release(own[1]);
    return mistakes_release(own[0], status);
}

static cadre_status a_sum_of_truth(cadre_replica *replica, struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *truth;
    CADRE_TRY(cadre_tensor_create(CADRE_BOOL, 0, NULL, &truth));
    return mistakes_release(truth, cadre_all_reduce(replica, CADRE_SUM, &truth, 1, NULL));
}

static cadre_status no_such_reduction(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own;
    CADRE_TRY(cadre_tensor_copy(fixture->pair, &own));
    return mistakes_release(own, cadre_all_reduce(replica, (cadre_reduce_op)77, &own, 1, NULL));
}

static cadre_status gathered_along_no_axis(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *all;
    return cadre_all_gather(replica, &fixture->pair, 1, 3, NULL, &all);
}

static cadre_status parts_of_what_has_none(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *part;
    return cadre_reduce_scatter(replica, CADRE_SUM, fixture->triple, NULL, &part);
}

static cadre_status from_a_replica_that_is_not_there(
    cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *own;
    CADRE_TRY(cadre_tensor_copy(fixture->pair, &own));
    return mistakes_release(own, cadre_broadcast(replica, FIXTURE_REPLICAS, &own, 1));
}

static cadre_status nothing_to_reduce(cadre_replica *replica, struct fixture *fixture)
{
    (void)fixture;
    return cadre_all_reduce(replica, CADRE_SUM, NULL, 1, NULL);
}

static const struct mistake mistakes[] = {
    BETWEEN_STEPS(no_such_device, BAD, "name one as CPU:0"),
    BETWEEN_STEPS(one_device_twice, BAD, "in the list twice"),
    BETWEEN_STEPS(a_scope_left_that_was_not_entered, EARLY, "innermost scope is none"),
    BETWEEN_STEPS(a_collective_outside_of_a_step, EARLY, "from the function given to cadre_run"),
    BETWEEN_STEPS(a_merge_call_outside_of_a_step, EARLY, "from the function given to cadre_run"),
    BETWEEN_STEPS(a_replica_behind_its_step, EARLY, "from the function given to cadre_run"),
    INSIDE(a_run_in_a_step, EARLY, "call it between steps"),
    INSIDE(a_batch_taken_in_a_step, EARLY, "call it between steps"),
    INSIDE(a_save_in_a_step, EARLY, "call it between steps"),
    INSIDE(an_update_in_a_step, EARLY, "use cadre_merge_call"),
    BETWEEN_STEPS(
        a_variable_called_as_a_state, CADRE_ALREADY_EXISTS, "give the variable another name"),
    INSIDE(a_variable_of_one_replica, BAD, "the replicas disagree"),
    INSIDE(a_variable_for_each_replica, BAD, "cadre_variable_create('second', f32 [], NONE)"),
    BETWEEN_STEPS(a_variable_that_grows, BAD, "created f32 [2] before, and now f32 [3]"),
    BETWEEN_STEPS(a_variable_kept_from_a_failed_step, EARLY, "create it in each run"),
    INSIDE(a_variable_made_in_a_merge_call, EARLY, "while a step is running"),
    BETWEEN_STEPS(a_variable_without_a_name, BAD, "is empty"),
    BETWEEN_STEPS(a_variable_without_dimensions, BAD, "dims is NULL"),
    BETWEEN_STEPS(another_shape_assigned, BAD, "is f32 [2] and cannot be assigned f32 [3]"),
    BETWEEN_STEPS(another_type_assigned, BAD, "is i64 [] and cannot be assigned f32 []"),
    BETWEEN_STEPS(half_a_step, BAD, "cannot be 0.5"),
    BETWEEN_STEPS(truth_that_is_added, BAD, "nothing can be added"),
    BETWEEN_STEPS(no_way_to_assign, BAD, "use CADRE_ASSIGN"),
    BETWEEN_STEPS(written_outside_of_a_step, EARLY, "use cadre_variable_assign there"),
    BETWEEN_STEPS(rows_of_a_scalar_changed, BAD, "variable 'steps' is i64 []"),
    INSIDE(assigned_differently, BAD, "the replicas disagree"),
    INSIDE(a_sum_of_a_constant, BAD, "give a tensor of each"),
    INSIDE(reduced_by_other_means, BAD, "replica 1 calls cadre_all_reduce(CADRE_MEAN)"),
    INSIDE(reduced_in_other_shapes, BAD, "with f32 [3]"),
    INSIDE(reduced_by_one_alone, BAD, "replica 1 calls no collective"),
    INSIDE(
        reduced_in_another_order, BAD, "replica 1 calls cadre_all_reduce(CADRE_SUM) with f32 [3]"),
    INSIDE(a_sum_of_truth, BAD, "type bool cannot be summed"),
    INSIDE(no_such_reduction, BAD, "77 is not a reduction"),
    INSIDE(gathered_along_no_axis, BAD, "axis 3 is not one"),
    INSIDE(parts_of_what_has_none, BAD, "a multiple of the 2 replicas"),
    INSIDE(from_a_replica_that_is_not_there, BAD, "name one from 0 to 1"),
    INSIDE(nothing_to_reduce, BAD, "NULL for its list"),
};

static void each_mistake_is_reported(void **state)
{
    (void)state;
    mistakes_check(mistakes, sizeof mistakes / sizeof mistakes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
