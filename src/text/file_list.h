/* Several files in one setting: names with commas between. A name with a comma that exists is one file. */
#ifndef AT_FILE_LIST_H
#define AT_FILE_LIST_H

#include "base/error.h"

typedef struct at_file_list {
    char **path;
    int count;
    char *names; /* what the paths point into */
} at_file_list;

/* NULL has no file. Refuses an empty name. */
bool at_file_list_split(const char *names, at_file_list *list, at_error *error);
void at_file_list_free(at_file_list *list);

#endif
