#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "image/image.h"

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

void expect_picture(const uint8_t *bytes, size_t size)
{
    at_error error = {0};
    at_image image;
    const bool done = at_image_parse(bytes, size, "fuzz.png", &image, &error);
    expect_message(done, &error);
    EXPECT(done == (image.bytes != NULL));
    if (!done)
        return;
    EXPECT(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
    uint64_t sum = 0;
    for (size_t i = 0, end = (size_t)image.height * (size_t)image.width * (size_t)image.channels; i < end; i++)
        sum += image.bytes[i];
    EXPECT(sum <= (uint64_t)255 * (uint64_t)image.height * (uint64_t)image.width * (uint64_t)image.channels);
    EXPECT(at_image_to_channels(&image, image.height % 2 ? 1 : 3, &error));
    EXPECT(at_image_resize(&image, 5, 11, &error));
    at_image_free(&image);
}

/* ---- A folder --------------------------------------------------------------------------------------------------- */

static char folder[64];

void empty_folder(void)
{
    DIR *list = opendir(folder);
    EXPECT(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
}

static void remove_folder(void)
{
    empty_folder();
    rmdir(folder);
}

const char *own_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/attend-fuzz.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        EXPECT(mkdtemp(folder));
        atexit(remove_folder);
    }
    return folder;
}

void write_bytes(const char *path, const void *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    EXPECT(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}
