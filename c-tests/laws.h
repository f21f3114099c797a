/*
 * What holds for every verb of the engine. Each verb's program has these cases, with its own verb, ahead of what is
 * special about it.
 */
#ifndef LAWS_H
#define LAWS_H

#include "ends.h"

#define LAW(n, v) { .name = #n, .body = law_##n, .arg = &(const enum csync_verb){ v }, .original = CT_CANNOT, \
		    .why = "a function of this library alone" }
#define LAWS(v) \
	LAW(a_good_call, v), LAW(null_arguments, v), LAW(a_peer_that_is_gone, v), LAW(a_peer_that_goes_midway, v), \
	LAW(a_silent_peer_is_given_up, v), LAW(interruptions_without_end, v), LAW(refusals_and_interruptions, v), \
	LAW(cancelled_from_another_thread, v), LAW(cancelled_from_a_signal_handler, v), LAW(cancelled_before, v), \
	LAW(progress, v), LAW(progress_cancels, v), LAW(the_last_report_cancels_nothing_else, v), \
	LAW(one_call_at_a_time, v), LAW(a_callback_that_calls_again, v), LAW(no_sigpipe, v), \
	LAW(mask_and_pending_signals_stay, v), LAW(descriptors_stay_as_they_are, v), LAW(a_transport_that_carries_nothing, v), \
	LAW(a_limit_that_changes, v), LAW(closed_descriptors, v), LAW(after_a_fork, v)

void law_a_good_call(void);
void law_null_arguments(void);
void law_a_peer_that_is_gone(void);
void law_a_peer_that_goes_midway(void);
void law_a_silent_peer_is_given_up(void);
void law_interruptions_without_end(void);
void law_refusals_and_interruptions(void);
void law_cancelled_from_another_thread(void);
void law_cancelled_from_a_signal_handler(void);
void law_cancelled_before(void);
void law_progress(void);
void law_progress_cancels(void);
void law_the_last_report_cancels_nothing_else(void);
void law_one_call_at_a_time(void);
void law_a_callback_that_calls_again(void);
void law_no_sigpipe(void);
void law_mask_and_pending_signals_stay(void);
void law_descriptors_stay_as_they_are(void);
void law_a_transport_that_carries_nothing(void);
void law_a_limit_that_changes(void);
void law_closed_descriptors(void);
void law_after_a_fork(void);

/* For the verbs' own cases. */

/* An engine over descriptors, its peer played by hand, and a thread that takes what the engine sends. */
struct scene {
	struct ends e;
	csync_engine *engine;
	struct sink *sink; /* or NULL */
};
struct scene scene_of(enum ends_kind kind, const struct csync_options *options, int with_sink);
/* Frees the engine and closes both ends; what it had sent. */
struct bytes scene_end(struct scene *s);
/* A thread that cancels the engine's call in 0.2 s. */
void *cancel_soon(void *engine);

#endif
