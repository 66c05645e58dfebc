/* SPDX-License-Identifier: Apache-2.0
 * Collectives between hosts: meshes of several addresses of this machine, each with its leader's
 * thread. The results must be those of the balanced tree over hosts, to the bit. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/wire/host.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"
#include "worker/library/mesh/wire/wire.h"
#include "worker/library/mesh/wire/wire_state.h"

#define HOSTS_MAX 9

struct world {
    uint32_t hosts;
    struct mesh_listener *listeners[HOSTS_MAX];
    struct mesh_member members[HOSTS_MAX];
    struct mesh *meshes[HOSTS_MAX];
};

/* One host's leader during a run. */
struct leader {
    struct world *world;
    struct host_mesh *host;
    uint32_t own;
    const void *data;
    pthread_t thread;
    char failure[CADRE_ERROR_TEXT_BYTES * 2];
};

typedef void leader_body(struct leader *leader);

#define CHECK(leader, condition)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            snprintf((leader)->failure, sizeof(leader)->failure, "line %d: host %u: %s (%.200s)",  \
                __LINE__, (leader)->own, #condition, (leader)->host->fault.text);                  \
            (leader)->host->mesh.ops->abort(&(leader)->host->mesh, "a check failed");              \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static void open_world(struct world *world, uint32_t hosts, const uint32_t *replicas)
{
    struct cadre_error error;
    *world = (struct world){.hosts = hosts};
    for (uint32_t i = 0; i < hosts; i++) {
        char address[32];
        snprintf(address, sizeof address, "127.0.0.%u", i + 1);
        world->members[i].replicas = replicas != NULL ? replicas[i] : 1;
        assert_ok(mesh_listener_open(
                      address, NULL, &world->listeners[i], world->members[i].address, &error),
            &error);
    }
    for (uint32_t i = 0; i < hosts; i++) {
        struct mesh_config config = {.generation = 1,
            .rank = i,
            .members = world->members,
            .member_count = hosts,
            .listener = world->listeners[i],
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(20 * CADRE_US_PER_S)};
        assert_ok(mesh_host_ops.form_post(&config, &world->meshes[i], &error), &error);
    }
    uint32_t formed = 0;
    while (formed < hosts) {
        formed = 0;
        for (uint32_t i = 0; i < hosts; i++) {
            cadre_status status = mesh_host_ops.form_test(world->meshes[i], &error);
            assert_true(status == CADRE_OK || status == CADRE_PENDING);
            formed += status == CADRE_OK ? 1 : 0;
        }
    }
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < world->hosts; i++) {
        mesh_host_ops.close(world->meshes[i]);
        mesh_listener_close(world->listeners[i]);
    }
}

struct start {
    struct leader *leader;
    leader_body *body;
};

static void *lead(void *argument)
{
    const struct start *start = argument;
    start->body(start->leader);
    return NULL;
}

static void run(struct world *world, leader_body *body, const void *data)
{
    struct leader leaders[HOSTS_MAX];
    struct start starts[HOSTS_MAX];
    for (uint32_t i = 0; i < world->hosts; i++) {
        leaders[i] = (struct leader){
            .world = world, .host = (struct host_mesh *)world->meshes[i], .own = i, .data = data};
        starts[i] = (struct start){.leader = &leaders[i], .body = body};
        assert_int_equal(pthread_create(&leaders[i].thread, NULL, lead, &starts[i]), 0);
    }
    for (uint32_t i = 0; i < world->hosts; i++) {
        pthread_join(leaders[i].thread, NULL);
    }
    for (uint32_t i = 0; i < world->hosts; i++) {
        if (leaders[i].failure[0] != '\0') {
            fail_msg("%u hosts: %s", world->hosts, leaders[i].failure);
        }
    }
}

/* The same call on all hosts. */
static struct wire_call call_of(const struct leader *leader, uint64_t sequence, size_t bytes)
{
    uint32_t replica = mesh_topology_replicas(&leader->host->topology, leader->own)[0];
    return (struct wire_call){.sequence = sequence,
        .timeout_us = 20 * CADRE_US_PER_S,
        .agreement.first = {
            .replica = replica, .shape = {.kind = MESH_ALL_REDUCE, .bytes = bytes, .count = 1}}};
}

/* What host `host` brings at element `at`. */
static float value(uint32_t host, size_t at)
{
    return (float)prng_mix(host * 1000003 + at) * 0x1p-60f - 7.0f;
}

static uint16_t small_value(uint32_t host, size_t at)
{
    float number = value(host, at);
    uint16_t half;
    mesh_narrow(MESH_BF16, &half, &number, 1);
    return half;
}

/* The balanced tree over [first, first + width), cut at the number of hosts. */
static float tree(uint32_t hosts, uint32_t first, uint32_t width, size_t at)
{
    if (width == 1) {
        return value(first, at);
    }
    float left = tree(hosts, first, width / 2, at);
    return first + width / 2 < hosts ? left + tree(hosts, first + width / 2, width / 2, at) : left;
}

static float sum_of_all(uint32_t hosts, size_t at)
{
    return tree(hosts, 0, 16, at);
}

static struct layout layout_of(const struct mesh_buffer *buffers, size_t count)
{
    struct layout layout = {.count = 0};
    struct cadre_error error;
    if (mesh_layout_set(&layout, buffers, count, &error) != CADRE_OK) {
        abort();
    }
    return layout;
}

/* --- small --- */

static void agree_and_sum(struct leader *leader)
{
    static const size_t counts[] = {0, 1, 3, 250, 4096};
    struct host_mesh *host = leader->host;
    uint64_t sequence = 0;
    for (unsigned round = 0; round < 50; round++) {
        size_t count = counts[round % 5];
        float values[4096];
        struct mesh_buffer buffer = {.bytes = count * sizeof(float), .dtype = MESH_F32};
        struct layout layout = layout_of(&buffer, 1);
        for (size_t i = 0; i < count; i++) {
            values[i] = value(leader->own, i + round);
        }
        struct wire_call call = call_of(leader, ++sequence, buffer.bytes);
        cadre_status status =
            mesh_wire_all_reduce_small(host, &call, MESH_SUM, &layout, (uint8_t *)values);
        mesh_layout_finish(&layout);
        CHECK(leader, status == CADRE_OK && mesh_agreement_holds(&call.agreement));
        for (size_t i = 0; i < count; i++) {
            CHECK(leader, values[i] == sum_of_all(leader->world->hosts, i + round));
        }
        call = call_of(leader, ++sequence, 0);
        CHECK(leader, mesh_wire_agree(host, &call) == CADRE_OK);
        CHECK(leader, mesh_agreement_holds(&call.agreement));
    }
}

static void broadcast_small(struct leader *leader)
{
    uint64_t sequence = 0;
    for (uint32_t root = 0; root < leader->world->hosts; root++) {
        uint8_t bytes[777];
        memset(bytes, leader->own == root ? (int)(root + 1) : 0, sizeof bytes);
        struct wire_call call = call_of(leader, ++sequence, sizeof bytes);
        CHECK(leader,
            mesh_wire_broadcast_small(leader->host, &call, root, bytes, sizeof bytes) == CADRE_OK);
        for (size_t i = 0; i < sizeof bytes; i++) {
            CHECK(leader, bytes[i] == root + 1);
        }
    }
}

/* Replica r gives r bytes (so one gives none). */
static void gather(struct leader *leader, size_t unit, bool small)
{
    const struct topology *topology = &leader->host->topology;
    size_t offsets[64] = {0};
    for (uint32_t replica = 0; replica < topology->replica_count; replica++) {
        offsets[replica + 1] = offsets[replica] + replica * unit;
    }
    size_t total = offsets[topology->replica_count];
    uint8_t *into = calloc(total + 1, 1);
    for (uint32_t i = 0; i < topology->replica_count; i++) {
        if (topology->locations[i].host == leader->own) {
            memset(into + offsets[i], (int)i + 1, i * unit);
        }
    }
    struct wire_call call = call_of(leader, 1000 + unit, total);
    cadre_status status;
    if (small) {
        status = mesh_wire_all_gather_small(leader->host, &call, offsets, into);
    } else {
        status = mesh_wire_agree(leader->host, &call);
        size_t middle = total / 3;
        if (status == CADRE_OK) {
            status = mesh_wire_all_gather(leader->host, offsets, 0, middle, into);
        }
        if (status == CADRE_OK) {
            status = mesh_wire_all_gather(leader->host, offsets, middle, total, into + middle);
        }
    }
    bool right = status == CADRE_OK;
    for (uint32_t i = 0; i < topology->replica_count; i++) {
        for (size_t at = offsets[i]; at < offsets[i + 1]; at++) {
            right = right && into[at] == i + 1;
        }
    }
    free(into);
    CHECK(leader, right);
}

static void gather_small(struct leader *leader)
{
    gather(leader, 1, true);
    gather(leader, 40, true);
}

static void test_small(void **state)
{
    (void)state;
    static const uint32_t replicas[HOSTS_MAX] = {2, 1, 3, 1, 1, 2, 4, 1, 1};
    for (uint32_t hosts = 2; hosts <= HOSTS_MAX; hosts++) {
        struct world world;
        open_world(&world, hosts, replicas);
        run(&world, agree_and_sum, NULL);
        close_world(&world);
        open_world(&world, hosts, replicas);
        run(&world, broadcast_small, NULL);
        close_world(&world);
        open_world(&world, hosts, replicas);
        run(&world, gather_small, NULL);
        close_world(&world);
    }
}

/* --- disagreement --- */

/* Host `odd` calls something else each time; afterwards the mesh still works. */
static void differ(struct leader *leader)
{
    uint32_t hosts = leader->world->hosts;
    uint64_t sequence = 0;
    for (uint32_t odd = 0; odd < hosts; odd++) {
        struct wire_call call = call_of(leader, ++sequence, 4096);
        struct mesh_buffer buffer = {.bytes = 4096, .dtype = MESH_F32};
        struct layout layout = layout_of(&buffer, 1);
        float values[1024] = {1.0f};
        snprintf(call.agreement.first.text, sizeof call.agreement.first.text,
            "replica %u called %s", leader->own, leader->own == odd ? "that" : "this");
        cadre_status status;
        if (leader->own == odd && odd % 2 == 0) {
            call.agreement.first.shape.kind = MESH_BARRIER;
            status = mesh_wire_agree(leader->host, &call);
        } else {
            call.agreement.first.shape.op = leader->own == odd ? 3 : 0;
            status = mesh_wire_all_reduce_small(
                leader->host, &call, MESH_SUM, &layout, (uint8_t *)values);
        }
        CHECK(leader, status == CADRE_OK);
        CHECK(leader, !mesh_agreement_holds(&call.agreement));
        char text[400];
        char wanted[400];
        mesh_agreement_explain(&call.agreement, text, sizeof text);
        snprintf(wanted, sizeof wanted, "replica 0 called %s, replica %u called %s",
            odd == 0 ? "that" : "this", odd == 0 ? 1 : odd, odd == 0 ? "this" : "that");
        CHECK(leader, strcmp(text, wanted) == 0);
        call = call_of(leader, ++sequence, 4096);
        values[0] = 1.0f;
        status =
            mesh_wire_all_reduce_small(leader->host, &call, MESH_SUM, &layout, (uint8_t *)values);
        mesh_layout_finish(&layout);
        CHECK(leader, status == CADRE_OK && values[0] == (float)hosts);
    }
}

static void test_disagreement(void **state)
{
    (void)state;
    for (uint32_t hosts = 2; hosts <= HOSTS_MAX; hosts++) {
        struct world world;
        open_world(&world, hosts, NULL);
        run(&world, differ, NULL);
        close_world(&world);
    }
}

/* --- large --- */

#define FLOATS 200001
#define HALVES 70003

/* Two types and odd sizes, read elsewhere than written. */
static void sum_large(struct leader *leader)
{
    uint32_t hosts = leader->world->hosts;
    float *from = malloc(FLOATS * sizeof *from);
    float *into = calloc(FLOATS, sizeof *into);
    uint16_t *halves = malloc(HALVES * sizeof *halves);
    struct mesh_buffer buffers[3] = {
        {.data = into, .bytes = 12 * sizeof(float), .dtype = MESH_F32, .from = from},
        {.data = halves, .bytes = HALVES * sizeof(uint16_t), .dtype = MESH_BF16},
        {.data = into + 12,
            .bytes = (FLOATS - 12) * sizeof(float),
            .dtype = MESH_F32,
            .from = from + 12},
    };
    struct layout layout = layout_of(buffers, 3);
    for (size_t i = 0; i < FLOATS; i++) {
        from[i] = value(leader->own, i);
    }
    for (size_t i = 0; i < HALVES; i++) {
        halves[i] = small_value(leader->own, i);
    }
    struct wire_call call = call_of(leader, 1, layout.bytes);
    struct wire_vector vector = {.layout = &layout, .high = layout.bytes, .buffers = buffers};
    cadre_status status = mesh_wire_agree(leader->host, &call);
    if (status == CADRE_OK) {
        status = mesh_wire_all_reduce(leader->host, MESH_SUM, &vector);
    }
    bool right = status == CADRE_OK;
    for (size_t i = 0; i < FLOATS; i++) {
        right = right && into[i] == sum_of_all(hosts, i) && from[i] == value(leader->own, i);
    }
    for (size_t i = 0; i < HALVES; i++) {
        uint16_t all[HOSTS_MAX];
        const uint8_t *ins[HOSTS_MAX];
        uint16_t wanted;
        uint8_t *out = (uint8_t *)&wanted;
        for (uint32_t host = 0; host < hosts; host++) {
            all[host] = small_value(host, i);
            ins[host] = (const uint8_t *)&all[host];
        }
        alignas(64) uint8_t scratch[1 << 16];
        mesh_reduce_many(MESH_SUM, MESH_BF16, &out, 1, ins, hosts, 0, 2, scratch);
        right = right && halves[i] == wanted;
    }
    mesh_layout_finish(&layout);
    free(halves);
    free(into);
    free(from);
    CHECK(leader, right);
}

/* Packed, and in two calls cut anywhere. */
static void sum_packed(struct leader *leader)
{
    float *values = malloc(FLOATS * sizeof *values);
    struct mesh_buffer buffer = {.bytes = FLOATS * sizeof *values, .dtype = MESH_F32};
    struct layout layout = layout_of(&buffer, 1);
    for (size_t i = 0; i < FLOATS; i++) {
        values[i] = value(leader->own, i);
    }
    struct wire_call call = call_of(leader, 1, layout.bytes);
    size_t middle = 4 * 33333;
    struct wire_vector lower = {.layout = &layout, .high = middle, .packed = (uint8_t *)values};
    struct wire_vector upper = {.layout = &layout,
        .low = middle,
        .high = layout.bytes,
        .packed = (uint8_t *)values + middle};
    cadre_status status = mesh_wire_agree(leader->host, &call);
    status = status == CADRE_OK ? mesh_wire_all_reduce(leader->host, MESH_SUM, &lower) : status;
    status = status == CADRE_OK ? mesh_wire_all_reduce(leader->host, MESH_SUM, &upper) : status;
    bool right = status == CADRE_OK;
    for (size_t i = 0; i < FLOATS; i++) {
        right = right && values[i] == sum_of_all(leader->world->hosts, i);
    }
    mesh_layout_finish(&layout);
    free(values);
    CHECK(leader, right);
}

static void broadcast_large(struct leader *leader)
{
    for (uint32_t root = 0; root < leader->world->hosts; root++) {
        uint8_t *from = malloc(FLOATS);
        uint8_t *into = calloc(FLOATS, 1);
        bool is_root = leader->own == root;
        struct mesh_buffer buffer = {
            .data = into, .bytes = FLOATS, .dtype = MESH_U8, .from = is_root ? from : NULL};
        struct layout layout = layout_of(&buffer, 1);
        for (size_t i = 0; i < FLOATS; i++) {
            from[i] = (uint8_t)prng_mix(root + i * 31);
        }
        struct wire_call call = call_of(leader, root + 1, FLOATS);
        struct wire_vector vector = {.layout = &layout, .high = FLOATS, .buffers = &buffer};
        cadre_status status = mesh_wire_agree(leader->host, &call);
        status = status == CADRE_OK ? mesh_wire_broadcast(leader->host, root, &vector) : status;
        bool right = status == CADRE_OK && (is_root || memcmp(from, into, FLOATS) == 0);
        mesh_layout_finish(&layout);
        free(into);
        free(from);
        CHECK(leader, right);
    }
}

/* Each replica's row is a run of the same vector. */
static void scatter(struct leader *leader)
{
    const struct topology *topology = &leader->host->topology;
    const uint32_t *own = mesh_topology_replicas(topology, leader->own);
    uint32_t slots = topology->hosts[leader->own].slot_count;
    size_t length = 20011;
    float *vector = malloc(topology->replica_count * length * sizeof *vector);
    float *results = malloc(slots * length * sizeof *results);
    const uint8_t *rows[64];
    uint8_t *into[8];
    for (size_t i = 0; i < topology->replica_count * length; i++) {
        vector[i] = value(leader->own, i);
    }
    for (uint32_t i = 0; i < topology->replica_count; i++) {
        rows[i] = (const uint8_t *)(vector + i * length);
    }
    for (uint32_t i = 0; i < slots; i++) {
        into[i] = (uint8_t *)(results + i * length);
    }
    struct wire_call call = call_of(leader, 1, length);
    cadre_status status = mesh_wire_agree(leader->host, &call);
    if (status == CADRE_OK) {
        status = mesh_wire_reduce_scatter(
            leader->host, MESH_SUM, MESH_F32, rows, into, length * sizeof *vector, true);
    }
    bool right = status == CADRE_OK;
    for (uint32_t slot = 0; slot < slots; slot++) {
        for (size_t i = 0; i < length; i++) {
            float wanted = sum_of_all(leader->world->hosts, own[slot] * length + i);
            right = right && results[slot * length + i] == wanted;
        }
    }
    free(results);
    free(vector);
    CHECK(leader, right);
}

static void gather_large(struct leader *leader)
{
    gather(leader, 30000, false);
}

static void test_large(void **state)
{
    (void)state;
    static leader_body *const bodies[] = {
        sum_large, sum_packed, broadcast_large, scatter, gather_large};
    static const uint32_t replicas[HOSTS_MAX] = {2, 1, 3, 1, 1, 2, 4, 1, 1};
    for (uint32_t hosts = 2; hosts <= 5; hosts++) {
        for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
            struct world world;
            open_world(&world, hosts, replicas);
            run(&world, bodies[i], NULL);
            close_world(&world);
        }
    }
}

/* Both ends of every connection at loopback addresses, whatever this machine's default is. */
static void test_connections_are_not_paced(void **state)
{
    struct world world;
    (void)state;
    open_world(&world, 3, NULL);
    for (uint32_t i = 0; i < world.hosts; i++) {
        const struct wire *wire = ((struct host_mesh *)world.meshes[i])->wire;
        for (uint32_t other = 0; other < world.hosts; other++) {
            char control[16] = "";
            int on = 0;
            socklen_t size = sizeof control;
            if (other == i) {
                continue;
            }
            int fd = wire->peers[other].fd;
            assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size), 0);
            assert_string_equal(control, "reno");
            size = sizeof on;
            assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
            assert_int_not_equal(on, 0);
        }
    }
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_are_not_paced),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_disagreement),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
