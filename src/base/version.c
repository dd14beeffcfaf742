#include "attend.h"

const char *at_version(void)
{
    return AT_VERSION;
}
