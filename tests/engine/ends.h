/*
 * Two ends of a connection in one process, each with an engine and a thread of its own: one has the new version of a
 * file, the other gets it, by check, delta and patch; then a second file follows, which shows whether they are in step.
 */
#ifndef ENDS_H
#define ENDS_H

#include <csync_rs.h>
#include <stdbool.h>

enum side { SENDER, RECEIVER };

/* What the receiver has before. */
enum scene {
	EDITED, /* an older version */
	ABSENT, /* nothing */
	EMPTIED, /* content, and the new version is empty */
	LEFT,   /* an older version, and the temporary file of a process that was killed */
	SCENES
};
extern const char *const scene_names[SCENES];

/* What carries the bytes. */
enum carrier { MEMORY, SOCKETS, PIPES };

enum call { READ, WRITE };

/* What a transport in memory does at its nth call that could move bytes. */
enum trouble {
	NO_TROUBLE,
	/* The transfer has to pass untouched: */
	CUT_SHORT,
	ONCE_EINTR,
	ONCE_EAGAIN,
	ONCE_ZERO,
	/* Both ends have to end. Once, and then it could go on: */
	ONCE_EIO,
	/* From the nth call on, all of them: */
	ALWAYS_ZERO,
	ALWAYS_EIO,
	ALWAYS_EPIPE,
	ALWAYS_ECONNRESET,
	TROUBLES
};
extern const char *const trouble_names[TROUBLES];
#define IS_HARMLESS(trouble) ((trouble) <= ONCE_ZERO)
#define IS_ONCE(trouble) ((trouble) <= ONCE_EIO)

/* What came of the calls at one end. */
struct outcome {
	int status[3];     /* check or signature; push or pull; the second file's. -1: not called */
	char error[3][700];
	bool finished;
};

struct play {
	enum scene scene;
	enum carrier carrier;
	bool fsync;
	const char *temp_dir;
	/* A fault of the transport in memory. */
	enum side side;
	enum call call;
	enum trouble trouble;
	unsigned int nth;
	bool fired;
	/* Called in a thread of its own end, before its engine is made. */
	void (*prepare)(enum side side);
	struct outcome outcome[2];
};

/* The directory of the plays, with src/ and dst/ in it; NULL: a new one. */
void ends_open(const char *directory);
void ends_close(void);
extern char ends_directory[200], ends_source[250], ends_target[250];

/* Makes the files of a scene. */
void set_scene(enum scene scene);
/* Both ends, to the end. */
void perform(struct play *play);

/* A file's content in memory of its own; data NULL where there is no such file. */
struct content {
	char *data;
	size_t length;
};
struct content content_of(const char *path);
bool same_content(struct content one, struct content other);
extern struct content old_content, new_content, second_content;

/* Names in a directory other than those expected: their number, and the last of them. */
unsigned int strangers(const char *directory, char *name);
bool is_temporary(const char *name);

#endif
