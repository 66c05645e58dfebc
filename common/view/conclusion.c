/* SPDX-License-Identifier: Apache-2.0 */
#include "common/view/conclusion.h"

const char *conclusion_name(enum conclusion conclusion)
{
    switch (conclusion) {
    case CONCLUSION_AUDITED:
        return "proved";
    case CONCLUSION_PARTLY_AUDITED:
        return "partly proved";
    case CONCLUSION_NOTHING:
        return "nothing proved";
    case CONCLUSION_DIFFERS:
        return "differs";
    }
    return "unknown";
}

uint64_t steps_unknown(const cadre_verification *verification)
{
    uint64_t before = verification->generation_count > 0 ? verification->generations[0].first : 0;
    uint64_t own = verification->committed > before ? verification->committed - before : 0;
    return own > verification->steps_proved ? own - verification->steps_proved : 0;
}

enum conclusion conclusion_of(const cadre_verification *verification)
{
    if (verification->differing > 0 || !verification->tiled) {
        return CONCLUSION_DIFFERS;
    }
    if (verification->exact + verification->as_defined == 0 || verification->steps_proved == 0) {
        return CONCLUSION_NOTHING;
    }
    return verification->more || steps_unknown(verification) > 0 ? CONCLUSION_PARTLY_AUDITED
                                                                 : CONCLUSION_AUDITED;
}
