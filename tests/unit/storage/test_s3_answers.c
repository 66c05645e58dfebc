/* SPDX-License-Identifier: Apache-2.0
 * Answers in XML: those of several stores, and hostile ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "common/storage/s3/answers.h"
#include "tests/lib/test.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define S3   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static const char list_page[] =
    HEAD "<ListBucketResult" S3 "><Name>bucket</Name><Prefix>a/</Prefix><KeyCount>4</KeyCount>"
         "<MaxKeys>4</MaxKeys><Delimiter>/</Delimiter><EncodingType>url</EncodingType>"
         "<IsTruncated>true</IsTruncated>"
         "<NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</"
         "NextContinuationToken>"
         "<Contents><Key>a/b+c%2B%C3%A4.txt</Key><LastModified>2013-05-24T00:00:00.000Z</"
         "LastModified>"
         "<ETag>&quot;70ee1738b6b21e2c8a43f3a5ab0eee71&quot;</ETag><Size>1073741824</Size>"
         "<Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner>"
         "<StorageClass>STANDARD</StorageClass></Contents>"
         "<Contents><Key>a/z</Key><Size>0</Size></Contents>"
         "<CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes>"
         "<CommonPrefixes><Prefix>a/%7E/</Prefix></CommonPrefixes></ListBucketResult>";

static const char uploads_page[] =
    HEAD "<ListMultipartUploadsResult" S3 "><Bucket>b</Bucket><KeyMarker/><UploadIdMarker/>"
         "<NextKeyMarker>a%20b</NextKeyMarker><NextUploadIdMarker>XYZ%20</NextUploadIdMarker>"
         "<EncodingType>url</EncodingType><MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>"
         "<Upload><Key>a%20b</Key><UploadId>XMgbGlrZSBlbHZpbmcncyBub3QgaGF2aW5n</UploadId>"
         "<Initiator><ID>i</ID></Initiator><Initiated>2013-05-24T00:00:00.000Z</Initiated></Upload>"
         "<Upload><Key>a%20b</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>";

static const char parts_page[] =
    HEAD "<ListPartsResult" S3 "><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId>"
         "<PartNumberMarker>0</PartNumberMarker><NextPartNumberMarker>2</NextPartNumberMarker>"
         "<MaxParts>2</MaxParts><IsTruncated>true</IsTruncated>"
         "<Part><PartNumber>2</PartNumber><ETag>\"b\"</ETag><Size>7</Size></Part>"
         "<Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag><Size>5242880</Size></Part>"
         "</ListPartsResult>";

static const char upload[] =
    HEAD "<InitiateMultipartUploadResult" S3 "><Bucket>b</Bucket><Key>k</Key>"
         "<UploadId>VXBsb2FkIElE.x_y-z~</UploadId></InitiateMultipartUploadResult>";

static const char completed[] =
    HEAD "  \n\n <CompleteMultipartUploadResult" S3 "><Location>http://h/b/k</Location>"
         "<Bucket>b</Bucket><Key>k</Key><ETag>\"3858f62230ac3c915f300c664312c11f-9\"</ETag>"
         "</CompleteMultipartUploadResult>";

static const char failed[] =
    HEAD "<Error><Code>InternalError</Code><Message>We encountered\nan internal error.!?</Message>"
         "<Region>eu-west-1</Region><Endpoint>b.s3.amazonaws.com</Endpoint>"
         "<ServerTime>2013-05-24T00:00:00Z</ServerTime><HostId>x</HostId></Error>";

static const struct {
    enum s3_answer_kind kind;
    const char *text;
} samples[] = {
    {S3_ANSWER_LIST, list_page},
    {S3_ANSWER_UPLOADS, uploads_page},
    {S3_ANSWER_PARTS, parts_page},
    {S3_ANSWER_UPLOAD, upload},
    {S3_ANSWER_COMPLETED, completed},
};
#define SAMPLES (sizeof samples / sizeof samples[0])

static void parse_good(enum s3_answer_kind kind, const char *text, struct s3_answer *ret_answer)
{
    struct cadre_error error;
    assert_ok(s3_answer_parse(kind, text, strlen(text), ret_answer, &error), &error);
}

static void assert_bad(
    enum s3_answer_kind kind, const char *text, cadre_status status, const char *part)
{
    struct s3_answer answer;
    struct cadre_error error;
    assert_error(s3_answer_parse(kind, text, strlen(text), &answer, &error), status, &error, part);
    assert_null(answer.memory);
    assert_null(answer.items);
}

static void a_page_of_a_list(void **state)
{
    struct s3_answer answer;
    (void)state;
    parse_good(S3_ANSWER_LIST, list_page, &answer);
    assert_false(answer.is_error);
    assert_true(answer.truncated);
    assert_string_equal(answer.next, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
    assert_int_equal(answer.item_count, 4);
    /* In the order of the bytes: ' ' is before '/', which is before 'z' and '~'. */
    assert_string_equal(answer.items[0].key, "a/b c+\xc3\xa4.txt");
    assert_int_equal(answer.items[0].bytes, 1073741824);
    assert_int_equal(answer.items[0].time_us, INT64_C(1369353600000000));
    assert_string_equal(answer.items[0].etag, "\"70ee1738b6b21e2c8a43f3a5ab0eee71\"");
    assert_false(answer.items[0].is_folder);
    assert_string_equal(answer.items[1].key, "a/b/");
    assert_true(answer.items[1].is_folder);
    assert_string_equal(answer.items[2].key, "a/z");
    assert_null(answer.items[2].etag);
    assert_string_equal(answer.items[3].key, "a/~/");
    s3_answer_free(&answer);
    assert_null(answer.items);
}

/* A store that does not know encoding-type=url gives keys as they are. */
static void keys_that_are_not_encoded(void **state)
{
    struct s3_answer answer;
    (void)state;
    parse_good(S3_ANSWER_LIST,
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>100%25+x &amp; "
        "&#x20;&#228;</Key></Contents></ListBucketResult>",
        &answer);
    assert_false(answer.truncated);
    assert_string_equal(answer.items[0].key, "100%25+x &  \xc3\xa4");
    s3_answer_free(&answer);
    parse_good(S3_ANSWER_LIST, "<s3:ListBucketResult xmlns:s3='x'/>", &answer);
    assert_int_equal(answer.item_count, 0);
    s3_answer_free(&answer);
}

static void uploads_and_parts(void **state)
{
    struct s3_answer answer;
    (void)state;
    parse_good(S3_ANSWER_UPLOADS, uploads_page, &answer);
    assert_int_equal(answer.item_count, 2);
    assert_string_equal(answer.items[0].key, "a b");
    assert_string_equal(answer.items[0].upload, "XMgbGlrZSBlbHZpbmcncyBub3QgaGF2aW5n");
    assert_int_equal(answer.items[0].time_us, INT64_C(1369353600000000));
    assert_string_equal(answer.items[1].upload, "2");
    assert_string_equal(answer.next, "a b");
    assert_string_equal(answer.next_upload, "XYZ%20"); /* is no key */
    s3_answer_free(&answer);
    parse_good(S3_ANSWER_PARTS, parts_page, &answer);
    assert_int_equal(answer.item_count, 2);
    assert_int_equal(answer.items[0].part, 1);
    assert_int_equal(answer.items[0].bytes, 5242880);
    assert_string_equal(answer.items[0].etag, "\"a\"");
    assert_int_equal(answer.items[1].part, 2);
    assert_string_equal(answer.next, "2");
    s3_answer_free(&answer);
}

static void an_upload_begins_and_ends(void **state)
{
    struct s3_answer answer;
    (void)state;
    parse_good(S3_ANSWER_UPLOAD, upload, &answer);
    assert_string_equal(answer.upload, "VXBsb2FkIElE.x_y-z~");
    s3_answer_free(&answer);
    parse_good(S3_ANSWER_COMPLETED, completed, &answer);
    assert_false(answer.is_error);
    assert_string_equal(answer.etag, "\"3858f62230ac3c915f300c664312c11f-9\"");
    s3_answer_free(&answer);
}

/* Status 200 was sent before the store knew. */
static void a_success_that_is_an_error(void **state)
{
    char text[2048];
    struct s3_answer answer;
    (void)state;
    parse_good(S3_ANSWER_COMPLETED, failed, &answer);
    assert_true(answer.is_error);
    assert_string_equal(answer.error.code, "InternalError");
    assert_string_equal(answer.error.message, "We encountered an internal error.!?");
    assert_null(answer.items);
    s3_answer_free(&answer);
    snprintf(text, sizeof text, " \r\n\t%s", HEAD "<Error><Code>SlowDown</Code></Error>");
    parse_good(S3_ANSWER_COMPLETED, text, &answer);
    assert_string_equal(answer.error.code, "SlowDown");
    s3_answer_free(&answer);
}

static void errors(void **state)
{
    static const char good[] =
        "<Error><Code>RequestTimeTooSkewed</Code><Message>a\xc2\x9b\xe2\x80\xae"
        "b</Message><ServerTime>2013-05-24T00:00:00Z</ServerTime><Region>eu-west-1</Region>"
        "<Endpoint>e</Endpoint><Deep><Code>no</Code></Deep></Error>";
    struct s3_error_answer error;
    char text[8192];
    (void)state;
    assert_true(s3_error_parse(good, strlen(good), &error));
    assert_string_equal(error.code, "RequestTimeTooSkewed");
    assert_string_equal(error.region, "eu-west-1");
    assert_string_equal(error.endpoint, "e");
    assert_string_equal(error.server_time, "2013-05-24T00:00:00Z");
    /* What a terminal would act on is not in it. */
    assert_null(strchr(error.message, '\x9b'));
    assert_null(strstr(error.message, "\xe2\x80\xae"));
    assert_false(s3_error_parse("", 0, &error));
    assert_false(s3_error_parse("<html></html>", 13, &error));
    assert_string_equal(error.code, "");
    assert_false(s3_error_parse(list_page, strlen(list_page), &error));
    assert_false(s3_error_parse(good, strlen(good) - 1, &error));
    int length = snprintf(text, sizeof text, "<Error><Code>%0500d</Code></Error>", 7);
    assert_true(s3_error_parse(text, (size_t)length, &error));
    assert_int_equal(strlen(error.code), S3_CODE_BYTES - 1);
}

static void hostile_documents(void **state)
{
    static const char laughs[] =
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
        "\"&a;&a;&a;&a;\">]><ListBucketResult><Contents><Key>&b;</Key></Contents>"
        "</ListBucketResult>";
    static const char file[] =
        "<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><ListBucketResult><Contents><Key>"
        "&f;</Key></Contents></ListBucketResult>";
    (void)state;
    assert_bad(S3_ANSWER_LIST, laughs, CADRE_UNAVAILABLE, "it declares a document type");
    assert_bad(S3_ANSWER_LIST, file, CADRE_UNAVAILABLE, "it declares a document type");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><Contents><Key>&x;</Key></Contents></ListBucketResult>",
        CADRE_UNAVAILABLE, "undefined entity");
    assert_bad(S3_ANSWER_LIST, "", CADRE_UNAVAILABLE, "no element found");
    assert_bad(S3_ANSWER_LIST, "<!DOCTYPE html><html></html>", CADRE_UNAVAILABLE,
        "is this an object store");
    assert_bad(
        S3_ANSWER_LIST, "<html></html>", CADRE_UNAVAILABLE, "another document than was asked for");
    /* An element without content ends in the same step in which it is refused. */
    assert_bad(S3_ANSWER_LIST, "<html/>", CADRE_UNAVAILABLE, "another document than was asked for");
    assert_bad(S3_ANSWER_LIST, "<ListBucketResult><a><a><a><a><a><a><a><a/>", CADRE_UNAVAILABLE,
        "too deep");
    assert_bad(S3_ANSWER_LIST, upload, CADRE_UNAVAILABLE, "another document than was asked for");
    assert_bad(S3_ANSWER_LIST, "{\"a\": 1}", CADRE_UNAVAILABLE, "cannot be read");
    assert_bad(S3_ANSWER_LIST, "<ListBucketResult><Contents/></ListBucketResult>",
        CADRE_UNAVAILABLE, "entry 1 has no name");
    assert_bad(S3_ANSWER_LIST, "<ListBucketResult><Contents><Key/></Contents></ListBucketResult>",
        CADRE_UNAVAILABLE, "entry 1 has no name");
    assert_bad(S3_ANSWER_PARTS,
        "<ListPartsResult><Part><PartNumber>0</PartNumber><ETag>e</ETag></Part></ListPartsResult>",
        CADRE_UNAVAILABLE, "entry 1 has no name");
    assert_bad(S3_ANSWER_PARTS,
        "<ListPartsResult><Part><PartNumber>4294967297</PartNumber><ETag>e</ETag></Part>"
        "</ListPartsResult>",
        CADRE_UNAVAILABLE, "entry 1 has no name");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>",
        CADRE_UNAVAILABLE, "a number is none");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>"
        "</ListBucketResult>",
        CADRE_UNAVAILABLE, "a number is none");
    assert_bad(S3_ANSWER_UPLOAD, "<InitiateMultipartUploadResult/>", CADRE_UNAVAILABLE,
        "no name of an upload");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", CADRE_DATA_LOSS,
        "has a next page, and does not say which");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%00b</Key></Contents>"
        "</ListBucketResult>",
        CADRE_DATA_LOSS, "a zero byte");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2</Key></Contents>"
        "</ListBucketResult>",
        CADRE_DATA_LOSS, "encoded wrongly");
    assert_bad(S3_ANSWER_LIST,
        "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult><x/>",
        CADRE_UNAVAILABLE, "junk");
}

/* A document of `count` times `part` between `begin` and `end`; the caller's to free. */
static char *many(const char *begin, const char *part, size_t count, const char *end)
{
    size_t room = strlen(begin) + count * strlen(part) + strlen(end) + 1;
    char *text = malloc(room);
    char *at = text;
    assert_non_null(text);
    at += snprintf(at, room, "%s", begin);
    for (size_t i = 0; i < count; i++) {
        memcpy(at, part, strlen(part));
        at += strlen(part);
    }
    memcpy(at, end, strlen(end) + 1);
    return text;
}

static void documents_beyond_the_bounds(void **state)
{
    struct s3_answer answer;
    struct cadre_error error;
    (void)state;
    char *text = many("<ListBucketResult>", "<a>", 7, "");
    assert_bad(S3_ANSWER_LIST, text, CADRE_UNAVAILABLE, "no element found");
    free(text);
    text = many("<ListBucketResult>", "<a>", 100000, "");
    assert_bad(S3_ANSWER_LIST, text, CADRE_UNAVAILABLE, "too deep");
    free(text);
    text = many("<ListBucketResult><Contents><Key>", "k", 8192, "</Key>");
    assert_bad(S3_ANSWER_LIST, text, CADRE_UNAVAILABLE, "is too long");
    free(text);
    text = many("<ListBucketResult><Contents><Key>", "%C3%A4", 512,
        "</Key></Contents>"
        "</ListBucketResult>");
    parse_good(S3_ANSWER_LIST, text, &answer);
    s3_answer_free(&answer);
    free(text);
    text = many("<ListBucketResult><Other>", "x", 1000000, "</Other></ListBucketResult>");
    parse_good(S3_ANSWER_LIST, text, &answer);
    s3_answer_free(&answer);
    free(text);
    text = many("<ListBucketResult>", "<Contents><Key>k</Key></Contents>", S3_ITEMS_MAX,
        "</ListBucketResult>");
    parse_good(S3_ANSWER_LIST, text, &answer);
    assert_int_equal(answer.item_count, S3_ITEMS_MAX);
    s3_answer_free(&answer);
    free(text);
    text = many("<ListBucketResult>", "<Contents><Key>k</Key></Contents>", S3_ITEMS_MAX + 1,
        "</ListBucketResult>");
    assert_bad(S3_ANSWER_LIST, text, CADRE_UNAVAILABLE, "more entries than a page may have");
    free(text);
    assert_error(s3_answer_parse(S3_ANSWER_LIST, "", S3_ANSWER_BYTES_MAX + 1, &answer, &error),
        CADRE_UNAVAILABLE, &error, "more than a page may have");
}

/* A connection that ended early, wherever, never gives a page. */
static void answers_that_end_early(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        char *text = strdup(samples[i].text);
        assert_non_null(text);
        for (size_t length = strlen(text); length > 0; length--) {
            text[length - 1] = '\0';
            assert_bad(samples[i].kind, text, CADRE_UNAVAILABLE, "cannot be read");
        }
        free(text);
    }
}

/* Bytes that changed: a page or a sentence, and never a crash. */
static void answers_that_are_damaged(void **state)
{
    struct prng random = {.state = 7};
    size_t accepted = 0;
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        size_t which = prng_uniform(&random, SAMPLES);
        size_t size = strlen(samples[which].text);
        char *text = strdup(samples[which].text);
        struct s3_answer answer;
        struct cadre_error error = {.code = CADRE_OK};
        assert_non_null(text);
        for (uint64_t left = 1 + prng_uniform(&random, 4); left > 0; left--) {
            text[prng_uniform(&random, size)] = (char)prng_uniform(&random, 256);
        }
        cadre_status status = s3_answer_parse(samples[which].kind, text, size, &answer, &error);
        accepted += status == CADRE_OK ? 1 : 0;
        assert_true(status == CADRE_OK || error.text[0] != '\0');
        s3_answer_free(&answer);
        free(text);
    }
    assert_in_range(accepted, 1, 19999);
}

static void memory_that_is_short(void **state)
{
    struct s3_answer answer;
    struct cadre_error error;
    uint64_t nth = 0;
    bool was_hit = true;
    (void)state;
    char *text = many("<ListBucketResult>", "<Contents><Key>0123456789abcdef</Key></Contents>",
        S3_ITEMS_MAX, "</ListBucketResult>");
    while (was_hit) {
        fault_arm("storage.memory", ++nth);
        cadre_status status = s3_answer_parse(S3_ANSWER_LIST, text, strlen(text), &answer, &error);
        was_hit = fault_disarm();
        assert_int_equal(status, was_hit ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        assert_true(!was_hit || (answer.items == NULL && answer.memory == NULL));
    }
    assert_in_range(nth, 10, 20); /* the parser, chunks of text, the items as they grow */
    s3_answer_free(&answer);
    free(text);
}

static void the_body_that_ends_an_upload(void **state)
{
    static const char *const etags[] = {"\"a\"", "b", "<&>"};
    size_t size = 0;
    (void)state;
    char *body = s3_complete_body(etags, 3, &size);
    assert_non_null(body);
    assert_int_equal(size, strlen(body));
    assert_string_equal(body,
        "<CompleteMultipartUpload" S3 ">"
        "<Part><PartNumber>1</PartNumber><ETag>&quot;a&quot;</ETag></Part>"
        "<Part><PartNumber>2</PartNumber><ETag>&quot;b&quot;</ETag></Part>"
        "<Part><PartNumber>3</PartNumber><ETag>&quot;&lt;&amp;&gt;&quot;</ETag></Part>"
        "</CompleteMultipartUpload>");
    free(body);
    const char **many_etags = calloc(10000, sizeof *many_etags);
    assert_non_null(many_etags);
    for (size_t i = 0; i < 10000; i++) {
        many_etags[i] = "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"";
    }
    body = s3_complete_body(many_etags, 10000, &size);
    assert_non_null(body);
    assert_int_equal(size, strlen(body));
    free(body);
    free(many_etags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_a_list),
        cmocka_unit_test(keys_that_are_not_encoded),
        cmocka_unit_test(uploads_and_parts),
        cmocka_unit_test(an_upload_begins_and_ends),
        cmocka_unit_test(a_success_that_is_an_error),
        cmocka_unit_test(errors),
        cmocka_unit_test(hostile_documents),
        cmocka_unit_test(documents_beyond_the_bounds),
        cmocka_unit_test(answers_that_end_early),
        cmocka_unit_test(answers_that_are_damaged),
        cmocka_unit_test(memory_that_is_short),
        cmocka_unit_test(the_body_that_ends_an_upload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
