/* SPDX-License-Identifier: Apache-2.0
 * The iterator of the nodes that read their input ahead on threads of their own: prefetch, and a
 * map with several calls at a time. */
#ifndef CADRE_WORKER_INPUT_READ_AHEAD_READ_AHEAD_H
#define CADRE_WORKER_INPUT_READ_AHEAD_READ_AHEAD_H

#include "worker/library/input/node/node.h"

struct read_ahead_options {
    uint32_t threads; /* >= 1 */
    uint64_t limit;   /* elements that are waiting or at work, at the most; >= threads */
    bool unordered;   /* what is done first is given first; an error after all that precede it */
    bool takes_rows;  /* where the reader asks for rows, the thread reads rows; `work` is NULL */
    /* Takes over `in`, made of the samples `ids`; called by all threads at once. NULL: elements are
     * given as they were read. */
    cadre_status (*work)(cadre_dataset *data, uint64_t epoch, const struct id_list *ids,
        cadre_element *in, cadre_element *ret_element, struct cadre_error *error);
};

/* An iterator of `self` whose input is read by one of its threads at a time. They start with the
 * first element that is asked for and end with the iterator. Errors come at their element's place.
 * Where it stands is where its input stood before the first element that was not given, if the
 * input tells that in few bytes; else the elements at hand are saved with it. */
cadre_status read_ahead_iterate(cadre_dataset *self, const struct pass *pass,
    const struct read_ahead_options *rule, cadre_iterator **ret_iterator,
    struct cadre_error *error);

#endif
