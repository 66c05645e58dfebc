/* SPDX-License-Identifier: Apache-2.0
 * The file with the values of a job: series_records.h behind one another, appended as they come and
 * written again as a snapshot when it has grown. A thread of the pool works on it, one turn at a
 * time (series_jobs.c). It is not synced, as logs are not: a killed coordinator loses nothing that
 * it acknowledged, a host that loses its power may lose the newest values. */
#ifndef CADRE_COORDINATOR_DAEMON_SERIES_SERIES_FILES_H
#define CADRE_COORDINATOR_DAEMON_SERIES_SERIES_FILES_H

#include "coordinator/daemon/series/series_objects.h"
#include "coordinator/series/records/series_records.h"
#include "coordinator/engine/engine.h"

/* Receives what a query asks for, a packed metrics_response; error->code is not OK: the reason why
 * there is none. Both are borrowed. */
typedef void series_answer_fn(
    void *reader, const struct wire_buffer *packed, struct cadre_error *error);

/* One thing that a thread has to do; a message that is not NULL is the item's. */
struct series_item {
    struct series_item *next;
    size_t bytes; /* of memory, while it waits */
    /* Generations that came since the item before, in order; of a query all. */
    struct verify_generation *generations;
    size_t generation_count;
    uint64_t known; /* those up to this number were applied by an item before */
    /* Values of a task: */
    struct link_id link;
    struct task_ref task;
    struct task_values *values; /* NULL: it is a query */
    enum series_source source;
    bool stored; /* not: the file could not be written, or their generation is over */
    /* A query: */
    series_answer_fn *answer_to; /* NULL: it was cancelled */
    void *reader;
    struct metrics_request *request;
    struct wire_buffer answer;
    struct cadre_error error;
};

/* Which file it is, and what was written to it; all 0: there is none. */
struct series_look {
    uint64_t number; /* of the inode */
    uint64_t bytes;
    uint64_t changed_ns;
};

/* A thread's input and result. `state`, `look` and the three sizes stay from turn to turn. */
struct series_io {
    char *path;
    struct series_objects chain; /* of an object store, of which the file is a copy then */
    struct series_state *state;  /* NULL: the file is to be read */
    struct series_look look;     /* when it was last read or written */
    uint64_t file_bytes;         /* of whole records */
    uint64_t snapshot_bytes;     /* what it had when it was last read or written as a snapshot */
    uint64_t unrecorded_bytes;   /* were damaged, and the file has no record of that yet */
    struct series_item *items;
    int64_t change_bytes; /* so many more, or fewer, are on the disk */
    bool reread;          /* the state may be without generations of items before */
    uint64_t lost_bytes;  /* found damaged in this turn */
    int lost_errno;       /* not 0: what the file could not be read or written for */
};

/* In a thread: does the items in order; first everything is written, then queries are answered. */
void series_files_do_io(struct series_io *io);

#endif
