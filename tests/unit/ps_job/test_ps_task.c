/* SPDX-License-Identifier: Apache-2.0
 * A task without a part in the ledger: what it sends, and how it handles what it receives. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/ps_job/ps_task.h"

#define SENT_MAX 16

/* A session that keeps what is sent; the test is the other side. */
static struct fake {
    struct session base;
    struct session_events events;
    enum task_up_type types[SENT_MAX];
    struct task_hello hello; /* the last */
    struct task_report report;
    char text[LIMIT_TEXT_BYTES]; /* of the report */
    char address[LIMIT_ADDRESS_BYTES];
    double value;              /* of the last metric */
    struct task_values values; /* the last; without its arrays */
    uint64_t first_step, last_step;
    char first_name[LIMIT_NAME_BYTES];
    size_t sent;
    bool fails; /* to start */
    bool closed;
} fake;

static cadre_status fake_start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    (void)session;
    fake.events = *events;
    return fake.fails ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no thread") : CADRE_OK;
}

static void fake_send(struct session *session, const struct task_up *up)
{
    (void)session;
    assert_true(fake.sent < SENT_MAX);
    fake.types[fake.sent++] = up->type;
    if (up->type == TASK_UP_HELLO) {
        fake.hello = up->hello;
        snprintf(fake.address, sizeof fake.address, "%s", up->hello.mesh_address);
    } else if (up->type == TASK_UP_REPORT) {
        fake.report = up->report;
        snprintf(fake.text, sizeof fake.text, "%s", up->report.text);
    } else if (up->type == TASK_UP_PROGRESS) {
        fake.value = up->progress.metrics[up->progress.metric_count - 1].value;
    } else if (up->type == TASK_UP_VALUES) {
        const struct task_values *values = &up->values;
        fake.values = *values;
        fake.first_step = values->values[0].step;
        fake.last_step = values->values[values->value_count - 1].step;
        snprintf(
            fake.first_name, sizeof fake.first_name, "%s", values->names[values->values[0].name]);
    }
}

static bool fake_take(struct session *session, struct task_down *ret_down)
{
    (void)session;
    (void)ret_down;
    return false;
}

static void fake_close(struct session *session)
{
    (void)session;
    fake.closed = true;
}

static const struct session_ops fake_ops = {
    .name = "fake", .start = fake_start, .send = fake_send, .take = fake_take, .close = fake_close};

static struct directory *directory;
static struct ps_task *ps_task;

static const struct directory_self self = {
    .ps_job = {.workers = 1, .servers = 1}, .slot = 2, .incarnation = 9};

static int open(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    memset(&fake, 0, sizeof fake);
    fake.base.ops = &fake_ops;
    const struct ps_task_options options = {.session = &fake.base, .address = "127.0.0.1:5"};
    struct ps_task_options all = options;
    assert_ok(directory_new(&self, &directory, &error), &error);
    all.directory = directory;
    assert_ok(ps_task_open(&all, &ps_task, &error), &error);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    ps_task_close(ps_task);
    directory_free(directory);
    assert_true(fake.closed);
    return 0;
}

static void receive(const struct task_down *down)
{
    fake.events.down(down, fake.events.user);
}

static void it_says_hello_on_each_connection(void **state)
{
    (void)state;
    assert_int_equal(fake.sent, 1);
    assert_int_equal(fake.types[0], TASK_UP_HELLO);
    assert_int_equal(fake.hello.frame_version, TASK_FRAME_VERSION);
    assert_int_equal(fake.hello.generation.number, 0);
    assert_int_equal(fake.hello.replicas, 1);
    assert_string_equal(fake.address, "127.0.0.1:5");
    fake.events.disconnected(fake.events.user);
    fake.events.connected(fake.events.user);
    assert_int_equal(fake.sent, 2);
    assert_int_equal(fake.types[1], TASK_UP_HELLO);
}

static void it_receives_who_is_there(void **state)
{
    (void)state;
    struct directory_member member;
    const struct task_member reported = {
        .slot = 0, .incarnation = 4, .attempts = 1, .here = true, .address = "h:1"};
    const struct task_down down = {.type = TASK_DOWN_MEMBERS,
        .members = {.generation = {.number = 3}, .members = &reported, .member_count = 1}};
    receive(&down);
    directory_lookup(directory, ROLE_CHIEF, 0, &member);
    assert_true(member.here);
    assert_string_equal(member.address, "h:1");
    assert_int_equal(directory_ended(directory, NULL), CADRE_OK);
}

static void what_ends_it_ends_the_directory(void **state)
{
    static const struct {
        enum task_down_type type;
        cadre_status code;
        const char *part;
    } cases[] = {
        {TASK_DOWN_GOODBYE, CADRE_CANCELLED, "its chief is done"},
        {TASK_DOWN_RESET, CADRE_ABORTED, "another one takes its place"},
        {TASK_DOWN_SUPERSEDED, CADRE_ABORTED, "without it"},
        {TASK_DOWN_REFUSED, CADRE_FAILED_PRECONDITION, "another version"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct task_down down = {.type = cases[i].type};
        if (down.type == TASK_DOWN_REFUSED) {
            down.refused = (struct task_refused){
                .code = CADRE_FAILED_PRECONDITION, .text = "it has another version"};
        }
        receive(&down);
        assert_error(directory_ended(directory, &error), cases[i].code, &error, cases[i].part);
        close_it(state);
        open(state);
    }
}

static void a_lost_session_ends_it(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct cadre_error why = {.code = CADRE_UNAVAILABLE, .text = "the daemon is gone"};
    fake.events.lost(&why, fake.events.user);
    assert_error(
        directory_ended(directory, &error), CADRE_UNAVAILABLE, &error, "the daemon is gone");
}

static void its_failure_is_reported_until_it_is_received(void **state)
{
    (void)state;
    const struct task_down members = {
        .type = TASK_DOWN_MEMBERS, .members = {.generation = {.number = 3, .nonce = 8}}};
    const struct cadre_error first = {.code = CADRE_DATA_LOSS, .text = "its memory is gone"};
    const struct cadre_error other = {.code = CADRE_INTERNAL, .text = "and this"};
    receive(&members);
    fake.events.disconnected(fake.events.user);
    ps_task_failed(ps_task, &first);
    assert_int_equal(fake.sent, 1); /* no connection would carry it */
    fake.events.connected(fake.events.user);
    ps_task_failed(ps_task, &other);
    assert_int_equal(fake.sent, 3);
    assert_int_equal(fake.types[2], TASK_UP_REPORT);
    assert_int_equal(fake.report.reason, REPORT_FAILED);
    assert_int_equal(fake.report.code, CADRE_DATA_LOSS);
    assert_int_equal(fake.report.generation.number, 3);
    assert_string_equal(fake.text, "its memory is gone");
}

static void people_receive_numbers_while_it_is_connected(void **state)
{
    (void)state;
    const struct metric metric = {.name = "loss", .value = 0.5};
    const struct progress progress = {
        .stream = "evaluation", .metrics = &metric, .metric_count = 1};
    ps_task_progress(ps_task, &progress);
    assert_true(fake.value == 0.5);
    fake.events.disconnected(fake.events.user);
    ps_task_progress(ps_task, &progress);
    assert_int_equal(fake.sent, 2);
}

static void in_generation(uint64_t number)
{
    receive(&(struct task_down){
        .type = TASK_DOWN_MEMBERS, .members = {.generation = {.number = number}}});
}

static void stored(uint64_t end)
{
    receive(&(struct task_down){.type = TASK_DOWN_VALUES_KEPT, .values_kept = end});
}

/* The newest message has the values of these steps, and is the number `sent`. */
static void expect_values(size_t sent, uint64_t first, uint64_t last)
{
    assert_int_equal(fake.sent, sent);
    assert_int_equal(fake.types[sent - 1], TASK_UP_VALUES);
    assert_int_equal(fake.first_step, first);
    assert_int_equal(fake.last_step, last);
    assert_int_equal(fake.values.end, last); /* the tests report one value of each step */
    assert_false(fake.values.numbered);
    assert_string_equal(fake.first_name, "evaluation_loss");
}

static void report(uint64_t step)
{
    assert_true(ps_task_value(ps_task, "evaluation_loss", step, (double)step));
}

/* One message at a time, again on each connection, until all is stored. */
static void values_are_sent_until_they_are_stored(void **state)
{
    (void)state;
    report(1);
    assert_int_equal(fake.sent, 1); /* it is in no generation yet */
    assert_int_equal(ps_task_generation(ps_task), 0);
    in_generation(3);
    assert_int_equal(ps_task_generation(ps_task), 3);
    expect_values(2, 1, 1);
    assert_int_equal(fake.values.generation.number, 3);
    report(2);
    report(3);
    assert_int_equal(fake.sent, 2);
    in_generation(3); /* a list of members comes whenever one comes or goes */
    assert_int_equal(fake.sent, 2);
    stored(1);
    expect_values(3, 2, 3);
    fake.events.disconnected(fake.events.user);
    report(4);
    assert_int_equal(fake.sent, 3);
    fake.events.connected(fake.events.user);
    expect_values(5, 2, 4); /* behind the hello */
    assert_false(fake.events.tick(fake.events.user));
    assert_int_equal(fake.sent, 5); /* the answer is not overdue */
    ps_task_flush_values(ps_task, 1000);
    stored(4);
    ps_task_flush_values(ps_task, UINT64_MAX / 2); /* nothing is left to wait for */
    in_generation(4);                              /* what is stored is not sent again */
    assert_int_equal(fake.sent, 5);
    report(5);
    expect_values(6, 5, 5);
    assert_int_equal(fake.values.generation.number, 4);
}

static void one_that_is_dismissed_waits_for_no_answer(void **state)
{
    (void)state;
    in_generation(1);
    report(1);
    receive(&(struct task_down){.type = TASK_DOWN_SUPERSEDED});
    ps_task_flush_values(ps_task, UINT64_MAX / 2);
    report(2);
    assert_int_equal(fake.sent, 2);
}

/* The end of the job is no dismissal: what is evaluated then counts. */
static void one_that_says_goodbye_delivers_its_values(void **state)
{
    (void)state;
    in_generation(1);
    receive(&(struct task_down){.type = TASK_DOWN_GOODBYE});
    report(1);
    expect_values(2, 1, 1);
}

static void one_that_cannot_start_leaves_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct ps_task *other;
    const struct ps_task_options options = {
        .session = &fake.base, .directory = directory, .address = ""};
    fake.fails = true;
    assert_error(
        ps_task_open(&options, &other, &error), CADRE_RESOURCE_EXHAUSTED, &error, "no thread");
    assert_null(other);
    assert_true(fake.closed);
}

/* --- from several threads --- */

static void *report_often(void *user)
{
    (void)user;
    const struct cadre_error failed = {.code = CADRE_INTERNAL, .text = "it failed"};
    ps_task_failed(ps_task, &failed);
    return NULL;
}

static void *reconnect(void *user)
{
    (void)user;
    const struct task_down members = {
        .type = TASK_DOWN_MEMBERS, .members = {.generation = {.number = 1}}};
    fake.events.disconnected(fake.events.user);
    receive(&members);
    fake.events.connected(fake.events.user);
    return NULL;
}

static void a_failure_meets_a_reconnection(void **state)
{
    (void)state;
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, report_often, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, reconnect, NULL), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    /* Whatever came first: the newest connection has received it. */
    assert_int_equal(fake.types[fake.sent - 1], TASK_UP_REPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_hello_on_each_connection, open, close_it),
        cmocka_unit_test_setup_teardown(it_receives_who_is_there, open, close_it),
        cmocka_unit_test_setup_teardown(what_ends_it_ends_the_directory, open, close_it),
        cmocka_unit_test_setup_teardown(a_lost_session_ends_it, open, close_it),
        cmocka_unit_test_setup_teardown(
            its_failure_is_reported_until_it_is_received, open, close_it),
        cmocka_unit_test_setup_teardown(
            people_receive_numbers_while_it_is_connected, open, close_it),
        cmocka_unit_test_setup_teardown(values_are_sent_until_they_are_stored, open, close_it),
        cmocka_unit_test_setup_teardown(one_that_is_dismissed_waits_for_no_answer, open, close_it),
        cmocka_unit_test_setup_teardown(one_that_says_goodbye_delivers_its_values, open, close_it),
        cmocka_unit_test_setup_teardown(one_that_cannot_start_leaves_nothing, open, close_it),
        cmocka_unit_test_setup_teardown(a_failure_meets_a_reconnection, open, close_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
