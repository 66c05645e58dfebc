/* SPDX-License-Identifier: Apache-2.0
 * How far the clock of another host is from this one's, from requests that it answered: the request
 * left at asked, was answered at answered (its clock), and the answer came at received. The answer
 * was given somewhere in between, so half the time that passed is the most by which the middle is
 * wrong. The sample with the least of it counts (RFC 5905, clock filter). Pure. */
#ifndef CADRE_COORDINATOR_DAEMON_TRACES_CLOCK_OFFSET_H
#define CADRE_COORDINATOR_DAEMON_TRACES_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is known. */
struct clock_offset {
    uint64_t samples;
    uint64_t offset_ns; /* this clock = the other one + offset_ns, modulo 2^64 */
    uint64_t half_ns;   /* of the best sample: half of the time that passed */
    uint64_t taken_ns;  /* when it was taken */
};

/* Takes a sample; one whose times are impossible (received before it was asked) is ignored. True:
 * it is the best one so far. */
bool clock_offset_add(
    struct clock_offset *offset, uint64_t asked_ns, uint64_t answered_ns, uint64_t received_ns);

/* The most by which the offset is wrong for times between `from_ns` and `to_ns`: clocks drift
 * apart, by at most one part in 20,000. UINT64_MAX: no sample was taken. */
uint64_t clock_offset_error(const struct clock_offset *offset, uint64_t from_ns, uint64_t to_ns);

#endif
