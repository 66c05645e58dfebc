/* SPDX-License-Identifier: Apache-2.0
 * LAMB of a variable that is cut into shards: its ratio is that of the whole, whichever task dies
 * between the exchanges of a push, and all shards have the same one. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server_rig.h"
#include "worker/library/ps/request.h"

enum { SERVERS = 2, PARTS = 3, ROWS = 4, WIDTH = 5, ALL = PARTS * ROWS * WIDTH };

static const struct optimizer_rule rule = {.kind = OPTIMIZER_LAMB,
    .rate = 0.125,
    .beta1 = 0.75,
    .beta2 = 0.875,
    .epsilon = 0.125,
    .weight_decay = 0.0625};

static struct rig rig;
static int memory[SERVERS];

/* The same numbers in parts on two servers, and as a whole on one of them. */
struct pair {
    uint32_t parts[PARTS];
    uint32_t whole;
    uint64_t closure; /* of its last push */
    uint64_t version;
    float gradient[ALL];
};

static int start_servers(void)
{
    for (uint32_t i = 0; i < SERVERS; i++) {
        memory[i] = memfd_create("ps", MFD_CLOEXEC);
        rig_start(&rig, i, memory[i]);
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    rig_open(&rig, SERVERS, 2);
    return start_servers();
}

static int setup_backed(void **state)
{
    (void)state;
    rig_open_backed(&rig, SERVERS, 2);
    return start_servers();
}

static int teardown(void **state)
{
    (void)state;
    rig_close(&rig);
    for (uint32_t i = 0; i < SERVERS; i++) {
        close(memory[i]);
    }
    return 0;
}

static void kill_servers(void)
{
    for (uint32_t i = 0; i < SERVERS; i++) {
        rig_stop(&rig, i);
        rig_start(&rig, i, memory[i]);
    }
}

static struct request push_of(
    uint32_t server, uint32_t shard, enum push_kind kind, uint64_t closure, const float *values)
{
    return (struct request){.kind = REQUEST_PUSH,
        .server = server,
        .shard = shard,
        .row_bytes = WIDTH * sizeof(float),
        .push = {.shard = shard,
            .kind = kind,
            .closure = closure,
            .rows = ROWS,
            .rate = (double)NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = values};
}

static struct request push_part(
    const struct pair *pair, size_t i, enum push_kind kind, const float *values)
{
    return push_of(
        (uint32_t)i % SERVERS, pair->parts[i], kind, pair->closure, values + i * ROWS * WIDTH);
}

static struct request push_whole(const struct pair *pair, enum push_kind kind, const float *values)
{
    struct request request = push_of(0, pair->whole, kind, pair->closure, values);
    request.push.rows *= PARTS;
    return request;
}

static void make_gradient(struct pair *pair)
{
    pair->closure++;
    pair->version++;
    for (size_t i = 0; i < ALL; i++) {
        pair->gradient[i] = (float)((i * pair->closure) % 7) - 2;
    }
}

static void create(struct pair *pair, const char *name)
{
    float values[ALL];
    char whole[64];
    *pair = (struct pair){.closure = 0};
    snprintf(whole, sizeof whole, "%s_whole", name);
    struct store_spec spec = rig_spec(whole, (uint64_t)PARTS * ROWS, WIDTH);
    pair->whole = rig_create_with(&rig, 0, &spec, &rule);
    for (size_t i = 0; i < ALL; i++) {
        values[i] = 1 + (float)(i % 5);
    }
    struct request assign = push_whole(pair, PUSH_ASSIGN, values);
    rig_call(&rig, &assign);
    for (size_t i = 0; i < PARTS; i++) {
        spec = rig_spec(name, ROWS, WIDTH);
        spec.shard = (uint32_t)i;
        pair->parts[i] = rig_create_with(&rig, (uint32_t)i % SERVERS, &spec, &rule);
        assign = push_part(pair, i, PUSH_ASSIGN, values);
        rig_call(&rig, &assign);
    }
}

static void pull(uint32_t server, uint32_t shard, float *into, uint64_t rows, uint64_t version)
{
    struct request pull = {.kind = REQUEST_PULL,
        .server = server,
        .shard = shard,
        .rows = rows,
        .row_bytes = WIDTH * sizeof(float),
        .into = into};
    rig_call(&rig, &pull);
    assert_int_equal(pull.ret_version, version);
}

/* Each push once, and the figures of the whole. */
static void check(const struct pair *pair)
{
    float wanted[ALL];
    float is[ALL];
    pull(0, pair->whole, wanted, PARTS * ROWS, pair->version);
    for (size_t i = 0; i < PARTS; i++) {
        pull((uint32_t)i % SERVERS, pair->parts[i], is + i * ROWS * WIDTH, ROWS, pair->version);
    }
    for (size_t i = 0; i < ALL; i++) {
        if (!(fabsf(is[i] - wanted[i]) < 1e-5F)) {
            fail_msg("element %zu is %g instead of %g", i, (double)is[i], (double)wanted[i]);
        }
    }
}

static void push_parts(struct pair *pair)
{
    struct cadre_error error = {0};
    struct request pushes[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        pushes[i] = push_part(pair, i, PUSH_UPDATE, pair->gradient);
    }
    assert_ok(client_push_shards(rig.client, pushes, PARTS, 0, &error), &error);
}

static void push_both(struct pair *pair)
{
    make_gradient(pair);
    push_parts(pair);
    struct request whole = push_whole(pair, PUSH_UPDATE, pair->gradient);
    rig_call(&rig, &whole);
}

static void parts_have_the_ratio_of_the_whole(void **state)
{
    (void)state;
    struct pair pair;
    create(&pair, "v");
    for (int step = 0; step < 4; step++) {
        push_both(&pair);
        check(&pair);
        push_parts(&pair); /* all of it was applied: nothing happens */
        check(&pair);
    }
}

/* Rows 1, 0, 1 of the first part and 3 of the last: the one between is not asked. */
static void parts_of_rows_have_theirs(void **state)
{
    (void)state;
    static const int64_t of_first[] = {1, 0, 1};
    static const int64_t of_last[] = {3};
    static const int64_t of_whole[] = {1, 0, 1, 2 * ROWS + 3};
    struct cadre_error error = {0};
    struct pair pair;
    create(&pair, "v");
    push_both(&pair);
    make_gradient(&pair);
    struct request pushes[] = {push_part(&pair, 0, PUSH_UPDATE, pair.gradient),
        push_part(&pair, 2, PUSH_UPDATE, pair.gradient),
        push_whole(&pair, PUSH_UPDATE, pair.gradient)};
    static const int64_t *const ids[] = {of_first, of_last, of_whole};
    static const uint64_t counts[] = {3, 1, 4};
    for (size_t i = 0; i < 3; i++) {
        pushes[i].push.sparse = true;
        pushes[i].push.ids = ids[i];
        pushes[i].push.rows = counts[i];
    }
    pushes[1].values = pair.gradient + 3 * WIDTH;
    assert_ok(client_push_shards(rig.client, pushes, 2, 0, &error), &error);
    rig_call(&rig, &pushes[2]);
    const float zeros[ALL] = {0};
    struct request nothing = push_part(&pair, 1, PUSH_ADD, zeros);
    rig_call(&rig, &nothing); /* the version of the others */
    check(&pair);
}

static double ratio_by_hand(const struct pair *pair)
{
    struct optimizer_norms all = {{0}, {0}};
    for (size_t i = 0; i < PARTS; i++) {
        uint8_t bytes[NORMS_BYTES];
        struct optimizer_norms part;
        struct request request = push_part(pair, i, PUSH_UPDATE, pair->gradient);
        request.kind = REQUEST_NORMS;
        request.into = bytes;
        rig_call(&rig, &request);
        norms_read(bytes, &part);
        optimizer_norms_join(&all, &part);
    }
    return store_trust(&all);
}

/* A client that dies behind its k-th exchange, and all servers with it; another one makes its push
 * again. The parts that are changed would have other norms by then. */
static void who_pushes_again_goes_on_with_that_ratio(void **state)
{
    (void)state;
    for (size_t made = 0; made <= 1 + PARTS; made++) {
        struct pair pair;
        char name[32];
        snprintf(name, sizeof name, "v%zu", made);
        create(&pair, name);
        push_both(&pair);
        make_gradient(&pair);
        double ratio = made > 0 ? ratio_by_hand(&pair) : 0;
        for (size_t i = 0; i + 1 < made; i++) {
            struct request push = push_part(&pair, i, PUSH_UPDATE, pair.gradient);
            push.push.trust = ratio;
            rig_call(&rig, &push);
            assert_true(push.ret_trust >= ratio && push.ret_trust <= ratio);
        }
        kill_servers();
        push_parts(&pair);
        struct request whole = push_whole(&pair, PUSH_UPDATE, pair.gradient);
        rig_call(&rig, &whole);
        check(&pair);
    }
}

/* Of two who make the same push at a time the first part's ratio is the one. */
static void two_at_a_time_agree(void **state)
{
    (void)state;
    struct pair pair;
    create(&pair, "v");
    make_gradient(&pair);
    struct request push = push_part(&pair, 0, PUSH_UPDATE, pair.gradient);
    push.push.trust = 0.75;
    rig_call(&rig, &push);
    push.push.trust = 0.25;
    rig_call(&rig, &push);
    assert_true(push.ret_trust >= 0.75 && push.ret_trust <= 0.75);
    kill_servers();
    rig_call(&rig, &push);
    assert_true(push.ret_trust >= 0.75 && push.ret_trust <= 0.75);
}

/* A server that comes without its memory has the ratio from its backup. */
static void a_copy_has_the_ratio(void **state)
{
    (void)state;
    struct pair pair;
    create(&pair, "v");
    push_both(&pair);
    make_gradient(&pair);
    double ratio = ratio_by_hand(&pair);
    struct request push = push_part(&pair, 0, PUSH_UPDATE, pair.gradient);
    push.push.trust = ratio;
    rig_call(&rig, &push);
    rig_await_backed(&rig);
    rig_stop(&rig, 0);
    close(memory[0]);
    memory[0] = memfd_create("ps", MFD_CLOEXEC);
    rig_start(&rig, 0, memory[0]);
    push.push.trust = 2 * ratio;
    rig_call(&rig, &push);
    assert_true(push.ret_trust >= ratio && push.ret_trust <= ratio);
    push_parts(&pair);
    struct request whole = push_whole(&pair, PUSH_UPDATE, pair.gradient);
    rig_call(&rig, &whole);
    check(&pair);
}

/* ---- synchronous steps of two contributions ---- */

static void contribute_to(struct request *push, uint64_t step)
{
    push->push.contributions = 2;
    push->push.step = step;
}

/* The pushes of a contribution, and the one to the whole is made. */
static void next_contribution(struct pair *pair, uint64_t step, struct request pushes[PARTS])
{
    make_gradient(pair);
    for (size_t i = 0; i < PARTS; i++) {
        pushes[i] = push_part(pair, i, PUSH_UPDATE, pair->gradient);
        pushes[i].push.trust = (double)NAN;
        contribute_to(&pushes[i], step);
    }
    struct request whole = push_whole(pair, PUSH_UPDATE, pair->gradient);
    contribute_to(&whole, step);
    rig_call(&rig, &whole);
}

static void contribute(struct request pushes[PARTS])
{
    struct cadre_error error = {0};
    assert_ok(client_push_shards(rig.client, pushes, PARTS, 0, &error), &error);
}

static double settle(const struct request *push, double ratio)
{
    struct request request = {.kind = REQUEST_SETTLE,
        .server = push->server,
        .shard = push->shard,
        .min_steps = push->push.step,
        .trust = ratio};
    rig_call(&rig, &request);
    return request.ret_trust;
}

static double step_ratio_by_hand(const struct request pushes[PARTS])
{
    struct optimizer_norms all = {{0}, {0}};
    for (size_t i = 0; i < PARTS; i++) {
        uint8_t bytes[NORMS_BYTES];
        struct optimizer_norms part;
        struct request request = {.kind = REQUEST_STEP_NORMS,
            .server = pushes[i].server,
            .shard = pushes[i].shard,
            .min_steps = pushes[i].push.step,
            .into = bytes};
        rig_call(&rig, &request);
        assert_int_equal(request.ret_steps, STEP_WAITS);
        norms_read(bytes, &part);
        optimizer_norms_join(&all, &part);
    }
    return store_trust(&all);
}

static void steps_have_the_ratio_of_the_whole(void **state)
{
    (void)state;
    struct pair pair;
    struct request pushes[PARTS];
    create(&pair, "v");
    for (uint64_t step = 0; step < 3; step++) {
        for (int i = 0; i < 2; i++) {
            next_contribution(&pair, step, pushes);
            contribute(pushes);
            contribute(pushes);
        }
        pair.version--;
        check(&pair);
    }
}

/* The second contribution dies behind its k-th request, and all servers with it. */
static void who_contributes_again_completes_the_step(void **state)
{
    (void)state;
    for (size_t made = 0; made <= 2 * PARTS; made++) {
        struct pair pair;
        struct request pushes[PARTS];
        char name[32];
        double ratio = 0;
        snprintf(name, sizeof name, "s%zu", made);
        create(&pair, name);
        next_contribution(&pair, 0, pushes);
        contribute(pushes);
        next_contribution(&pair, 0, pushes);
        for (size_t i = 0; i < made && i < PARTS; i++) {
            rig_call(&rig, &pushes[i]);
        }
        if (made > PARTS) {
            ratio = step_ratio_by_hand(pushes);
        }
        for (size_t i = 0; i + PARTS < made; i++) {
            double kept = settle(&pushes[i], ratio);
            assert_true(kept >= ratio && kept <= ratio);
        }
        kill_servers();
        contribute(pushes);
        pair.version--;
        check(&pair);
    }
}

/* It has all contributions, and was not given a ratio. */
static void a_step_that_waits_is_begun_again(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct pair pair;
    struct request pushes[PARTS];
    create(&pair, "v");
    next_contribution(&pair, 0, pushes);
    contribute(pushes);
    struct request begin = {
        .kind = REQUEST_SETTLE, .server = pushes[0].server, .shard = pushes[0].shard, .trust = 1};
    assert_error(client_call(rig.client, &begin, 1, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "step 0 was given the ratio 1 of LAMB's norms, and does not wait for one");
    for (size_t i = 0; i < PARTS; i++) {
        pushes[i].push.closure = 1000;
        rig_call(&rig, &pushes[i]);
    }
    kill_servers();
    for (size_t i = 0; i < PARTS; i++) {
        begin = (struct request){
            .kind = REQUEST_BEGIN_STEP, .server = pushes[i].server, .shard = pushes[i].shard};
        rig_call(&rig, &begin);
        pushes[i].push.closure = 1001;
    }
    contribute(pushes);
    next_contribution(&pair, 0, pushes);
    contribute(pushes);
    pair.version--;
    check(&pair);
}

/* A copy has the sums that wait, and the ratio that a shard was given. */
static void a_copy_has_steps_that_wait(void **state)
{
    (void)state;
    struct pair pair;
    struct request pushes[PARTS];
    create(&pair, "v");
    next_contribution(&pair, 0, pushes);
    contribute(pushes);
    next_contribution(&pair, 0, pushes);
    for (size_t i = 0; i < PARTS; i++) {
        rig_call(&rig, &pushes[i]);
    }
    double ratio = step_ratio_by_hand(pushes);
    assert_true(settle(&pushes[0], ratio) >= ratio);
    rig_await_backed(&rig);
    rig_stop(&rig, 0); /* the first shard, which has the ratio, and the last, which waits */
    close(memory[0]);
    memory[0] = memfd_create("ps", MFD_CLOEXEC);
    rig_start(&rig, 0, memory[0]);
    double kept = settle(&pushes[0], 2 * ratio);
    assert_true(kept >= ratio && kept <= ratio);
    contribute(pushes);
    pair.version--;
    check(&pair);
}

static void what_lamb_does_not_need_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint8_t bytes[RULE_BYTES];
    struct optimizer_rule is;
    struct pair pair;
    create(&pair, "v");
    make_gradient(&pair);
    struct store_spec spec = rig_spec("sgd", ROWS, WIDTH);
    uint32_t sgd = rig_create(&rig, 0, &spec);
    struct request push = push_part(&pair, 0, PUSH_UPDATE, pair.gradient);
    push.push.trust = (double)NAN;
    assert_error(client_call(rig.client, &push, 1, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "shard 0 of `v` is a part of what LAMB updates, and is pushed to without the ratio");
    push.kind = REQUEST_NORMS;
    push.into = bytes;
    push.push.contributions = 2;
    assert_error(client_call(rig.client, &push, 1, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "or one of a synchronous step");
    push.push.contributions = 0;
    push.push.first_row = 1;
    assert_error(
        client_call(rig.client, &push, 1, 0, &error), CADRE_OUT_OF_RANGE, &error, "4 rows");
    push.push.first_row = 0;
    push.shard = sgd;
    assert_error(client_call(rig.client, &push, 1, 0, &error), CADRE_FAILED_PRECONDITION, &error,
        "is no update by LAMB");
    struct request asked = {.kind = REQUEST_RULE, .shard = sgd, .into = bytes};
    rig_call(&rig, &asked);
    rule_read(bytes, &is);
    assert_int_equal(is.kind, OPTIMIZER_SGD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_have_the_ratio_of_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_rows_have_theirs, setup, teardown),
        cmocka_unit_test_setup_teardown(who_pushes_again_goes_on_with_that_ratio, setup, teardown),
        cmocka_unit_test_setup_teardown(two_at_a_time_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_has_the_ratio, setup_backed, teardown),
        cmocka_unit_test_setup_teardown(steps_have_the_ratio_of_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(who_contributes_again_completes_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_waits_is_begun_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_has_steps_that_wait, setup_backed, teardown),
        cmocka_unit_test_setup_teardown(what_lamb_does_not_need_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
