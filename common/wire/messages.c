/* SPDX-License-Identifier: Apache-2.0
 * The functions of wire.h: one pair for each message that travels by itself. */
#include <string.h>

#include "common/wire/codec.h"
#include "common/wire/tables.h"

static cadre_status messages_pack(const struct wire_table *table, const void *message,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder;
    packer_open(&encoder, buffer, error);
    const ProtobufCMessage *wire = packer_fill(&encoder, table, message);
    return encoder_finish(&encoder, wire, table->limit_bytes);
}

static cadre_status messages_unpack(const struct wire_table *table, const void *bytes, size_t size,
    struct wire_arena *arena, void *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const void *wire = decoder_open(&decoder, table->descriptor, bytes, size, table->limit_bytes);
    if (wire != NULL) {
        memset(ret_message, 0, table->model_bytes);
        taker_take(&decoder, table, wire, ret_message);
    }
    return decoder.status;
}

#define DEFINE(name, m)                                                                            \
    cadre_status wire_pack_##name(                                                                 \
        const struct name *message, struct wire_buffer *buffer, struct cadre_error *error)         \
    {                                                                                              \
        return messages_pack(&wire_table_##m, message, buffer, error);                             \
    }                                                                                              \
    cadre_status wire_unpack_##name(const void *bytes, size_t size, struct wire_arena *arena,      \
        struct name *ret_message, struct cadre_error *error)                                       \
    {                                                                                              \
        return messages_unpack(&wire_table_##m, bytes, size, arena, ret_message, error);           \
    }
WIRE_MESSAGES(DEFINE)
