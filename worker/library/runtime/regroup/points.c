/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/points.h"
#include "common/pure/assert.h"

#include <inttypes.h>

void point_set_cursor(struct point *point, const struct cursor *cursor, const struct feed *feed)
{
    point->stream = cursor->stream;
    point->epoch = cursor->epoch;
    point->first = cursor->first;
    point->begin = cursor->begin;
    point->steps = cursor->steps;
    point->feed_steps = feed->steps;
    point->feed_samples = feed->samples;
    for (int lane = 0; lane < 2; lane++) {
        point->fed[lane] = feed->fed[lane];
        point->expected[lane] = feed->expected[lane];
    }
    point->provable = (uint64_t)feed->files << 1 | (feed->provable ? 1 : 0);
}

void point_get_cursor(const struct point *point, struct cursor *ret_cursor, struct feed *ret_feed)
{
    *ret_cursor = (struct cursor){.stream = (uint32_t)point->stream,
        .epoch = point->epoch,
        .first = point->first,
        .begin = point->begin,
        .steps = point->steps};
    *ret_feed = (struct feed){.steps = point->feed_steps,
        .samples = point->feed_samples,
        .fed = {point->fed[0], point->fed[1]},
        .expected = {point->expected[0], point->expected[1]},
        .provable = (point->provable & 1) != 0,
        .files = (enum feed_files)(point->provable >> 1 & 3)};
}

struct told_devices points_devices(const struct point *points, uint32_t count)
{
    CADRE_ASSERT(count > 0);
    struct told_devices devices = {.cannot = UINT32_MAX, .differs = UINT32_MAX};
    for (uint32_t rank = count; rank-- > 0;) {
        devices.any = devices.any || (points[rank].flags & POINT_DEVICES) != 0;
        if (points[rank].devices == 0) {
            devices.cannot = rank;
        } else if (points[rank].devices != points[0].devices) {
            devices.differs = rank;
        }
    }
    devices.alike = devices.cannot == UINT32_MAX && devices.differs == UINT32_MAX;
    return devices;
}

static bool has_state(const struct point *point, uint64_t resume)
{
    return (point->flags & (POINT_WARM | POINT_RESTORES)) == 0 && point->position == resume;
}

/* A member whose collectives outside of steps count: where nobody has the state yet, all that go on
 * from the checkpoint make them together. */
static bool counts_outside(
    const struct point *point, uint64_t resume, const struct points_decision *decision)
{
    bool restores = (point->flags & POINT_RESTORES) != 0;
    return has_state(point, resume) || (restores && decision->source == UINT32_MAX);
}

bool point_adopts(const struct point *point, uint64_t resume)
{
    return (point->flags & (POINT_WARM | POINT_RESTORES)) == 0 && resume > 0 &&
           point->position == resume - 1;
}

bool point_lacks_state(const struct point *point, uint64_t resume, bool somebody_has_it)
{
    return somebody_has_it && !has_state(point, resume);
}

static uint32_t choose_source(
    const struct point *points, uint32_t count, uint64_t resume, uint32_t wanted)
{
    if (wanted < count && has_state(&points[wanted], resume)) {
        return wanted;
    }
    for (uint32_t rank = 0; rank < count; rank++) {
        if (has_state(&points[rank], resume)) {
            return rank;
        }
    }
    return UINT32_MAX;
}

uint32_t points_misfit(const struct point *points, uint32_t count, uint64_t resume, uint32_t source)
{
    uint32_t from = choose_source(points, count, resume, source);
    for (uint32_t rank = 0; from != UINT32_MAX && rank < count; rank++) {
        if (!has_state(&points[rank], resume) && points[rank].layout != points[from].layout) {
            return from;
        }
    }
    return UINT32_MAX;
}

static cadre_status check_adoption(const struct point *points, uint32_t rank, uint32_t source,
    uint64_t resume, struct cadre_error *error)
{
    const struct point *from = &points[source];
    if ((from->flags & POINT_STEP) == 0) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the task of rank %" PRIu32 " stands before step %" PRIu64
            ", and nobody that is left knows what that step gave",
            rank, resume - 1);
    }
    if (points[rank].collectives > from->applied_collectives) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree: those of rank %" PRIu32 " make at least %" PRIu64
            " collective calls in step %" PRIu64 ", those of rank %" PRIu32 " make %" PRIu64
            "; all must make the same ones",
            rank, points[rank].collectives, resume - 1, source, from->applied_collectives);
    }
    return CADRE_OK;
}

/* What one member lacks. */
static cadre_status take_account(const struct point *points, uint32_t rank, uint64_t resume,
    struct points_decision *decision, struct cadre_error *error)
{
    const struct point *point = &points[rank];
    bool warm = (point->flags & (POINT_WARM | POINT_RESTORES)) != 0;
    if (!point_lacks_state(point, resume, decision->source != UINT32_MAX)) {
        return CADRE_OK;
    }
    decision->state = true;
    decision->joins = decision->joins || (point->flags & POINT_WARM) != 0;
    if (point_adopts(point, resume)) {
        decision->step = true;
        return check_adoption(points, rank, decision->source, resume, error);
    }
    return warm ? CADRE_OK
                : cadre_error_set(error, CADRE_INTERNAL,
                      "the task of rank %" PRIu32 " stands at step %" PRIu64
                      " and the plan at step %" PRIu64,
                      rank, point->position, resume);
}

static void find_outside(
    const struct point *points, uint32_t count, uint64_t resume, struct points_decision *decision)
{
    bool lacking = false;
    uint32_t knows = UINT32_MAX;
    for (uint32_t rank = 0; rank < count; rank++) {
        bool has = counts_outside(&points[rank], resume, decision);
        if (has && points[rank].outside > decision->outside) {
            decision->outside = points[rank].outside;
        }
    }
    for (uint32_t rank = count; rank-- > 0;) {
        bool has = counts_outside(&points[rank], resume, decision);
        lacking = lacking || (has && points[rank].outside < decision->outside);
        if (has && points[rank].outside == decision->outside &&
            (points[rank].flags & POINT_OUTSIDE) != 0) {
            knows = rank;
        }
    }
    decision->outside_source = lacking ? knows : UINT32_MAX;
}

cadre_status points_decide(const struct point *points, uint32_t count, uint64_t resume,
    uint32_t source, struct points_decision *ret_decision, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    struct points_decision *decision = ret_decision;
    *decision = (struct points_decision){
        .source = choose_source(points, count, resume, source), .outside_source = UINT32_MAX};
    for (uint32_t rank = 0; rank < count; rank++) {
        CADRE_TRY(take_account(points, rank, resume, decision, error));
    }
    find_outside(points, count, resume, decision);
    for (uint32_t rank = 0; rank < count; rank++) {
        bool lacks = counts_outside(&points[rank], resume, decision) &&
                     points[rank].outside < decision->outside;
        if (lacks && (points[rank].outside + 1 != decision->outside ||
                         decision->outside_source == UINT32_MAX)) {
            return cadre_error_set(error, CADRE_INTERNAL,
                "the task of rank %" PRIu32 " has made %" PRIu64 " collectives since step %" PRIu64
                ", another %" PRIu64 ", and nobody that is left knows what the last one gave",
                rank, points[rank].outside, resume, decision->outside);
        }
    }
    return CADRE_OK;
}
