/* SPDX-License-Identifier: Apache-2.0
 * A program under test on the GPUs of the stand-in, whose variables prove what was applied. Over
 * any number of tasks and replicas, through any losses, on GPUs or not, they must end as those of
 * an undisturbed run; all numbers are integers, so that the order of a sum does not show:
 *
 *     count    how often each sample was applied; its gradient goes through cadre_all_reduce
 *     order    a chain over the steps, of the samples of each
 *     weights  sums over the samples, float32; their gradients go through buckets
 *
 *     gpu-learner [NAME=VALUE ...]
 *     samples=96 batch=12 epochs=3    sizes
 *     pace=0        milliseconds between two steps
 *     die=SLOT:STEP:PLACE   the first incarnation of the task SLOT kills itself (SIGKILL) at that
 *                   ledger step or a following one, at PLACE: step, collective (its peers' devices
 * are in one that its own never begins), buckets, apply, save stop=SLOT:STEP:PLACE  the same one
 * stops itself (SIGSTOP) hang=SLOT:STEP:PLACE  its GPUs begin no more work from there on:
 * collective (before it), or after (all collectives of the step) fault=SLOT:NAME:ERROR all calls of
 * NAME fail so in it (standin.h), from the beginning on save=0        1: a checkpoint at the end of
 * each epoch, waited for */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "common/base/fault.h"
#include "learner_kernels.h"
#include "tests/gpu/standin/standin.h"

#define WEIGHTS      8
#define REPLICAS_MAX 8

struct place {
    int64_t slot; /* -1: nowhere */
    uint64_t step;
    char name[16];
};

struct learner {
    int64_t samples;
    int64_t batch;
    int64_t epochs;
    int64_t pace_ms;
    int64_t save;
    struct place die;
    struct place stop;
    struct place hang;
    char fault[64]; /* its name, which the stand-in does not copy */
    cadre_strategy *strategy;
    cadre_variable *count;
    cadre_variable *order;
    cadre_variable *weights;
    /* Of a step, by local replica: what apply reads. */
    cadre_tensor *hits[REPLICAS_MAX];
    cadre_tensor *gradients[REPLICAS_MAX];
};

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : strtoll(text, NULL, 10);
}

static bool is_first_attempt_of(int64_t slot)
{
    return slot == number_of("CADRE_SLOT") &&
           number_of("CADRE_INCARNATION") <= number_of("CADRE_TASKS");
}

static bool is_here(const struct learner *learner, const struct place *place, const char *name)
{
    return is_first_attempt_of(place->slot) && strcmp(place->name, name) == 0 &&
           cadre_strategy_position(learner->strategy) >= place->step;
}

static void maybe_end(const struct learner *learner, const char *name)
{
    if (is_here(learner, &learner->die, name)) {
        fprintf(stderr, "gpu-learner: dies at \"%s\"\n", name);
        raise(SIGKILL);
    }
    if (is_here(learner, &learner->stop, name)) {
        fprintf(stderr, "gpu-learner: stops at \"%s\"\n", name);
        raise(SIGSTOP);
    }
}

/* From here on the replica's GPU begins nothing more. */
static void maybe_hold(
    const struct learner *learner, const cadre_replica *replica, const char *name)
{
    bool holds = is_here(learner, &learner->hang, name);
    if (strcmp(name, "collective") == 0) {
        holds = holds || is_here(learner, &learner->die, name) ||
                is_here(learner, &learner->stop, name);
    }
    if (holds && cadre_replica_gpu(replica) >= 0) {
        standin_device_hold(cadre_replica_gpu(replica));
    }
}

/* --- a step --- */

static cadre_status launched(int error)
{
    return error == 0 ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "a launch: error %d", error);
}

static void keep(cadre_tensor **place, cadre_tensor *tensor)
{
    cadre_tensor_release(*place); /* of an attempt before */
    *place = tensor;
}

static void apply(cadre_replica *replica, void *user)
{
    struct learner *learner = user;
    uint32_t local = cadre_replica_local_id(replica);
    void *stream = cadre_replica_stream(replica);
    maybe_end(learner, "apply");
    learner_kernel_apply(stream, cadre_variable_write(replica, learner->count),
        cadre_variable_write(replica, learner->order),
        cadre_tensor_const_data(learner->hits[local]), learner->samples);
    learner_kernel_add(stream, cadre_variable_write(replica, learner->weights),
        cadre_tensor_const_data(learner->gradients[local]), WEIGHTS);
    keep(&learner->hits[local], NULL);
    keep(&learner->gradients[local], NULL);
}

/* The gradient in two parts, the second one first, as backward makes them. */
static cadre_status gradients(
    cadre_replica *replica, struct learner *learner, const cadre_tensor *ids)
{
    cadre_buckets *buckets;
    cadre_tensor *tensors[2] = {NULL, learner->gradients[cadre_replica_local_id(replica)]};
    const cadre_bucket_options options = {.first_bytes = 4, .bucket_bytes = 4};
    void *stream = cadre_replica_stream(replica);
    const int64_t dims[1] = {WEIGHTS};
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &tensors[0]));
    cadre_status status = cadre_buckets_begin(replica, CADRE_SUM, tensors, 2, &options, &buckets);
    for (size_t i = 0; status == CADRE_OK && i < 2; i++) {
        status = launched(learner_kernel_gradient(stream, cadre_tensor_data(tensors[i]), WEIGHTS,
            cadre_tensor_const_data(ids), cadre_tensor_rows(ids)));
        if (status == CADRE_OK) {
            status = cadre_buckets_ready(buckets, i);
        }
        maybe_end(learner, "buckets");
    }
    if (status == CADRE_OK) {
        status = cadre_buckets_wait(buckets);
    }
    cadre_tensor_release(tensors[0]);
    return status;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct learner *learner = user;
    uint32_t local = cadre_replica_local_id(replica);
    void *stream = cadre_replica_stream(replica);
    const int64_t dims[1] = {WEIGHTS};
    cadre_tensor *hits;
    cadre_tensor *gradient;
    (void)outputs;
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_I64, 1, &learner->samples, &hits));
    keep(&learner->hits[local], hits);
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &gradient));
    keep(&learner->gradients[local], gradient);
    maybe_end(learner, "step");
    maybe_hold(learner, replica, "collective");
    CADRE_TRY(launched(learner_kernel_count(stream, cadre_tensor_data(hits), learner->samples,
        cadre_tensor_const_data(inputs[0]), cadre_tensor_rows(inputs[0]))));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &hits, 1, NULL));
    maybe_end(learner, "collective");
    CADRE_TRY(gradients(replica, learner, inputs[0]));
    if (is_here(learner, &learner->hang, "after")) {
        CADRE_TRY(cadre_replica_synchronize(replica));
        maybe_hold(learner, replica, "after");
        CADRE_TRY(launched(learner_kernel_add(stream, cadre_tensor_data(gradient),
            cadre_variable_read(replica, learner->weights), WEIGHTS)));
    }
    return cadre_on_apply(replica, apply, learner);
}

/* --- the loop --- */

static void train(struct learner *learner)
{
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    const cadre_input_options options = {.name = "train", .prefetch = 2, .per_replica_buffer = 2};
    const int64_t dims[1] = {WEIGHTS};
    cadre_strategy *strategy = learner->strategy;
    CADRE_CHECK(cadre_variable_create(
        strategy, "count", CADRE_I64, 1, &learner->samples, NULL, &learner->count));
    CADRE_CHECK(
        cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, &learner->order));
    CADRE_CHECK(
        cadre_variable_create(strategy, "weights", CADRE_F32, 1, dims, NULL, &learner->weights));
    CADRE_CHECK(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_shuffle(cadre_dataset_range(0, learner->samples, 1),
                                CADRE_SHUFFLE_ALL, 7, NULL),
            learner->batch, false),
        &options, &data));
    while (cadre_next_epoch(data, (uint64_t)learner->epochs, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            if (learner->pace_ms > 0) {
                poll(NULL, 0, (int)learner->pace_ms);
            }
            CADRE_CHECK(cadre_run(strategy, step, learner, batch, 0, NULL));
        }
        if (learner->save != 0) {
            maybe_end(learner, "save");
            CADRE_CHECK(cadre_save(strategy, true));
        }
    }
    CADRE_CHECK(cadre_distributed_status(data));
}

/* --- the beginning --- */

static void take_place(const char *value, struct place *ret_place)
{
    char *end;
    ret_place->slot = strtoll(value, &end, 10);
    ret_place->step = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    snprintf(ret_place->name, sizeof ret_place->name, "%s", *end == ':' ? end + 1 : "step");
}

static void take_fault(struct learner *learner, const char *value)
{
    char *end;
    int64_t slot = strtoll(value, &end, 10);
    const char *error = strrchr(value, ':');
    if (*end == ':' && error > end && is_first_attempt_of(slot)) {
        snprintf(learner->fault, sizeof learner->fault, "%.*s", (int)(error - end - 1), end + 1);
        standin_fail_from(learner->fault, 1, (int)strtol(error + 1, NULL, 10));
    }
}

static bool take_option(struct learner *learner, const char *argument)
{
    struct {
        const char *name;
        int64_t *number;
        struct place *place;
    } all[] = {{"samples", .number = &learner->samples}, {"batch", .number = &learner->batch},
        {"epochs", .number = &learner->epochs}, {"pace", .number = &learner->pace_ms},
        {"save", .number = &learner->save}, {"die", .place = &learner->die},
        {"stop", .place = &learner->stop}, {"hang", .place = &learner->hang},
        {"fault", .number = NULL}};
    const char *value = strchr(argument, '=');
    size_t length = value == NULL ? 0 : (size_t)(value++ - argument);
    for (size_t i = 0; value != NULL && i < sizeof all / sizeof all[0]; i++) {
        if (strlen(all[i].name) != length || memcmp(argument, all[i].name, length) != 0) {
            continue;
        }
        if (all[i].number != NULL) {
            *all[i].number = strtoll(value, NULL, 10);
        } else if (all[i].place != NULL) {
            take_place(value, all[i].place);
        } else {
            take_fault(learner, value);
        }
        return true;
    }
    return false;
}

/* For the log: where it ran. */
static void tell(const struct learner *learner)
{
    const char *reason = "";
    uint32_t gpus = cadre_gpu_count(&reason);
    printf("task %" PRId64 " with %" PRIu32 " GPUs%s%s saw %" PRIu64 " steps\n",
        number_of("CADRE_SLOT"), gpus, gpus == 0 ? ": " : "", gpus == 0 ? reason : "",
        cadre_strategy_position(learner->strategy));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct learner learner = {
        .samples = 96, .batch = 12, .epochs = 3, .die.slot = -1, .stop.slot = -1, .hang.slot = -1};
    fault_arm("replica.rest", 1); /* a task that has to end itself does so soon */
    CADRE_CHECK(cadre_init(&argc, &argv));
    for (int i = 1; i < argc; i++) {
        if (!take_option(&learner, argv[i])) {
            fprintf(stderr, "gpu-learner: \"%s\" is no option\n", argv[i]);
            return 2;
        }
    }
    CADRE_CHECK(cadre_enable_gpus());
    CADRE_CHECK(cadre_strategy_default(&learner.strategy));
    train(&learner);
    tell(&learner);
    return cadre_finish(learner.strategy);
}
