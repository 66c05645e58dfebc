/* SPDX-License-Identifier: Apache-2.0
 * A timer, one transaction at a time (a read and a put of the own key, a read of all, and of a
 * leader the deletion of what was not written for a day), and what was read last. */
#include "coordinator/daemon/shared/shared_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/etcd/etcd.h"

#define FOLDER     "member/"
#define FOLDER_END "member0" /* the first key behind it */

/* The lease of leadership, within these bounds. */
#define PERIOD_MIN_US CADRE_US_PER_S
#define PERIOD_MAX_US (10 * CADRE_US_PER_S)
#define AWAY_PERIODS  3 /* in which it wrote nothing: it is not there */
#define FORGET_US     (24 * 3600 * CADRE_US_PER_S)

struct member {
    char key[ETCD_KEY_BYTES];
    int64_t revision;
    uint64_t seen_us; /* since when this coordinator knows that revision */
    void *value;      /* a packed leader_response */
    size_t size;
};

struct shared_members {
    struct daemon *daemon;
    struct etcd *etcd;
    shared_members_describe_fn *describe;
    struct wire_arena *arena; /* of what is packed or checked now */
    struct wire_buffer packed;
    uv_timer_t timer;
    uint64_t period_us;
    struct member items[LIMIT_COORDINATORS];
    size_t count;
    int64_t own_revision; /* of the own key as the newest answer gave it; 0: not known */
    bool name_is_taken;   /* which is logged */
    bool in_flight;
    bool again; /* something changed while a transaction was in flight */
    bool closed;
    bool timer_closed;
};

static void free_item(struct member *member)
{
    free(member->value);
    *member = (struct member){0};
}

static void free_when_idle(struct shared_members *members)
{
    if (!members->closed || !members->timer_closed || members->in_flight) {
        return;
    }
    for (size_t i = 0; i < members->count; i++) {
        free_item(&members->items[i]);
    }
    wire_arena_free(members->arena);
    wire_buffer_free(&members->packed);
    free(members);
}

/* ---- what was read ---- */

static const struct member *find_member(const struct shared_members *members, const char *key)
{
    for (size_t i = 0; i < members->count; i++) {
        if (strcmp(members->items[i].key, key) == 0) {
            return &members->items[i];
        }
    }
    return NULL;
}

/* Values of any origin: what is no such message is left out. */
static bool read_pair(struct shared_members *members, const struct etcd_pair *pair,
    struct leader_response *ret_response)
{
    struct cadre_error error;
    wire_arena_reset(members->arena);
    return strlen(pair->key) < ETCD_KEY_BYTES &&
           wire_unpack_leader_response(pair->value.data, pair->value.size, members->arena,
               ret_response, &error) == CADRE_OK;
}

static void take_pairs(struct shared_members *members, const struct etcd_result *result)
{
    struct member taken[LIMIT_COORDINATORS];
    size_t count = 0;
    for (size_t i = 0; i < result->pair_count && count < LIMIT_COORDINATORS; i++) {
        const struct etcd_pair *pair = &result->pairs[i];
        const struct member *known = find_member(members, pair->key);
        bool same = known != NULL && known->revision == pair->mod_revision;
        struct leader_response ignored;
        void *value = read_pair(members, pair, &ignored) ? malloc(pair->value.size + 1) : NULL;
        if (value == NULL) {
            continue;
        }
        memcpy(value, pair->value.data, pair->value.size);
        taken[count] = (struct member){.revision = pair->mod_revision,
            .seen_us = same ? known->seen_us : clock_boot_us(),
            .value = value,
            .size = pair->value.size};
        snprintf(taken[count].key, sizeof taken[count].key, "%s", pair->key);
        count++;
    }
    for (size_t i = 0; i < members->count; i++) {
        free_item(&members->items[i]);
    }
    memcpy(members->items, taken, count * sizeof taken[0]);
    members->count = count;
}

/* ---- writing and reading ---- */

static void begin(struct shared_members *members);

/* Keys have no text of people in them. */
static bool own_key(const char *name, char ret_key[ETCD_KEY_BYTES])
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    if (sha256_of(name, strlen(name), &hash, NULL) != CADRE_OK) {
        return false;
    }
    sha256_hex(&hash, hex);
    snprintf(ret_key, ETCD_KEY_BYTES, FOLDER "%.16s", hex);
    return true;
}

/* `before` is the own key as it was before it was written now: of another revision than that which
 * this process wrote when another one has the same name. */
static void look_for_namesake(struct shared_members *members, const struct etcd_result *before)
{
    struct leader_response other;
    if (members->own_revision == 0 || before->pair_count != 1 ||
        before->pairs[0].mod_revision == members->own_revision || members->name_is_taken ||
        !read_pair(members, &before->pairs[0], &other)) {
        return;
    }
    members->name_is_taken = true;
    log_event(LOG_LEVEL_ERROR, "ledger",
        "another coordinator uses this one's name, so that people see one of them only: give each "
        "a --name of its own",
        LOG_STR("name", other.self.name), LOG_STR("addresses", other.self.addresses));
}

/* The first result is the own key as it was, the last one is all. */
static void take_answer(struct shared_members *members, const struct etcd_answer *answer)
{
    char key[ETCD_KEY_BYTES];
    struct leader_response own;
    look_for_namesake(members, &answer->results[0]);
    take_pairs(members, &answer->results[answer->result_count - 1]);
    members->describe(members->daemon, &own);
    const struct member *member = own_key(own.self.name, key) ? find_member(members, key) : NULL;
    members->own_revision = member != NULL ? member->revision : 0;
}

static void on_answer(const struct etcd_answer *answer, void *user)
{
    struct shared_members *members = user;
    members->in_flight = false;
    if (members->closed) {
        free_when_idle(members);
        return;
    }
    if (answer->status == CADRE_OK && answer->result_count > 0) {
        take_answer(members, answer);
    } else {
        members->own_revision = 0;
    }
    if (members->again) {
        begin(members);
    }
}

static size_t add_deletions(const struct shared_members *members, const char *own,
    struct etcd_operation *operations, size_t count)
{
    uint64_t now_us = clock_boot_us();
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->items[i];
        if (now_us - member->seen_us > FORGET_US && strcmp(member->key, own) != 0) {
            operations[count++] = (struct etcd_operation){.kind = ETCD_DELETE, .key = member->key};
        }
    }
    return count;
}

static void begin(struct shared_members *members)
{
    struct leader_response own;
    struct cadre_error error;
    char key[ETCD_KEY_BYTES];
    struct etcd_operation operations[LIMIT_COORDINATORS + 3];
    members->describe(members->daemon, &own);
    wire_buffer_clear(&members->packed);
    members->again = false;
    if (!own_key(own.self.name, key) ||
        wire_pack_leader_response(&own, &members->packed, &error) != CADRE_OK) {
        return;
    }
    operations[0] = (struct etcd_operation){.kind = ETCD_GET, .key = key};
    operations[1] = (struct etcd_operation){
        .kind = ETCD_PUT, .key = key, .value = {members->packed.bytes, members->packed.size}};
    size_t count = own.self.leads ? add_deletions(members, key, operations, 2) : 2;
    operations[count++] = (struct etcd_operation){
        .kind = ETCD_GET, .key = FOLDER, .end = FOLDER_END, .limit = LIMIT_COORDINATORS};
    const struct etcd_transaction transaction = {.then = operations, .then_count = count};
    const struct etcd_then then = {.deadline_us = clock_monotonic_us() + members->period_us,
        .handler = on_answer,
        .user = members};
    members->in_flight = etcd_transact(members->etcd, &transaction, &then, &error) == CADRE_OK;
}

void shared_members_changed(struct shared_members *members)
{
    if (members == NULL || members->closed) {
        return;
    }
    if (members->in_flight) {
        members->again = true;
    } else {
        begin(members);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct shared_members *members = timer->data;
    if (!members->in_flight) {
        begin(members);
    }
}

/* ---- begin and end ---- */

cadre_status shared_members_open(struct daemon *daemon, struct etcd *etcd,
    shared_members_describe_fn *describe, struct shared_members **ret_members,
    struct cadre_error *error)
{
    struct shared_members *members = calloc(1, sizeof *members);
    struct wire_arena *arena = members != NULL ? wire_arena_new(LIMIT_UNPACK_BYTES) : NULL;
    if (arena == NULL) {
        free(members);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of coordinators");
    }
    uint64_t period_us = daemon->options.ha.lease_us;
    members->daemon = daemon;
    members->etcd = etcd;
    members->describe = describe;
    members->arena = arena;
    members->period_us = period_us < PERIOD_MIN_US   ? PERIOD_MIN_US
                         : period_us > PERIOD_MAX_US ? PERIOD_MAX_US
                                                     : period_us;
    uv_timer_init(rpc_loop_uv(daemon->loop), &members->timer);
    members->timer.data = members;
    uint64_t period_ms = members->period_us / CADRE_US_PER_MS;
    uv_timer_start(&members->timer, on_timer, 0, period_ms);
    *ret_members = members;
    return CADRE_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct shared_members *members = handle->data;
    members->timer_closed = true;
    free_when_idle(members);
}

void shared_members_close(struct shared_members *members)
{
    if (members != NULL) {
        members->closed = true;
        uv_close((uv_handle_t *)&members->timer, on_timer_closed);
    }
}

/* ---- the list ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(
        ((const struct coordinator_info *)a)->name, ((const struct coordinator_info *)b)->name);
}

size_t shared_members_list(const struct shared_members *members,
    const struct coordinator_info *self, const char *leader, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS])
{
    size_t count = 0;
    uint64_t now_us = clock_boot_us();
    ret_infos[count++] = *self;
    for (size_t i = 0; members != NULL && i < members->count && count < LIMIT_COORDINATORS; i++) {
        const struct member *member = &members->items[i];
        struct leader_response response;
        struct cadre_error error;
        if (wire_unpack_leader_response(member->value, member->size, arena, &response, &error) !=
                CADRE_OK ||
            strcmp(response.self.name, self->name) == 0) {
            continue;
        }
        struct coordinator_info *info = &ret_infos[count++];
        *info = response.self;
        info->age_us = now_us - member->seen_us + 1; /* 0 is for what it says of itself */
        info->leads = info->leads && strcmp(info->name, leader) == 0;
        bool is_replaced = strcmp(info->state, COORDINATOR_LEADING) == 0 && leader[0] != '\0' &&
                           strcmp(info->name, leader) != 0;
        if (is_replaced || info->age_us > AWAY_PERIODS * members->period_us) {
            info->state = COORDINATOR_AWAY;
            info->leads = false;
        }
    }
    qsort(ret_infos, count, sizeof ret_infos[0], by_name);
    return count;
}
