/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the ledger at one coordinator: when a leader has one made, what is trimmed behind
 * it, and which one a follower installs (HA19). Which ones there are is read from the store when it
 * matters, so that nothing has to be handed on from one leader to the next. Pure, as the core of
 * leadership is: the caller reads, makes and installs, and gives the times, which are
 * CLOCK_BOOTTIME of this process in microseconds. One struct for each process; one thread. */
#ifndef CADRE_COORDINATOR_LEADERSHIP_SNAPSHOT_RULES_H
#define CADRE_COORDINATOR_LEADERSHIP_SNAPSHOT_RULES_H

#include "coordinator/leadership/leadership.h"

enum snapshot_step {
    SNAPSHOT_NONE,
    SNAPSHOT_LOOKING, /* a leader reads whether there is one that it does not know of */
    SNAPSHOT_MAKING,  /* the owner makes one */
    SNAPSHOT_STORING, /* the core writes its key */
    SNAPSHOT_FINDING, /* a follower reads which one there is */
    SNAPSHOT_INSTALLING
};

/* So many entries were applied at this time. */
struct snapshot_mark {
    uint64_t index, at_us;
};

#define SNAPSHOT_MARKS 16

struct snapshot_options {
    /* One is due after so many bytes of entries or so much time, whichever is first, if there are
     * entries behind the newest one. */
    uint64_t bytes, after_us;
    uint64_t keep_us;  /* entries that were applied in this time are not trimmed */
    uint64_t again_us; /* after a failure it is tried again so much later */
};

struct snapshot_rules {
    struct snapshot_options options;
    enum snapshot_step step;
    uint64_t applied;  /* index of the newest entry in the copy */
    uint64_t known;    /* index of the newest snapshot that is known; 0: none */
    uint64_t bytes;    /* of the entries behind it */
    uint64_t before;   /* of them are in the one that is being made */
    uint64_t since_us; /* since when it is known */
    uint64_t pause_us; /* after a failure: not before */
    struct snapshot_mark marks[SNAPSHOT_MARKS]; /* a ring */
    uint64_t mark_count;                        /* that were made */
};

/* A process begins; its copy is at this entry. */
void snapshot_rules_begin(struct snapshot_rules *rules, const struct snapshot_options *options,
    uint64_t applied, uint64_t now_us);
/* The copy is at this entry now; those that were applied have so many bytes. */
void snapshot_rules_applied(
    struct snapshot_rules *rules, uint64_t applied, uint64_t bytes, uint64_t now_us);

/* ---- of a leader ---- */

/* After each event; `leads`: LEADERSHIP_LEADING. true: reads which snapshot the store names; then
 * snapshot_rules_looked(), or snapshot_rules_failed(). */
bool snapshot_rules_look(struct snapshot_rules *rules, bool leads, uint64_t now_us);
/* The store names this one, 0: none. true: makes one of the copy as it is now; then
 * snapshot_rules_held(), or snapshot_rules_failed(). */
bool snapshot_rules_looked(
    struct snapshot_rules *rules, uint64_t newest, bool leads, uint64_t now_us);
/* The store could not be read, or no snapshot could be made. */
void snapshot_rules_failed(struct snapshot_rules *rules, uint64_t now_us);
/* The one that was made, at this entry, is where every coordinator can read it; then the event
 * LEADERSHIP_EVENT_SNAPSHOT_HELD, with snapshot_rules_trim_to(). */
void snapshot_rules_held(struct snapshot_rules *rules, uint64_t index);
/* The newest entry that may be deleted behind a snapshot at `index`; 0: none. */
uint64_t snapshot_rules_trim_to(
    const struct snapshot_rules *rules, uint64_t index, uint64_t now_us);
/* LEADERSHIP_ACTION_SNAPSHOT_STORED. */
void snapshot_rules_stored(struct snapshot_rules *rules, uint64_t index, uint64_t now_us);

/* ---- of a follower ---- */

/* LEADERSHIP_ACTION_FETCH_SNAPSHOT: reads which snapshot the store names; then
 * snapshot_rules_found(). */
void snapshot_rules_find(struct snapshot_rules *rules);
/* The store names this one; 0: none, or it could not be read. true: installs it; then
 * snapshot_rules_installed(). false: there is none that is newer than the copy. */
bool snapshot_rules_found(struct snapshot_rules *rules, uint64_t newest);
/* The copy is at this entry now; 0: it could not be had, and the copy is as it was. */
void snapshot_rules_installed(struct snapshot_rules *rules, uint64_t index, uint64_t now_us);

#endif
