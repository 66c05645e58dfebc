/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as an answer of an object store, as an ini file of credentials, and
 * as the JSON of a container's agent and the XML of STS; the first byte chooses. What is accepted
 * is within its bounds, and what is refused has a sentence. */
#include <stdint.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/storage/s3/answers.h"
#include "common/storage/s3/errors.h"
#include "common/storage/s3/flat_json.h"
#include "common/storage/s3/flat_xml.h"
#include "common/storage/s3/profile_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_answer(enum s3_answer_kind kind, const uint8_t *data, size_t size)
{
    struct s3_answer answer;
    struct cadre_error error = {.code = CADRE_OK};
    cadre_status status = s3_answer_parse(kind, data, size, &answer, &error);
    CADRE_ASSERT(status == error.code && (status == CADRE_OK || error.text[0] != '\0'));
    CADRE_ASSERT(answer.item_count <= S3_ITEMS_MAX);
    for (size_t i = 0; i < answer.item_count; i++) {
        const struct s3_item *item = &answer.items[i];
        CADRE_ASSERT(kind == S3_ANSWER_PARTS ? item->part > 0 : item->key != NULL);
        CADRE_ASSERT(
            i == 0 || kind != S3_ANSWER_LIST || strcmp(answer.items[i - 1].key, item->key) <= 0);
    }
    CADRE_ASSERT(!answer.truncated || answer.next[0] != '\0');
    s3_answer_free(&answer);
}

static void judge(const uint8_t *data, size_t size)
{
    struct s3_verdict verdict;
    const struct s3_failure failure = {
        .operation = S3_GET_OBJECT,
        .path = "s3://b/k",
        .endpoint = "https://h",
        .region = "us-east-1",
        .source = "a test",
        .status = size > 0 ? 100 + 2 * data[0] : 403,
        .body = data,
        .body_bytes = size,
    };
    s3_judge(&failure, &verdict);
    CADRE_ASSERT(verdict.error.code != CADRE_OK && verdict.error.text[0] != '\0');
    CADRE_ASSERT(
        verdict.repeat + verdict.renew_credentials + verdict.move + verdict.set_clock <= 1);
}

static void read_profile(enum s3_profile_kind kind, const char *text, size_t size)
{
    struct s3_profile_value value;
    struct cadre_error error = {.code = CADRE_OK};
    cadre_status status =
        s3_profile_find(text, size, kind, "default", "region", &value, NULL, &error);
    CADRE_ASSERT(status == error.code && (status == CADRE_OK || error.text[0] != '\0'));
    CADRE_ASSERT(status != CADRE_OK || value.text == NULL ||
                 (value.text >= text && value.text + value.bytes <= text + size));
}

static void read_json(const char *text, size_t size)
{
    char value[64];
    enum s3_json_result result = s3_json_text(text, size, "Token", value, sizeof value);
    CADRE_ASSERT(strlen(value) < sizeof value);
    CADRE_ASSERT(result == S3_JSON_FOUND || value[0] == '\0');
    bool found = s3_xml_text(text, size, "Token", value, sizeof value);
    CADRE_ASSERT(strlen(value) < sizeof value && (found || value[0] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    unsigned which = data[0] % 9;
    data++;
    size--;
    if (which <= S3_ANSWER_COMPLETED) {
        read_answer((enum s3_answer_kind)which, data, size);
    } else if (which == S3_ANSWER_COMPLETED + 1) {
        judge(data, size);
    } else if (which == S3_ANSWER_COMPLETED + 2) {
        read_profile(S3_PROFILE_CREDENTIALS, (const char *)data, size);
    } else if (which == S3_ANSWER_COMPLETED + 3) {
        read_profile(S3_PROFILE_CONFIG, (const char *)data, size);
    } else {
        read_json((const char *)data, size);
    }
    return 0;
}
