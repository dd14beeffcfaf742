/* libmicrohttpd, loaded when the first server starts and not before: it brings GnuTLS and seven libraries more, which start
 * in every program that is linked with them. */
#ifndef AT_MHD_INTERNAL_H
#define AT_MHD_INTERNAL_H

#include <microhttpd.h>

#include "base/error.h"

#define AT_MHD_FUNCTIONS(X)                                                                                            \
    X(start_daemon)                                                                                                    \
    X(stop_daemon)                                                                                                     \
    X(quiesce_daemon)                                                                                                  \
    X(get_daemon_info)                                                                                                 \
    X(get_timeout)                                                                                                     \
    X(run)                                                                                                             \
    X(suspend_connection)                                                                                              \
    X(resume_connection)                                                                                               \
    X(create_response_from_buffer)                                                                                     \
    X(set_response_options) X(add_response_header) X(queue_response) X(destroy_response) X(lookup_connection_value)    \
        X(get_connection_info) X(is_feature_supported)

/* Its functions without their prefix. */
typedef struct at_mhd {
#define AT_MHD_FIELD(name) __typeof__(MHD_##name) *name;
    AT_MHD_FUNCTIONS(AT_MHD_FIELD)
#undef AT_MHD_FIELD
} at_mhd;

/* Filled in by the first at_mhd_load, which fails if the library is not there. May be called at any time; it stays
 * loaded. */
extern at_mhd at_mhd_loaded;
bool at_mhd_load(at_error *error);

#endif
