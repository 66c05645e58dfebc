/* SPDX-License-Identifier: Apache-2.0 */
#include "late_program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "tests/lib/test.h"
#include "training.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/task/task.h"

static cadre_strategy *strategy;

/* --- faults in the meetings of a creation --- */

static const struct mesh_ops *whole_ops;
static struct mesh_ops faulty_ops;
static uint64_t creating_at;

static bool is_of(const struct mesh_note *note, const char *what)
{
    return note != NULL && note->text != NULL && strstr(note->text, what) != NULL;
}

/* Until the others have applied the step without it. */
static void freeze(void)
{
    setenv("MISS_LAST", "", 1); /* once */
    mark_await("applied", creating_at);
    task_peer_error(strategy->task, strategy->roster.generation, "the test froze it");
}

static cadre_status fault_in_sum(struct mesh *mesh, uint32_t local, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    if (is_of(note, "cadre_variable_create")) {
        fault_die("DIE_FIRST", creating_at);
    }
    cadre_status status = whole_ops->all_reduce(mesh, local, op, buffers, count, note, error);
    bool last = is_of(note, "nothing more");
    if (last && status == CADRE_OK && local == 0 && fault_due("MISS_LAST", creating_at)) {
        freeze();
        return cadre_error_set(error, CADRE_ABORTED, "the test froze it");
    }
    return status;
}

static cadre_status fault_in_broadcast(struct mesh *mesh, uint32_t local, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    if (is_of(note, "cadre_variable_create")) {
        fault_die("DIE_SECOND", creating_at);
    }
    return whole_ops->broadcast(mesh, local, root, buffers, count, note, error);
}

/* Of a mesh that another generation has replaced nothing is left to put back. */
static void put_faults(uint64_t position)
{
    creating_at = position;
    if (strategy->mesh->ops != &faulty_ops) {
        whole_ops = strategy->mesh->ops;
        faulty_ops = *whole_ops;
        faulty_ops.all_reduce = fault_in_sum;
        faulty_ops.broadcast = fault_in_broadcast;
        strategy->mesh->ops = &faulty_ops;
    }
}

static bool is_published(void *data)
{
    (void)data;
    return cadre_checkpoint_latest(strategy) != CADRE_POSITION_NONE;
}

static void die_once_published(uint64_t position)
{
    if (fault_due("DIE_WAITING", position)) {
        test_wait(is_published, NULL, MARK_WAIT_US);
        raise(SIGKILL);
    }
}

/* --- what it creates --- */

static cadre_status create(
    const char *name, cadre_dtype dtype, int64_t count, bool summed, cadre_variable **ret_variable)
{
    const cadre_variable_options options = {
        .initializer = {.kind = dtype == CADRE_STRING ? CADRE_INITIALIZER_ZEROS
                                                      : CADRE_INITIALIZER_CONSTANT,
            .value = 3},
        .synchronization = summed ? CADRE_SYNC_ON_READ : CADRE_SYNC_AUTO,
        .aggregation = summed ? CADRE_AGGREGATION_SUM : CADRE_AGGREGATION_NONE};
    return cadre_variable_create(NULL, name, dtype, 1, &count, &options, ret_variable);
}

static uint64_t mix(uint64_t value, uint64_t with)
{
    return value * UINT64_C(1000003) + with;
}

/* Each replica the same. */
static void note(cadre_replica *replica, cadre_variable *variable, uint64_t with)
{
    uint64_t *values = cadre_variable_write(replica, variable);
    for (int64_t i = 0; i < cadre_variable_count(variable); i++) {
        values[i] = mix(values[i], with + (uint64_t)i);
    }
}

/* The sum over all: of rows that each replica has a part of. */
static cadre_status count_rows(
    cadre_replica *replica, cadre_variable *variable, const cadre_tensor *rows)
{
    cadre_tensor *own;
    int64_t count = cadre_tensor_rows(rows);
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, &(int64_t){1}, &count, &own));
    cadre_status status = cadre_variable_assign(replica, variable, CADRE_ASSIGN_ADD, own);
    cadre_tensor_release(own);
    return status;
}

static cadre_status total_of(cadre_replica *replica, const cadre_tensor *rows, uint64_t *ret_total)
{
    const int64_t *values = cadre_tensor_const_data(rows);
    int64_t own = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(rows); i++) {
        own += values[i] * values[i] + 1;
    }
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_i64(own, &tensor));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    *ret_total = (uint64_t) * (const int64_t *)cadre_tensor_const_data(tensor);
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    uint64_t position = cadre_strategy_position(strategy);
    uint64_t total = 0;
    cadre_variable *first = NULL;
    cadre_variable *second = NULL;
    cadre_variable *seen = NULL;
    cadre_variable *words = NULL;
    (void)outputs;
    (void)user;
    CADRE_TRY(total_of(replica, inputs[0], &total));
    die_once_published(position);
    fault_die("DIE_BEFORE", position);
    if (position >= LATE_SLOTS) {
        CADRE_TRY(create("slot", CADRE_I64, 3, false, &first));
        CADRE_TRY(create("slot", CADRE_I64, 5, false, &second));
        note(replica, first, total);
        note(replica, second, total + position);
    }
    if (position >= LATE_SEEN) {
        CADRE_TRY(create("seen", CADRE_I64, 1, true, &seen));
        CADRE_TRY(count_rows(replica, seen, inputs[0]));
    }
    if (position >= LATE_ARGUMENTS) {
        CADRE_TRY(create("words", CADRE_STRING, 2, false, &words));
    }
    fault_die("DIE_AFTER", position);
    note(replica, training_find(strategy, "sum"), total);
    note(replica, training_find(strategy, "early"), total);
    if (position < LATE_SEEN && cadre_replica_local_id(replica) == 0 &&
        fault_due("MISS_LAST", position)) {
        freeze(); /* no collective follows */
    }
    return CADRE_OK;
}

/* --- what it does --- */

static void print_all(void)
{
    static const char *const names[] = {
        "early", "lazy", "mark1", "mark2", "mark3", "order", "slot", "slot_1", "sum"};
    uint64_t digest = 0;
    const cadre_variable *seen = training_find(strategy, "seen");
    const cadre_variable *words = training_find(strategy, "words");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const cadre_variable *variable = training_find(strategy, names[i]);
        const uint64_t *values = cadre_variable_read(NULL, variable);
        for (int64_t k = 0; k < cadre_variable_count(variable); k++) {
            digest = mix(digest, values[k]);
        }
        digest = mix(digest, (uint64_t)cadre_variable_count(variable));
    }
    const cadre_string *strings = cadre_variable_read(NULL, words);
    const int64_t *rows = cadre_variable_read(NULL, seen);
    uint32_t replicas = cadre_strategy_num_replicas_in_sync(strategy);
    printf("sum %llu twice %d words '%.*s' position %llu tasks; seen %lld of %u\n",
        (unsigned long long)digest,
        training_find(strategy, "lazy_1") != NULL || training_find(strategy, "early_1") != NULL,
        strings == NULL ? 0 : (int)strings[1].size, strings == NULL ? "" : strings[1].bytes,
        (unsigned long long)cadre_strategy_position(strategy), (long long)rows[0], replicas);
    fflush(stdout);
}

static void create_between(const char *name, cadre_variable **ret_variable)
{
    uint64_t position = cadre_strategy_position(strategy);
    put_faults(position);
    fault_die("DIE_BETWEEN", position);
    CADRE_CHECK(create(name, CADRE_I64, 2, false, ret_variable));
    mark_leave("applied", position);
}

/* At the beginning of each epoch: one for each but the first, and what a program creates when it
 * has none, before the first step and later. */
static void begin_epoch(uint64_t epoch)
{
    static cadre_variable *early;
    static cadre_variable *lazy;
    cadre_variable *mark;
    char name[16];
    if (early == NULL) {
        CADRE_CHECK(create("early", CADRE_I64, 2, false, &early));
    }
    if (epoch > 0) {
        snprintf(name, sizeof name, "mark%u", (unsigned)epoch);
        create_between(name, &mark);
    }
    if (epoch > 0 && lazy == NULL) {
        create_between("lazy", &lazy);
    }
}

static void create_first(void)
{
    cadre_variable *variable;
    bool backwards = fault_due("BACKWARDS", 0);
    CADRE_CHECK(create(backwards ? "sum" : "order", CADRE_I64, 1, false, &variable));
    CADRE_CHECK(create(backwards ? "order" : "sum", CADRE_I64, 1, false, &variable));
}

int late_program(void)
{
    cadre_per_replica *batch;
    cadre_distributed_dataset *data;
    uint64_t epoch;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_strategy_set(strategy));
    create_first();
    cadre_dataset *all = cadre_dataset_shuffle(
        cadre_dataset_range(0, 4 * LATE_STEPS, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    CADRE_CHECK(cadre_distribute_dataset(strategy, cadre_dataset_batch(all, 4, false),
        &(cadre_input_options){.name = "train"}, &data));
    while (cadre_next_epoch(data, LATE_EPOCHS, &epoch)) {
        begin_epoch(epoch);
        while (cadre_next(data, &batch) == CADRE_OK) {
            uint64_t position = cadre_strategy_position(strategy);
            put_faults(position);
            CADRE_CHECK(cadre_run(strategy, train, NULL, batch, 0, NULL));
            mark_leave("applied", position);
        }
    }
    print_all();
    return cadre_finish(strategy);
}
