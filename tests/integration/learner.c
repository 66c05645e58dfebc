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
 *     pace=0        milliseconds between two steps
 *     save=0        1: a checkpoint at the end of each epoch, waited for
 *     die=SLOT:STEP:PLACE   the first task of SLOT kills itself (SIGKILL) at ledger step STEP or
 *                   later, at PLACE: step, between (two collectives), last, reduce, eval, save,
 *                   finish, create
 *     stop=SLOT:STEP        the same one stops itself (SIGSTOP) before that step
 *     fail=SLOT:STEP        its function fails there
 *     exit=SLOT:STEP        it exits with status 3 before that step, by itself
 *     twice=SLOT:NTH        its nth piece of a batch is one of another task: what that one is fed,
 *                   is fed twice, and its own not at all
 *     shard=off     each task reads all of both datasets for itself; auto, file, data
 *     data=FOLDER   where the samples of training come from, instead of a range:
 *     source=lines    its files *.txt, a number a line, by turns; can be shared out by files
 *     source=sieve    the same, every number twice but one half filtered out, drawn from a shuffle
 *                     buffer: not indexable
 *     source=records  its TFRecord files *.tfrecord, eight bytes a record, shuffled as a whole
 *     odd=SLOT      that task leaves out the last file
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

#define WEIGHTS 8

struct place {
    int64_t slot; /* -1: nowhere */
    uint64_t step;
    char name[16];
};

struct options {
    int64_t samples;
    int64_t batch;
    uint64_t epochs;
    int64_t test;
    int pace_ms;
    bool save;
    struct place die;
    struct place stop;
    struct place fail;
    struct place exit;
    struct place twice;
    cadre_shard_policy shard;
    const char *data;
    const char *source;
    int64_t odd_slot;
    const char *log;
};

struct learner {
    struct options options;
    cadre_strategy *strategy;
    cadre_distributed_dataset *train;
    cadre_distributed_dataset *test;
    cadre_variable *count;
    cadre_variable *order;
    cadre_variable *weights;
    cadre_variable *tested;
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

/* Writes; all collectives are done. */
static cadre_status apply(
    struct learner *learner, cadre_replica *replica, const int64_t *hits, const double *gradient)
{
    int64_t *count = cadre_variable_write(replica, learner->count);
    uint64_t *order = cadre_variable_write(replica, learner->order);
    double *weights = cadre_variable_write(replica, learner->weights);
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
        weights[i] = 0.9 * weights[i] + gradient[i] / (double)cadre_replica_global_rows(replica);
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
    maybe_die(learner, "last");
    if (status == CADRE_OK) {
        status = apply(learner, replica, hits, sums);
    }
    cadre_tensor_release(gradient);
    return status;
}

static cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct learner *learner = user;
    CADRE_TRY(cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &outputs[0]));
    CADRE_TRY(cadre_variable_assign_add(replica, learner->tested, outputs[0]));
    maybe_die(learner, "eval");
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f64(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

/* --- the loop --- */

static void pace(const struct learner *learner)
{
    if (learner->options.pace_ms > 0) {
        poll(NULL, 0, learner->options.pace_ms);
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

static void train_epoch(struct learner *learner)
{
    cadre_per_replica *batch;
    cadre_per_replica *hits;
    while (cadre_next(learner->train, &batch) == CADRE_OK) {
        pace(learner);
        if (is_here(learner, &learner->options.stop, "stop")) {
            learner->options.stop.slot = -1; /* once */
            raise(SIGSTOP);
        }
        if (is_here(learner, &learner->options.exit, "exit")) {
            fprintf(stderr, "learner: reading shard 7\nlearner: shard 7: Input/output error\n");
            exit(3);
        }
        CADRE_CHECK(cadre_run(learner->strategy, train_step, batch, 1, learner, &hits));
        log_step(learner, hits);
        maybe_die(learner, "reduce");
        cadre_tensor *all;
        CADRE_CHECK(cadre_reduce(learner->strategy, CADRE_MEAN, hits, CADRE_AXIS_NONE, &all));
        cadre_tensor_release(all);
    }
    CADRE_CHECK(cadre_distributed_status(learner->train));
}

static void evaluate(struct learner *learner, uint64_t epoch)
{
    cadre_per_replica *batch;
    cadre_per_replica *rows;
    while (cadre_next_epoch(learner->test, epoch + 1, NULL)) {
        while (cadre_next(learner->test, &batch) == CADRE_OK) {
            pace(learner);
            CADRE_CHECK(cadre_run(learner->strategy, test_step, batch, 1, learner, &rows));
        }
    }
    CADRE_CHECK(cadre_distributed_status(learner->test));
    const int64_t *tested = cadre_variable_read(NULL, learner->tested);
    int64_t wanted = learner->options.test * (int64_t)(epoch + 1);
    wanted *= learner->options.shard == CADRE_SHARD_OFF ? cadre_world_size() : 1;
    if (*tested != wanted) {
        wrong("the number of tested rows", *tested, wanted);
    }
}

static void learn(struct learner *learner)
{
    uint64_t epoch;
    while (cadre_next_epoch(learner->train, learner->options.epochs, &epoch)) {
        train_epoch(learner);
        evaluate(learner, epoch);
        learner->epochs_done++;
        if (learner->epochs_done != epoch + 1) {
            wrong("the number of epochs", (int64_t)learner->epochs_done, (int64_t)epoch + 1);
        }
        if (learner->options.save) {
            maybe_die(learner, "save");
            CADRE_CHECK(cadre_save(learner->strategy, true));
        }
        cadre_report_f64(learner->strategy, "epochs", (double)learner->epochs_done);
    }
}

/* --- the beginning --- */

static cadre_status parse_line(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const cadre_string *line = cadre_tensor_const_data(in->tensors[0]);
    char text[24];
    (void)user;
    if (line->size == 0 || line->size >= sizeof text) {
        return cadre_fail(CADRE_INVALID_ARGUMENT, "a line of %zu bytes is no number", line->size);
    }
    memcpy(text, line->bytes, line->size);
    text[line->size] = '\0';
    ret_out->count = 1;
    return cadre_tensor_from_i64(strtoll(text, NULL, 10), &ret_out->tensors[0]);
}

static cadre_status parse_record(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const cadre_string *record = cadre_tensor_const_data(in->tensors[0]);
    int64_t number;
    (void)user;
    if (record->size != sizeof number) {
        return cadre_fail(CADRE_INVALID_ARGUMENT, "a record of %zu bytes", record->size);
    }
    memcpy(&number, record->bytes, sizeof number);
    ret_out->count = 1;
    return cadre_tensor_from_i64(number, &ret_out->tensors[0]);
}

static cadre_status open_lines(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    char path[4096];
    (void)user;
    snprintf(path, sizeof path, "%.*s", (int)name->size, name->bytes);
    *ret_data = cadre_dataset_text_lines(&(const char *){path}, 1, NULL);
    return CADRE_OK;
}

/* Of numbers below twice the samples: the even ones. */
static cadre_status is_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 2 == 0;
    return CADRE_OK;
}

static cadre_status halve(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = 1;
    return cadre_tensor_from_i64(
        *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) / 2, &ret_out->tensors[0]);
}

static cadre_dataset *names_of(const struct options *options, const char *suffix)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*%s", options->data, suffix);
    cadre_dataset *names = cadre_dataset_list_files(&(const char *){pattern}, 1, NULL);
    int64_t count = cadre_dataset_cardinality(names);
    return options->odd_slot == number_of("CADRE_SLOT") ? cadre_dataset_take(names, count - 1)
                                                        : names;
}

static cadre_dataset *records_of(const struct options *options)
{
    char paths[2][4096];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.tfrecord", options->data, i);
    }
    return cadre_dataset_tfrecord((const char *[]){paths[0], paths[1]}, 2, NULL);
}

static cadre_dataset *samples_of(const struct options *options)
{
    const cadre_interleave_options by_turns = {.cycle_length = 3, .block_length = 2};
    if (options->data == NULL) {
        return cadre_dataset_shuffle(
            cadre_dataset_range(0, options->samples, 1), CADRE_SHUFFLE_ALL, 7);
    }
    if (strcmp(options->source, "records") == 0) {
        return cadre_dataset_shuffle(
            cadre_dataset_map(records_of(options), parse_record, NULL, NULL), CADRE_SHUFFLE_ALL, 7);
    }
    cadre_dataset *lines = cadre_dataset_map(
        cadre_dataset_interleave(names_of(options, ".txt"), open_lines, NULL, &by_turns),
        parse_line, NULL, NULL);
    if (strcmp(options->source, "lines") == 0) {
        return lines;
    }
    return cadre_dataset_shuffle(
        cadre_dataset_map(cadre_dataset_filter(lines, is_even, NULL), halve, NULL, NULL), 24, 7);
}

static void create(struct learner *learner)
{
    cadre_strategy *strategy = learner->strategy;
    const struct options *options = &learner->options;
    const cadre_variable_options on_read = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    CADRE_CHECK(cadre_variable_create(
        strategy, "count", CADRE_I64, 1, &options->samples, NULL, &learner->count));
    maybe_die(learner, "create");
    CADRE_CHECK(
        cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, &learner->order));
    CADRE_CHECK(cadre_variable_create(
        strategy, "weights", CADRE_F64, 1, &(int64_t){WEIGHTS}, NULL, &learner->weights));
    CADRE_CHECK(
        cadre_variable_create(strategy, "tested", CADRE_I64, 0, NULL, &on_read, &learner->tested));
    CADRE_CHECK(cadre_state_register(
        strategy, "epochs", &learner->epochs_done, sizeof learner->epochs_done));
    if (options->twice.slot == number_of("CADRE_SLOT")) {
        fault_arm("input.piece", options->twice.step);
    }
    cadre_dataset *train = cadre_dataset_batch(samples_of(options), options->batch, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, train,
        &(cadre_input_options){.name = "train", .auto_shard = options->shard}, &learner->train));
    const cadre_shard_policy shard =
        options->shard == CADRE_SHARD_OFF ? CADRE_SHARD_OFF : CADRE_SHARD_DATA;
    cadre_dataset *test = cadre_dataset_batch(cadre_dataset_range(0, options->test, 1), 8, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, test,
        &(cadre_input_options){.name = "test", .auto_shard = shard}, &learner->test));
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
    } numbers[] = {{"samples", &options->samples}, {"batch", &options->batch},
        {"epochs", (int64_t *)&options->epochs}, {"test", &options->test}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strlen(numbers[i].name) == length && memcmp(argument, numbers[i].name, length) == 0) {
            *numbers[i].number = strtoll(value, NULL, 10);
            return true;
        }
    }
    if (strncmp(argument, "pace=", 5) == 0) {
        options->pace_ms = (int)strtol(value, NULL, 10);
    } else if (strncmp(argument, "save=", 5) == 0) {
        options->save = strcmp(value, "0") != 0;
    } else if (strncmp(argument, "die=", 4) == 0) {
        take_place(value, "step", &options->die);
    } else if (strncmp(argument, "stop=", 5) == 0) {
        take_place(value, "stop", &options->stop);
    } else if (strncmp(argument, "fail=", 5) == 0) {
        take_place(value, "fail", &options->fail);
    } else if (strncmp(argument, "exit=", 5) == 0) {
        take_place(value, "exit", &options->exit);
    } else if (strncmp(argument, "twice=", 6) == 0) {
        take_place(value, "twice", &options->twice);
    } else if (strncmp(argument, "shard=", 6) == 0) {
        options->shard = strcmp(value, "off") == 0    ? CADRE_SHARD_OFF
                         : strcmp(value, "file") == 0 ? CADRE_SHARD_FILE
                         : strcmp(value, "auto") == 0 ? CADRE_SHARD_AUTO
                                                      : CADRE_SHARD_DATA;
    } else if (strncmp(argument, "data=", 5) == 0) {
        options->data = value;
    } else if (strncmp(argument, "source=", 7) == 0) {
        options->source = value;
    } else if (strncmp(argument, "odd=", 4) == 0) {
        options->odd_slot = strtoll(value, NULL, 10);
    } else if (strncmp(argument, "log=", 4) == 0) {
        options->log = value;
    } else {
        return false;
    }
    return true;
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
    struct learner learner = {.options = {.samples = 192, .batch = 16, .epochs = 3, .test = 40}};
    struct options *options = &learner.options;
    options->die.slot = options->stop.slot = options->fail.slot = -1;
    options->exit.slot = options->twice.slot = options->odd_slot = -1;
    options->shard = CADRE_SHARD_DATA;
    options->source = "lines";
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
