/* SPDX-License-Identifier: Apache-2.0
 * A program under test in whose memory single bits flip, on demand. What it trains is whole
 * numbers, and a wrong bit stays wrong: any number of tasks comes to the same end, bit by bit.
 *
 *     weights  each step: w = w * odd + what the samples make of all weights, summed up
 *     average  of what was summed up, in floating point: a small difference may be rounded off
 *     scratch  what was summed up; each step writes it, none reads it
 *     rows     a sync-on-read sum of the samples
 *     chain    registered, over the steps
 *
 *     flipper [NAME=VALUE ...]
 *     steps=60      of 12 samples each
 *     pace=0        milliseconds between two steps; slow=0: of each step, before its collective
 *     allowed=FILE  takes no step at or beyond the number in FILE, which may rise meanwhile
 *     flips=FOLDER  where each flip leaves a file of its number: it is made once, and not when one
 *                   of a later number was; nor while a file "hold" is there. Its lines:
 *                   made POSITION PID
 *                   at each later begin of a step there, and before cadre_finish, what of it was
 *                   seen: stays POSITION; gone (what is there is what it should be); received (what
 *                   is there came from another task). Behind gone and received comes nothing more
 *                   ended POSITION   before cadre_finish
 *     late=STEPS    no flip is made more steps behind its position than that
 *     flip=SLOT:REPLICA:POSITION:PLACE:BIT   at that position or later, in that local replica of
 *                   the task; BIT is taken modulo those that there are. Again and again, the next
 *                   one is the next number. PLACE: before the step's function runs
 *                   weights, average, scratch, rows, chain; in it
 *                   use       weights, before they are used
 *                   local     what is this replica's of the sum, before the all-reduce
 *                   gradient  the sum, before it is applied
 *                   copy      what the chief copies of its state next for a checkpoint
 *                   stood     weights, where the task pauses next, when it has reported its state
 *                   thread    weights, in the next milliseconds, by another thread
 *     wrong=own     each replica adds its number to the weights; rand: rand(); rows: what its own
 *                   samples make; clock: the time */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/fault.h"
#include "tests/integration/flipper_truth.h"
#include "worker/library/runtime/variables/variable.h"

#define BATCH     12
#define FLIPS_MAX 16
#define ODD       UINT64_C(6364136223846793005)

struct flip {
    int64_t slot;
    uint32_t replica;
    uint64_t position;
    char place[16];
    uint64_t bit;
    bool made; /* here or elsewhere: nothing more of it */
    int file;  /* 0: it was not made here, or nothing more will be seen of it */
    uint64_t made_at;
    atomic_bool flipped;
    bool undone; /* with the step that it was made in */
};

struct flipper {
    uint64_t steps;
    uint64_t late_steps; /* 0: any */
    int pace_ms;
    int slow_ms;
    const char *allowed;
    const char *folder;
    const char *wrong; /* "": nothing is */
    struct flip flips[FLIPS_MAX];
    uint32_t flip_count;
    int64_t slot;
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_variable *weights;
    cadre_variable *average;
    cadre_variable *scratch;
    cadre_variable *rows;
    uint64_t chain;
    bool ran; /* a step: what is registered was given back, if it was to be */
};

/* --- flips --- */

static bool exists(const struct flipper *flipper, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", flipper->folder, name);
    return access(path, F_OK) == 0;
}

/* Whether one behind it in number is made: of those of one job the later ones lie at later steps,
 * and what of the job is done again is not flipped in again. */
static bool is_over(const struct flipper *flipper, const struct flip *flip)
{
    char name[16];
    for (const struct flip *next = flip + 1; next < flipper->flips + flipper->flip_count; next++) {
        snprintf(name, sizeof name, "%u", (unsigned)(next - flipper->flips));
        if (exists(flipper, name)) {
            return true;
        }
    }
    return false;
}

/* Whether it is to be made now; once in all incarnations of all tasks. A test that made the
 * file "hold" and then checks which flips are made finds all that will be. */
static bool take(struct flipper *flipper, struct flip *flip, uint64_t position)
{
    char path[4096];
    bool is_early = position < flip->position;
    bool is_late = flipper->late_steps > 0 && position > flip->position + flipper->late_steps;
    bool given_back = strcmp(flip->place, "chain") == 0 && !flipper->ran;
    if (flip->made || flip->slot != flipper->slot || is_early || is_late || given_back ||
        is_over(flipper, flip) || exists(flipper, "hold")) {
        return false;
    }
    snprintf(path, sizeof path, "%s/%u", flipper->folder, (unsigned)(flip - flipper->flips));
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    flip->made = file >= 0 || errno == EEXIST;
    if (file < 0) {
        return false;
    }
    if (exists(flipper, "hold")) {
        flip->made = false;
        close(file);
        unlink(path);
        return false;
    }
    flip->file = file;
    flip->made_at = position;
    return dprintf(file, "made %" PRIu64 " %d\n", position, (int)getpid()) > 0;
}

static void flip_bit(void *memory, size_t bytes, uint64_t bit)
{
    bit %= bytes * 8;
    ((unsigned char *)memory)[bit / 8] ^= (unsigned char)(1U << bit % 8);
}

/* All that are due at this place in this replica, in `memory`. */
static void flip_here(struct flipper *flipper, uint64_t position, uint32_t replica,
    const char *place, void *memory, size_t bytes)
{
    for (uint32_t i = 0; i < flipper->flip_count; i++) {
        struct flip *flip = &flipper->flips[i];
        if (flip->replica == replica && strcmp(flip->place, place) == 0 &&
            take(flipper, flip, position)) {
            flip_bit(memory, bytes, flip->bit);
            atomic_store(&flip->flipped, true);
        }
    }
}

struct later {
    struct flip *flip;
    void *memory;
    size_t bytes;
    uint64_t bit;
};

/* A race with the users of the memory, as bits that flip have it. */
__attribute__((no_sanitize("thread"))) static void *flip_later(void *user)
{
    struct later later = *(struct later *)user;
    free(user);
    poll(NULL, 0, (int)(later.bit * 7919 % 5));
    flip_bit(later.memory, later.bytes, later.bit);
    atomic_store(&later.flip->flipped, true);
    return NULL;
}

static void flip_by_thread(struct flipper *flipper, struct flip *flip)
{
    struct later *later = malloc(sizeof *later);
    pthread_t thread;
    if (later != NULL) {
        *later = (struct later){flip, flipper->weights->components[flip->replica].value,
            flipper->weights->bytes, flip->bit};
        if (pthread_create(&thread, NULL, flip_later, later) == 0) {
            pthread_detach(thread);
        }
    }
}

/* --- what became of them --- */

static struct flipper_values values_of(const struct flipper *flipper, uint32_t replica)
{
    return (struct flipper_values){flipper->weights->components[replica].value,
        flipper->average->components[replica].value, flipper->scratch->components[replica].value};
}

/* Of one in what all replicas of the task share nothing is known but that it was not passed from
 * another task. Of a gradient likewise, unless the step was undone. */
static enum truth compare(const struct flipper *flipper, const struct flip *flip, uint64_t position)
{
    static const char *const known[] = {"weights", "average", "scratch", "use", "thread"};
    const struct flipper_values values = values_of(flipper, flip->replica);
    const enum truth truth = truth_compare(flip->replica, position, &values);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(flip->place, known[i]) == 0) {
            return truth;
        }
    }
    return flip->undone ? TRUTH_EQUAL : truth == TRUTH_UNKNOWN ? truth : TRUTH_OTHER;
}

/* A step is undone and done again within cadre_run. */
static void witness_step(struct flipper *flipper, uint64_t position, uint32_t replica)
{
    for (uint32_t i = 0; i < flipper->flip_count; i++) {
        struct flip *flip = &flipper->flips[i];
        flip->undone |= flip->file > 0 && flip->replica == replica && flip->made_at == position &&
                        strcmp(flip->place, "gradient") == 0;
    }
}

static void witness(struct flipper *flipper, bool ends)
{
    static const char *const words[] = {
        [TRUTH_UNKNOWN] = "received", [TRUTH_EQUAL] = "gone", [TRUTH_OTHER] = "stays"};
    const uint64_t position = cadre_strategy_position(flipper->strategy);
    for (uint32_t i = 0; i < flipper->flip_count; i++) {
        struct flip *flip = &flipper->flips[i];
        if (flip->file > 0 && atomic_load(&flip->flipped)) {
            enum truth truth = compare(flipper, flip, position);
            dprintf(flip->file, "%s %" PRIu64 "\n", words[truth], position);
            if (truth != TRUTH_OTHER) {
                close(flip->file);
                flip->file = 0;
            }
        }
        if (ends && flip->file > 0) {
            dprintf(flip->file, "ended %" PRIu64 "\n", position);
        }
    }
    for (uint32_t i = 0; i < flipper->weights->component_count; i++) {
        const struct flipper_values values = values_of(flipper, i);
        truth_learn(i, position, &values);
    }
}

static void flip_between_steps(struct flipper *flipper)
{
    const uint64_t position = cadre_strategy_position(flipper->strategy);
    cadre_variable *const variables[] = {flipper->weights, flipper->average, flipper->scratch};
    for (size_t v = 0; v < sizeof variables / sizeof variables[0]; v++) {
        for (uint32_t i = 0; i < variables[v]->component_count; i++) {
            flip_here(flipper, position, i, variables[v]->name, variables[v]->components[i].value,
                variables[v]->bytes);
        }
    }
    flip_here(flipper, position, 0, "rows", flipper->rows->total.value, flipper->rows->bytes);
    flip_here(flipper, position, 0, "chain", &flipper->chain, sizeof flipper->chain);
    for (uint32_t i = 0; i < flipper->flip_count; i++) {
        struct flip *flip = &flipper->flips[i];
        if (strcmp(flip->place, "copy") == 0 && take(flipper, flip, position)) {
            fault_arm("copy.flip", 1);
        }
        if (strcmp(flip->place, "stood") == 0 && take(flipper, flip, position)) {
            fault_arm("state_hash.flip", 1);
        }
        if (strcmp(flip->place, "thread") == 0 && take(flipper, flip, position)) {
            flip_by_thread(flipper, flip);
        }
    }
}

/* --- a step --- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ (value >> 27);
}

static void sum_up(const uint64_t *weights, const int64_t *samples, int64_t count, int64_t *sums)
{
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < WEIGHTS; k++) {
            sums[k] += (int64_t)(mix(weights[k] ^ mix((uint64_t)samples[i] + 1)) >> 32);
        }
    }
}

static uint64_t what_is_wrong(const struct flipper *flipper, const cadre_replica *replica,
    const uint64_t *before, const cadre_tensor *samples)
{
    int64_t sums[WEIGHTS] = {0};
    struct timespec now;
    if (strcmp(flipper->wrong, "own") == 0) {
        return cadre_replica_id(replica);
    }
    if (strcmp(flipper->wrong, "rand") == 0) {
        return (uint64_t)rand();
    }
    if (strcmp(flipper->wrong, "clock") == 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_nsec;
    }
    if (strcmp(flipper->wrong, "rows") == 0) {
        sum_up(before, cadre_tensor_const_data(samples), cadre_tensor_rows(samples), sums);
    }
    return (uint64_t)sums[0];
}

/* All collectives are done. */
static cadre_status apply(struct flipper *flipper, cadre_replica *replica, const int64_t *sums,
    const cadre_tensor *samples)
{
    uint64_t *weights = cadre_variable_write(replica, flipper->weights);
    double *average = cadre_variable_write(replica, flipper->average);
    int64_t *scratch = cadre_variable_write(replica, flipper->scratch);
    if (weights == NULL || average == NULL || scratch == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no variable can be written");
    }
    const uint64_t wrong = what_is_wrong(flipper, replica, weights, samples);
    flipper_advance(&(struct flipper_values){weights, average, scratch}, sums);
    truth_advance(
        cadre_replica_local_id(replica), cadre_strategy_position(flipper->strategy), sums);
    weights[0] += wrong;
    return CADRE_OK;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct flipper *flipper = user;
    const uint64_t position = cadre_strategy_position(flipper->strategy);
    const uint32_t local = cadre_replica_local_id(replica);
    const size_t bytes = WEIGHTS * sizeof(uint64_t);
    cadre_tensor *rows;
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &(int64_t){WEIGHTS}, &outputs[0]));
    int64_t *sums = cadre_tensor_data(outputs[0]);
    memset(sums, 0, bytes);
    witness_step(flipper, position, local);
    flip_here(
        flipper, position, local, "use", variable_component(flipper->weights, local)->value, bytes);
    sum_up(cadre_variable_read(replica, flipper->weights), cadre_tensor_const_data(inputs[0]),
        cadre_tensor_rows(inputs[0]), sums);
    flip_here(flipper, position, local, "local", sums, bytes);
    if (flipper->slow_ms > 0) {
        poll(NULL, 0, flipper->slow_ms);
    }
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL));
    flip_here(flipper, position, local, "gradient", sums, bytes);
    CADRE_TRY(cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &rows));
    cadre_status status = cadre_variable_assign(replica, flipper->rows, CADRE_ASSIGN_ADD, rows);
    cadre_tensor_release(rows);
    return status == CADRE_OK ? apply(flipper, replica, sums, inputs[0]) : status;
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

static void pace(const struct flipper *flipper)
{
    while (flipper->allowed != NULL &&
           allowed_steps(flipper->allowed) <= cadre_strategy_position(flipper->strategy)) {
        poll(NULL, 0, 5);
    }
    if (flipper->pace_ms > 0) {
        poll(NULL, 0, flipper->pace_ms);
    }
}

static void create(struct flipper *flipper)
{
    cadre_strategy *strategy = flipper->strategy;
    const int64_t count = WEIGHTS;
    const cadre_variable_options on_read = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    CADRE_CHECK(
        cadre_variable_create(strategy, "weights", CADRE_I64, 1, &count, NULL, &flipper->weights));
    CADRE_CHECK(
        cadre_variable_create(strategy, "average", CADRE_F64, 1, &count, NULL, &flipper->average));
    CADRE_CHECK(
        cadre_variable_create(strategy, "scratch", CADRE_I64, 1, &count, NULL, &flipper->scratch));
    CADRE_CHECK(
        cadre_variable_create(strategy, "rows", CADRE_I64, 0, NULL, &on_read, &flipper->rows));
    CADRE_CHECK(cadre_state_register(strategy, "chain", &flipper->chain, sizeof flipper->chain));
    cadre_dataset *range = cadre_dataset_batch(
        cadre_dataset_range(0, (int64_t)flipper->steps * BATCH, 1), BATCH, false);
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, range, &(cadre_input_options){.auto_shard = CADRE_SHARD_DATA}, &flipper->data));
}

static void train(struct flipper *flipper)
{
    cadre_per_replica *batch;
    cadre_per_replica *sums;
    while (cadre_next_epoch(flipper->data, 1, NULL)) {
        while (cadre_next(flipper->data, &batch) == CADRE_OK) {
            pace(flipper);
            witness(flipper, false);
            flip_between_steps(flipper);
            CADRE_CHECK(cadre_run(flipper->strategy, step, flipper, batch, 1, &sums));
            flipper->ran = true;
            flipper->chain = flipper->chain * ODD + cadre_strategy_position(flipper->strategy);
        }
    }
    CADRE_CHECK(cadre_distributed_status(flipper->data));
    witness(flipper, true);
}

/* --- the beginning --- */

static bool take_flip(struct flipper *flipper, const char *value)
{
    if (flipper->flip_count == FLIPS_MAX) {
        return false;
    }
    struct flip *flip = &flipper->flips[flipper->flip_count++];
    return sscanf(value, "%" SCNi64 ":%" SCNu32 ":%" SCNu64 ":%15[a-z]:%" SCNu64, &flip->slot,
               &flip->replica, &flip->position, flip->place, &flip->bit) == 5;
}

static bool take_option(struct flipper *flipper, const char *argument)
{
    const char *value = strchr(argument, '=');
    if (value == NULL) {
        return false;
    }
    const size_t length = (size_t)(value++ - argument);
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"allowed", &flipper->allowed}, {"flips", &flipper->folder}, {"wrong", &flipper->wrong}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strlen(texts[i].name) == length && memcmp(argument, texts[i].name, length) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    if (strncmp(argument, "steps=", 6) == 0) {
        flipper->steps = strtoull(value, NULL, 10);
        return true;
    }
    if (strncmp(argument, "late=", 5) == 0) {
        flipper->late_steps = strtoull(value, NULL, 10);
        return true;
    }
    if (strncmp(argument, "pace=", 5) == 0) {
        flipper->pace_ms = (int)strtol(value, NULL, 10);
        return true;
    }
    if (strncmp(argument, "slow=", 5) == 0) {
        flipper->slow_ms = (int)strtol(value, NULL, 10);
        return true;
    }
    return strncmp(argument, "flip=", 5) == 0 && take_flip(flipper, value);
}

int main(int argc, char **argv)
{
    static struct flipper flipper = {.steps = 60, .folder = ".", .wrong = ""};
    CADRE_CHECK(cadre_init(&argc, &argv));
    for (int i = 1; i < argc; i++) {
        if (!take_option(&flipper, argv[i])) {
            fprintf(stderr, "flipper: \"%s\" is no option\n", argv[i]);
            return 2;
        }
    }
    const char *slot = getenv("CADRE_SLOT");
    flipper.slot = slot == NULL ? 0 : strtoll(slot, NULL, 10);
    srand((unsigned)getpid());
    CADRE_CHECK(cadre_strategy_default(&flipper.strategy));
    create(&flipper);
    train(&flipper);
    return cadre_finish(flipper.strategy);
}
