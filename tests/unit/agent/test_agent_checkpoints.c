/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints at the agent: what a task goes on from, and what it leaves for others. */
#include <string.h>

#include "tests/unit/agent/client.h"

static void start_restoring(struct stage *stage, bool restores, const struct job_spec *spec)
{
    struct agent_start start = {
        .task = task_of(0), .task_count = SLOTS_MAX, .spec = *spec, .restores = restores};
    if (restores) {
        start.checkpoint = (struct checkpoint_ref){
            .position = 120, .path = "checkpoint-120.json", .manifest_bytes = 10};
    }
    agent_down(stage->agent, &(struct agent_down){.type = AGENT_DOWN_START, .start = start});
    until_collected(stage, 0);
}

static void assert_has(struct stage *stage, const char *line, bool wanted)
{
    const char *text = printed(&stage->tasks[0]);
    if ((strstr(text, line) != NULL) != wanted) {
        fail_msg("%s\"%s\" in: %s", wanted ? "no " : "", line, text);
    }
}

static const char *const arguments[] = {"environment"};
static const char *const misled[] = {"CADRE_RESTORE=/etc/passwd", "CADRE_CHECKPOINT_DIR=/nowhere",
    "CADRE_CHECKPOINT_EVERY=1", "CADRE_CHECKPOINTS_KEPT=0"};

static struct job_spec spec_of(void)
{
    return (struct job_spec){.name = "a job",
        .program = {.name = "program"},
        .arguments = arguments,
        .argument_count = 1,
        .environment = misled,
        .environment_count = sizeof misled / sizeof misled[0],
        .workers = SLOTS_MAX,
        .strategy = "",
        .checkpoint_folder = ""};
}

static void a_task_that_restores_gets_its_checkpoint(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_spec spec = spec_of();
    spec.checkpoint_every = 40;
    spec.checkpoints_kept = 5;
    spec.checkpoint_folder = "/shared/checkpoints";
    stage->restore = "/tasks/restore/checkpoint.json";
    start_restoring(stage, true, &spec);
    assert_has(stage, "CADRE_RESTORE=/tasks/restore/checkpoint.json\n", true);
    assert_has(stage, "CADRE_CHECKPOINT_DIR=/shared/checkpoints\n", true);
    assert_has(stage, "CADRE_CHECKPOINT_EVERY=40\n", true);
    assert_has(stage, "CADRE_CHECKPOINTS_KEPT=5\n", true);
    stage_close(stage);
}

/* Neither the job nor the agent's own environment may override the coordinator. */
static void others_begin_from_the_beginning(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_spec spec = spec_of();
    start_restoring(stage, false, &spec);
    assert_has(stage, "CADRE_RESTORE", false);
    assert_has(stage, "CADRE_CHECKPOINT_DIR", false);
    assert_has(stage, "CADRE_CHECKPOINT_EVERY=0\n", true);
    assert_has(stage, "CADRE_CHECKPOINTS_KEPT=3\n", true);
    assert_has(stage, "CADRE_SLOT=0\n", true); /* what came before and after is still there */
    stage_close(stage);
}

static void a_checkpoint_that_cannot_be_had_ends_the_task(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_spec spec = spec_of();
    stage->fail_prepare = true;
    start_restoring(stage, true, &spec);
    assert_false(stage->tasks[0].started);
    assert_int_equal(stage->tasks[0].exit.code, 126);
    stage_close(stage);
}

/* ---- publishing ---- */

#define GENERATION ((struct generation){.number = 1, .nonce = 9})

static bool hello_is_sent(struct stage *stage)
{
    return stage->tasks[0].relayed_count > 0;
}

/* Alone in a generation. */
static struct stage *stage_connected(struct client *ret_client)
{
    struct stage *stage = stage_open();
    start(stage, 0, "end-on-term", NULL);
    until_printed(stage, 0, "ready");
    *ret_client = client_open(stage);
    client_greet(ret_client);
    client_send_up(ret_client, &client_hello);
    until(stage, hello_is_sent);
    const struct roster_entry alone = {
        .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1"};
    agent_down(stage->agent,
        &(struct agent_down){.type = AGENT_DOWN_RELAY,
            .relay_down = {.job = {1},
                .down = {.type = TASK_DOWN_PLAN,
                    .plan = {.generation = GENERATION, .roster = &alone, .roster_count = 1}}}});
    return stage;
}

static void send_part_message(struct client *client, uint64_t position, bool shared)
{
    struct task_up up = {.type = TASK_UP_PART,
        .part = {.generation = GENERATION,
            .position = position,
            .path = "deep/checkpoint.json",
            .shared = shared,
            .size_bytes = 100,
            .sha256 = {(uint8_t)position}}};
    client_send_up(client, &up);
}

static uint64_t wanted_position;

static bool part_is_sent(struct stage *stage)
{
    return stage->tasks[0].relayed_position == wanted_position;
}

static bool publish_is_asked(struct stage *stage)
{
    return stage->tasks[0].published_position == wanted_position;
}

static void a_part_is_passed_on_when_it_is_published(void **state)
{
    (void)state;
    struct client client;
    struct stage *stage = stage_connected(&client);
    stage->delay_publish = true;
    send_part_message(&client, wanted_position = 10, false);
    until(stage, publish_is_asked);
    assert_string_equal(stage->tasks[0].published_path, "deep/checkpoint.json");
    linger(stage);
    assert_int_equal(stage->tasks[0].relayed_parts, 0);
    agent_task_published(stage->agent, task_of(0), CADRE_OK, "");
    assert_int_equal(stage->tasks[0].relayed_position, 10);
    stage->delay_publish = false; /* a front may be done at once */
    send_part_message(&client, wanted_position = 20, false);
    until(stage, part_is_sent);
    assert_int_equal(stage->tasks[0].publishes, 2);
    client_close(&client);
    stage_close(stage);
}

static void of_several_the_newest_is_published(void **state)
{
    (void)state;
    struct client client;
    struct stage *stage = stage_connected(&client);
    stage->delay_publish = true;
    send_part_message(&client, 10, false);
    send_part_message(&client, wanted_position = 20, false);
    until(stage, publish_is_asked);
    agent_task_published(stage->agent, task_of(0), CADRE_OK, "");
    assert_int_equal(stage->tasks[0].relayed_parts, 1);
    assert_int_equal(stage->tasks[0].relayed_position, 20);
    client_close(&client);
    stage_close(stage);
}

static void one_that_fails_is_not_said(void **state)
{
    (void)state;
    struct client client;
    struct stage *stage = stage_connected(&client);
    stage->delay_publish = true;
    send_part_message(&client, wanted_position = 10, false);
    until(stage, publish_is_asked);
    agent_task_published(stage->agent, task_of(0), CADRE_DATA_LOSS, "the file changed");
    linger(stage);
    assert_int_equal(stage->tasks[0].relayed_parts, 0);
    assert_false(stage->tasks[0].gone);
    client_close(&client);
    stage_close(stage);
}

static void a_shared_one_is_said_at_once(void **state)
{
    (void)state;
    struct client client;
    struct stage *stage = stage_connected(&client);
    send_part_message(&client, wanted_position = 10, true);
    until(stage, part_is_sent);
    assert_int_equal(stage->tasks[0].publishes, 0);
    client_close(&client);
    stage_close(stage);
}

/* The front may end with a publish of a task that was forgotten before. */
static void the_end_of_the_task_may_come_first(void **state)
{
    (void)state;
    struct client client;
    struct stage *stage = stage_connected(&client);
    stage->delay_publish = true;
    send_part_message(&client, wanted_position = 10, false);
    until(stage, publish_is_asked);
    stop(stage, 0, 0);
    until_collected(stage, 0);
    agent_task_published(stage->agent, task_of(0), CADRE_OK, "");
    stop(stage, 0, 0);
    assert_true(stage->tasks[0].forgotten);
    agent_task_published(stage->agent, task_of(0), CADRE_OK, "");
    client_close(&client);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_task_that_restores_gets_its_checkpoint),
        cmocka_unit_test(others_begin_from_the_beginning),
        cmocka_unit_test(a_checkpoint_that_cannot_be_had_ends_the_task),
        cmocka_unit_test(a_part_is_passed_on_when_it_is_published),
        cmocka_unit_test(of_several_the_newest_is_published),
        cmocka_unit_test(one_that_fails_is_not_said),
        cmocka_unit_test(a_shared_one_is_said_at_once),
        cmocka_unit_test(the_end_of_the_task_may_come_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
