/* SPDX-License-Identifier: Apache-2.0
 * What the floor's store does with a request: objects are files FOLDER/BUCKET/KEY, whose names have
 * the key as it is encoded in the request. Signatures are not looked at. A body that is not kept
 * (floor_keeps()) was received, and its object has as many zeros. The bucket "keys-N" has N keys
 * and no objects. */
#ifndef BENCH_OBJECT_STORAGE_FLOOR_OBJECTS_H
#define BENCH_OBJECT_STORAGE_FLOOR_OBJECTS_H

#include "floor_http.h"

/* Whether its body is kept: of small objects, and of no part of an upload. */
bool floor_keeps(const struct request *request);

/* `body`: of request->body_bytes, NULL where it is not kept. The reply is the caller's to end. */
void floor_answer(
    const char *folder, const struct request *request, const char *body, struct reply *ret_reply);

#endif
