"""A server on loopback that speaks enough of S3 and of Google's XML API to read and write objects,
and fails on request.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
#: A secret that no test may find in an output.
SECRET = "5ecret-5ecret"


@dataclass(frozen=True)
class Fault:
    """The fault of one answer: its status, a delay in seconds, or bytes that it omits."""

    status: int = 200
    delay: float = 0.0
    lost: int = 0
    #: Whether the connection stays open without further bytes for `delay`.
    hangs: bool = False


#: The fault of the n-th request (from 0) for an object (empty: a list).
Faults = Callable[[str, int], Fault | None]


class ObjectServer(ThreadingHTTPServer):
    """Objects of one bucket by key, at `/bucket/key` (S3) and as files of a web server."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, *folders: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        for folder in folders:
            for file in folder.rglob("*"):
                if file.is_file():
                    self.objects[file.relative_to(folder.parent).as_posix()] = file.read_bytes()
        #: How often each object was written: Google's generation.
        self.generations: Counter[str] = Counter()
        self.fault: Faults = lambda key, number: None
        #: What the server does not have: "ETag", "Last-Modified", "Range", "404" (it answers with a
        #: page), "HEAD" (status 501), "ETag of HEAD", "Content-Length" (of compressed answers).
        self.without: frozenset[str] = frozenset()
        #: Whether it compresses an object, by key and Accept-Encoding of the request.
        self.compresses: Callable[[str, str | None], bool] = lambda key, accepted: False
        self.requests: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.flying = self.most_flying = 0

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which clients find it."""
        return self.credentials(self.url)

    @staticmethod
    def credentials(endpoint: str) -> dict[str, str]:
        """The variables with which clients find an endpoint."""
        return {
            "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": SECRET,
        }  # fmt: skip

    def google(self, folder: Path) -> dict[str, str]:
        """The variables with which clients of Google find it; writes their account."""
        account = {"gcs_base_url": self.url, "disable_oauth": True}
        empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        (folder / "account.json").write_text(json.dumps(account | empty))
        path = str(folder / "account.json")
        return {"GOOGLE_SERVICE_ACCOUNT": path, "GOOGLE_ALLOW_HTTP": "true"}

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing if a client closes the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: ObjectServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer without the object."""
        if "HEAD" in self.server.without:
            self._send(501, b"", False)
        else:
            self._answer(body=False)

    def do_GET(self) -> None:
        """Answer with the object, a part of it, or a list."""
        self._answer(body=True)

    def do_PUT(self) -> None:
        """Take an object, if it is as the client expects."""
        server = self.server
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]
        with server.lock:
            number = server.requests[f"PUT {key}"]
            server.requests[f"PUT {key}"] += 1
        fault = server.fault(f"PUT {key}", number) or Fault()
        there = server.objects.get(key)
        expected = self.headers.get("If-Match")
        generation = self.headers.get("x-goog-if-generation-match")
        if fault.status == 200 and (
            (self.headers.get("If-None-Match") == "*" and there is not None)
            or (expected is not None and (there is None or expected != _tag(there)))
            or (generation is not None and int(generation) != self._generation(key))
        ):
            self._send(412, _error("PreconditionFailed"), True)
            return
        if fault.status in (200, 504):  # 504: it was written, and the answer was lost
            server.objects[key] = data
            server.generations[key] += 1
        if fault.status != 200:
            self._send(fault.status, _error("InternalError"), True)
            return
        own = {"ETag": _tag(data), "x-goog-generation": str(self._generation(key))}
        self._send(200, b"", True, own)

    def _generation(self, key: str) -> int:
        """Google's number of an object's content; 0 where there is none."""
        return self.server.generations[key] + 1 if key in self.server.objects else 0

    def _answer(self, body: bool) -> None:
        server, asked = self.server, urlsplit(self.path)
        bucket, _, key = unquote(asked.path).lstrip("/").partition("/")
        with server.lock:
            number = server.requests[key]
            server.requests[key] += 1
            server.flying += 1
            server.most_flying = max(server.most_flying, server.flying)
        try:
            fault = server.fault(key, number) or Fault()
            if not fault.hangs:
                time.sleep(fault.delay)
            if fault.status != 200:
                self._send(fault.status, _error("InternalError"), body)
            elif bucket != BUCKET:
                self._send(404, _error("NoSuchBucket"), body)
            elif not key:
                self._send(200, self._list(parse_qs(asked.query)), body)
            elif key not in server.objects and "404" in server.without:
                self._send(200, b"<html>Not found</html>", body)
            elif key not in server.objects:
                self._send(404, _error("NoSuchKey"), body)
            else:
                self._send_object(key, body, fault)
        finally:
            with server.lock:
                server.flying -= 1

    def _send_object(self, key: str, body: bool, fault: Fault) -> None:
        data = self.server.objects[key]
        tag = {"ETag": _tag(data), "Accept-Ranges": "bytes"}
        tag["x-goog-generation"] = str(self._generation(key))
        tag["Last-Modified"] = "Mon, 02 Mar 2026 00:00:00 GMT"
        tag = {name: text for name, text in tag.items() if name not in self.server.without}
        if not body and "ETag of HEAD" in self.server.without:
            tag = {}
        span = None if "Range" in self.server.without else self.headers.get("Range")
        if self.server.compresses(key, self.headers.get("Accept-Encoding")):
            data, span = gzip.compress(data), None
            tag["Content-Encoding"] = "gzip"
        if span is None:
            self._send(200, data, body, tag, fault)
            return
        first, _, last = span.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        tag["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        self._send(206, data[begin:end], body, tag, fault)

    def _send(
        self,
        status: int,
        data: bytes,
        body: bool,
        headers: dict[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        fault = fault or Fault()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Encoding" in (headers or {}) and "Content-Length" in self.server.without:
            self.send_header("Transfer-Encoding", "chunked")
            data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data[: len(data) - fault.lost])
        if fault.hangs:
            time.sleep(fault.delay)
        self.close_connection = bool(fault.lost)

    def _list(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        contents, folders = [], set()
        for key, data in sorted(self.server.objects.items()):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if "delimiter" in query and "/" in rest:
                folders.add(prefix + rest.partition("/")[0] + "/")
                continue
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<LastModified>2026-03-02T00:00:00.000Z</LastModified>"
                f"<ETag>&quot;{hashlib.md5(data).hexdigest()}&quot;</ETag></Contents>"
            )
        below = [f"<CommonPrefixes><Prefix>{f}</Prefix></CommonPrefixes>" for f in sorted(folders)]
        return (
            '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
            f"{''.join(contents + below)}</ListBucketResult>"
        ).encode()


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def _error(code: str) -> bytes:
    message = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return message.encode()


@contextmanager
def object_server(*folders: Path) -> Iterator[ObjectServer]:
    """Serve the files of folders, by their paths from the parents of the folders on."""
    server = ObjectServer(*folders)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
