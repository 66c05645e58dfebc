/* SPDX-License-Identifier: Apache-2.0
 * What is shown of the other coordinators: by what they wrote to etcd, and by when it was read. */
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/wire.h"
#include "coordinator/daemon/shared/members_seen.h"
#include "tests/lib/test.h"

#define MINUTE_US (60 * CADRE_US_PER_S)
#define AWAY_US   MINUTE_US

static const struct coordinator_info self = {
    .name = "c1", .addresses = "h1:1", .state = COORDINATOR_FOLLOWER, .text = "", .version = "1"};

struct stage {
    struct members_seen seen;
    struct wire_buffer packed;
    struct wire_arena *arena;
    struct coordinator_info infos[LIMIT_COORDINATORS];
};

static void open_stage(struct stage *stage)
{
    *stage = (struct stage){.arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    assert_non_null(stage->arena);
    assert_true(members_seen_init(&stage->seen));
}

static void close_stage(struct stage *stage)
{
    members_seen_free(&stage->seen);
    wire_buffer_free(&stage->packed);
    wire_arena_free(stage->arena);
}

/* Etcd answers, and c0 has written this at the revision. */
static void read_leader(struct stage *stage, int64_t revision, uint64_t written_us)
{
    struct cadre_error error;
    const struct leader_response leads = {.self = {.name = "c0",
                                              .addresses = "h0:1",
                                              .state = COORDINATOR_LEADING,
                                              .text = "",
                                              .leads = true,
                                              .version = "1",
                                              .written_us = written_us},
        .leader = "c0",
        .leader_addresses = "h0:1"};
    wire_buffer_clear(&stage->packed);
    assert_ok(wire_pack_leader_response(&leads, &stage->packed, &error), &error);
    const struct etcd_pair pair = {.key = "member/0",
        .value = {stage->packed.bytes, stage->packed.size},
        .mod_revision = revision};
    members_seen_take(&stage->seen, &(struct etcd_result){.pairs = &pair, .pair_count = 1});
}

/* As this coordinator shows c0. */
static const struct coordinator_info *shown(struct stage *stage)
{
    wire_arena_reset(stage->arena);
    assert_int_equal(
        members_seen_list(&stage->seen, &self, "c0", AWAY_US, stage->arena, stage->infos), 2);
    assert_string_equal(stage->infos[0].name, "c0");
    return &stage->infos[0];
}

static void assert_state(struct stage *stage, const char *state, bool leads)
{
    const struct coordinator_info *info = shown(stage);
    assert_string_equal(info->state, state);
    assert_int_equal(info->leads, leads);
}

static void one_that_writes_nothing_is_away(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    read_leader(&stage, 5, 0);
    assert_state(&stage, COORDINATOR_LEADING, true);
    stage.seen.items[0].seen_us -= AWAY_US;
    read_leader(&stage, 5, 0);
    assert_state(&stage, COORDINATOR_AWAY, false);
    read_leader(&stage, 6, 0);
    assert_state(&stage, COORDINATOR_LEADING, true);
    close_stage(&stage);
}

/* It is this coordinator that reads nothing: the others may be there. */
static void without_etcd_nothing_is_known(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage);
    read_leader(&stage, 5, 0);
    stage.seen.items[0].seen_us -= 2 * AWAY_US;
    stage.seen.read_us -= 2 * AWAY_US;
    assert_state(&stage, COORDINATOR_UNKNOWN, false);
    assert_true(shown(&stage)->age_us > 2 * AWAY_US);
    read_leader(&stage, 6, 0);
    assert_state(&stage, COORDINATOR_LEADING, true);
    assert_true(shown(&stage)->age_us < AWAY_US);
    close_stage(&stage);
}

/* One that was away before this process began, is not shown as of now. */
static void what_was_there_before_has_its_age(void **state)
{
    (void)state;
    struct stage stage;
    uint64_t now_us = clock_wall_us();
    open_stage(&stage);
    read_leader(&stage, 5, now_us - 100 * MINUTE_US);
    assert_true(shown(&stage)->age_us >= 100 * MINUTE_US);
    assert_state(&stage, COORDINATOR_LEADING, true); /* no state depends on clocks of two hosts */
    read_leader(&stage, 5, now_us - 100 * MINUTE_US);
    assert_true(shown(&stage)->age_us >= 100 * MINUTE_US);
    read_leader(&stage, 6, now_us - 100 * MINUTE_US); /* its clock is late */
    assert_true(shown(&stage)->age_us < AWAY_US);
    close_stage(&stage);
    open_stage(&stage);
    read_leader(&stage, 5, now_us + 100 * MINUTE_US); /* or early */
    assert_true(shown(&stage)->age_us < AWAY_US);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_writes_nothing_is_away),
        cmocka_unit_test(without_etcd_nothing_is_known),
        cmocka_unit_test(what_was_there_before_has_its_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
