/* What the fuzzers share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "attend.h"

/* libFuzzer calls the first with every input, and the second, where it is defined, to make an input from another one. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

/* Aborts unless it holds: a find. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            __builtin_trap();                                                                                          \
    } while (0)

/* Success without a message, or a failure with one. The library's is of one line, in UTF-8. */
void expect_error(bool succeeded, const at_error *error);
void expect_message(bool succeeded, const at_error *error);

/* The bytes as a file without a name on disk; its path is valid until the next file is opened. Close it with close. */
int open_bytes(const uint8_t *bytes, size_t size, const char **path);

/* An empty folder of this process, the same one each time; in memory if there is such a file system. empty_folder removes its
 * files, and the folder is removed at the end. write_bytes replaces a file. */
const char *own_folder(void);
void empty_folder(void);
void write_bytes(const char *path, const void *bytes, size_t size);

/* A text that ends with a NUL, and ends at the first NUL of the input; to release with free. */
char *text_of(const uint8_t *bytes, size_t size);

/* The bytes as a picture, which has pixels of that number or an error message, also in another size and as grey. */
void expect_picture(const uint8_t *bytes, size_t size);

/* A mutator of safetensors files: it changes the header as JSON, texts in the metadata that are JSON too, and the values;
 * most of what it makes is a file that can be read, whose offsets fit and whose checksum is right. */
size_t mutate_tensors(uint8_t *bytes, size_t size, size_t most, unsigned seed);

#endif
