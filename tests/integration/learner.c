/* SPDX-License-Identifier: Apache-2.0
 * A program under test whose state proves what was applied. Over any number of tasks, and through
 * any losses, its variables must end as those of an undisturbed run:
 *
 *     count    how often each sample was applied
 *     order    a chain over the steps, of the samples of each: another order is another number
 *     weights  a moving average: what floating point makes of the same steps
 *     tested   a sync-on-read sum over the rows of all evaluation steps
 *
 *     learner [NAME=VALUE ...]
 *     samples=192 batch=16 epochs=3 test=40   sizes
 *     constant=0    so many numbers more of state, which no step changes
 *     pace=0        milliseconds between two steps
 *     allowed=FILE  takes no ledger step at or beyond the number in FILE, which may rise meanwhile
 *     late=0        1: all variables but the first are created by the steps that need them
 *     save=0        1: a checkpoint at the end of each epoch, waited for
 *     die=SLOT:STEP:PLACE   the first task of SLOT kills itself (SIGKILL) at ledger step STEP or
 *                   later, at PLACE: step, between (two collectives), last, reduce, eval, save,
 *                   finish, create
 *     stop=SLOT:STEP        the same one stops itself (SIGSTOP) before that step
 *     preempt=SLOT:STEP     it has to leave its machine (SIGTERM) from that step on
 *     fail=SLOT:STEP        its function fails there
 *     exit=SLOT:STEP        it exits with status 3 before that step, by itself
 *     twice=SLOT:NTH        its nth piece of a batch is one of another task: these samples are
 *                   consumed twice, and its own not at all
 *     shard=off     each task reads all of both datasets for itself; auto, file, data
 *     data=FOLDER   where the samples of training come from, instead of a range:
 *     source=lines    its files *.txt, a number a line; can be shared out by files
 *     source=sieve    the same, every number twice but one half filtered out, drawn from a shuffle
 *                     buffer: not indexable
 *     source=records  its TFRecord files *.tfrecord, shuffled as a whole: a number in the first
 *                     eight bytes of each record
 *     source=list     the same in one list, drawn from a shuffle buffer: can be shared out by files
 *     source=function pipelines of the tasks' own, with batches of other sizes, out of the range or
 *                     the sieve
 *     via=turns     how lines come together: by turns, threads (the same with two), stirred (the
 *                   files in another order each epoch), flat (one file after the other), list (the
 *                   same, as the list of one source)
 *     steps=0       of an epoch of training; 0: as many as there are
 *     endless=0     1: the samples again and again; with steps
 *     leave=0       leaves an epoch of training after so many steps; 0: never
 *     mix=0         1: a step of the evaluation after each step of training, as long as there are
 *     odd=SLOT      that task leaves out the last file
 *     exam=FOLDER   the evaluation is of these lines, shared out by files
 *     log=FOLDER    each task appends "EPOCH STEP: SAMPLE ..." for each step that it applied
 *
 * Ends with status 9, and says why on stderr, when what it knows of itself is wrong. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/fault.h"
#include "tests/integration/learner_input.h"

#define WEIGHTS    8
#define TEST_BATCH 8

struct place {
    int64_t slot; /* -1: nowhere */
    uint64_t step;
    char name[16];
};

struct options {
    int64_t samples;
    int64_t batch;
    int64_t epochs;
    int64_t test;
    int64_t constant;
    int64_t pace_ms;
    int64_t save;
    int64_t late;
    struct place die;
    struct place stop;
    struct place preempt;
    struct place fail;
    struct place exit;
    struct place twice;
    const char *source;
    const char *data;
    const char *via;
    const char *exam;
    const char *shard;
    int64_t steps;
    int64_t endless;
    int64_t leave;
    int64_t mix;
    int64_t decay;
    int64_t odd_slot;
    const char *allowed;
    const char *log;
};

struct learner {
    struct options options;
    struct learner_input train_input;
    struct learner_input test_input;
    cadre_strategy *strategy;
    cadre_distributed_dataset *train;
    cadre_distributed_dataset *test;
    cadre_variable *count;
    cadre_variable *constant;
    uint64_t epochs_done; /* registered: a task that joins later gets it */
    FILE *log;
};

static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : strtoll(text, NULL, 10);
}

/* Only the first task of the slot: its replacement has a higher incarnation than all of the first
 * ones. */
static bool is_here(const struct learner *learner, const struct place *place, const char *name)
{
    return place->slot == number_of("CADRE_SLOT") && strcmp(place->name, name) == 0 &&
           number_of("CADRE_INCARNATION") <= number_of("CADRE_TASKS") &&
           (learner->strategy == NULL || cadre_strategy_position(learner->strategy) >= place->step);
}

static void maybe_die(const struct learner *learner, const char *name)
{
    if (is_here(learner, &learner->options.die, name)) {
        fprintf(stderr, "learner: dies at \"%s\"\n", name);
        raise(SIGKILL);
    }
}

static void wrong(const char *what, int64_t is, int64_t wanted)
{
    fprintf(stderr, "%s is %" PRId64 " instead of %" PRId64 "\n", what, is, wanted);
    exit(9);
}

/* --- a step --- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ (value >> 27);
}

static cadre_status create_order(cadre_strategy *strategy, cadre_variable **ret_variable)
{
    return cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, ret_variable);
}

static cadre_status create_weights(cadre_strategy *strategy, cadre_variable **ret_variable)
{
    return cadre_variable_create(
        strategy, "weights", CADRE_F64, 1, &(int64_t){WEIGHTS}, NULL, ret_variable);
}

static cadre_status create_tested(cadre_strategy *strategy, cadre_variable **ret_variable)
{
    const cadre_variable_options on_read = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    return cadre_variable_create(strategy, "tested", CADRE_I64, 0, NULL, &on_read, ret_variable);
}

/* What a step needs is created by it, or was before. */
static cadre_status need(const struct learner *learner, const char *name,
    cadre_status (*create)(cadre_strategy *strategy, cadre_variable **ret_variable),
    cadre_variable **ret_variable)
{
    return learner->options.late == 0 ? cadre_variable_find(learner->strategy, name, ret_variable)
                                      : create(NULL, ret_variable);
}

/* Writes; all collectives are done. */
static cadre_status apply(const struct learner *learner, cadre_replica *replica,
    cadre_variable *const needed[2], const int64_t *hits, const double *gradient)
{
    int64_t *count = cadre_variable_write(replica, learner->count);
    uint64_t *order = cadre_variable_write(replica, needed[0]);
    double *weights = cadre_variable_write(replica, needed[1]);
    if (count == NULL || order == NULL || weights == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no variable can be written");
    }
    uint64_t all = 0;
    for (int64_t i = 0; i < learner->options.samples; i++) {
        count[i] += hits[i];
        all += (uint64_t)hits[i] * mix((uint64_t)i + 1);
    }
    *order = *order * UINT64_C(6364136223846793005) + all;
    for (int i = 0; i < WEIGHTS; i++) {
        weights[i] = (double)learner->options.decay / 100 * weights[i] +
                     gradient[i] / (double)cadre_replica_global_rows(replica);
    }
    return CADRE_OK;
}

static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct learner *learner = user;
    int64_t samples = learner->options.samples;
    cadre_tensor *gradient;
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &samples, &outputs[0]));
    CADRE_TRY(cadre_tensor_create(CADRE_F64, 1, &(int64_t){WEIGHTS}, &gradient));
    int64_t *hits = cadre_tensor_data(outputs[0]);
    double *sums = cadre_tensor_data(gradient);
    memset(hits, 0, (size_t)samples * sizeof *hits);
    memset(sums, 0, WEIGHTS * sizeof *sums);
    const int64_t *ids = cadre_tensor_const_data(inputs[0]);
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        hits[ids[i]]++;
        for (int k = 0; k < WEIGHTS; k++) {
            sums[k] += 1.0 / (double)(1 + ids[i] * (k + 1));
        }
    }
    if (is_here(learner, &learner->options.fail, "fail")) {
        cadre_tensor_release(gradient);
        return cadre_fail(CADRE_DATA_LOSS, "sample 3 is no sample");
    }
    maybe_die(learner, "step");
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
    maybe_die(learner, "between");
    if (status == CADRE_OK) {
        status = cadre_all_reduce(replica, CADRE_SUM, &gradient, 1, NULL);
    }
    cadre_variable *needed[2] = {NULL, NULL};
    if (status == CADRE_OK) {
        status = need(learner, "order", create_order, &needed[0]);
    }
    if (status == CADRE_OK) {
        status = need(learner, "weights", create_weights, &needed[1]);
    }
    maybe_die(learner, "last");
    if (status == CADRE_OK) {
        status = apply(learner, replica, needed, hits, sums);
    }
    cadre_tensor_release(gradient);
    return status;
}

static cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct learner *learner = user;
    cadre_variable *tested = NULL;
    CADRE_TRY(need(learner, "tested", create_tested, &tested));
    CADRE_TRY(cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &outputs[0]));
    CADRE_TRY(cadre_variable_assign(replica, tested, CADRE_ASSIGN_ADD, outputs[0]));
    maybe_die(learner, "eval");
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f64(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

/* --- the loop --- */

/* 0 while the file is not there. */
static uint64_t allowed_steps(const char *path)
{
    uint64_t steps = 0;
    FILE *file = fopen(path, "r");
    if (file != NULL && fscanf(file, "%" SCNu64, &steps) != 1) {
        steps = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return steps;
}

static void pace(const struct learner *learner)
{
    const char *allowed = learner->options.allowed;
    while (
        allowed != NULL && allowed_steps(allowed) <= cadre_strategy_position(learner->strategy)) {
        poll(NULL, 0, 5);
    }
    if (learner->options.pace_ms > 0) {
        poll(NULL, 0, (int)learner->options.pace_ms);
    }
}

static void log_step(struct learner *learner, const cadre_per_replica *outputs)
{
    if (learner->log == NULL) {
        return;
    }
    const int64_t *hits = cadre_tensor_const_data(cadre_local_results(outputs, 0)[0]);
    fprintf(learner->log, "%" PRIu64 " %" PRIu64 ":", cadre_epoch(learner->train),
        cadre_step(learner->train) - 1);
    for (int64_t i = 0; i < learner->options.samples; i++) {
        for (int64_t n = 0; n < hits[i]; n++) {
            fprintf(learner->log, " %" PRId64, i);
        }
    }
    fputc('\n', learner->log);
    fflush(learner->log);
}

/* False when there is no more. */
static bool test_one(struct learner *learner)
{
    cadre_per_replica *batch;
    cadre_per_replica *rows;
    if (cadre_next(learner->test, &batch) != CADRE_OK) {
        return false;
    }
    pace(learner);
    CADRE_CHECK(cadre_run(learner->strategy, test_step, learner, batch, 1, &rows));
    return true;
}

/* `tests`: with a step of the evaluation after each; returns whether there are more of them. */
static bool train_epoch(struct learner *learner, bool tests)
{
    cadre_per_replica *batch;
    cadre_per_replica *hits;
    const uint64_t leave = (uint64_t)learner->options.leave;
    while ((leave == 0 || cadre_step(learner->train) < leave) &&
           cadre_next(learner->train, &batch) == CADRE_OK) {
        pace(learner);
        if (is_here(learner, &learner->options.stop, "stop")) {
            learner->options.stop.slot = -1; /* once */
            raise(SIGSTOP);
        }
        if (is_here(learner, &learner->options.preempt, "preempt")) {
            learner->options.preempt.slot = -1; /* once */
            raise(SIGTERM);
        }
        if (is_here(learner, &learner->options.exit, "exit")) {
            fprintf(stderr, "learner: reading shard 7\nlearner: shard 7: Input/output error\n");
            exit(3);
        }
        CADRE_CHECK(cadre_run(learner->strategy, train_step, learner, batch, 1, &hits));
        log_step(learner, hits);
        maybe_die(learner, "reduce");
        cadre_tensor *all;
        CADRE_CHECK(cadre_reduce(learner->strategy, CADRE_MEAN, hits, CADRE_AXIS_NONE, &all));
        cadre_tensor_release(all);
        tests = tests && test_one(learner);
    }
    CADRE_CHECK(cadre_distributed_status(learner->train));
    return tests;
}

/* `tests`: its epoch is begun, and not ended. */
static void evaluate(struct learner *learner, uint64_t epoch, bool tests)
{
    while (tests || cadre_next_epoch(learner->test, epoch + 1, NULL)) {
        tests = false;
        while (test_one(learner)) {
        }
    }
    CADRE_CHECK(cadre_distributed_status(learner->test));
    cadre_variable *variable = NULL;
    (void)cadre_variable_find(learner->strategy, "tested", &variable);
    int64_t tested = variable == NULL ? 0 : *(const int64_t *)cadre_variable_read(NULL, variable);
    int64_t wanted = learner->options.test * (int64_t)(epoch + 1);
    wanted *= learner->test_input.shard == CADRE_SHARD_OFF ? cadre_world_size() : 1;
    if (tested != wanted && !cadre_preempted(learner->strategy)) {
        wrong("the number of tested rows", tested, wanted);
    }
}

static void learn(struct learner *learner)
{
    uint64_t epoch;
    while (cadre_next_epoch(learner->train, (uint64_t)learner->options.epochs, &epoch)) {
        bool tests = learner->options.mix != 0 && cadre_next_epoch(learner->test, epoch + 1, NULL);
        tests = train_epoch(learner, tests);
        evaluate(learner, epoch, tests);
        if (cadre_preempted(learner->strategy)) {
            break;
        }
        /* One that is left is entered again by who takes over there, and counts once. */
        learner->epochs_done = learner->options.leave > 0 ? epoch + 1 : learner->epochs_done + 1;
        if (learner->epochs_done != epoch + 1) {
            wrong("the number of epochs", (int64_t)learner->epochs_done, (int64_t)epoch + 1);
        }
        if (learner->options.save != 0) {
            maybe_die(learner, "save");
            CADRE_CHECK(cadre_save(learner->strategy, true));
        }
        cadre_report(learner->strategy, "epochs", (double)learner->epochs_done);
    }
}

/* --- the beginning --- */

static void distribute(struct learner *learner)
{
    const struct options *options = &learner->options;
    learner->train_input = (struct learner_input){.samples = options->samples,
        .batch = options->batch,
        .source = options->source,
        .data = options->data,
        .via = options->via,
        .leaves_out = options->odd_slot == number_of("CADRE_SLOT"),
        .endless = options->endless != 0,
        .steps = (uint64_t)options->steps,
        .shard = learner_shard(options->shard)};
    learner->test_input = (struct learner_input){.samples = options->test,
        .batch = TEST_BATCH,
        .source = "lines",
        .data = options->exam,
        .via = options->via,
        .shard = options->exam != NULL                           ? CADRE_SHARD_FILE
                 : learner->train_input.shard == CADRE_SHARD_OFF ? CADRE_SHARD_OFF
                                                                 : CADRE_SHARD_DATA};
    CADRE_CHECK(
        learner_distribute(learner->strategy, &learner->train_input, "train", &learner->train));
    CADRE_CHECK(
        learner_distribute(learner->strategy, &learner->test_input, "test", &learner->test));
}

static void create(struct learner *learner)
{
    cadre_strategy *strategy = learner->strategy;
    const struct options *options = &learner->options;
    cadre_variable *early = NULL;
    CADRE_CHECK(cadre_variable_create(
        strategy, "count", CADRE_I64, 1, &options->samples, NULL, &learner->count));
    maybe_die(learner, "create");
    if (options->late == 0) {
        CADRE_CHECK(create_order(strategy, &early));
        CADRE_CHECK(create_weights(strategy, &early));
        CADRE_CHECK(create_tested(strategy, &early));
    }
    if (options->constant > 0) {
        CADRE_CHECK(cadre_variable_create(
            strategy, "constant", CADRE_I64, 1, &options->constant, NULL, &learner->constant));
    }
    CADRE_CHECK(cadre_state_register(
        strategy, "epochs", &learner->epochs_done, sizeof learner->epochs_done));
    if (options->twice.slot == number_of("CADRE_SLOT")) {
        fault_arm("input.piece", options->twice.step);
    }
    distribute(learner);
}

static void take_place(const char *value, const char *fallback, struct place *ret_place)
{
    char *end;
    ret_place->slot = strtoll(value, &end, 10);
    ret_place->step = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    snprintf(ret_place->name, sizeof ret_place->name, "%s", *end == ':' ? end + 1 : fallback);
}

static bool take_option(struct options *options, const char *argument)
{
    const char *value = strchr(argument, '=');
    if (value == NULL) {
        return false;
    }
    size_t length = (size_t)(value++ - argument);
    struct {
        const char *name;
        int64_t *number;
        const char **text;
        struct place *place;
    } all[] = {{"samples", .number = &options->samples}, {"batch", .number = &options->batch},
        {"constant", .number = &options->constant}, {"epochs", .number = &options->epochs},
        {"test", .number = &options->test}, {"pace", .number = &options->pace_ms},
        {"save", .number = &options->save}, {"late", .number = &options->late},
        {"steps", .number = &options->steps}, {"endless", .number = &options->endless},
        {"leave", .number = &options->leave}, {"mix", .number = &options->mix},
        {"decay", .number = &options->decay}, {"odd", .number = &options->odd_slot},
        {"die", .place = &options->die}, {"stop", .place = &options->stop},
        {"fail", .place = &options->fail}, {"preempt", .place = &options->preempt},
        {"exit", .place = &options->exit}, {"twice", .place = &options->twice},
        {"source", .text = &options->source}, {"data", .text = &options->data},
        {"via", .text = &options->via}, {"exam", .text = &options->exam},
        {"shard", .text = &options->shard}, {"log", .text = &options->log},
        {"allowed", .text = &options->allowed}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strlen(all[i].name) != length || memcmp(argument, all[i].name, length) != 0) {
            continue;
        }
        if (all[i].number != NULL) {
            *all[i].number = strtoll(value, NULL, 10);
        } else if (all[i].text != NULL) {
            *all[i].text = value;
        } else {
            take_place(value, strcmp(all[i].name, "die") == 0 ? "step" : all[i].name, all[i].place);
        }
        return true;
    }
    return false;
}

static void open_log(struct learner *learner)
{
    char path[4096];
    if (learner->options.log != NULL) {
        snprintf(path, sizeof path, "%s/applied-%" PRId64 "-%" PRId64, learner->options.log,
            number_of("CADRE_SLOT"), number_of("CADRE_INCARNATION"));
        learner->log = fopen(path, "a");
    }
}

int main(int argc, char **argv)
{
    struct learner learner = {
        .options = {.samples = 192, .batch = 16, .epochs = 3, .test = 40, .decay = 90}};
    struct options *options = &learner.options;
    options->die.slot = options->stop.slot = options->fail.slot = -1;
    options->preempt.slot = options->exit.slot = options->twice.slot = options->odd_slot = -1;
    options->shard = "data";
    options->source = "lines";
    options->via = "turns";
    CADRE_CHECK(cadre_init(&argc, &argv));
    for (int i = 1; i < argc; i++) {
        if (!take_option(&learner.options, argv[i])) {
            fprintf(stderr, "learner: \"%s\" is no option\n", argv[i]);
            return 2;
        }
    }
    open_log(&learner);
    CADRE_CHECK(cadre_strategy_default(&learner.strategy));
    create(&learner);
    learn(&learner);
    printf("rank %" PRIu32 " of %" PRIu32 " saw %" PRIu64 " epochs\n", cadre_rank(),
        cadre_world_size(), learner.epochs_done);
    fflush(stdout);
    maybe_die(&learner, "finish");
    int status = cadre_finish(learner.strategy);
    if (learner.log != NULL) {
        fclose(learner.log);
    }
    return status;
}
