/* SPDX-License-Identifier: Apache-2.0
 * Processes that are killed: at each point between two stores that matter, one after the other; and
 * wherever it hits several threads. What is not acknowledged is sent again, some of the rest too,
 * and in the end the memory holds what it would hold without a death. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "store_fixture.h"
#include "worker/library/ps/store/store_internal.h"

#define DIED   9
#define PUSHES 29

/* Shared with the children. */
struct common {
    _Atomic uint64_t acknowledged[64];
    _Atomic uint64_t total;
    atomic_bool finished;
};

static struct common *common;

static int share(void **state)
{
    (void)state;
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return common == MAP_FAILED ? -1 : 0;
}

/* ---- at each point ---- */

static uint64_t points_left;

static void count_down(void)
{
    if (--points_left == 0) {
        _exit(DIED);
    }
}

#define WIDE 20000 /* elements of f64: more than two pieces */
static double values[WIDE];

/* LAMB of two pieces, of rows that repeat, and a step that is sparse and one of two pieces. */
static void push_lamb(struct store *store, unsigned number, struct push *push)
{
    static const int64_t ids[] = {2, 0, 2};
    push->shard = number == 17 || number == 18 ? 5 : 4;
    push->rows = 1;
    if (number >= 24) { /* by a ratio that was found elsewhere */
        push->shard = 4;
        push->trust = number < 26 ? 2.5 : (double)NAN; /* of a step */
        push->sparse = number == 25;
        push->ids = ids + 1;
        push->contributions = number < 26 ? 0 : 2;
        push->step = 1;
        fixture_store_push(store, push, values);
        return;
    }
    if (number == 16 || number == 17 || number == 18) {
        push->sparse = true;
        push->ids = ids;
        push->rows = number == 16 ? 1 : 3;
        push->ids = number == 16 ? ids + 1 : ids;
    }
    if (number >= 18) {
        push->contributions = number == 18 ? 1 : 2;
    }
    fixture_store_push(store, push, values);
}

/* One that gets its optimizer between two pushes: slots that the first one's journal has not. */
static void push_late(struct store *store, unsigned number, struct push *push)
{
    struct cadre_error error = {0};
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_RMSPROP);
    rule.centered = true;
    push->shard = 6;
    push->rows = 5;
    if (number == 22) {
        assert_ok(store_train(store, push->shard, &rule, &error), &error);
        return;
    }
    push->kind = number == 21 ? PUSH_ADD : PUSH_UPDATE;
    fixture_store_push(store, push, values);
}

/* Adam in several pieces; sparse momentum with rows that repeat; a synchronous step of two, and
 * one that is sparse; assigned, added; a step that is begun again. */
static void push_number(struct store *store, unsigned number)
{
    static const int64_t ids[] = {3, 1, 3, 0, 7, 1};
    static const int64_t others[] = {5, 0};
    struct push push = {.closure = number + 1,
        .ordinal = number % 3,
        .kind = PUSH_UPDATE,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
    if (number == 28) { /* what the two before it wait for */
        struct cadre_error error = {0};
        double trust = 0;
        assert_ok(store_step_settle(store, 0, 4, 1, 2.5, &trust, &error), &error);
        assert_true(trust >= 2.5 && trust <= 2.5);
        return;
    }
    if (number >= 21 && number < 24) {
        push_late(store, number, &push);
        return;
    }
    if (number >= 15) {
        push_lamb(store, number, &push);
        return;
    }
    if (number == 12) { /* what came before is dropped */
        assert_int_equal(store_begin_step(store, 2, 2), CADRE_OK);
        return;
    }
    switch (number) {
    case 0:
    case 1:
        push.shard = 0;
        push.rows = 2;
        break;
    case 2:
    case 3:
        push.shard = 1;
        push.sparse = true;
        push.ids = ids;
        push.rows = 6;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        push.shard = 2;
        push.rows = 8;
        push.sparse = number >= 6;
        if (push.sparse) {
            push.ids = number == 6 ? ids : others;
            push.rows = number == 6 ? 6 : 2;
        }
        push.contributions = 2;
        push.step = number >= 6;
        break;
    case 11:
    case 13:
    case 14:
        push.shard = 2;
        push.rows = 8;
        push.contributions = 2;
        push.step = 2;
        break;
    case 8:
        push.shard = 1;
        push.kind = PUSH_ASSIGN;
        push.sparse = true;
        push.ids = others;
        push.rows = 2;
        break;
    case 9:
        push.shard = 1;
        push.kind = PUSH_ASSIGN;
        push.rows = 3;
        push.first_row = 2;
        break;
    default:
        push.shard = 3;
        push.kind = PUSH_ADD;
        push.rows = 3;
        break;
    }
    fixture_store_push(store, &push, values);
}

static void create_all(struct store *store)
{
    struct cadre_error error = {0};
    fixture_store_create(store, "adam", CADRE_F64, 2, WIDE / 2, OPTIMIZER_ADAM);
    fixture_store_create(store, "momentum", CADRE_F64, 8, 3, OPTIMIZER_MOMENTUM);
    fixture_store_create(store, "step", CADRE_F64, 8, 2, OPTIMIZER_ADAGRAD);
    fixture_store_create(store, "sum", CADRE_I64, 3, 1, OPTIMIZER_NONE);
    fixture_store_create(store, "lamb", CADRE_F64, 1, 9000, OPTIMIZER_LAMB);
    fixture_store_create(store, "lambs", CADRE_F64, 4, 3, OPTIMIZER_LAMB);
    fixture_store_create(store, "late", CADRE_F64, 5, 2, OPTIMIZER_NONE);
    assert_ok(store_note(store, "adam", "two rows", 8, &error), &error);
    assert_ok(store_note(store, "adam", "2 x 10000", 9, &error), &error);
    assert_ok(store_note(store, "adam", "2x10000", 7, &error), &error);
}

static void push_all(struct store *store)
{
    for (unsigned i = 0; i < PUSHES; i++) {
        if (atomic_load(&common->acknowledged[i]) == 0) {
            push_number(store, i);
            atomic_store(&common->acknowledged[i], 1);
        }
    }
}

/* Whether a child that dies at its `point`th point came to it. */
static bool dies_at(int fd, uint64_t point, bool works)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        points_left = point;
        store_fault_hook = count_down;
        struct store *store = fixture_store_open(fd);
        if (works) {
            create_all(store);
            push_all(store);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DIED));
    return WEXITSTATUS(status) == DIED;
}

static void forget_acknowledged(void)
{
    memset(common, 0, sizeof *common);
}

static void a_kill_at_each_point_changes_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WIDE; i++) {
        values[i] = (double)(i % 7) - 2;
    }
    struct store *model = fixture_store_open(-1);
    forget_acknowledged();
    create_all(model);
    push_all(model);
    const uint64_t digest = fixture_store_digest(model);
    store_close(model);
    uint64_t point = 1;
    for (bool died = true; died; point++) {
        int fd = fixture_store_memory();
        forget_acknowledged();
        died = dies_at(fd, point, true);
        /* Who settles it may die as well. */
        for (uint64_t again = 1; died && again < 1 + point % 4 * 3; again += 2) {
            (void)dies_at(fd, again, false);
        }
        struct store *store = fixture_store_open(fd);
        create_all(store);
        push_all(store);
        forget_acknowledged();
        push_all(store); /* all were applied: nothing happens */
        assert_true(fixture_store_digest(store) == digest);
        store_close(store);
        close(fd);
    }
    assert_true(point > 100);
}

/* ---- while the table of pushes moves ---- */

#define TABLE_FULL 764 /* a few less than make it move */
#define TABLE_MORE 9

static void add_ones(struct store *store, uint64_t from, uint64_t to)
{
    static const int64_t one = 1;
    for (uint64_t closure = from; closure < to; closure++) {
        struct push push = {
            .closure = closure, .kind = PUSH_ADD, .rows = 1, .based_on = PUSH_ANY_VERSION};
        fixture_store_push(store, &push, &one);
    }
}

static bool dies_while_it_moves(int fd, uint64_t point)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *store = fixture_store_open(fd);
        points_left = point;
        store_fault_hook = count_down;
        add_ones(store, TABLE_FULL, TABLE_FULL + TABLE_MORE);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status) == DIED;
}

static void a_kill_while_the_table_moves(void **state)
{
    (void)state;
    /* Most points are in the middle of the move, each like the one before. */
    for (uint64_t point = 1, died = 1; died; point += point > 40 && point < 750 ? 35 : 1) {
        int fd = fixture_store_memory();
        struct store *store = fixture_store_open(fd);
        fixture_store_create(store, "sum", CADRE_I64, 1, 1, OPTIMIZER_NONE);
        add_ones(store, 1, TABLE_FULL);
        store_forget(store, point % 3 == 0 ? 5 : 0); /* their places are taken */
        uint64_t capacity = store->table->capacity;
        store_close(store);
        died = dies_while_it_moves(fd, point);
        store = fixture_store_open(fd);
        add_ones(store, 1, TABLE_FULL + TABLE_MORE);
        assert_true(point % 3 == 0 || store->table->capacity > capacity);
        assert_int_equal(*(const int64_t *)store_rows(store, 0, 0, 1), TABLE_FULL + TABLE_MORE - 1);
        store_close(store);
        close(fd);
    }
}

/* ---- anywhere ---- */

#define THREADS 4
#define ROWS    3000
#define EACH    3000 /* pushes of a thread */

struct pusher {
    struct store *store;
    uint32_t thread;
};

/* Each number is exact, so that any order gives the same. */
static void push_some(struct store *store, uint32_t thread, uint64_t number)
{
    int64_t integers[ROWS];
    double gradients[64 * 2];
    int64_t ids[64];
    struct push push = {.closure = 1 + number,
        .ordinal = thread,
        .kind = number % 2 == 0 ? PUSH_ADD : PUSH_UPDATE,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
    struct cadre_error error = {0};
    if (number % 2 == 0) {
        push.rows = ROWS;
        for (uint64_t i = 0; i < ROWS; i++) {
            integers[i] = (int64_t)(number + i);
        }
        assert_ok(fixture_store_push_blocks(store, thread, &push, integers, 1000, &error), &error);
        return;
    }
    push.shard = 1;
    push.sparse = true;
    push.rows = 64;
    push.ids = ids;
    for (uint64_t i = 0; i < 64; i++) {
        ids[i] = (int64_t)((number * 7 + i * i) % 100);
        gradients[2 * i] = 2;
        gradients[2 * i + 1] = (double)thread;
    }
    assert_ok(fixture_store_push_blocks(store, thread, &push, gradients, 0, &error), &error);
}

static void *push_on(void *user)
{
    struct pusher *pusher = user;
    _Atomic uint64_t *done = &common->acknowledged[pusher->thread];
    for (uint64_t number = atomic_load(done); number < EACH; number++) {
        push_some(pusher->store, pusher->thread, number);
        atomic_store(done, number + 1);
        atomic_fetch_add(&common->total, 1);
    }
    return NULL;
}

static void create_two(struct store *store)
{
    fixture_store_create(store, "integers", CADRE_I64, ROWS, 1, OPTIMIZER_NONE);
    fixture_store_create(store, "sgd", CADRE_F64, 100, 2, OPTIMIZER_SGD);
}

static void run_threads(struct store *store)
{
    create_two(store);
    pthread_t threads[THREADS];
    struct pusher pushers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        pushers[i] = (struct pusher){.store = store, .thread = i};
        assert_int_equal(pthread_create(&threads[i], NULL, push_on, &pushers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void kill_one(int fd, uint64_t more)
{
    uint64_t wanted = atomic_load(&common->total) + more;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        run_threads(fixture_store_open(fd));
        atomic_store(&common->finished, true);
        _exit(0);
    }
    while (atomic_load(&common->total) < wanted && !atomic_load(&common->finished)) {
        sched_yield(); /* the kill is to hit it at work */
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void kills_anywhere_change_nothing(void **state)
{
    (void)state;
    struct prng random = {.state = 7};
    int fd = fixture_store_memory();
    forget_acknowledged();
    unsigned kills = 0;
    for (; !atomic_load(&common->finished); kills++) {
        kill_one(fd, prng_uniform(&random, 20));
    }
    assert_true(kills > 1); /* some hundred, where the machine has time for this */
    struct store *store = fixture_store_open(fd);
    run_threads(store);
    forget_acknowledged();
    struct store *model = fixture_store_open(-1);
    run_threads(model);
    uint64_t digest = fixture_store_digest(model);
    assert_true(fixture_store_digest(store) == digest);
    forget_acknowledged();
    run_threads(store);
    assert_true(fixture_store_digest(store) == digest);
    store_close(model);
    store_close(store);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_kill_at_each_point_changes_nothing, share),
        cmocka_unit_test(a_kill_while_the_table_moves),
        cmocka_unit_test_setup(kills_anywhere_change_nothing, share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
