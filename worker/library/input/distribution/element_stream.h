/* SPDX-License-Identifier: Apache-2.0
 * Elements of a dataset by number, read in order: on from where it stands; from a position that was
 * given back; or again from the start of the epoch. */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_ELEMENT_STREAM_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_ELEMENT_STREAM_H

#include <stdatomic.h>

#include "worker/library/input/node/node.h"

/* How a long way to the element that is wanted is watched, and given up. Any thread. */
struct replay {
    _Atomic uint64_t done;   /* elements passed over */
    _Atomic uint64_t wanted; /* 0: no way is being made */
    atomic_bool cancelled;   /* reading stops with CANCELLED, and can go on later */
};

/* Zeroed but for `data` and `replay`. One thread at a time. */
struct element_stream {
    cadre_dataset *data;   /* borrowed */
    struct replay *replay; /* borrowed; may be NULL */
    cadre_iterator *iterator;
    struct element_position next; /* where the iterator stands */
    bool ended;                   /* there is nothing at `next`, nor behind it in its epoch */
    uint64_t passes;              /* how often it was begun or set */
    uint8_t *bytes;               /* a position to begin at, which was checked; malloc'ed */
    size_t byte_count;
    struct element_position position; /* that of `bytes` */
    bool held;                        /* the element at `next` was read ahead: */
    cadre_element ahead;
    struct id_list ahead_ids;
};

/* Reads the element at `place` and appends its ids. OUT_OF_RANGE when there is none. */
cadre_status element_stream_read(struct element_stream *stream, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

/* Finds out whether the element read last was the last of all, by reading one ahead; `ended` says
 * so. What fails then fails again when it is asked for. */
void element_stream_peek(struct element_stream *stream);

/* Whether a saved position is worth having: going to a place means reading what is before it. */
bool element_stream_wants_states(const struct element_stream *stream);

/* Where it stands, as bytes. UNIMPLEMENTED where a node of the pipeline cannot tell;
 * FAILED_PRECONDITION before it is read, after a failure, and while an element is read ahead. */
cadre_status element_stream_save(const struct element_stream *stream,
    struct iterator_state_writer *writer, struct cadre_error *error);

/* Reading of `place` and what follows begins at the position that was saved as these bytes.
 * INVALID_ARGUMENT: they are none of this dataset; nothing has changed then. */
cadre_status element_stream_restore(struct element_stream *stream, struct element_position position,
    const void *bytes, size_t count, struct cadre_error *error);

void element_stream_finish(struct element_stream *stream);

#endif
