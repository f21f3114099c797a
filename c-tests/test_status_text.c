/* csync_status_text: any number has words; the numbers are fixed. */
#include "csync_rs.h"
#include "ends.h"

#include <limits.h>
#include <string.h>

_Static_assert(CSYNC_OK == 0 && CSYNC_E_ARGUMENT == 1 && CSYNC_E_FILE == 2 && CSYNC_E_CHANGED == 3 && CSYNC_E_PEER == 4
	       && CSYNC_E_FORMAT == 5 && CSYNC_E_CONNECTION == 6 && CSYNC_E_TIMEOUT == 7 && CSYNC_E_CANCELLED == 8
	       && CSYNC_E_MEMORY == 9 && CSYNC_E_PAYLOAD == 10 && CSYNC_E_STATE == 11 && CSYNC_E_INTERNAL == 12
	       && CSYNC_E_IDENTITY == 13,
	       "programs are compiled with these");
_Static_assert(CSYNC_SEND == 1 && CSYNC_RECEIVE == 2 && CSYNC_SIGNATURE == 3 && CSYNC_CHECK == 4 && CSYNC_DELTA == 5
	       && CSYNC_PATCH == 6 && CSYNC_PUSH == 7 && CSYNC_PULL == 8, "and with these");

static void each_status_has_words_of_its_own(void)
{
	for (int i = CSYNC_OK; i <= CSYNC_E_IDENTITY; i++) {
		assert_true(strlen(csync_status_text(i)) > 0);
		assert_string_not_equal(csync_status_text(i), csync_status_text(-1));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(csync_status_text(i), csync_status_text(j));
	}
}

static void any_number_is_allowed(void)
{
	static const int numbers[] = { -1, 14, 15, 255, 256, -13, INT_MAX, INT_MIN, 1 << 16, -(1 << 16) };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_string_equal(csync_status_text(numbers[i]), "an unknown status");
}

static void the_text_is_constant(void)
{
	const char *before = csync_status_text(CSYNC_E_FILE);

	csync_status_text(CSYNC_E_PEER);
	assert_ptr_equal(before, csync_status_text(CSYNC_E_FILE));
}

static const struct ct_case cases[] = {
	OURS(each_status_has_words_of_its_own),
	OURS(any_number_is_allowed),
	OURS(the_text_is_constant),
};
CT_MAIN("test_status_text", cases)
