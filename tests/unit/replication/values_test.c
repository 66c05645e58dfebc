/* SPDX-License-Identifier: Apache-2.0
 * Values of keys: what is packed is unpacked again, equal structs give equal bytes, and bytes of
 * any origin are refused or read, without a crash. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "common/wire/wire.h"
#include "coordinator/replication/hashes.h"
#include "tests/lib/rounds.h"
#include "tests/lib/test.h"

#define ROUNDS TEST_ROUNDS(20000)

static struct wire_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = wire_arena_new((size_t)8 << 20);
    return arena == NULL;
}

static int close_arena(void **state)
{
    (void)state;
    wire_arena_free(arena);
    return 0;
}

static const struct log_nonce nonce = {.high = 0x0123456789abcdef, .low = 7};
static const struct cluster_value some_cluster = {
    .cluster = {.id = {.high = 0x0123456789abcdef, .low = 7},
        .etcd_id = UINT64_MAX,
        .format = 3,
        .reseeded_term = 1009},
    .secret = "drawn at random"};
static const struct leader_value leader = {.leader = {.term = 9, .nonce = {1, 2}, .left = true},
    .name = "anna",
    .addresses = "10.0.0.1:7000,10.0.0.2:7000",
    .since_us = 1700000000000000};

static struct log_hash hash_of_byte(uint8_t byte)
{
    struct log_hash hash;
    memset(hash.bytes, byte, sizeof hash.bytes);
    return hash;
}

static struct log_head head_of(uint64_t index)
{
    return (struct log_head){.term = 3,
        .nonce = nonce,
        .index = index,
        .hash = hash_of_byte(0xee),
        .first = 2,
        .beat = UINT64_MAX};
}

static struct entry_value entry_of(const char *text)
{
    return (struct entry_value){.term = 3,
        .index = 4,
        .format = 1,
        .appended_us = 5,
        .hash = hash_of_byte(0xaa),
        .content = ENTRY_RECORDS,
        .bytes = {.data = text, .size = strlen(text)}};
}

static void assert_same_bytes(struct etcd_bytes a, struct etcd_bytes b)
{
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
}

static void what_is_packed_is_unpacked(void **state)
{
    (void)state;
    struct cluster_value cluster_again;
    assert_true(
        value_unpack_cluster(value_pack_cluster(&some_cluster, arena), arena, &cluster_again));
    assert_true(log_nonce_equal(cluster_again.cluster.id, nonce));
    assert_int_equal(cluster_again.cluster.etcd_id, UINT64_MAX);
    assert_int_equal(cluster_again.cluster.format, 3);
    assert_int_equal(cluster_again.cluster.reseeded_term, 1009);
    assert_memory_equal(cluster_again.secret, some_cluster.secret, REPLICA_SECRET_BYTES);

    struct leader_value leader_again;
    assert_true(value_unpack_leader(value_pack_leader(&leader, arena), arena, &leader_again));
    assert_true(log_leader_equal(&leader.leader, &leader_again.leader));
    assert_string_equal(leader_again.name, leader.name);
    assert_string_equal(leader_again.addresses, leader.addresses);
    assert_int_equal(leader_again.since_us, leader.since_us);

    const struct log_head head = head_of(7);
    struct log_head head_again;
    assert_true(value_unpack_head(value_pack_head(&head, arena), arena, &head_again));
    assert_true(log_head_equal(&head, &head_again));

    const struct entry_value entry = entry_of("records");
    struct entry_value entry_again;
    assert_true(value_unpack_entry(value_pack_entry(&entry, arena), arena, &entry_again));
    assert_int_equal(entry_again.term, 3);
    assert_int_equal(entry_again.index, 4);
    assert_int_equal(entry_again.appended_us, 5);
    assert_same_bytes(entry_again.bytes, entry.bytes);

    const struct replica_snapshot snapshot = {
        .at = {.index = 7, .term = 3, .hash = hash_of_byte(0xab)},
        .sha256 = {5, 6},
        .size = UINT64_MAX};
    struct replica_snapshot snapshot_again;
    assert_true(
        value_unpack_snapshot(value_pack_snapshot(&snapshot, arena), arena, &snapshot_again));
    assert_int_equal(snapshot_again.at.index, 7);
    assert_int_equal(snapshot_again.at.term, 3);
    assert_true(log_hash_equal(&snapshot_again.at.hash, &snapshot.at.hash));
    assert_memory_equal(snapshot_again.sha256, snapshot.sha256, sizeof snapshot.sha256);
    assert_int_equal(snapshot_again.size, UINT64_MAX);

    const struct term_value term = {.name = "anna", .version = "1.2", .nonce = nonce};
    struct term_value term_again;
    assert_true(value_unpack_term(value_pack_term(&term, arena), arena, &term_again));
    assert_string_equal(term_again.name, "anna");
    assert_string_equal(term_again.version, "1.2");
    assert_true(log_nonce_equal(term_again.nonce, nonce));
}

static void equal_structs_give_equal_bytes(void **state)
{
    (void)state;
    struct leader_value other = leader;
    memset(other.name + strlen(other.name) + 1, 'x', 20); /* behind the end of the text */
    other.leader.mod_revision = 8;                        /* not part of the value */
    assert_same_bytes(value_pack_leader(&leader, arena), value_pack_leader(&other, arena));
    struct etcd_bytes bytes = value_pack_leader(&leader, arena);
    struct leader_value again;
    assert_true(value_unpack_leader(bytes, arena, &again));
    assert_same_bytes(bytes, value_pack_leader(&again, arena));
}

/* The secret and a newer version's field survive that an older one raises the format. */
static void fields_of_a_newer_version_are_kept(void **state)
{
    (void)state;
    static const uint8_t newer[] = {0xf2, 0x07, 3, 'n', 'e', 'w'}; /* field 126 */
    struct etcd_bytes bytes = value_pack_cluster(&some_cluster, arena);
    uint8_t joined[256];
    memcpy(joined, bytes.data, bytes.size);
    memcpy(joined + bytes.size, newer, sizeof newer);
    const struct etcd_bytes value = {.data = joined, .size = bytes.size + sizeof newer};
    struct etcd_bytes raised = value_raise_format(value, 4, arena);
    struct cluster_value again;
    assert_true(value_unpack_cluster(raised, arena, &again));
    assert_int_equal(again.cluster.format, 4);
    assert_memory_equal(again.secret, some_cluster.secret, REPLICA_SECRET_BYTES);
    assert_memory_equal(
        (const uint8_t *)raised.data + raised.size - sizeof newer, newer, sizeof newer);
    assert_null(value_raise_format((struct etcd_bytes){.data = "\x0a", .size = 1}, 2, arena).data);
}

static bool unpacks_entry(const struct entry_value *entry)
{
    struct entry_value again;
    return value_unpack_entry(value_pack_entry(entry, arena), arena, &again);
}

static void values_out_of_their_limits_are_refused(void **state)
{
    (void)state;
    const struct cluster_value no_id = {.cluster = {.format = 1}};
    const struct cluster_value no_format = {.cluster = {.id = nonce}};
    struct cluster_value cluster;
    assert_false(value_unpack_cluster(value_pack_cluster(&no_id, arena), arena, &cluster));
    assert_false(value_unpack_cluster(value_pack_cluster(&no_format, arena), arena, &cluster));
    struct etcd_bytes cut = value_pack_cluster(&some_cluster, arena);
    cut.size -= 3 + 2 + REPLICA_SECRET_BYTES; /* of the last two fields */
    assert_false(value_unpack_cluster(cut, arena, &cluster));

    struct log_head head = head_of(7);
    struct log_head again;
    head.first = 8; /* no entry is there: index + 1 */
    assert_true(value_unpack_head(value_pack_head(&head, arena), arena, &again));
    head.first = 9;
    assert_false(value_unpack_head(value_pack_head(&head, arena), arena, &again));
    head.first = 0;
    assert_false(value_unpack_head(value_pack_head(&head, arena), arena, &again));
    assert_false(value_unpack_head((struct etcd_bytes){.data = "", .size = 0}, arena, &again));

    struct entry_value entry = entry_of("");
    assert_false(unpacks_entry(&entry));
    entry = entry_of("a");
    entry.format = 0;
    assert_false(unpacks_entry(&entry));
    entry = entry_of("a");
    entry.content = ENTRY_PIECES;
    entry.piece_count = 2;
    entry.piece_bytes = LOG_PIECE_BYTES + 1;
    assert_true(unpacks_entry(&entry));
    entry.piece_bytes = LOG_PIECE_BYTES;
    assert_false(unpacks_entry(&entry));
    entry.piece_bytes = 2 * LOG_PIECE_BYTES + 1;
    assert_false(unpacks_entry(&entry));
    entry.piece_count = LOG_PIECES_MAX + 1;
    entry.piece_bytes = LOG_ENTRY_BYTES_MAX + 1;
    assert_false(unpacks_entry(&entry));
}

static void unpack_as_each(struct etcd_bytes value)
{
    struct cluster_value cluster;
    struct leader_value some_leader;
    struct log_head head;
    struct entry_value entry;
    struct term_value term;
    struct replica_snapshot snapshot;
    (void)value_unpack_snapshot(value, arena, &snapshot);
    (void)value_unpack_cluster(value, arena, &cluster);
    (void)value_unpack_leader(value, arena, &some_leader);
    (void)value_unpack_head(value, arena, &head);
    (void)value_unpack_entry(value, arena, &entry);
    (void)value_unpack_term(value, arena, &term);
}

/* Each value cut at each byte, and bent at random. */
static void bytes_of_any_origin(void **state)
{
    (void)state;
    const struct log_head head = head_of(7);
    const struct entry_value entry = entry_of("records");
    const struct term_value term = {.name = "anna", .version = "1.2", .nonce = nonce};
    struct prng prng = {.state = 1};
    const struct replica_snapshot snapshot = {.at = {.index = 7, .term = 3}, .size = 5};
    uint8_t values[6][256];
    const struct etcd_bytes packed[6] = {value_pack_head(&head, arena),
        value_pack_cluster(&some_cluster, arena), value_pack_entry(&entry, arena),
        value_pack_leader(&leader, arena), value_pack_term(&term, arena),
        value_pack_snapshot(&snapshot, arena)};
    size_t sizes[6];
    for (size_t v = 0; v < 6; v++) {
        sizes[v] = packed[v].size;
        assert_true(sizes[v] > 0 && sizes[v] <= sizeof values[v]);
        memcpy(values[v], packed[v].data, sizes[v]);
        for (size_t cut = 0; cut < sizes[v]; cut++) {
            unpack_as_each((struct etcd_bytes){.data = values[v], .size = cut});
        }
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        size_t v = prng_uniform(&prng, 6);
        uint8_t bent[256];
        memcpy(bent, values[v], sizes[v]);
        for (uint64_t i = prng_uniform(&prng, 4) + 1; i > 0; i--) {
            bent[prng_uniform(&prng, sizes[v])] = (uint8_t)prng_next(&prng);
        }
        wire_arena_reset(arena);
        unpack_as_each((struct etcd_bytes){.data = bent, .size = sizes[v]});
    }
}

static void each_input_changes_the_hash(void **state)
{
    (void)state;
    struct cadre_error error;
    struct log_hash first;
    struct log_hash other;
    const struct log_hash before = hash_of_byte(1);
    const struct entry_value entry = entry_of("records");
    assert_ok(hash_entry(&before, &entry, entry.bytes, &first, &error), &error);
    struct entry_value bent[6] = {entry, entry, entry, entry, entry, entry};
    bent[0].term++;
    bent[1].index++;
    bent[2].format++;
    bent[3].appended_us++;
    bent[4].content = ENTRY_LEADER;
    bent[5].bytes.size--;
    for (size_t i = 0; i < CADRE_COUNT_OF(bent); i++) {
        assert_ok(hash_entry(&before, &bent[i], bent[i].bytes, &other, &error), &error);
        assert_false(log_hash_equal(&first, &other));
    }
    const struct log_hash another = hash_of_byte(2);
    assert_ok(hash_entry(&another, &entry, entry.bytes, &other, &error), &error);
    assert_false(log_hash_equal(&first, &other));
    struct entry_value in_pieces = entry;
    in_pieces.content = ENTRY_PIECES; /* how it is stored does not matter */
    in_pieces.hash = hash_of_byte(3); /* nor its own hash */
    assert_ok(hash_entry(&before, &in_pieces, entry.bytes, &other, &error), &error);
    assert_true(log_hash_equal(&first, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_packed_is_unpacked, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(equal_structs_give_equal_bytes, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(
            fields_of_a_newer_version_are_kept, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(
            values_out_of_their_limits_are_refused, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(bytes_of_any_origin, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(each_input_changes_the_hash, open_arena, close_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
