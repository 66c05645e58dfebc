/* SPDX-License-Identifier: Apache-2.0
 * The files of proto/ as protoc compiled them, comments included: a serialized
 * google.protobuf.FileDescriptorSet, made at build. Each file comes after those that it imports. */
#ifndef CADRE_WIRE_DESCRIPTORS_H
#define CADRE_WIRE_DESCRIPTORS_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t wire_descriptors[];
extern const size_t wire_descriptors_size;

#endif
