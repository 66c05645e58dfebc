/* SPDX-License-Identifier: Apache-2.0
 * When a snapshot is due, what is trimmed behind it, which one is installed. */
#include "coordinator/leadership/snapshot_rules.h"

#include "common/pure/assert.h"

/* An entry whose size is not known, because it was applied before this process began. */
#define ASSUMED_BYTES 1024
/* Marks are so many parts of `keep_us` apart, so that a ring of them is older than it. */
#define MARK_PART (SNAPSHOT_MARKS / 2)

/* ---- what was applied when ---- */

static void add_mark(struct snapshot_rules *rules, uint64_t now_us)
{
    if (rules->mark_count > 0) {
        const struct snapshot_mark *last = &rules->marks[(rules->mark_count - 1) % SNAPSHOT_MARKS];
        if (now_us - last->at_us < rules->options.keep_us / MARK_PART) {
            return;
        }
    }
    rules->marks[rules->mark_count++ % SNAPSHOT_MARKS] =
        (struct snapshot_mark){.index = rules->applied, .at_us = now_us};
}

/* The newest entry that was applied here `keep_us` ago. The clock is this process's own (HA24a). */
uint64_t snapshot_rules_trim_to(const struct snapshot_rules *rules, uint64_t index, uint64_t now_us)
{
    for (uint64_t back = 1; back <= SNAPSHOT_MARKS && back <= rules->mark_count; back++) {
        const struct snapshot_mark *mark =
            &rules->marks[(rules->mark_count - back) % SNAPSHOT_MARKS];
        if (now_us - mark->at_us >= rules->options.keep_us) {
            return mark->index < index ? mark->index : index;
        }
    }
    return 0;
}

void snapshot_rules_begin(struct snapshot_rules *rules, const struct snapshot_options *options,
    uint64_t applied, uint64_t now_us)
{
    *rules = (struct snapshot_rules){.options = *options,
        .applied = applied,
        .bytes = applied * ASSUMED_BYTES,
        .since_us = now_us};
    add_mark(rules, now_us);
}

void snapshot_rules_applied(
    struct snapshot_rules *rules, uint64_t applied, uint64_t bytes, uint64_t now_us)
{
    rules->applied = applied;
    rules->bytes += bytes;
    add_mark(rules, now_us);
}

/* From now on this is the newest one; the entries behind it have so many bytes. */
static void know(struct snapshot_rules *rules, uint64_t index, uint64_t bytes, uint64_t now_us)
{
    rules->known = index;
    rules->bytes = bytes;
    rules->since_us = now_us;
}

/* ---- of a leader ---- */

static bool is_due(const struct snapshot_rules *rules, bool leads, uint64_t now_us)
{
    const struct snapshot_options *options = &rules->options;
    bool may = leads && rules->step == SNAPSHOT_NONE && now_us >= rules->pause_us &&
               rules->applied > rules->known;
    return may && (rules->bytes >= options->bytes || now_us - rules->since_us >= options->after_us);
}

bool snapshot_rules_look(struct snapshot_rules *rules, bool leads, uint64_t now_us)
{
    bool due = is_due(rules, leads, now_us);
    rules->step = due ? SNAPSHOT_LOOKING : rules->step;
    return due;
}

/* One that an earlier leader made may be new to this one. */
bool snapshot_rules_looked(
    struct snapshot_rules *rules, uint64_t newest, bool leads, uint64_t now_us)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_LOOKING);
    rules->step = SNAPSHOT_NONE;
    if (newest > rules->known && newest <= rules->applied) {
        know(rules, newest, (rules->applied - newest) * ASSUMED_BYTES, now_us);
    }
    bool due = is_due(rules, leads, now_us);
    if (due) {
        rules->step = SNAPSHOT_MAKING;
        rules->before = rules->bytes;
    }
    return due;
}

void snapshot_rules_failed(struct snapshot_rules *rules, uint64_t now_us)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_LOOKING || rules->step == SNAPSHOT_MAKING);
    rules->step = SNAPSHOT_NONE;
    rules->pause_us = now_us + rules->options.again_us;
}

void snapshot_rules_held(struct snapshot_rules *rules, uint64_t index)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_MAKING);
    CADRE_ASSERT(index > rules->known && index <= rules->applied);
    rules->step = SNAPSHOT_STORING;
}

void snapshot_rules_stored(struct snapshot_rules *rules, uint64_t index, uint64_t now_us)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_STORING);
    rules->step = SNAPSHOT_NONE;
    know(rules, index, rules->bytes - rules->before, now_us);
}

/* ---- of a follower ---- */

void snapshot_rules_find(struct snapshot_rules *rules)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_NONE);
    rules->step = SNAPSHOT_FINDING;
}

bool snapshot_rules_found(struct snapshot_rules *rules, uint64_t newest)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_FINDING);
    bool newer = newest > rules->applied;
    rules->step = newer ? SNAPSHOT_INSTALLING : SNAPSHOT_NONE;
    return newer;
}

void snapshot_rules_installed(struct snapshot_rules *rules, uint64_t index, uint64_t now_us)
{
    CADRE_ASSERT(rules->step == SNAPSHOT_INSTALLING);
    rules->step = SNAPSHOT_NONE;
    if (index > 0) {
        rules->applied = index;
        know(rules, index, 0, now_us);
        add_mark(rules, now_us);
    }
}
