/* SPDX-License-Identifier: Apache-2.0
 * The parts that messages of several families have in common. */
#include <string.h>

#include "common/wire/codec.h"

void fill_task_ref(Cadre__V1__TaskRef *wire, struct task_ref ref)
{
    cadre__v1__task_ref__init(wire);
    wire->job = ref.job.n;
    wire->slot = ref.slot;
    wire->incarnation = ref.incarnation;
}

struct task_ref take_task_ref(
    struct taker *taker, const char *field, const Cadre__V1__TaskRef *wire)
{
    if (!take_present(taker, field, wire)) {
        return (struct task_ref){.slot = 0};
    }
    return (struct task_ref){
        .job = take_job_id(taker, "TaskRef.job", wire->job),
        .slot = take_u32(taker, "TaskRef.slot", wire->slot, 0, LIMIT_TASKS_PER_JOB - 1),
        .incarnation = take_number(taker, "TaskRef.incarnation", wire->incarnation, 1, UINT64_MAX),
    };
}

Cadre__V1__Term *fill_term(Cadre__V1__Term *wire, const struct term *term)
{
    if (term->cluster == 0) {
        return NULL;
    }
    cadre__v1__term__init(wire);
    wire->cluster = term->cluster;
    wire->start = term->start;
    wire->nonce = term->nonce;
    return wire;
}

struct term take_term(struct taker *taker, const Cadre__V1__Term *wire)
{
    if (wire == NULL) {
        return (struct term){0};
    }
    return (struct term){
        .cluster = take_number(taker, "Term.cluster", wire->cluster, 1, UINT64_MAX),
        .start = take_number(taker, "Term.start", wire->start, 1, INT64_MAX),
        .nonce = wire->nonce};
}

void fill_generation(Cadre__V1__Generation *wire, struct generation generation)
{
    cadre__v1__generation__init(wire);
    wire->number = generation.number;
    wire->nonce = generation.nonce;
}

struct generation take_generation(
    struct taker *taker, const char *field, const Cadre__V1__Generation *wire)
{
    if (!take_present(taker, field, wire)) {
        return (struct generation){.number = 0};
    }
    return (struct generation){
        .number = take_number(taker, "Generation.number", wire->number, 1, UINT64_MAX),
        .nonce = wire->nonce,
    };
}

void fill_cursor(Cadre__V1__Cursor *wire, const struct cursor *cursor)
{
    cadre__v1__cursor__init(wire);
    wire->stream = cursor->stream;
    wire->epoch = cursor->epoch;
    wire->first = cursor->first;
    wire->begin = cursor->begin;
    wire->steps = cursor->steps;
    wire->nested = cursor->nested;
}

struct cursor take_cursor(struct taker *taker, const Cadre__V1__Cursor *wire)
{
    if (wire == NULL) {
        return (struct cursor){.stream = 0};
    }
    return (struct cursor){
        .stream = take_stream(taker, "Cursor.stream", wire->stream),
        .epoch = wire->epoch,
        .first = take_number(taker, "Cursor.first", wire->first, 0, wire->begin),
        .begin = take_position(taker, "Cursor.begin", wire->begin),
        .steps = take_position(taker, "Cursor.steps", wire->steps),
        .nested = wire->nested,
    };
}

void fill_feed(struct wire_feed *storage, const struct feed *feed)
{
    Cadre__V1__Feed *wire = &storage->feed;
    cadre__v1__feed__init(wire);
    wire->steps = feed->steps;
    wire->samples = feed->samples;
    wire->fed_low = feed->fed[0];
    wire->fed_high = feed->fed[1];
    if (feed->provable) {
        cadre__v1__feed_expected__init(&storage->expected);
        storage->expected.low = feed->expected[0];
        storage->expected.high = feed->expected[1];
        wire->expected = &storage->expected;
        wire->files = (Cadre__V1__FeedFiles)feed->files;
    }
}

Cadre__V1__Verified *fill_verified(Cadre__V1__Verified *storage, const struct verified *verified)
{
    if (verified->digest == 0) {
        return NULL;
    }
    cadre__v1__verified__init(storage);
    storage->position = verified->position;
    storage->digest = verified->digest;
    return storage;
}

struct verified take_verified(struct taker *taker, const Cadre__V1__Verified *wire)
{
    if (wire == NULL) {
        return (struct verified){0};
    }
    return (struct verified){.position = take_position(taker, "Verified.position", wire->position),
        .digest = take_number(taker, "Verified.digest", wire->digest, 1, UINT64_MAX)};
}

struct feed take_feed(struct taker *taker, const Cadre__V1__Feed *wire)
{
    if (wire == NULL) {
        return (struct feed){.steps = 0};
    }
    struct feed feed = {
        .steps = take_position(taker, "Feed.steps", wire->steps),
        .samples = take_position(taker, "Feed.samples", wire->samples),
        .fed = {wire->fed_low, wire->fed_high},
        .provable = wire->expected != NULL,
    };
    if (feed.provable) {
        feed.expected[0] = wire->expected->low;
        feed.expected[1] = wire->expected->high;
        feed.files = (enum feed_files)take_number(
            taker, "Feed.files", (uint64_t)wire->files, FEED_FILES_NONE, FEED_FILES_ALL);
    }
    return feed;
}

void fill_task_exit(struct packer *packer, Cadre__V1__TaskExit *wire, const struct task_exit *end)
{
    cadre__v1__task_exit__init(wire);
    wire->code = end->code;
    wire->signal = end->signal;
    wire->text = packer_text(packer, end->text);
}

void take_task_exit(
    struct taker *taker, const Cadre__V1__TaskExit *wire, struct task_exit *ret_exit)
{
    *ret_exit = (struct task_exit){
        .code = take_i32(taker, "TaskExit.code", wire->code, 0, 255),
        .signal = take_i32(taker, "TaskExit.signal", wire->signal, 0, 64),
    };
    const char *text = take_text(taker, "TaskExit.text", wire->text);
    memcpy(ret_exit->text, text, strlen(text) + 1);
}

void fill_refused(
    struct packer *packer, Cadre__V1__Refused *wire, const struct task_refused *refused)
{
    cadre__v1__refused__init(wire);
    wire->code = (int32_t)refused->code;
    wire->text = packer_text(packer, refused->text);
}

void take_refused(
    struct taker *taker, const Cadre__V1__Refused *wire, struct task_refused *ret_refused)
{
    *ret_refused = (struct task_refused){
        .code = (cadre_status)take_i32(
            taker, "Refused.code", wire->code, CADRE_CANCELLED, CADRE_UNAUTHENTICATED),
        .text = take_text(taker, "Refused.text", wire->text),
    };
}

static Cadre__V1__Metric **fill_metrics(struct packer *packer, const struct progress *progress)
{
    size_t count = progress->metric_count;
    Cadre__V1__Metric **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__Metric *metrics = packer_array(packer, count, sizeof *metrics);
    if (list == NULL || metrics == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        cadre__v1__metric__init(&metrics[i]);
        metrics[i].name = (char *)progress->metrics[i].name;
        metrics[i].value = progress->metrics[i].value;
        list[i] = &metrics[i];
    }
    return list;
}

void fill_progress(
    struct packer *packer, Cadre__V1__Progress *wire, const struct progress *progress)
{
    cadre__v1__progress__init(wire);
    wire->stream = (char *)progress->stream;
    wire->epoch = progress->epoch;
    wire->epochs = progress->epochs;
    wire->step = progress->step;
    wire->steps = progress->steps;
    wire->samples_per_s = progress->samples_per_s;
    wire->left_s = progress->left_s;
    wire->metrics = fill_metrics(packer, progress);
    wire->n_metrics = wire->metrics != NULL ? progress->metric_count : 0;
}

void take_progress(
    struct taker *taker, const Cadre__V1__Progress *wire, struct progress *ret_progress)
{
    *ret_progress = (struct progress){
        .stream = take_name_or_empty(taker, "Progress.stream", wire->stream),
        .epoch = wire->epoch,
        .epochs = wire->epochs,
        .step = wire->step,
        .steps = wire->steps,
        .samples_per_s = wire->samples_per_s,
        .left_s = wire->left_s,
    };
    if (!take_count(taker, "Progress.metrics", wire->n_metrics, LIMIT_METRICS)) {
        return;
    }
    struct metric *metrics = take_array(taker, wire->n_metrics, sizeof *metrics);
    if (metrics == NULL) {
        return;
    }
    for (size_t i = 0; i < wire->n_metrics; i++) {
        metrics[i] = (struct metric){
            .name = take_name(taker, "Metric.name", wire->metrics[i]->name),
            .value = wire->metrics[i]->value,
        };
    }
    ret_progress->metrics = metrics;
    ret_progress->metric_count = wire->n_metrics;
}
