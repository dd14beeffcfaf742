/* One table type for all settings: rows as attend_unstable.h declares them, and what the layers above share about them. */
#ifndef AT_SETTINGS_H
#define AT_SETTINGS_H

#include "attend_unstable.h"

/* Which rows of a table were given a value, by index. A table asserts that it has no more rows. */
enum { AT_MOST_SETTINGS = 128 };
typedef struct at_given {
    bool row[AT_MOST_SETTINGS];
} at_given;

/* The rows of a table by index, NULL past the last. */
typedef const at_setting *at_setting_rows(int index);

/* The index of a row; -1: there is none of that name. */
int at_setting_find(at_setting_rows *rows, const char *name);
/* The same, and a failure that suggests names if there is none. */
int at_setting_expect(at_setting_rows *rows, const char *name, at_error *error);

/* The value for a file: counts and switches as such, everything else as text, so that a number is read back bit for bit.
 * A text must be set. NULL if out of memory. */
struct json_t *at_setting_to_json(const at_setting *row, const void *from);

/* Whether the field is 0, empty or unset. */
bool at_setting_is_zero(const at_setting *row, const void *from);

/* The number in the fewest digits that read back as the same: 0.0005, 2e+01. Returns the number of digits. */
int at_number_shortest(double value, char *text, size_t size);

#endif
