/* SPDX-License-Identifier: Apache-2.0
 * Values that the objects have in common. */
#include "common/json/json_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

json_t *json_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

json_t *json_finite(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_text(const char *value)
{
    json_t *json = json_string(value);
    return json != NULL ? json : json_null(); /* not UTF-8, which the wire checks exclude */
}

json_t *json_verified(uint64_t position, uint64_t digest)
{
    char digits[24];
    json_t *json = json_object();
    snprintf(digits, sizeof digits, "%016" PRIx64, digest);
    json_object_set_new(json, "position", json_number(position));
    json_object_set_new(json, "digest", json_text(digits));
    return json;
}

static json_t *number_if(bool known, uint64_t value)
{
    return known ? json_number(value) : json_null();
}

json_t *json_usage(const cadre_usage *usage)
{
    json_t *json = json_object();
    json_object_set_new(json, "cpu_thousandths", number_if(usage->has_cpu, usage->cpu_thousandths));
    json_object_set_new(json, "memory_bytes", number_if(usage->has_memory, usage->memory_bytes));
    json_object_set_new(
        json, "memory_peak_bytes", number_if(usage->has_memory_peak, usage->memory_peak_bytes));
    json_object_set_new(json, "gpu_percent", number_if(usage->has_gpu, usage->gpu_percent));
    json_object_set_new(
        json, "gpu_memory_bytes", number_if(usage->has_gpu_memory, usage->gpu_memory_bytes));
    return json;
}
