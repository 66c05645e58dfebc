/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/summary_event.h"

#include "common/pure/assert.h"
#include "tensorflow/event.pb-c.h"

#define FILE_VERSION "brain.Event:2" /* readers then take SessionLog.START for a restart */
#define TEXT_PLUGIN  "text"

/* protobuf-c's structs of one value; they point into each other. */
struct summary_fields {
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
    struct summary_fields *fields, const struct summary_histogram *histogram)
{
    tensorflow__histogram_proto__init(&fields->histogram);
    fields->histogram.min = histogram->min;
    fields->histogram.max = histogram->max;
    fields->histogram.num = histogram->count;
    fields->histogram.sum = histogram->sum;
    fields->histogram.sum_squares = histogram->sum_squares;
    fields->histogram.n_bucket_limit = histogram->bucket_count;
    fields->histogram.bucket_limit = histogram->limits;
    fields->histogram.n_bucket = histogram->bucket_count;
    fields->histogram.bucket = histogram->counts;
    fields->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_HISTO;
    fields->value.histo = &fields->histogram;
}

/* A scalar of type string, as tf.summary.text makes it. */
static void summary_fill_text(struct summary_fields *fields, const struct summary_event *event)
{
    tensorflow__tensor_proto__init(&fields->tensor);
    tensorflow__tensor_shape_proto__init(&fields->shape);
    tensorflow__summary_metadata__init(&fields->metadata);
    tensorflow__summary_metadata__plugin_data__init(&fields->plugin);
    fields->text[0].data = (uint8_t *)event->text; /* only read */
    fields->text[0].len = event->text_bytes;
    fields->tensor.dtype = TENSORFLOW__DATA_TYPE__DT_STRING;
    fields->tensor.tensor_shape = &fields->shape;
    fields->tensor.n_string_val = 1;
    fields->tensor.string_val = fields->text;
    fields->plugin.plugin_name = (char *)TEXT_PLUGIN;
    fields->metadata.plugin_data = &fields->plugin;
    fields->metadata.data_class = TENSORFLOW__DATA_CLASS__DATA_CLASS_TENSOR;
    fields->value.metadata = &fields->metadata;
    fields->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_TENSOR;
    fields->value.tensor = &fields->tensor;
}

static void summary_fill_value(
    struct summary_fields *fields, const struct summary_event *event, Tensorflow__Event *message)
{
    CADRE_ASSERT(event->tag != NULL);
    tensorflow__summary__init(&fields->summary);
    tensorflow__summary__value__init(&fields->value);
    fields->values[0] = &fields->value;
    fields->value.tag = (char *)event->tag;
    if (event->kind == SUMMARY_HISTOGRAM) {
        summary_fill_histogram(fields, event->histogram);
    } else if (event->kind == SUMMARY_TEXT) {
        summary_fill_text(fields, event);
    } else {
        fields->value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        fields->value.simple_value = (float)event->scalar;
    }
    fields->summary.n_value = 1;
    fields->summary.value = fields->values;
    message->what_case = TENSORFLOW__EVENT__WHAT_SUMMARY;
    message->summary = &fields->summary;
}

cadre_status wire_pack_summary_event(
    const struct summary_event *event, struct wire_buffer *buffer, struct cadre_error *error)
{
    Tensorflow__Event message = TENSORFLOW__EVENT__INIT;
    struct summary_fields fields;
    message.wall_time = (double)event->wall_us / 1e6;
    message.step = (int64_t)event->step;
    if (event->kind == SUMMARY_FILE_VERSION) {
        message.what_case = TENSORFLOW__EVENT__WHAT_FILE_VERSION;
        message.file_version = (char *)FILE_VERSION;
    } else if (event->kind == SUMMARY_START) {
        tensorflow__session_log__init(&fields.session_log);
        fields.session_log.status = TENSORFLOW__SESSION_LOG__SESSION_STATUS__START;
        message.what_case = TENSORFLOW__EVENT__WHAT_SESSION_LOG;
        message.session_log = &fields.session_log;
    } else {
        summary_fill_value(&fields, event, &message);
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
