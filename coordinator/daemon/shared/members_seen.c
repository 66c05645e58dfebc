/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/members_seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define FORGET_US (24 * 3600 * CADRE_US_PER_S)

bool members_seen_init(struct members_seen *seen)
{
    *seen = (struct members_seen){.arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    return seen->arena != NULL;
}

static void free_items(struct members_seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        free(seen->items[i].value);
    }
    seen->count = 0;
}

void members_seen_free(struct members_seen *seen)
{
    free_items(seen);
    wire_arena_free(seen->arena);
    seen->arena = NULL;
}

static const struct member_seen *find(const struct members_seen *seen, const char *key)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->items[i].key, key) == 0) {
            return &seen->items[i];
        }
    }
    return NULL;
}

bool members_seen_read(
    struct members_seen *seen, const struct etcd_pair *pair, struct leader_response *ret_response)
{
    struct cadre_error error;
    wire_arena_reset(seen->arena);
    return strlen(pair->key) < ETCD_KEY_BYTES &&
           wire_unpack_leader_response(
               pair->value.data, pair->value.size, seen->arena, ret_response, &error) == CADRE_OK;
}

static void note_format(struct members_seen *seen)
{
    uint32_t least = seen->count > 0 ? UINT32_MAX : 0;
    for (size_t i = 0; i < seen->count; i++) {
        least = seen->items[i].format < least ? seen->items[i].format : least;
    }
    if (least != seen->format) {
        seen->format = least;
        seen->format_us = clock_boot_us();
    }
}

void members_seen_take(struct members_seen *seen, const struct etcd_result *result)
{
    struct member_seen taken[LIMIT_COORDINATORS];
    size_t count = 0;
    for (size_t i = 0; i < result->pair_count && count < LIMIT_COORDINATORS; i++) {
        const struct etcd_pair *pair = &result->pairs[i];
        const struct member_seen *known = find(seen, pair->key);
        bool same = known != NULL && known->revision == pair->mod_revision;
        struct leader_response read;
        void *value = members_seen_read(seen, pair, &read) ? malloc(pair->value.size + 1) : NULL;
        if (value == NULL) {
            continue;
        }
        memcpy(value, pair->value.data, pair->value.size);
        taken[count] = (struct member_seen){.revision = pair->mod_revision,
            .seen_us = same ? known->seen_us : clock_boot_us(),
            .is_first = same ? known->is_first : seen->read_us == 0,
            .format = read.self.format_max > 0 ? read.self.format_max : 1,
            .value = value,
            .size = pair->value.size};
        snprintf(taken[count].key, sizeof taken[count].key, "%s", pair->key);
        count++;
    }
    free_items(seen);
    memcpy(seen->items, taken, count * sizeof taken[0]);
    seen->count = count;
    seen->read_us = clock_boot_us();
    note_format(seen);
}

size_t members_seen_forget(const struct members_seen *seen, const char *own,
    struct etcd_operation *operations, size_t count)
{
    uint64_t now_us = clock_boot_us();
    for (size_t i = 0; i < seen->count; i++) {
        const struct member_seen *member = &seen->items[i];
        if (now_us - member->seen_us > FORGET_US && strcmp(member->key, own) != 0) {
            operations[count++] = (struct etcd_operation){.kind = ETCD_DELETE, .key = member->key};
        }
    }
    return count;
}

/* ---- the list ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(
        ((const struct coordinator_info *)a)->name, ((const struct coordinator_info *)b)->name);
}

/* For people. How long ago it wrote what this process has found at its start is not known by a
 * clock of this host: then the wall clocks of two hosts are compared. */
static uint64_t shown_age_us(
    const struct member_seen *member, const struct coordinator_info *info, uint64_t age_us)
{
    uint64_t wall_us = clock_wall_us();
    bool compares = member->is_first && info->written_us != 0 && wall_us > info->written_us;
    uint64_t by_wall_us = compares ? wall_us - info->written_us : 0;
    return by_wall_us > age_us ? by_wall_us : age_us;
}

size_t members_seen_list(const struct members_seen *seen, const struct coordinator_info *self,
    const char *leader, uint64_t away_us, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS])
{
    size_t count = 0;
    uint64_t now_us = clock_boot_us();
    bool reads = now_us - seen->read_us <= away_us;
    ret_infos[count++] = *self;
    for (size_t i = 0; i < seen->count && count < LIMIT_COORDINATORS; i++) {
        const struct member_seen *member = &seen->items[i];
        struct leader_response response;
        struct cadre_error error;
        if (wire_unpack_leader_response(member->value, member->size, arena, &response, &error) !=
                CADRE_OK ||
            strcmp(response.self.name, self->name) == 0) {
            continue;
        }
        struct coordinator_info *info = &ret_infos[count++];
        *info = response.self;
        uint64_t age_us = now_us - member->seen_us + 1; /* 0 is for what it says of itself */
        info->age_us = shown_age_us(member, info, age_us);
        info->leads = info->leads && strcmp(info->name, leader) == 0;
        bool is_replaced = strcmp(info->state, COORDINATOR_LEADING) == 0 && leader[0] != '\0' &&
                           strcmp(info->name, leader) != 0;
        if (!reads || is_replaced || age_us > away_us) {
            info->state = reads ? COORDINATOR_AWAY : COORDINATOR_UNKNOWN;
            info->leads = false;
        }
    }
    qsort(ret_infos, count, sizeof ret_infos[0], by_name);
    return count;
}
