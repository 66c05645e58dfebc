/* SPDX-License-Identifier: Apache-2.0
 * The parts that messages of several families have in common. */
#include <string.h>

#include "common/wire/codec.h"

void encode_task_ref(Cadre__V1__TaskRef *wire, struct task_ref ref)
{
    cadre__v1__task_ref__init(wire);
    wire->job = ref.job.n;
    wire->slot = ref.slot;
    wire->incarnation = ref.incarnation;
}

struct task_ref decode_task_ref(
    struct decoder *decoder, const char *field, const Cadre__V1__TaskRef *wire)
{
    if (!decode_present(decoder, field, wire)) {
        return (struct task_ref){.slot = 0};
    }
    return (struct task_ref){
        .job = decode_job_id(decoder, "TaskRef.job", wire->job),
        .slot = decode_u32(decoder, "TaskRef.slot", wire->slot, 0, LIMIT_TASKS_PER_JOB - 1),
        .incarnation =
            decode_number(decoder, "TaskRef.incarnation", wire->incarnation, 1, UINT64_MAX),
    };
}

Cadre__V1__Term *encode_term(Cadre__V1__Term *wire, const struct term *term)
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

struct term decode_term(struct decoder *decoder, const Cadre__V1__Term *wire)
{
    if (wire == NULL) {
        return (struct term){0};
    }
    return (struct term){
        .cluster = decode_number(decoder, "Term.cluster", wire->cluster, 1, UINT64_MAX),
        .start = decode_number(decoder, "Term.start", wire->start, 1, INT64_MAX),
        .nonce = wire->nonce};
}

void encode_generation(Cadre__V1__Generation *wire, struct generation generation)
{
    cadre__v1__generation__init(wire);
    wire->number = generation.number;
    wire->nonce = generation.nonce;
}

struct generation decode_generation(
    struct decoder *decoder, const char *field, const Cadre__V1__Generation *wire)
{
    if (!decode_present(decoder, field, wire)) {
        return (struct generation){.number = 0};
    }
    return (struct generation){
        .number = decode_number(decoder, "Generation.number", wire->number, 1, UINT64_MAX),
        .nonce = wire->nonce,
    };
}

void encode_cursor(Cadre__V1__Cursor *wire, const struct cursor *cursor)
{
    cadre__v1__cursor__init(wire);
    wire->stream = cursor->stream;
    wire->epoch = cursor->epoch;
    wire->first = cursor->first;
    wire->begin = cursor->begin;
    wire->steps = cursor->steps;
    wire->nested = cursor->nested;
}

struct cursor decode_cursor(struct decoder *decoder, const Cadre__V1__Cursor *wire)
{
    if (wire == NULL) {
        return (struct cursor){.stream = 0};
    }
    return (struct cursor){
        .stream = decode_stream(decoder, "Cursor.stream", wire->stream),
        .epoch = wire->epoch,
        .first = decode_number(decoder, "Cursor.first", wire->first, 0, wire->begin),
        .begin = decode_position(decoder, "Cursor.begin", wire->begin),
        .steps = decode_position(decoder, "Cursor.steps", wire->steps),
        .nested = wire->nested,
    };
}

void encode_consumption(struct wire_consumption *storage, const struct consumption *consumption)
{
    Cadre__V1__Consumption *wire = &storage->consumption;
    cadre__v1__consumption__init(wire);
    wire->steps = consumption->steps;
    wire->samples = consumption->samples;
    wire->consumed_low = consumption->consumed[0];
    wire->consumed_high = consumption->consumed[1];
    if (consumption->provable) {
        cadre__v1__consumption_expected__init(&storage->expected);
        storage->expected.low = consumption->expected[0];
        storage->expected.high = consumption->expected[1];
        wire->expected = &storage->expected;
        wire->files = (Cadre__V1__ConsumptionFiles)consumption->files;
    }
}

Cadre__V1__Verified *encode_verified(Cadre__V1__Verified *storage, const struct verified *verified)
{
    if (verified->digest == 0) {
        return NULL;
    }
    cadre__v1__verified__init(storage);
    storage->position = verified->position;
    storage->digest = verified->digest;
    return storage;
}

struct verified decode_verified(struct decoder *decoder, const Cadre__V1__Verified *wire)
{
    if (wire == NULL) {
        return (struct verified){0};
    }
    return (struct verified){
        .position = decode_position(decoder, "Verified.position", wire->position),
        .digest = decode_number(decoder, "Verified.digest", wire->digest, 1, UINT64_MAX)};
}

struct consumption decode_consumption(struct decoder *decoder, const Cadre__V1__Consumption *wire)
{
    if (wire == NULL) {
        return (struct consumption){.steps = 0};
    }
    struct consumption consumption = {
        .steps = decode_position(decoder, "Consumption.steps", wire->steps),
        .samples = decode_position(decoder, "Consumption.samples", wire->samples),
        .consumed = {wire->consumed_low, wire->consumed_high},
        .provable = wire->expected != NULL,
    };
    if (consumption.provable) {
        consumption.expected[0] = wire->expected->low;
        consumption.expected[1] = wire->expected->high;
        consumption.files = (enum consumed_files)decode_number(decoder, "Consumption.files",
            (uint64_t)wire->files, CONSUMED_FILES_NONE, CONSUMED_FILES_ALL);
    }
    return consumption;
}

void encode_task_exit(
    struct encoder *encoder, Cadre__V1__TaskExit *wire, const struct task_exit *end)
{
    cadre__v1__task_exit__init(wire);
    wire->code = end->code;
    wire->signal = end->signal;
    wire->text = encoder_text(encoder, end->text);
}

void decode_task_exit(
    struct decoder *decoder, const Cadre__V1__TaskExit *wire, struct task_exit *ret_exit)
{
    *ret_exit = (struct task_exit){
        .code = decode_i32(decoder, "TaskExit.code", wire->code, 0, 255),
        .signal = decode_i32(decoder, "TaskExit.signal", wire->signal, 0, 64),
    };
    const char *text = decode_text(decoder, "TaskExit.text", wire->text);
    memcpy(ret_exit->text, text, strlen(text) + 1);
}

void encode_refused(
    struct encoder *encoder, Cadre__V1__Refused *wire, const struct task_refused *refused)
{
    cadre__v1__refused__init(wire);
    wire->code = (int32_t)refused->code;
    wire->text = encoder_text(encoder, refused->text);
}

void decode_refused(
    struct decoder *decoder, const Cadre__V1__Refused *wire, struct task_refused *ret_refused)
{
    *ret_refused = (struct task_refused){
        .code = (cadre_status)decode_i32(
            decoder, "Refused.code", wire->code, CADRE_CANCELLED, CADRE_UNAUTHENTICATED),
        .text = decode_text(decoder, "Refused.text", wire->text),
    };
}

static Cadre__V1__Metric **encode_metrics(struct encoder *encoder, const struct progress *progress)
{
    size_t count = progress->metric_count;
    Cadre__V1__Metric **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__Metric *metrics = encoder_array(encoder, count, sizeof *metrics);
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

void encode_progress(
    struct encoder *encoder, Cadre__V1__Progress *wire, const struct progress *progress)
{
    cadre__v1__progress__init(wire);
    wire->stream = (char *)progress->stream;
    wire->epoch = progress->epoch;
    wire->epochs = progress->epochs;
    wire->step = progress->step;
    wire->steps = progress->steps;
    wire->samples_per_s = progress->samples_per_s;
    wire->left_s = progress->left_s;
    wire->metrics = encode_metrics(encoder, progress);
    wire->n_metrics = wire->metrics != NULL ? progress->metric_count : 0;
}

void decode_progress(
    struct decoder *decoder, const Cadre__V1__Progress *wire, struct progress *ret_progress)
{
    *ret_progress = (struct progress){
        .stream = decode_name_or_empty(decoder, "Progress.stream", wire->stream),
        .epoch = wire->epoch,
        .epochs = wire->epochs,
        .step = wire->step,
        .steps = wire->steps,
        .samples_per_s = wire->samples_per_s,
        .left_s = wire->left_s,
    };
    if (!decode_count(decoder, "Progress.metrics", wire->n_metrics, LIMIT_METRICS)) {
        return;
    }
    struct metric *metrics = decode_array(decoder, wire->n_metrics, sizeof *metrics);
    if (metrics == NULL) {
        return;
    }
    for (size_t i = 0; i < wire->n_metrics; i++) {
        metrics[i] = (struct metric){
            .name = decode_name(decoder, "Metric.name", wire->metrics[i]->name),
            .value = wire->metrics[i]->value,
        };
    }
    ret_progress->metrics = metrics;
    ret_progress->metric_count = wire->n_metrics;
}
