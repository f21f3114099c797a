/* csync_tls_server: which configurations and which descriptors; nothing is sent. */
#define MAKE_SESSION csync_tls_server
#include "tls_side.h"

CT_MAIN("test_tls_server", cases)
