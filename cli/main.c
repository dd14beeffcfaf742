#include <stdio.h>

#include "attend.h"

int main(void)
{
    printf("attend %s\n", at_version());
    return 0;
}
