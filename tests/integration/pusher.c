/* SPDX-License-Identifier: Apache-2.0
 * A program whose variables on servers prove what was pushed: each closure of each round adds one
 * to a row of its own, one to every element of a vector, and one by an optimizer. However tasks are
 * killed, in the end each number is exactly what it should be.
 *
 *     pusher --rounds N --closures N --length N --work-us N [--save] [--mode NAME]
 *            [--synchronous [--fail-at N]] [--until FILE] [--on-replicas] [--lamb] [--hold FILE]
 *
 * The evaluator prints what it reports; while the file of --hold is there it evaluates nothing.
 * With a file to look for it ends behind the round in which it finds that.
 * On replicas: a closure is a step of the replicas of its worker, which make what it adds together.
 * Synchronous: each round is one step of all variables, to which each closure contributes; the
 * first attempt of step N fails half way. Modes are what a user could get wrong. */
#include <errno.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cadre/cadre.h>

#include "pusher_lamb.h"
#include "pusher_replicas.h"

struct settings {
    int64_t rounds;
    int64_t closures; /* a round */
    int64_t length;   /* of the vector */
    int64_t work_us;  /* a closure takes so long at least, between its pushes */
    bool save;        /* after each round */
    bool on_replicas;
    bool lamb; /* a closure makes an update of a variable of several shards by it, too */
    bool synchronous;
    int64_t fail_at; /* -1: never */
    const char *mode;
    const char *until; /* NULL: none */
    const char *hold;  /* NULL: none */
};

struct model {
    cadre_variable *rows;     /* i64 [closures, 2] */
    cadre_variable *vector;   /* i64 [length] */
    cadre_variable *together; /* i64, that replicas add to; NULL: there are none */
    cadre_variable *number;   /* f64, by SGD */
    cadre_variable *table;    /* f64 [closures, 2], by SGD; where steps are synchronous */
    cadre_optimizer *descent; /* that SGD; the chief's */
};

/* A scalar, after so many synchronous steps. */
static cadre_status read_number(cadre_variable *number, uint64_t step, double *ret_value)
{
    cadre_tensor *value;
    CADRE_TRY(cadre_variable_value(NULL, number, &(cadre_read_options){.step = step}, &value));
    *ret_value = *(const double *)cadre_tensor_const_data(value);
    cadre_tensor_release(value);
    return CADRE_OK;
}

/* What its optimizer makes of a gradient. */
static cadre_status push_number(
    cadre_variable *number, double gradient, const cadre_push_options *options)
{
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_f64(gradient, &tensor));
    cadre_status status =
        cadre_variable_push(NULL, number, CADRE_ASSIGN_UPDATE, tensor, NULL, options);
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status find(struct model *model)
{
    CADRE_TRY(cadre_variable_find(NULL, "rows", &model->rows));
    CADRE_TRY(cadre_variable_find(NULL, "vector", &model->vector));
    return cadre_variable_find(NULL, "number", &model->number);
}

/* Changes row `row` of two elements by `two`. */
static cadre_status change_row(cadre_variable *rows, cadre_assignment how, int64_t row,
    const void *two, const cadre_push_options *options)
{
    const int64_t dims[2] = {1, 2};
    cadre_tensor *ids = NULL;
    cadre_tensor *values = NULL;
    cadre_status status = cadre_tensor_from_data(CADRE_I64, 1, dims, &row, &ids);
    if (status == CADRE_OK) {
        status = cadre_tensor_from_data(cadre_variable_dtype(rows), 2, dims, two, &values);
    }
    if (status == CADRE_OK) {
        status = cadre_variable_push(NULL, rows, how, values, ids, options);
    }
    cadre_tensor_release(ids);
    cadre_tensor_release(values);
    return status;
}

static cadre_status add_row(cadre_variable *rows, int64_t row)
{
    static const int64_t ones[2] = {1, 1};
    return change_row(rows, CADRE_ASSIGN_ADD, row, ones, NULL);
}

static cadre_status add_all(cadre_variable *vector, const cadre_push_options *options)
{
    cadre_tensor *ones;
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, cadre_variable_dims(vector), &ones));
    int64_t *values = cadre_tensor_data(ones);
    for (int64_t i = 0; i < cadre_tensor_count(ones); i++) {
        values[i] = 1;
    }
    cadre_status status = cadre_variable_push(NULL, vector, CADRE_ASSIGN_ADD, ones, NULL, options);
    cadre_tensor_release(ones);
    return status;
}

/* argument: which row. output: the same. */
static cadre_status push(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const struct settings *settings = user;
    struct model model;
    cadre_tensor *which;
    CADRE_TRY(find(&model));
    CADRE_TRY(cadre_closure_tensor(closure, 0, &which));
    int64_t row = *(const int64_t *)cadre_tensor_const_data(which);
    CADRE_TRY(add_row(model.rows, row));
    if (settings->on_replicas) {
        CADRE_TRY(pusher_meet(settings->work_us));
    } else {
        pusher_work(settings->work_us / 2);
    }
    CADRE_TRY(add_all(model.vector, NULL));
    pusher_work(settings->work_us / 2);
    if (settings->lamb) {
        CADRE_TRY(pusher_halve(NULL));
    }
    CADRE_TRY(push_number(model.number, -1, NULL));
    return cadre_tensor_from_i64(row, &outputs[0]);
}

/* What `number` is after so many steps: the mean of -1, -2, ... by SGD, each time. */
static double number_after(const struct settings *settings, int64_t steps)
{
    return (double)steps * (double)(settings->closures + 1) / 2;
}

static cadre_status take_part(
    const struct settings *settings, int64_t row, int64_t step, bool fails, bool first)
{
    const cadre_push_options options = {
        .contributions = (uint32_t)settings->closures, .step = (uint64_t)step};
    const double gradient = -(double)(row + 1);
    const double of_row[2] = {-(double)settings->closures, -(double)settings->closures};
    struct model model;
    double number;
    CADRE_TRY(find(&model));
    CADRE_TRY(cadre_variable_find(NULL, "table", &model.table));
    CADRE_TRY(read_number(model.number, (uint64_t)step, &number));
    double wanted = number_after(settings, step);
    if (first && (number < wanted || number > wanted)) {
        return cadre_fail(CADRE_DATA_LOSS, "number is %g before step %lld instead of %g", number,
            (long long)step, wanted);
    }
    CADRE_TRY(push_number(model.number, gradient, &options));
    if (settings->lamb) {
        CADRE_TRY(pusher_halve(&options));
    }
    pusher_work(settings->work_us / 2);
    CADRE_TRY(change_row(model.table, CADRE_ASSIGN_UPDATE, row, of_row, &options));
    if (fails) {
        return cadre_fail(CADRE_INVALID_ARGUMENT, "step %lld had to fail", (long long)step);
    }
    pusher_work(settings->work_us / 2);
    return add_all(model.vector, &options);
}

/* arguments: which row, which step, which attempt at it. */
static cadre_status push_step(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const struct settings *settings = user;
    int64_t numbers[3];
    (void)outputs;
    for (uint32_t i = 0; i < 3; i++) {
        cadre_tensor *tensor;
        CADRE_TRY(cadre_closure_tensor(closure, i, &tensor));
        numbers[i] = *(const int64_t *)cadre_tensor_const_data(tensor);
    }
    bool fails = numbers[0] == settings->closures / 2 && numbers[1] == settings->fail_at;
    return take_part(settings, numbers[0], numbers[1], fails && numbers[2] == 0, numbers[2] == 0);
}

static atomic_bool awaiting; /* by hand: workers are threads */

static cadre_status fail(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const struct settings *settings = user;
    (void)outputs;
    while (strcmp(settings->mode, "await") == 0 && !atomic_load(&awaiting)) {
        pusher_work(1000);
    }
    return cadre_fail(CADRE_INVALID_ARGUMENT, "closure %llu had to fail",
        (unsigned long long)cadre_closure_number(closure));
}

/* A step that no worker completes. */
static cadre_status await_step(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    struct model model;
    double number;
    (void)closure;
    (void)outputs;
    (void)user;
    CADRE_TRY(find(&model));
    atomic_store(&awaiting, true);
    return read_number(model.number, 1, &number);
}

static cadre_status die(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    abort();
}

static cadre_status broken_dataset(
    const cadre_input_context *context, cadre_dataset **ret_dataset, void *user)
{
    (void)context;
    (void)ret_dataset;
    (void)user;
    return cadre_fail(CADRE_NOT_FOUND, "there is no file with elements");
}

/* Its argument is a dataset that could not be made. */
static cadre_status read_element(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint32_t count = 0;
    (void)user;
    return cadre_closure_next(closure, 0, outputs, 1, &count);
}

/* In a closure: what a closure must not do. */
static cadre_status misuse(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const struct settings *settings = user;
    struct model model;
    cadre_tensor *wrong = NULL;
    const int64_t dims[2] = {3, 2};
    (void)closure;
    (void)outputs;
    CADRE_TRY(find(&model));
    if (strcmp(settings->mode, "create-on-worker") == 0) {
        cadre_variable *made;
        return cadre_variable_create(
            cadre_strategy_current(), "made", CADRE_F32, 1, dims, NULL, &made);
    }
    if (strcmp(settings->mode, "begin-step-on-worker") == 0) {
        return cadre_variable_begin_step(model.number, 0);
    }
    if (strcmp(settings->mode, "row-out-of-range") == 0) {
        return add_row(model.rows, settings->closures);
    }
    bool shape = strcmp(settings->mode, "wrong-shape") == 0;
    CADRE_TRY(cadre_tensor_create(shape ? CADRE_I64 : CADRE_F32, 2, dims, &wrong));
    cadre_status status = cadre_variable_assign(NULL, model.rows, CADRE_ASSIGN_ADD, wrong);
    cadre_tensor_release(wrong);
    return status;
}

static cadre_status nonsense(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *ret_pieces, void *user)
{
    (void)dtype;
    (void)rank;
    (void)dims;
    (void)user;
    ret_pieces[0] = -3;
    return CADRE_OK;
}

static void create(cadre_strategy *strategy, const struct settings *settings, struct model *model)
{
    const int64_t rows[2] = {settings->closures, 2};
    const cadre_partitioner wrong = {.kind = CADRE_PARTITIONER_FUNCTION, .function = nonsense};
    const bool partitions = strcmp(settings->mode, "partitioner") == 0;
    const cadre_variable_options of_rows = {.partitioner = partitions ? &wrong : NULL};
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};
    const int64_t huge[1] = {INT64_C(1) << 50};
    cadre_variable *none;
    CADRE_CHECK(
        cadre_variable_create(strategy, "rows", CADRE_I64, 2, rows, &of_rows, &model->rows));
    CADRE_CHECK(cadre_variable_create(
        strategy, "vector", CADRE_I64, 1, &settings->length, NULL, &model->vector));
    CADRE_CHECK(
        cadre_variable_create(strategy, "number", CADRE_F64, 0, NULL, NULL, &model->number));
    CADRE_CHECK(cadre_optimizer_create(strategy, &sgd, &model->descent));
    CADRE_CHECK(cadre_optimizer_build(model->descent, &model->number, 1));
    if (settings->on_replicas) {
        const cadre_variable_options sum = {.aggregation = CADRE_AGGREGATION_SUM};
        CADRE_CHECK(cadre_variable_create(
            strategy, "together", CADRE_I64, 0, NULL, &sum, &model->together));
    }
    if (settings->lamb) {
        pusher_create_halved(strategy);
    }
    if (settings->synchronous) {
        CADRE_CHECK(
            cadre_variable_create(strategy, "table", CADRE_F64, 2, rows, NULL, &model->table));
        CADRE_CHECK(cadre_optimizer_build(model->descent, &model->table, 1));
    }
    if (strcmp(settings->mode, "huge") == 0) {
        CADRE_CHECK(cadre_variable_create(strategy, "huge", CADRE_F64, 1, huge, NULL, &none));
    }
}

static void schedule(cadre_strategy *strategy, const char *function, int64_t row)
{
    cadre_closure_argument argument = {.tensor = NULL};
    CADRE_CHECK(cadre_tensor_from_i64(row, &argument.tensor));
    CADRE_CHECK(cadre_schedule(strategy, function, &argument, 1, NULL));
    cadre_tensor_release(argument.tensor);
}

static void schedule_step(
    cadre_strategy *strategy, const struct settings *settings, int64_t step, int64_t attempt)
{
    for (int64_t row = 0; row < settings->closures; row++) {
        const int64_t numbers[3] = {row, step, attempt};
        cadre_closure_argument arguments[3];
        memset(arguments, 0, sizeof arguments);
        for (int i = 0; i < 3; i++) {
            CADRE_CHECK(cadre_tensor_from_i64(numbers[i], &arguments[i].tensor));
        }
        cadre_status status = cadre_schedule(strategy, "push_step", arguments, 3, NULL);
        for (int i = 0; i < 3; i++) {
            cadre_tensor_release(arguments[i].tensor);
        }
        if (status != CADRE_OK) {
            return; /* cadre_join is for the next attempt then */
        }
    }
}

/* One step, once more when it fails. */
static void take_step(
    cadre_strategy *strategy, const struct settings *settings, const struct model *model)
{
    int64_t step = (int64_t)cadre_strategy_position(strategy);
    cadre_variable *const variables[] = {model->number, model->table, model->vector};
    schedule_step(strategy, settings, step, 0);
    if (step != settings->fail_at) {
        CADRE_CHECK(cadre_join(strategy));
        return;
    }
    (void)cadre_join(strategy);
    printf("step %lld is taken again\n", (long long)step);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        CADRE_CHECK(cadre_variable_begin_step(variables[i], (uint64_t)step));
    }
    if (settings->lamb) {
        pusher_begin_halving((uint64_t)step);
    }
    schedule_step(strategy, settings, step, 1);
    CADRE_CHECK(cadre_join(strategy));
}

static void schedule_mode(cadre_strategy *strategy, const char *mode)
{
    cadre_closure_argument argument = {.tensor = NULL};
    if (strcmp(mode, "dataset") != 0) {
        schedule(strategy, mode, 0);
        if (strcmp(mode, "await") == 0) {
            schedule(strategy, "fail", 0);
        }
        return;
    }
    CADRE_CHECK(cadre_create_per_worker_dataset(strategy, "broken", &argument.per_worker));
    CADRE_CHECK(cadre_schedule(strategy, "dataset", &argument, 1, NULL));
}

static int64_t count_wrong(cadre_variable *variable, int64_t wanted)
{
    cadre_tensor *value;
    int64_t wrong = 0;
    CADRE_CHECK(cadre_variable_value(NULL, variable, NULL, &value));
    const int64_t *numbers = cadre_tensor_const_data(value);
    for (int64_t i = 0; i < cadre_tensor_count(value); i++) {
        if (numbers[i] != wanted && wrong++ == 0) {
            printf("%s: element %lld is %lld instead of %lld\n", cadre_variable_name(variable),
                (long long)i, (long long)numbers[i], (long long)wanted);
        }
    }
    cadre_tensor_release(value);
    return wrong;
}

static int64_t count_wrong_table(cadre_variable *table, double wanted)
{
    cadre_tensor *value;
    int64_t wrong = 0;
    CADRE_CHECK(cadre_variable_value(NULL, table, NULL, &value));
    const double *numbers = cadre_tensor_const_data(value);
    for (int64_t i = 0; i < cadre_tensor_count(value); i++) {
        if ((numbers[i] < wanted || numbers[i] > wanted) && wrong++ == 0) {
            printf("table: element %lld is %f instead of %f\n", (long long)i, numbers[i], wanted);
        }
    }
    cadre_tensor_release(value);
    return wrong;
}

static bool check(const struct settings *settings, const struct model *model)
{
    int64_t all = settings->rounds * settings->closures;
    bool synchronous = settings->synchronous;
    int64_t updates = cadre_optimizer_iterations(model->descent);
    double wanted = synchronous ? number_after(settings, settings->rounds) : (double)all;
    double number = -1;
    CADRE_CHECK(read_number(model->number, 0, &number));
    int64_t wrong = count_wrong(model->rows, synchronous ? 0 : settings->rounds) +
                    count_wrong(model->vector, all);
    if (settings->on_replicas) {
        wrong += count_wrong(model->together, all);
    }
    if (settings->lamb) {
        wrong += pusher_wrong_halves(synchronous ? settings->rounds : all);
    }
    if (synchronous) {
        wrong += count_wrong_table(model->table, (double)settings->rounds);
    }
    if (number < wanted || number > wanted) {
        printf("number: %f instead of %f\n", number, wanted);
        wrong++;
    }
    if (updates != (synchronous ? settings->rounds : all)) {
        printf("number: %lld updates were counted\n", (long long)updates);
        wrong++;
    }
    printf("%s: %lld pushes\n", wrong == 0 ? "exact" : "WRONG", (long long)(3 * all));
    return wrong == 0;
}

static int coordinate(struct settings *settings)
{
    cadre_strategy *strategy;
    struct model model;
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3}};
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    create(strategy, settings, &model);
    if (settings->mode[0] != '\0') {
        schedule_mode(strategy, settings->mode);
        CADRE_CHECK(cadre_join(strategy));
    }
    printf("begins at round %llu\n", (unsigned long long)cadre_strategy_position(strategy));
    fflush(stdout);
    while (cadre_strategy_position(strategy) < (uint64_t)settings->rounds) {
        if (settings->synchronous) {
            take_step(strategy, settings, &model);
        } else {
            for (int64_t i = 0; i < settings->closures; i++) {
                schedule(strategy, "push", i);
            }
            CADRE_CHECK(cadre_join(strategy));
        }
        if (settings->save) {
            CADRE_CHECK(cadre_save(strategy, true));
        }
        printf("round %llu is done\n", (unsigned long long)cadre_strategy_position(strategy));
        fflush(stdout);
        if (settings->until != NULL && access(settings->until, F_OK) == 0) {
            settings->rounds = (int64_t)cadre_strategy_position(strategy);
        }
    }
    bool exact = check(settings, &model);
    cadre_optimizer_release(model.descent);
    int status = cadre_finish(strategy);
    return exact ? status : 3;
}

/* Reads what the others push: never more than there will be. */
static int evaluate(const struct settings *settings)
{
    uint64_t step;
    unsigned long long read = 0;
    double number = -1;
    struct model model;
    while (cadre_next_evaluation(0.05, &step)) {
        if (settings->hold != NULL && access(settings->hold, F_OK) == 0) {
            puts("the evaluator is held");
            continue;
        }
        if (find(&model) != CADRE_OK) {
            continue; /* the chief has not made them yet */
        }
        CADRE_CHECK(read_number(model.number, 0, &number));
        CADRE_CHECK(cadre_report_evaluation("number", number));
        printf("evaluated step %llu: %.0f\n", (unsigned long long)step, number);
        read++;
    }
    printf("evaluated %llu times, at last %.0f of %lld\n", read, number,
        (long long)(settings->rounds * settings->closures));
    return cadre_evaluator_finish();
}

static bool read_argument(const char *text, int64_t *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *ret_number >= 0;
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
        {"closures", required_argument, NULL, 'c'}, {"length", required_argument, NULL, 'l'},
        {"work-us", required_argument, NULL, 'w'}, {"save", no_argument, NULL, 's'},
        {"mode", required_argument, NULL, 'm'}, {"on-replicas", no_argument, NULL, 'p'},
        {"synchronous", no_argument, NULL, 'y'}, {"fail-at", required_argument, NULL, 'f'},
        {"until", required_argument, NULL, 'u'}, {"lamb", no_argument, NULL, 'b'},
        {"hold", required_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    *settings =
        (struct settings){.rounds = 3, .closures = 20, .length = 1000, .fail_at = -1, .mode = ""};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int64_t *number = NULL;
        switch (option) {
        case 'r':
            number = &settings->rounds;
            break;
        case 'c':
            number = &settings->closures;
            break;
        case 'l':
            number = &settings->length;
            break;
        case 'w':
            number = &settings->work_us;
            break;
        case 's':
            settings->save = true;
            break;
        case 'y':
            settings->synchronous = true;
            break;
        case 'p':
            settings->on_replicas = true;
            break;
        case 'b':
            settings->lamb = true;
            break;
        case 'f':
            number = &settings->fail_at;
            break;
        case 'm':
            settings->mode = optarg;
            break;
        case 'u':
        case 'h':
            *(option == 'u' ? &settings->until : &settings->hold) = optarg;
            break;
        default:
            return false;
        }
        if (number != NULL && !read_argument(optarg, number)) {
            fprintf(stderr, "pusher: \"%s\" is not a number; see the head of pusher.c\n", optarg);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct settings settings;
    static const char *const misused[] = {"create-on-worker", "begin-step-on-worker",
        "row-out-of-range", "wrong-shape", "wrong-dtype"};
    CADRE_CHECK(cadre_init(&argc, &argv));
    if (!read_settings(argc, argv, &settings)) {
        return 2;
    }
    CADRE_CHECK(cadre_function_register("push", push, &settings));
    CADRE_CHECK(cadre_function_register("push_step", push_step, &settings));
    CADRE_CHECK(cadre_function_register("fail", fail, &settings));
    CADRE_CHECK(cadre_function_register("await", await_step, NULL));
    CADRE_CHECK(cadre_function_register("abort", die, NULL));
    CADRE_CHECK(cadre_function_register("dataset", read_element, NULL));
    CADRE_CHECK(cadre_dataset_register("broken", broken_dataset, NULL));
    for (size_t i = 0; i < sizeof misused / sizeof misused[0]; i++) {
        CADRE_CHECK(cadre_function_register(misused[i], misuse, &settings));
    }
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    return cadre_task_type_of() == CADRE_TASK_EVALUATOR ? evaluate(&settings)
                                                        : coordinate(&settings);
}
