/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/summary_event.h"

#include "common/pure/assert.h"
#include "tensorflow/event.pb-c.h"

#define FILE_VERSION "brain.Event:2" /* readers then take SessionLog.START for a restart */
#define TEXT_PLUGIN  "text"

/* protobuf-c's structs of one value; they point into each other. */
struct summary_parts {
    Tensorflow__SessionLog session_log;
    Tensorflow__Summary summary;
    Tensorflow__Summary__Value value;
    Tensorflow__Summary__Value *values[1];
    Tensorflow__HistogramProto histogram;
    Tensorflow__TensorProto tensor;
    Tensorflow__TensorShapeProto shape;
    Tensorflow__SummaryMetadata metadata;
    Tensorflow__SummaryMetadata__PluginData plugin;
    ProtobufCBinaryData text[1];
};

static void summary_fill_histogram(
    struct summary_parts *parts, const struct summary_histogram *histogram)
{
    tensorflow__histogram_proto__init(&parts->histogram);
    parts->histogram.min = histogram->min;
    parts->histogram.max = histogram->max;
    parts->histogram.num = histogram->count;
    parts->histogram.sum = histogram->sum;
    parts->histogram.sum_squares = histogram->sum_squares;
    parts->histogram.n_bucket_limit = histogram->bucket_count;
    parts->histogram.bucket_limit = histogram->limits;
    parts->histogram.n_bucket = histogram->bucket_count;
    parts->histogram.bucket = histogram->counts;
    parts->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO;
    parts->value.histo = &parts->histogram;
}

/* A scalar of type string, as tf.summary.text makes it. */
static void summary_fill_text(struct summary_parts *parts, const struct summary_event *event)
{
    tensorflow__tensor_proto__init(&parts->tensor);
    tensorflow__tensor_shape_proto__init(&parts->shape);
    tensorflow__summary_metadata__init(&parts->metadata);
    tensorflow__summary_metadata__plugin_data__init(&parts->plugin);
    parts->text[0].data = (uint8_t *)event->text; /* only read */
    parts->text[0].len = event->text_bytes;
    parts->tensor.dtype = TENSORFLOW__DATA_TYPE__DT_STRING;
    parts->tensor.tensor_shape = &parts->shape;
    parts->tensor.n_string_val = 1;
    parts->tensor.string_val = parts->text;
    parts->plugin.plugin_name = (char *)TEXT_PLUGIN;
    parts->metadata.plugin_data = &parts->plugin;
    parts->metadata.data_class = TENSORFLOW__DATA_CLASS__DATA_CLASS_TENSOR;
    parts->value.metadata = &parts->metadata;
    parts->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    parts->value.tensor = &parts->tensor;
}

static void summary_fill_value(
    struct summary_parts *parts, const struct summary_event *event, Tensorflow__Event *message)
{
    CADRE_ASSERT(event->tag != NULL);
    tensorflow__summary__init(&parts->summary);
    tensorflow__summary__value__init(&parts->value);
    parts->values[0] = &parts->value;
    parts->value.tag = (char *)event->tag;
    if (event->kind == SUMMARY_HISTOGRAM) {
        summary_fill_histogram(parts, event->histogram);
    } else if (event->kind == SUMMARY_TEXT) {
        summary_fill_text(parts, event);
    } else {
        parts->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        parts->value.simple_value = (float)event->scalar;
    }
    parts->summary.n_value = 1;
    parts->summary.value = parts->values;
    message->what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    message->summary = &parts->summary;
}

cadre_status wire_pack_summary_event(
    const struct summary_event *event, struct wire_buffer *buffer, struct cadre_error *error)
{
    Tensorflow__Event message = TENSORFLOW__EVENT__INIT;
    struct summary_parts parts;
    message.wall_time = (double)event->wall_us / 1e6;
    message.step = (int64_t)event->step;
    if (event->kind == SUMMARY_FILE_VERSION) {
        message.what_case = TENSORFLOW__EVENT__WHAT_FILE_VERSION;
        message.file_version = (char *)FILE_VERSION;
    } else if (event->kind == SUMMARY_START) {
        tensorflow__session_log__init(&parts.session_log);
        parts.session_log.status = TENSORFLOW__SESSION_LOG__SESSION_STATUS__START;
        message.what_case = TENSORFLOW__EVENT__WHAT_SESSION_LOG;
        message.session_log = &parts.session_log;
    } else {
        summary_fill_value(&parts, event, &message);
    }
    size_t size = tensorflow__event__get_packed_size(&message);
    if (!wire_buffer_reserve(buffer, size)) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an event of %zu bytes", size);
    }
    size_t packed = tensorflow__event__pack(&message, buffer->bytes + buffer->size);
    CADRE_ASSERT(packed == size);
    buffer->size += size;
    return CADRE_OK;
}
