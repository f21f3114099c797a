/*
 * xfer: copy files between two machines over TCP, or over any two pipes: an example of csync_engine_*.
 *
 *   xfer serve DIR 7000                                    on one machine
 *   xfer push report.pdf host:7000                         on the other
 *   xfer pull report.pdf host:7000 copy.pdf
 *   xfer push report.pdf --via 'ssh host xfer serve DIR -' through ssh: nothing listens, ssh knows the users
 *
 * Where the receiver has an older version of a file, only what differs is sent. A file is replaced as a whole or not at
 * all. There is no encryption and no password here: over TCP, serve on loopback or in a network that you trust.
 *
 * A connection, command by command:
 *
 *   client   PUSH MODE NAME                      PULL NAME
 *   server   OK, or ERROR TEXT                   OK MODE, or ERROR TEXT
 *            csync_engine_push() at the end that has the file, csync_engine_pull() at the other
 *   server   OK, or ERROR TEXT                   likewise
 *
 * Lines and files share the connection. That is sound because the two ends take turns: nobody sends a line before the
 * other end's call has read everything that belongs to it. A name or a text holds no control characters: those, and
 * `%`, are written %XX.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4, pipe2 */
#endif
#include <csync_rs.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* A line: a word or two, and a name of which every byte may be escaped. */
#define LONGEST_LINE (3 * PATH_MAX + 64)

static const char usage_text[] =
	"usage: xfer serve DIR [HOST:]PORT          offer the files in DIR over TCP (HOST: 127.0.0.1)\n"
	"       xfer serve DIR -                    the same over standard input and output\n"
	"       xfer push FILE HOST:PORT [NAME]     send FILE; it becomes DIR/NAME there\n"
	"       xfer pull NAME HOST:PORT [FILE]     fetch DIR/NAME\n"
	"       xfer push FILE --via COMMAND [NAME] through a command that serves on its standard input and\n"
	"       xfer pull NAME --via COMMAND [FILE] output: 'ssh host xfer serve DIR -'\n"
	"A - in place of HOST:PORT speaks over standard input and output.\n"
	"  --fsync             new files are on the disk before they are reported\n"
	"  --timeout SECONDS   how long a silent peer is waited for (600)\n"
	"exit status: 0 done, 1 failed, 2 bad usage\n";

static struct {
	const char *via;
	bool fsync;
	unsigned int timeout; /* in seconds */
} settings = { .timeout = 600 };

/* The other end. */
struct peer {
	int in, out;
	struct csync_engine *engine;
	pid_t command;       /* that --via has started, or 0 */
	char *showing; /* the name in the progress bar, or NULL for no bar */
	struct timespec started;
};

/* ---- Messages: standard output belongs to the protocol ---------------------------------------------------------- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	char text[LONGEST_LINE + 1024];
	va_list arguments;

	/* One write, so that the lines of several processes do not mix. */
	int length = snprintf(text, sizeof(text), "xfer: ");
	va_start(arguments, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s\n", text);
}

static int fail(const char *what, const char *why)
{
	say("%s: %s", what, why);
	return FAILED;
}

/* Control characters and `%` as %XX, for lines and for terminals. */
static const char *escaped(const char *text)
{
	static char buffers[2][LONGEST_LINE];
	static unsigned int turn;
	char *start = buffers[turn++ % 2], *out = start;

	for (; *text && out < start + LONGEST_LINE - 4; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == 0x7f || c == '%')
			out += sprintf(out, "%%%02X", c);
		else
			*out++ = (char)c;
	}
	*out = 0;
	return start;
}

/* The opposite, in place; false for what escaped() does not make. */
static bool unescape(char *text)
{
	char *out = text;
	unsigned int value;

	for (; *text; text++) {
		if (*text != '%') {
			*out++ = *text;
			continue;
		}
		if (strspn(text + 1, "0123456789ABCDEF") < 2 || sscanf(text + 1, "%2X", &value) != 1 || value == 0)
			return false;
		*out++ = (char)value;
		text += 2;
	}
	*out = 0;
	return true;
}

/* ---- Ctrl-C ------------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;
static struct csync_engine *volatile running;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
	/* Ends the call that is under way: the file is left as it was. */
	csync_engine_cancel(running);
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- Progress ---------------------------------------------------------------------------------------------------- */

static int show_progress(void *userdata, enum csync_verb verb, uint64_t done, uint64_t announced)
{
	static const char bar[] = "##############################";
	const struct peer *peer = userdata;
	struct timespec now;

	(void)verb;
	if (!peer->showing)
		return interrupted;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double seconds = (double)(now.tv_sec - peer->started.tv_sec) + (double)(now.tv_nsec - peer->started.tv_nsec) / 1e9;
	/* Headers are counted as done and not as announced. */
	double part = announced ? (double)done / (double)announced : 0;
	if (part > 1)
		part = 1;
	fprintf(stderr, "\r%-24.24s [%-30.*s] %3.0f%% %10.1f MiB %8.1f MiB/s ", peer->showing, (int)(part * 30), bar,
		part * 100, (double)done / 1048576, (double)done / 1048576 / (seconds > 0 ? seconds : 1));
	return interrupted;
}

static void end_progress(const struct peer *peer)
{
	if (peer->showing)
		fputc('\n', stderr);
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

/* Waits until the descriptor is ready; false, with errno, when that takes too long or Ctrl-C came. */
static bool wait_for(int descriptor, short events)
{
	for (unsigned int waited = 0; waited <= settings.timeout * 10; waited++) {
		struct pollfd polled = { .fd = descriptor, .events = events };
		if (interrupted) {
			errno = ECANCELED;
			return false;
		}
		if (poll(&polled, 1, 100) > 0)
			return true;
	}
	errno = ETIMEDOUT;
	return false;
}

/* Byte by byte: what follows the line belongs to the engine. 1, 0 at the end of the connection, or -1 with errno. */
static int read_line(const struct peer *peer, char *line, size_t size)
{
	size_t length = 0;

	while (length < size) {
		if (!wait_for(peer->in, POLLIN))
			return -1;
		ssize_t count = read(peer->in, line + length, 1);
		if (count < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (count < 0)
			return -1;
		if (count == 0) {
			errno = ECONNRESET;
			return length == 0 ? 0 : -1;
		}
		if (line[length] == '\n') {
			line[length] = 0;
			if (memchr(line, 0, length))
				break;
			return 1;
		}
		length++;
	}
	errno = EPROTO;
	return -1;
}

static bool write_line(const struct peer *peer, const char *word, const char *rest)
{
	char line[LONGEST_LINE];
	const char *next = line;
	size_t left = (size_t)snprintf(line, sizeof(line), "%s%s%s\n", word, *rest ? " " : "", rest);

	if (left >= sizeof(line)) {
		errno = ENAMETOOLONG;
		return false;
	}
	while (left > 0) {
		if (!wait_for(peer->out, POLLOUT))
			return false;
		ssize_t count = write(peer->out, next, left);
		if (count < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (count > 0) {
			next += count;
			left -= (size_t)count;
		}
	}
	return true;
}

/* The server's answer: true for OK, with what stands behind it. Else it is told, with the name. */
static bool answer_is_ok(const struct peer *peer, const char *name, char *line)
{
	int result = read_line(peer, line, LONGEST_LINE);

	if (result <= 0) {
		say("%s: no answer: %s", escaped(name), errno == ECANCELED ? "cancelled"
			: result == 0 ? "the connection was closed" : strerror(errno));
		return false;
	}
	if (!strcmp(line, "OK") || !strncmp(line, "OK ", 3)) {
		memmove(line, line + 2, strlen(line + 2) + 1);
		return true;
	}
	if (!strncmp(line, "ERROR ", 6))
		say("the other end says: %s", line + 6);
	else
		say("%s: the other end does not speak xfer: %.100s", escaped(name), escaped(line));
	return false;
}

/* ---- The engine -------------------------------------------------------------------------------------------------- */

static bool make_engine(struct peer *peer)
{
	struct csync_options options = {
		.size = sizeof(options),
		.fsync = settings.fsync,
		.keepalive = 1,
		.silence_limit = settings.timeout * 1000,
		/* Whoever sends a file does not own it here. */
		.ignore_owner = geteuid() != 0,
		.userdata = peer,
		.progress = show_progress,
	};
	enum csync_status status = csync_engine_over_descriptors(peer->in, peer->out, &options, &peer->engine);

	if (status != CSYNC_OK)
		say("connection: %s", csync_status_text(status));
	running = peer->engine;
	return status == CSYNC_OK;
}

static void free_engine(struct peer *peer)
{
	running = NULL;
	csync_engine_free(peer->engine);
}

/* Whether both ends are in step, so that a line may follow. */
static bool in_step(enum csync_status status)
{
	switch (status) {
	case CSYNC_E_CONNECTION:
	case CSYNC_E_TIMEOUT:
	case CSYNC_E_CANCELLED:
	case CSYNC_E_PAYLOAD:
	case CSYNC_E_STATE:
	case CSYNC_E_INTERNAL:
		return false;
	default:
		return true;
	}
}

/* What the engine says of its last call, which names the file. */
static const char *reason(const struct peer *peer)
{
	return escaped(csync_engine_error(peer->engine));
}

/* A file that was not there is private at first; it gets the mode of the original, less the umask. */
static enum csync_status receive_file(struct peer *peer, const char *path, mode_t mode)
{
	struct stat stat;
	bool is_new = lstat(path, &stat) != 0;
	enum csync_status status = csync_engine_pull(peer->engine, path);
	mode_t mask = umask(0);

	umask(mask);
	if (status == CSYNC_OK && is_new && chmod(path, mode & 0777 & ~mask))
		say("%s: setting its mode: %s", escaped(path), strerror(errno));
	return status;
}

/* NULL, or why it cannot be sent. */
static const char *not_to_be_sent(const char *path, struct stat *stat)
{
	if (lstat(path, stat))
		return strerror(errno);
	return S_ISREG(stat->st_mode) ? NULL : "not a regular file";
}

/* ---- Client ------------------------------------------------------------------------------------------------------ */

/* The end of a transfer: our own reason, or else the other end's. */
static int finish(const struct peer *peer, enum csync_status status, const char *name)
{
	char line[LONGEST_LINE];

	end_progress(peer);
	if (status != CSYNC_OK && status != CSYNC_E_PEER) {
		say("%s", reason(peer));
		return FAILED;
	}
	return answer_is_ok(peer, name, line) && status == CSYNC_OK ? DONE : FAILED;
}

static int push(struct peer *peer, const char *path, const char *name)
{
	char line[LONGEST_LINE], command[32];
	struct stat stat;
	const char *why_not = not_to_be_sent(path, &stat);

	if (why_not)
		return fail(escaped(path), why_not);
	snprintf(command, sizeof(command), "PUSH %o", (unsigned int)stat.st_mode & 0777);
	if (!write_line(peer, command, escaped(name)))
		return fail(escaped(name), strerror(errno));
	if (!answer_is_ok(peer, name, line))
		return FAILED;
	return finish(peer, csync_engine_push(peer->engine, path), name);
}

static int pull(struct peer *peer, const char *name, const char *path)
{
	char line[LONGEST_LINE];

	if (!write_line(peer, "PULL", escaped(name)))
		return fail(escaped(name), strerror(errno));
	if (!answer_is_ok(peer, name, line))
		return FAILED;
	return finish(peer, receive_file(peer, path, (mode_t)strtoul(line, NULL, 8)), name);
}

/* ---- Server ------------------------------------------------------------------------------------------------------ */

/* Names stay below the directory that is served: no part is empty, `.` or `..`. */
static bool is_allowed(const char *name)
{
	for (;;) {
		size_t length = strcspn(name, "/");
		if (length == 0 || (length == 1 && name[0] == '.') || (length == 2 && !memcmp(name, "..", 2)))
			return false;
		if (!name[length])
			return true;
		name += length + 1;
	}
}

/* Answers a command that is not carried out. */
static bool refuse(const struct peer *peer, const char *name, const char *why)
{
	char text[LONGEST_LINE];

	snprintf(text, sizeof(text) - 16, "%s: %s", escaped(name), why);
	if (peer->in != STDIN_FILENO)
		say("%s", text);
	return write_line(peer, "ERROR", text);
}

/* Answers a command that was. False where the connection is of no more use. */
static bool conclude(const struct peer *peer, enum csync_status status)
{
	if (status == CSYNC_OK)
		return write_line(peer, "OK", "");
	/* Over pipes our standard error is often the client's: what the client is told is not said twice. */
	if (!in_step(status) || peer->in != STDIN_FILENO)
		say("%s", reason(peer));
	return in_step(status) && write_line(peer, "ERROR", reason(peer));
}

static bool serve_push(struct peer *peer, char *arguments)
{
	struct stat stat;
	char *name;
	mode_t mode = (mode_t)strtoul(arguments, &name, 8);

	if (*name++ != ' ' || !unescape(name) || !is_allowed(name))
		return refuse(peer, name, "not an allowed name");
	if (!lstat(name, &stat) && !S_ISREG(stat.st_mode))
		return refuse(peer, name, S_ISDIR(stat.st_mode) ? strerror(EISDIR) : "not a regular file");
	if (mkpath(name, 0777))
		return refuse(peer, name, strerror(errno));
	if (!write_line(peer, "OK", ""))
		return false;
	return conclude(peer, receive_file(peer, name, mode));
}

static bool serve_pull(struct peer *peer, char *name)
{
	struct stat stat;
	char mode[16];

	if (!unescape(name) || !is_allowed(name))
		return refuse(peer, name, "not an allowed name");
	const char *why_not = not_to_be_sent(name, &stat);
	if (!why_not && access(name, R_OK))
		why_not = strerror(errno);
	if (why_not)
		return refuse(peer, name, why_not);
	snprintf(mode, sizeof(mode), "%o", (unsigned int)stat.st_mode & 0777);
	return write_line(peer, "OK", mode) && conclude(peer, csync_engine_push(peer->engine, name));
}

/* One client, to its end. */
static int converse(int in, int out)
{
	struct peer peer = { .in = in, .out = out };
	char line[LONGEST_LINE];
	bool usable = make_engine(&peer);
	int result = 0;

	while (usable && (result = read_line(&peer, line, sizeof(line))) > 0) {
		if (!strncmp(line, "PUSH ", 5))
			usable = serve_push(&peer, line + 5);
		else if (!strncmp(line, "PULL ", 5))
			usable = serve_pull(&peer, line + 5);
		else
			usable = refuse(&peer, line, "not a command of xfer");
	}
	if (usable && result < 0)
		say("waiting for a command: %s", errno == ECANCELED ? "cancelled" : strerror(errno));
	free_engine(&peer);
	return usable && result == 0 ? DONE : FAILED;
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Splits [HOST:]PORT; an IPv6 address stands in brackets. */
static struct addrinfo *resolve(const char *address, bool listening)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char host[NI_MAXHOST] = "127.0.0.1";
	const char *colon = strrchr(address, ':');

	if (colon || !listening)
		snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - address) : 0, address);
	size_t length = strlen(host);
	if (host[0] == '[' && host[length - 1] == ']') {
		memmove(host, host + 1, length - 2);
		host[length - 2] = 0;
	}
	if (!host[0]) {
		say("%s: not HOST:PORT", address);
		return NULL;
	}
	int error = getaddrinfo(host, colon ? colon + 1 : address, &hints, &found);
	if (error)
		say("%s: %s", address, gai_strerror(error));
	return found;
}

/*
 * Lines are short and waited for: they leave at once. Nobody else has this socket, so that it may be set not to wait: then
 * the kernel sends a file by itself.
 */
static void send_at_once(int connection)
{
	int on = 1;
	fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) | O_NONBLOCK);
	setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int connect_to(const char *address)
{
	struct addrinfo *found = resolve(address, false);
	int connection = -1;

	for (const struct addrinfo *each = found; each && connection < 0; each = each->ai_next) {
		connection = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0);
		if (connection >= 0 && connect(connection, each->ai_addr, each->ai_addrlen)) {
			int error = errno;
			close(connection);
			connection = -1;
			errno = error;
		}
	}
	if (found && connection < 0)
		say("%s: %s", address, strerror(errno));
	if (found)
		freeaddrinfo(found);
	send_at_once(connection);
	return connection;
}

static int listen_at(const char *address)
{
	struct addrinfo *found = resolve(address, true);
	int on = 1;

	if (!found)
		return -1;
	int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, found->ai_addr, found->ai_addrlen) || listen(listener, 64)) {
		say("%s: %s", address, strerror(errno));
		close(listener);
		listener = -1;
	}
	freeaddrinfo(found);
	return listener;
}

/* Says where, for those who gave port 0 too. */
static void announce(int listener, const char *directory)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	getsockname(listener, (struct sockaddr *)&address, &length);
	if (!getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV))
		say("serving %s at %s:%s", directory, host, port);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* A process for each client, until Ctrl-C. */
static int serve_clients(int listener)
{
	for (; !interrupted; reap()) {
		struct pollfd polled = { .fd = listener, .events = POLLIN };
		if (poll(&polled, 1, 200) <= 0)
			continue;
		int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (connection < 0)
			continue;
		pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			close(listener);
			send_at_once(connection);
			_exit(converse(connection, connection));
		}
		if (child < 0)
			say("a client was turned away: %s", strerror(errno));
		close(connection);
	}
	return DONE;
}

static int serve(const char *directory, const char *address)
{
	if (chdir(directory))
		return fail(directory, strerror(errno));
	if (!strcmp(address, "-"))
		return converse(STDIN_FILENO, STDOUT_FILENO);
	int listener = listen_at(address);
	if (listener < 0)
		return FAILED;
	announce(listener, directory);
	return serve_clients(listener);
}

/* Starts the command of --via between two pipes. */
static bool start_command(struct peer *peer)
{
	int there[2], back[2];

	if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC)) {
		say("%s: %s", settings.via, strerror(errno));
		return false;
	}
	peer->command = fork();
	if (peer->command == 0) {
		dup2(there[0], STDIN_FILENO);
		dup2(back[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", settings.via, (char *)NULL);
		_exit(127);
	}
	close(there[0]);
	close(back[1]);
	peer->in = back[0];
	peer->out = there[1];
	return peer->command > 0;
}

static bool reach(struct peer *peer, const char *address)
{
	if (settings.via)
		return start_command(peer);
	if (!strcmp(address, "-")) {
		peer->in = STDIN_FILENO;
		peer->out = STDOUT_FILENO;
		return true;
	}
	peer->in = peer->out = connect_to(address);
	return peer->in >= 0;
}

/* Closes the connection, which the other end takes as the end, and waits for the command of --via. */
static void leave(struct peer *peer)
{
	int status = 0;

	free_engine(peer);
	close(peer->out);
	if (peer->in != peer->out)
		close(peer->in);
	while (peer->command > 0 && waitpid(peer->command, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) > 1)
		say("%s: exit status %d", settings.via, WEXITSTATUS(status));
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* push FILE ... [NAME], or pull NAME ... [FILE] */
static int transfer(bool pushing, const char *from, const char *address, const char *to)
{
	struct peer peer = { .in = -1 };
	int result = FAILED;

	if (!to)
		to = last_part(from);
	if (!*from || !*to || !last_part(pushing ? from : to)[0])
		return fail(from, "not the name of a file");
	if (!reach(&peer, address))
		return FAILED;
	if (isatty(STDERR_FILENO))
		peer.showing = strdup(escaped(last_part(from)));
	clock_gettime(CLOCK_MONOTONIC, &peer.started);
	if (make_engine(&peer))
		result = pushing ? push(&peer, from, to) : pull(&peer, from, to);
	leave(&peer);
	free(peer.showing);
	return result;
}

/* ---- Command line ------------------------------------------------------------------------------------------------ */

static int usage(void)
{
	fputs(usage_text, stderr);
	return USAGE;
}

static bool read_options(int count, char **arguments)
{
	static const struct option known[] = {
		{ "via", required_argument, NULL, 'v' },     { "fsync", no_argument, NULL, 'f' },
		{ "timeout", required_argument, NULL, 't' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;
	char *end;

	while ((option = getopt_long(count, arguments, "h", known, NULL)) != -1) {
		switch (option) {
		case 'v':
			settings.via = optarg;
			break;
		case 'f':
			settings.fsync = true;
			break;
		case 't':
			settings.timeout = (unsigned int)strtoul(optarg, &end, 10);
			if (*end || settings.timeout < 1 || settings.timeout > 1000000)
				return false;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(DONE);
		default:
			return false;
		}
	}
	return true;
}

int main(int count, char **arguments)
{
	if (!read_options(count, arguments))
		return usage();
	catch_signals();
	char **rest = arguments + optind; /* ends in NULL */
	int given = count - optind;
	const char *command = given > 0 ? rest[0] : "";
	bool pushing = !strcmp(command, "push");

	if (!strcmp(command, "serve") && given == 3 && !settings.via)
		return serve(rest[1], rest[2]);
	if (!pushing && strcmp(command, "pull"))
		return usage();
	if (settings.via && (given == 2 || given == 3))
		return transfer(pushing, rest[1], NULL, rest[2]);
	if (!settings.via && (given == 3 || given == 4))
		return transfer(pushing, rest[1], rest[2], rest[3]);
	return usage();
}
