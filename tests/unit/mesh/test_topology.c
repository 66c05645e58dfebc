/* SPDX-License-Identifier: Apache-2.0
 * Rosters into hosts and slots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/connect/topology.h"

static void make(struct topology *topology, const char *const addresses[],
    const uint32_t replicas[], uint32_t count)
{
    struct mesh_member members[8] = {0};
    struct cadre_error error;
    for (uint32_t rank = 0; rank < count; rank++) {
        snprintf(members[rank].address, sizeof members[rank].address, "%s", addresses[rank]);
        members[rank].replicas = replicas[rank];
    }
    assert_ok(mesh_topology_make(topology, members, count, &error), &error);
}

static void check_list(const uint32_t *list, uint32_t count, const uint32_t *wanted)
{
    assert_memory_equal(list, wanted, count * sizeof *list);
}

static void test_one_task(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology, (const char *const[]){""}, (const uint32_t[]){3}, 1);
    assert_int_equal(topology.host_count, 1);
    assert_int_equal(topology.hosts[0].slot_count, 3);
    check_list(mesh_topology_replicas(&topology, 0), 3, (const uint32_t[]){0, 1, 2});
    assert_int_equal(mesh_topology_connection(&topology, 0, 0), TOPOLOGY_UNCONNECTED);
    mesh_topology_finish(&topology);
}

static void test_mixed_hosts(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology,
        (const char *const[]){
            "[::1]:7/a", "10.0.0.1:4000/b", "[::1]:8/c", "10.0.0.1:4/d", "10.0.0.12:4/e"},
        (const uint32_t[]){2, 1, 1, 3, 1}, 5);
    assert_int_equal(topology.host_count, 3);
    assert_int_equal(topology.replica_count, 8);
    check_list(mesh_topology_tasks(&topology, 0), 2, (const uint32_t[]){0, 2});
    check_list(mesh_topology_tasks(&topology, 1), 2, (const uint32_t[]){1, 3});
    check_list(mesh_topology_replicas(&topology, 0), 3, (const uint32_t[]){0, 1, 3});
    check_list(mesh_topology_replicas(&topology, 1), 4, (const uint32_t[]){2, 4, 5, 6});
    check_list(mesh_topology_replicas(&topology, 2), 1, (const uint32_t[]){7});
    check_list(topology.task_slots, 5, (const uint32_t[]){0, 0, 2, 1, 0});
    assert_true(mesh_topology_is_lead(&topology, 0) && mesh_topology_is_lead(&topology, 1));
    assert_true(mesh_topology_is_lead(&topology, 4) && !mesh_topology_is_lead(&topology, 2));
    assert_int_equal(mesh_topology_connection(&topology, 0, 1), TOPOLOGY_WIRE);
    assert_int_equal(mesh_topology_connection(&topology, 4, 1), TOPOLOGY_WIRE);
    assert_int_equal(mesh_topology_connection(&topology, 2, 0), TOPOLOGY_LINK);
    assert_int_equal(mesh_topology_connection(&topology, 2, 3), TOPOLOGY_UNCONNECTED);
    assert_int_equal(mesh_topology_connection(&topology, 2, 1), TOPOLOGY_UNCONNECTED);
    assert_int_equal(topology.locations[3].host, 0);
    assert_int_equal(topology.locations[3].slot, 2);
    mesh_topology_finish(&topology);
}

/* Without a token no tasks share memory, not even at one address. */
static void test_without_token(void **state)
{
    (void)state;
    struct topology topology;
    make(&topology,
        (const char *const[]){"127.0.0.1:1", "127.0.0.1:2/a", "127.0.0.1:3", "127.0.0.1:4/b"},
        (const uint32_t[]){1, 1, 1, 1}, 4);
    assert_int_equal(topology.host_count, 3);
    check_list(mesh_topology_tasks(&topology, 1), 2, (const uint32_t[]){1, 3});
    assert_int_equal(mesh_topology_connection(&topology, 0, 2), TOPOLOGY_WIRE);
    mesh_topology_finish(&topology);
}

/* With any roster: every replica has one location, hosts are in the order of their leads, and tasks
 * and slots are in rank order. */
static void test_random_rosters(void **state)
{
    (void)state;
    struct prng prng = {.state = 11};
    struct cadre_error error;
    for (unsigned round = 0; round < 300; round++) {
        uint32_t count = 1 + (uint32_t)(prng_next(&prng) % 60);
        struct mesh_member *members = calloc(count, sizeof *members);
        struct topology topology;
        for (uint32_t rank = 0; rank < count; rank++) {
            unsigned host = (unsigned)(prng_next(&prng) % 12);
            snprintf(members[rank].address, sizeof members[rank].address, "10.0.0.%u:%u%s", host,
                rank + 1, prng_next(&prng) % 8 == 0 ? "" : "/00");
            members[rank].replicas = 1 + (uint32_t)(prng_next(&prng) % 5);
        }
        assert_ok(mesh_topology_make(&topology, members, count, &error), &error);
        uint32_t seen = 0;
        for (uint32_t host = 0; host < topology.host_count; host++) {
            const uint32_t *tasks = mesh_topology_tasks(&topology, host);
            const uint32_t *replicas = mesh_topology_replicas(&topology, host);
            assert_int_equal(topology.hosts[host].lead, tasks[0]);
            assert_true(host == 0 || topology.hosts[host].lead > topology.hosts[host - 1].lead);
            for (uint32_t i = 0; i < topology.hosts[host].task_count; i++) {
                assert_true(i == 0 || tasks[i] > tasks[i - 1]);
                assert_int_equal(topology.task_hosts[tasks[i]], host);
            }
            for (uint32_t slot = 0; slot < topology.hosts[host].slot_count; slot++, seen++) {
                assert_true(slot == 0 || replicas[slot] > replicas[slot - 1]);
                assert_int_equal(topology.locations[replicas[slot]].host, host);
                assert_int_equal(topology.locations[replicas[slot]].slot, slot);
            }
        }
        assert_int_equal(seen, topology.replica_count);
        mesh_topology_finish(&topology);
        free(members);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_task),
        cmocka_unit_test(test_mixed_hosts),
        cmocka_unit_test(test_without_token),
        cmocka_unit_test(test_random_rosters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
