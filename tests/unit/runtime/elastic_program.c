/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_program.h"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "faults.h"
#include "tests/lib/test.h"
#include "training.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_strategy *strategy;
static cadre_variable *sum;
static cadre_variable *order;
static uint64_t evaluated; /* registered: changed between steps, alike on all */

/* Registered, and changed wherever a loop can change it. */
static struct {
    uint64_t epochs;
    uint64_t before_next;
    uint64_t before_run;
    uint64_t behind_run;
} passes;

/* --- faults --- */

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

/* What a task holds that could grow with each generation. */
struct held {
    long long entries[2]; /* descriptors, threads */
};

static struct held now_held(void)
{
    static const char *const folders[] = {"/proc/self/fd", "/proc/self/task"};
    struct held held = {.entries = {0}};
    for (int i = 0; i < 2; i++) {
        DIR *folder = opendir(folders[i]);
        while (folder != NULL && readdir(folder) != NULL) {
            held.entries[i]++;
        }
        closedir(folder);
    }
    return held;
}

/* The least bytes behind a step of an epoch: what threads hold for a moment comes and goes. In the
 * first ones what is kept for later is still made (some 27,000, 7,000, 5,000 and 200 bytes). */
static long long least_bytes[ELASTIC_EPOCHS];
static struct held held_early;

static void note_bytes(uint64_t epoch)
{
    long long bytes = (long long)mallinfo2().uordblks;
    if (least_bytes[epoch] == 0 || bytes < least_bytes[epoch]) {
        least_bytes[epoch] = bytes;
    }
}

static void shake(uint64_t position)
{
    static uint64_t shaken = UINT64_MAX;
    static unsigned long times;
    const char *wanted = getenv("SHAKE");
    if (wanted == NULL || strcmp(getenv("STAGE_ATTEMPT"), "0") != 0) {
        return;
    }
    times = shaken == position ? times + 1 : 0;
    shaken = position;
    if (times < strtoul(wanted, NULL, 10)) {
        task_peer_error(strategy->task, strategy->roster.generation, "the test shook it");
    }
}

static void print_growth(void)
{
    struct held held = now_held();
    if (getenv("SHAKE") != NULL) {
        printf("grown by %lld descriptors, %lld threads, %lld bytes\n",
            held.entries[0] - held_early.entries[0], held.entries[1] - held_early.entries[1],
            least_bytes[ELASTIC_EPOCHS - 1] - least_bytes[ELASTIC_EPOCHS - 2]);
    }
}

/* Waits until the others have gone on without it. */
static void freeze(const char *fault, const char *until, uint64_t position)
{
    if (fault_due(fault, position)) {
        mark_await(until, position);
        setenv(fault, "", 1); /* once */
        task_peer_error(strategy->task, strategy->roster.generation, "the test froze it");
    }
}

/* --- steps --- */

static int64_t sum_of(const cadre_tensor *rows)
{
    const int64_t *values = cadre_tensor_const_data(rows);
    int64_t total = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(rows); i++) {
        total += values[i] * values[i] + 1;
    }
    return total;
}

static cadre_status total_of(cadre_replica *replica, int64_t own, int64_t *ret_total)
{
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_i64(own, &tensor));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    *ret_total = *(const int64_t *)cadre_tensor_const_data(tensor);
    cadre_tensor_release(tensor);
    return status;
}

/* The same of rows, by the communication thread. */
static cadre_status total_of_rows(
    cadre_replica *replica, const cadre_tensor *rows, int64_t *ret_total)
{
    cadre_tensor *tensor;
    cadre_collective *started;
    CADRE_TRY(cadre_tensor_from_i64(sum_of(rows), &tensor));
    cadre_status status = cadre_all_reduce_start(replica, CADRE_SUM, &tensor, 1, NULL, &started);
    if (status == CADRE_OK) {
        status = cadre_collective_wait(started);
    }
    *ret_total = *(const int64_t *)cadre_tensor_const_data(tensor);
    cadre_tensor_release(tensor);
    return status;
}

/* The rows of all replicas, joined: as many as the step has, and the same total. */
static cadre_status join_rows(
    cadre_replica *replica, cadre_tensor *own, int64_t total, int64_t *ret_rows)
{
    cadre_tensor *all;
    CADRE_TRY(cadre_all_gather(replica, &own, 1, 0, NULL, &all));
    int64_t joined = sum_of(all);
    *ret_rows = cadre_tensor_rows(all);
    cadre_tensor_release(all);
    return joined == total ? CADRE_OK
                           : cadre_fail(CADRE_INTERNAL, "the rows come to %lld, their sum to %lld",
                                 (long long)joined, (long long)total);
}

/* Prints it when a function is called once more for a step. */
static void note_call(const cadre_replica *replica, uint64_t position)
{
    static uint64_t called; /* steps that local replica 0 was called for */
    if (cadre_replica_local_id(replica) == 0) {
        if (called > position) {
            printf("once more %llu\n", (unsigned long long)position);
        }
        called = position + 1;
    }
}

static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    uint64_t position = cadre_strategy_position(strategy);
    int64_t total = 0;
    int64_t again = 0;
    (void)user;
    note_call(replica, position);
    if (fault_due("SLOW", position) && cadre_replica_local_id(replica) == 0) {
        poll(NULL, 0, 1500); /* a task that is slow, not a test that waits */
    }
    fault_die("DIE_BEFORE", position);
    die_once_published(position);
    if (cadre_replica_local_id(replica) == 0) {
        shake(position);
    }
    CADRE_TRY(total_of_rows(replica, inputs[0], &total));
    fault_die("DIE_BETWEEN", position);
    CADRE_TRY(join_rows(replica, inputs[0], total, &again));
    fault_die("DIE_AFTER", position);
    if (cadre_replica_local_id(replica) == 0) {
        freeze("MISS_APPLY", "applied", position);
        freeze("MISS_ALIGNED", "aligned", position);
    }
    if (again != cadre_replica_global_rows(replica) && getenv("FEED_TWICE") == NULL) {
        return cadre_fail(CADRE_INTERNAL, "%lld rows of %lld", (long long)again,
            (long long)cadre_replica_global_rows(replica));
    }
    *(int64_t *)cadre_variable_write(replica, sum) += total;
    uint64_t *mixed = cadre_variable_write(replica, order);
    *mixed = *mixed * UINT64_C(1000003) + (uint64_t)total;
    cadre_tensor *output;
    (void)outputs;
    CADRE_TRY(cadre_tensor_from_i64(total, &output));
    return cadre_replica_output(replica, "total", output);
}

static cadre_status measure(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    int64_t total = 0;
    (void)user;
    note_call(replica, cadre_strategy_position(strategy));
    fault_die("DIE_BEFORE", cadre_strategy_position(strategy));
    die_once_published(cadre_strategy_position(strategy));
    CADRE_TRY(total_of(replica, sum_of(inputs[0]), &total));
    return cadre_tensor_from_i64(total, &outputs[0]);
}

/* --- between steps --- */

struct counting {
    uint64_t position;
    int64_t replicas;
};

/* Its count is only known after the collective: a task that is frozen after it and did not get the
 * others' result would count another number. */
static cadre_status count_on_replica(
    cadre_strategy *of, uint32_t local, void *user, struct cadre_error *error)
{
    struct counting *counting = user;
    int64_t one = 1;
    struct mesh_buffer buffer = {.data = &one, .bytes = sizeof one, .dtype = MESH_I64};
    CADRE_TRY(collective_sum(of, local, &buffer, 1, counting->position, error));
    if (local == 0) {
        counting->replicas = one;
        if (fault_due("MISS_OUTSIDE", counting->position)) {
            setenv("MISS_OUTSIDE", "", 1); /* once */
            mark_await("counted", counting->position);
            return cadre_error_set(error, CADRE_ABORTED, "the test froze it");
        }
    }
    return CADRE_OK;
}

static int64_t output_of(cadre_per_replica *output)
{
    return *(const int64_t *)cadre_tensor_const_data(cadre_local_results(output, 0)[0]);
}

/* Each replica's output is the same total: the sum shows over how many replicas it is. */
static void check_reduced(const cadre_tensor *reduced, cadre_per_replica *output)
{
    int64_t sum_of_all = *(const int64_t *)cadre_tensor_const_data(reduced);
    int64_t one = output_of(output);
    uint32_t replicas = cadre_strategy_num_replicas_in_sync(strategy);
    if (sum_of_all != one * replicas) {
        printf("reduced %lld of %u times %lld\n", (long long)sum_of_all, replicas, (long long)one);
    }
}

static void between_steps(cadre_per_replica *output)
{
    uint64_t position = cadre_strategy_position(strategy);
    cadre_tensor *reduced;
    cadre_per_replica *total; /* by its name, also where the step was adopted */
    CADRE_CHECK(cadre_values_named(&output, 1, "total", &total));
    cadre_per_replica_release(total);
    mark_leave("applied", position - 1);
    if (getenv("NOTHING_BETWEEN") != NULL) {
        return;
    }
    fault_die("DIE_OUTSIDE", position);
    struct counting counting = {.position = position};
    struct cadre_error error;
    if (strategy_between_steps(strategy, "counting", count_on_replica, &counting, &error) !=
        CADRE_OK) {
        fprintf(stderr, "counting: %s\n", error.text);
        exit(1);
    }
    mark_leave("counted", position);
    if (counting.replicas != cadre_strategy_num_replicas_in_sync(strategy)) {
        printf("counted %lld of %u\n", (long long)counting.replicas,
            cadre_strategy_num_replicas_in_sync(strategy));
    }
    fault_hang("HANG_REDUCE", position);
    CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &reduced));
    check_reduced(reduced, output);
    cadre_tensor_release(reduced);
    CADRE_CHECK(cadre_barrier());
}

static cadre_distributed_dataset *distribute(const char *name, int64_t samples, int64_t batch)
{
    cadre_distributed_dataset *data;
    cadre_dataset *all =
        cadre_dataset_shuffle(cadre_dataset_range(0, samples, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    CADRE_CHECK(cadre_distribute_dataset(strategy, cadre_dataset_batch(all, batch, false),
        &(cadre_input_options){.name = name}, &data));
    return data;
}

static void evaluate(cadre_distributed_dataset *data, uint64_t epochs)
{
    cadre_per_replica *batch;
    cadre_per_replica *output;
    if (!cadre_next_epoch(data, epochs, NULL)) {
        return;
    }
    while (cadre_next(data, &batch) == CADRE_OK) {
        CADRE_CHECK(cadre_run(strategy, measure, NULL, batch, 1, &output));
        evaluated = evaluated * 31 + (uint64_t)output_of(output);
    }
}

/* A mesh whose broadcast succeeds for all others. */
static const struct mesh_ops *whole_ops;

static cadre_status missed_broadcast(struct mesh *mesh, uint32_t local, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    CADRE_TRY(whole_ops->broadcast(mesh, local, root, buffers, count, note, error));
    mark_await("created", 0);
    memset(buffers[0].data, 0, buffers[0].bytes);
    return cadre_error_set(error, CADRE_ABORTED, "the test froze it");
}

static void miss_creation(void)
{
    static struct mesh_ops ops;
    if (fault_due("MISS_CREATE", 0)) {
        whole_ops = strategy->mesh->ops;
        ops = *whole_ops;
        ops.broadcast = missed_broadcast;
        strategy->mesh->ops = &ops;
    }
}

int elastic_program(void)
{
    cadre_per_replica *batch;
    cadre_per_replica *output;
    uint64_t epoch;
    if (fault_due("OTHER_FOLDER", 0)) {
        setenv("CADRE_CHECKPOINT_DIR", getenv("CADRE_OUTPUT_DIR"), 1);
    }
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_state_register(strategy, "evaluated", &evaluated, sizeof evaluated));
    CADRE_CHECK(cadre_state_register(strategy, "passes", &passes, sizeof passes));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, NULL, &sum));
    fault_die("DIE_CREATE", 0);
    fault_hang("HANG_CREATE", 0);
    miss_creation();
    const cadre_variable_options five = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 5}};
    CADRE_CHECK(cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, &five, &order));
    mark_leave("created", 0);
    cadre_distributed_dataset *data =
        distribute("train", ELASTIC_SAMPLES, getenv("OTHER_BATCHES") == NULL ? 8 : 4);
    cadre_distributed_dataset *tests = distribute("test", ELASTIC_TEST_SAMPLES, 4);
    if (fault_due("FEED_TWICE", 0)) {
        fault_arm("input.piece", 20);
    }
    while (cadre_next_epoch(data, ELASTIC_EPOCHS, &epoch)) {
        passes.epochs++;
        while (passes.before_next++, cadre_next(data, &batch) == CADRE_OK) {
            passes.before_run++;
            CADRE_CHECK(cadre_run(strategy, train, NULL, batch, 1, &output));
            passes.behind_run++;
            between_steps(output);
            note_bytes(epoch);
        }
        evaluate(tests, epoch + 1);
        held_early = epoch == 0 ? now_held() : held_early;
    }
    fault_die("DIE_FINISH", 0);
    print_growth();
    printf("sum %lld order %llu evaluated %llu passes %llu %llu %llu %llu position %llu tasks %u\n",
        (long long)*(const int64_t *)cadre_variable_read(NULL, sum),
        (unsigned long long)*(const uint64_t *)cadre_variable_read(NULL, order),
        (unsigned long long)evaluated, (unsigned long long)passes.epochs,
        (unsigned long long)passes.before_next, (unsigned long long)passes.before_run,
        (unsigned long long)passes.behind_run,
        (unsigned long long)cadre_strategy_position(strategy), cadre_world_size());
    fflush(stdout);
    fault_hang("HANG_FINISH", 0);
    return cadre_finish(strategy);
}

int elastic_bare_program(void)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    for (int i = 0; i < 3; i++) {
        CADRE_CHECK(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    }
    fault_die("DIE_FINISH", 0);
    return cadre_finish(strategy);
}

static cadre_status add(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    int64_t total = 0;
    (void)outputs;
    CADRE_TRY(total_of(replica, sum_of(inputs[0]), &total));
    int64_t *counted = cadre_variable_write(replica, order);
    *(int64_t *)cadre_variable_write(replica, sum) += (*(const int64_t *)user + *counted) * total;
    ++*counted;
    return CADRE_OK;
}

/* All do it before their first step; a joiner does it when the others have done it. */
static void begin_phase(void)
{
    cadre_tensor *zero;
    CADRE_CHECK(cadre_barrier());
    CADRE_CHECK(cadre_tensor_from_i64(0, &zero));
    CADRE_CHECK(cadre_variable_assign(NULL, order, CADRE_ASSIGN, zero));
    cadre_tensor_release(zero);
    CADRE_CHECK(cadre_save(strategy, false));
}

static void phase(const char *name, int64_t weight)
{
    cadre_per_replica *batch;
    cadre_distributed_dataset *data = distribute(name, 4 * ELASTIC_PHASE_STEPS, 4);
    if (fault_due("LATE", 0) && weight == 1) {
        mark_await("second", 0);
    }
    if (cadre_next_epoch(data, 1, NULL)) {
        begin_phase();
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_barrier());
            CADRE_CHECK(cadre_run(strategy, add, &weight, batch, 0, NULL));
            if (weight == 2) {
                mark_leave("second", 0);
            }
        }
    }
}

int elastic_phases_program(void)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, NULL, &sum));
    CADRE_CHECK(cadre_variable_create(strategy, "steps", CADRE_I64, 0, NULL, NULL, &order));
    phase("first", 1);
    phase("second", 2);
    printf("sum %lld at %llu\n", (long long)*(const int64_t *)cadre_variable_read(NULL, sum),
        (unsigned long long)cadre_strategy_position(strategy));
    fflush(stdout);
    return cadre_finish(strategy);
}
