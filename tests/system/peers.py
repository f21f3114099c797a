"""What stands between two nodes, or in the place of one: a proxy that can meddle, and a scripted peer."""

import contextlib
import socket
import ssl
import struct
import threading


class Cut(Exception):
    """Raised by a hook: forward these bytes and then drop the connection on both sides."""

    def __init__(self, last=b""):
        super().__init__()
        self.last = last


class Listener:
    """Serves each connection to (host, port) in a thread of its own. A context manager."""

    def __init__(self, host, port):
        self.socket = socket.create_server((host, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self._guarded, args=(connection,), daemon=True).start()

    def _guarded(self, connection):
        with connection, contextlib.suppress(OSError):
            self.serve(connection)

    def serve(self, connection):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # shutdown wakes the thread in accept(); close alone would leave the port listening
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Proxy(Listener):
    """Node 1 takes it for node n; behind it is node n's server, at another port.

    hook(upwards, data, total) is given all that passes (total bytes have passed before in this
    direction), and returns what to forward instead, or raises Cut.
    """

    def __init__(self, lab, n, server_port, hook):
        self.source, self.target, self.hook = lab.hosts[1], (lab.hosts[n], server_port), hook
        super().__init__(lab.hosts[n], lab.port)

    def serve(self, connection):
        with socket.create_connection(self.target, source_address=(self.source, 0)) as server:
            up = threading.Thread(target=self._pump, args=(connection, server, True), daemon=True)
            up.start()
            self._pump(server, connection, False)
            up.join()

    def _pump(self, source, target, upwards):
        total = 0
        try:
            while data := source.recv(65536):
                target.sendall(self.hook(upwards, data, total))
                total += len(data)
            target.shutdown(socket.SHUT_WR)
        except Cut as cut:
            target.sendall(cut.last)
            for end in (source, target):
                drop(end)
        except OSError:
            pass


def drop(connection):
    """End a connection for both directions, whatever else still holds it."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)


class ScriptedPeer(Listener):
    """Answers the first line of a connection with a fixed text and closes."""

    def __init__(self, lab, n, answer):
        self.answer = answer
        super().__init__(lab.hosts[n], lab.port)

    def serve(self, connection):
        connection.recv(4096)
        connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


class RawClient:
    """Speaks to node n's server line by line, as node 1, without TLS; buffer: what the system may keep for it, in
    bytes. A context manager."""

    KEY = "lab" * 20

    def __init__(self, lab, n, buffer=None):
        self.socket = socket.create_connection((lab.hosts[n], lab.port), timeout=10, source_address=(lab.hosts[1], 0))
        if buffer:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                self.socket.setsockopt(socket.SOL_SOCKET, option, buffer)
        self.stream = self.socket.makefile("rb")
        self.ask("CONFIG")
        self.ask(f"HELLO {lab.hosts[1]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, data):
        with contextlib.suppress(ConnectionError):  # (the answer will tell)
            self.socket.sendall(data)

    def line(self):
        """The next line without its end; empty when the server has closed the connection."""
        try:
            return self.stream.readline().decode(errors="replace").rstrip("\n")
        except ConnectionError:
            return ""

    def ask(self, command):
        """Send a command, and return the first line of the answer."""
        self.send(command.encode() + b"\n")
        return self.line()

    def file(self, command, name, *arguments):
        """A command on a file in the tree; returns the first line of the answer."""
        return self.ask(" ".join([command, self.KEY, f"%25tree%25/{name}", *arguments]))

    def patch(self, name, delta, meanwhile=lambda: None):
        """PATCH with a delta of one's own, and something done before it is sent; returns the answer to it."""
        answer = self.file("PATCH", name)
        if answer != "OK (send_data).":
            return answer
        length = int(self.line().split()[1])
        if length > 0:  # (the original sends -1 where it cannot make a signature)
            self.stream.read(length)
        meanwhile()
        self.send(b"octet-stream %d\n%b" % (len(delta), delta))
        return self.line()


class TlsPeer(Listener):
    """Takes node n's place, in TLS. answers(line) is its answer to a line of the client's. When it has said
    good-bye it neither reads nor closes, until the test is over. `ahead` is sent in plain text, ahead of TLS."""

    def __init__(self, lab, n, answers, ahead=b""):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.num_tickets = 0  # (the original takes a session ticket for a failure: C1)
        self.context.load_cert_chain(lab.etc(n) / "csync2_ssl_cert.pem", lab.etc(n) / "csync2_ssl_key.pem")
        self.answers, self.ahead, self.over = answers, ahead, threading.Event()
        super().__init__(lab.hosts[n], lab.port)

    def serve(self, connection):
        connection.recv(len(b"SSL\n"))
        connection.sendall(b"OK (activating_ssl).\n" + self.ahead)
        with self.context.wrap_socket(connection, server_side=True) as tls, tls.makefile("rb") as lines:
            for line in lines:
                tls.sendall(self.answers(line))
                if line.startswith(b"BYE"):
                    self.over.wait()

    def __exit__(self, *arguments):
        self.over.set()
        super().__exit__(*arguments)
