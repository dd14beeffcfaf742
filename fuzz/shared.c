#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"

void expect_error(bool succeeded, const at_error *error)
{
    EXPECT(succeeded == (error->code == AT_OK));
    EXPECT(succeeded == (error->text[0] == '\0'));
}

void expect_message(bool succeeded, const at_error *error)
{
    expect_error(succeeded, error);
    EXPECT(at_is_utf8(error->text));
    for (const char *at = error->text; *at; at++)
        EXPECT((unsigned char)*at >= ' ' && *at != 127);
}

int open_bytes(const uint8_t *bytes, size_t size, const char **path)
{
    static char name[40];
    const int file = memfd_create("input", 0);
    EXPECT(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    *path = name;
    return file;
}

char *text_of(const uint8_t *bytes, size_t size)
{
    char *text = strndup((const char *)bytes, size);
    EXPECT(text);
    return text;
}
