/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/library/runtime/ps_job/closure_numbers.h"

#define WAIT_TIMEOUT_US (60 * CADRE_US_PER_S)
#define INCARNATION     50 /* + slot */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    uint32_t runs[STAGE_IDS];
    uint32_t worker[STAGE_IDS];
    uint64_t number[STAGE_IDS];
    bool open[STAGE_IDS];
    cadre_status code[STAGE_IDS];
} board;

/* Numbers of the chief's ps job. */
static struct ps_job_state *chief;

uint64_t stage_done_count(void)
{
    return closure_numbers_watermark(chief->numbers) - 1;
}

uint64_t stage_noted_step(void)
{
    return atomic_load(&chief->step);
}

uint64_t stage_number_count(void)
{
    return closure_numbers_count(chief->numbers);
}

/* --- functions --- */

static cadre_status begin(cadre_closure *closure, int64_t *ret_id)
{
    cadre_tensor *id = NULL;
    uint32_t worker = 0;
    CADRE_TRY(cadre_closure_tensor(closure, 0, &id));
    CADRE_TRY(cadre_worker_index(&worker));
    *ret_id = *(const int64_t *)cadre_tensor_const_data(id);
    pthread_mutex_lock(&lock);
    if (board.runs[*ret_id] > 0 && board.number[*ret_id] != cadre_closure_number(closure)) {
        print_error("closure %lld has another number in its second run\n", (long long)*ret_id);
        abort();
    }
    board.runs[*ret_id]++;
    board.worker[*ret_id] = worker;
    board.number[*ret_id] = cadre_closure_number(closure);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CADRE_OK;
}

static cadre_status hold(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    int64_t id = 0;
    (void)outputs;
    (void)user;
    CADRE_TRY(begin(closure, &id));
    pthread_mutex_lock(&lock);
    while (!board.open[id]) {
        pthread_cond_wait(&changed, &lock);
    }
    cadre_status code = board.code[id];
    pthread_mutex_unlock(&lock);
    return cadre_fail(code, "closure %lld was made to fail", (long long)id);
}

static cadre_status tally(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    int64_t id = 0;
    (void)user;
    CADRE_TRY(begin(closure, &id));
    CADRE_TRY(cadre_tensor_from_i64(id, &outputs[0]));
    return cadre_tensor_from_i64(2 * id, &outputs[1]);
}

static cadre_status echo(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)user;
    for (uint32_t i = 0; i < cadre_closure_argument_count(closure); i++) {
        cadre_tensor *argument = NULL;
        CADRE_TRY(cadre_closure_tensor(closure, i, &argument));
        outputs[i] = cadre_tensor_retain(argument);
    }
    return CADRE_OK;
}

static cadre_status fail_always(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)user;
    CADRE_TRY(cadre_tensor_from_i64(1, &outputs[0])); /* it is released */
    return cadre_fail(CADRE_INVALID_ARGUMENT, "no good data");
}

static cadre_status quick(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

void stage_let(int64_t id, cadre_status code)
{
    pthread_mutex_lock(&lock);
    board.open[id] = true;
    board.code[id] = code;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

uint32_t stage_await_run(int64_t id, uint32_t times)
{
    pthread_mutex_lock(&lock);
    while (board.runs[id] < times) {
        pthread_cond_wait(&changed, &lock);
    }
    uint32_t worker = board.worker[id];
    pthread_mutex_unlock(&lock);
    return worker;
}

uint32_t stage_runs(int64_t id)
{
    pthread_mutex_lock(&lock);
    uint32_t runs = board.runs[id];
    pthread_mutex_unlock(&lock);
    return runs;
}

uint64_t stage_number(int64_t id)
{
    pthread_mutex_lock(&lock);
    uint64_t number = board.number[id];
    pthread_mutex_unlock(&lock);
    return number;
}

/* --- the tasks --- */

static struct directory_self self_of(const struct stage *stage, uint32_t slot)
{
    return (struct directory_self){.ps_job = {.workers = stage->workers, .servers = 1},
        .slot = slot,
        .incarnation = INCARNATION + slot};
}

static void tell(const struct stage *stage, struct directory *directory)
{
    struct task_member members[STAGE_WORKERS_MAX + 1];
    for (uint32_t slot = 0; slot <= stage->workers; slot++) {
        members[slot] = (struct task_member){.slot = slot,
            .incarnation = INCARNATION + slot,
            .attempts = 1,
            .here = true,
            .address = slot == 0 ? stage->address : "127.0.0.1:9"};
    }
    const struct task_members all = {
        .generation = {.number = 3}, .members = members, .member_count = stage->workers + 1};
    directory_update(directory, &all);
}

static struct link_terms terms_of(const struct stage *stage, uint32_t slot)
{
    struct link_terms terms = {.generation = {.number = 3},
        .slot = slot,
        .incarnation = INCARNATION + slot,
        .ps_job = {.workers = stage->workers, .servers = 1}};
    memset(terms.key, 4, sizeof terms.key);
    return terms;
}

static void make_ps_job(struct stage *stage, uint32_t slot, struct ps_job_state *ps_job)
{
    struct cadre_error error = {0};
    const struct directory_self self = self_of(stage, slot);
    *ps_job = (struct ps_job_state){.role = slot == 0 ? ROLE_CHIEF : ROLE_WORKER,
        .index = slot == 0 ? 0 : slot - 1,
        .terms = terms_of(stage, slot)};
    assert_ok(directory_new(&self, &ps_job->directory, &error), &error);
    if (slot == 0) {
        assert_ok(closure_numbers_new(&ps_job->numbers, &error), &error);
    }
    tell(stage, ps_job->directory);
}

static void register_functions(void)
{
    static bool registered;
    if (!registered) {
        registered = true;
        assert_public_ok(cadre_function_register("hold", hold, NULL));
        assert_public_ok(cadre_function_register("tally", tally, NULL));
        assert_public_ok(cadre_function_register("echo", echo, NULL));
        assert_public_ok(cadre_function_register("fail", fail_always, NULL));
        assert_public_ok(cadre_function_register("quick", quick, NULL));
    }
}

void stage_open(struct stage *stage, uint32_t workers)
{
    struct cadre_error error = {0};
    *stage = (struct stage){.workers = workers};
    stage->strategy = training_strategy(1);
    register_functions();
    pthread_mutex_lock(&lock);
    memset(&board, 0, sizeof board);
    pthread_mutex_unlock(&lock);
    struct link_listener *listener = NULL;
    assert_ok(link_listener_open("127.0.0.1", NULL, &listener, stage->address, &error), &error);
    make_ps_job(stage, 0, &stage->chief);
    stage->chief.listener = listener;
    chief = &stage->chief;
    ps_job_set_current(chief);
    assert_ok(scheduler_begin(chief, stage->strategy, &error), &error);
}

static void *work(void *user)
{
    struct stage_worker *worker = user;
    ps_job_enter(&worker->ps_job);
    worker->status = closure_worker_run(&worker->ps_job, &worker->error);
    return NULL;
}

void stage_start(struct stage *stage, uint32_t index)
{
    struct stage_worker *worker = &stage->worker[index];
    make_ps_job(stage, index + 1, &worker->ps_job);
    worker->started = true;
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

void stage_open_all(struct stage *stage, uint32_t workers)
{
    stage_open(stage, workers);
    for (uint32_t i = 0; i < workers; i++) {
        stage_start(stage, i);
    }
    stage_await_connected(stage, workers);
}

struct wanted {
    struct stage *stage;
    uint32_t workers;
};

static bool are_connected(void *data)
{
    const struct wanted *wanted = data;
    return cadre_workers_connected(wanted->stage->strategy) == wanted->workers;
}

void stage_await_connected(struct stage *stage, uint32_t workers)
{
    struct wanted wanted = {stage, workers};
    assert_true(test_wait(are_connected, &wanted, WAIT_TIMEOUT_US));
}

void stage_end_scheduler(struct stage *stage)
{
    scheduler_end(&stage->chief);
    ps_job_set_current(NULL);
}

void stage_close(struct stage *stage)
{
    struct cadre_error over = {0};
    uint64_t numbers = stage_number_count();
    stage_end_scheduler(stage);
    assert_int_equal(stage_done_count(), numbers); /* each once */
    cadre_error_set(&over, CADRE_CANCELLED, "the chief is done");
    for (uint32_t i = 0; i < stage->workers; i++) {
        struct stage_worker *worker = &stage->worker[i];
        if (worker->started) {
            directory_end(worker->ps_job.directory, &over);
            pthread_join(worker->thread, NULL);
            assert_ok(worker->status, &worker->error);
            directory_free(worker->ps_job.directory);
        }
    }
    directory_free(stage->chief.directory);
    closure_numbers_free(stage->chief.numbers);
    cadre_strategy_release(stage->strategy);
}

cadre_tensor *stage_i64(int64_t value)
{
    cadre_tensor *tensor = NULL;
    assert_public_ok(cadre_tensor_from_i64(value, &tensor));
    return tensor;
}

cadre_remote_value *stage_schedule(struct stage *stage, const char *function, int64_t id)
{
    cadre_remote_value *value = NULL;
    cadre_tensor *tensor = stage_i64(id);
    const cadre_closure_argument argument = {.tensor = tensor};
    assert_public_ok(cadre_schedule(stage->strategy, function, &argument, 1, &value));
    cadre_tensor_release(tensor);
    return value;
}
