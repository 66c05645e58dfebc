/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/transport/metadata_address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "common/pure/assert.h"

static bool is_metadata_ipv4(const uint8_t bytes[4])
{
    static const uint8_t azure[4] = {168, 63, 129, 16};
    static const uint8_t alibaba[4] = {100, 100, 100, 200};
    return (bytes[0] == 169 && bytes[1] == 254) || memcmp(bytes, azure, sizeof azure) == 0 ||
           memcmp(bytes, alibaba, sizeof alibaba) == 0;
}

static bool is_metadata_ipv6(const uint8_t bytes[16])
{
    static const uint8_t amazon[4] = {0xfd, 0x00, 0x0e, 0xc2};
    static const uint8_t holders[2][12] = {
        {[10] = 0xff, [11] = 0xff},         /* ::ffff:a.b.c.d */
        {0x00, 0x64, 0xff, 0x9b, [11] = 0}, /* 64:ff9b::a.b.c.d, NAT64 */
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(holders); i++) {
        if (memcmp(bytes, holders[i], sizeof holders[i]) == 0) {
            return is_metadata_ipv4(bytes + sizeof holders[i]);
        }
    }
    bool link_local = bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
    return link_local || memcmp(bytes, amazon, sizeof amazon) == 0;
}

bool metadata_address_is(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        return is_metadata_ipv4((const uint8_t *)&ipv4.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        return is_metadata_ipv6(ipv6.sin6_addr.s6_addr);
    }
    return false;
}
