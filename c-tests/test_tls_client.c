/* csync_tls_client: which configurations and which descriptors; nothing is sent. */
#define MAKE_SESSION csync_tls_client
#include "tls_side.h"

CT_MAIN("test_tls_client", cases)
